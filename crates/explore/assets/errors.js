// Errors: held-out views, worst first; the same for classes and objects. What is symmetric shows here.
import { copy, copyKey, degrees, el, panel, share } from "./elements.js";
import { showStored } from "./scene.js";
import { get, query, viewAddress } from "./server.js";
import { chosenRun, network, page, whenReady } from "./main.js";

const filter = { class: null, object: null, wrong_class: false, limit: 60 };
let here = null;

export function open(place) {
  let stale = 0;
  let known = null;
  const list = el("div.near", { style: "grid-template-columns:repeat(auto-fill,minmax(205px,1fr));gap:.9rem" });
  const tables = el("div.stack");
  const head = el("h2");
  const about = el("p.small.soft", { style: "margin-bottom:.7rem" });
  const turn = (view) => { showStored(view); location.hash = "turn"; };

  /** Whether there are errors of rotation. */
  const knows = () => known.no_rotation === null;
  const taken = (view) => (view.is_wrong_class ? [el("span.bad", {}, ` taken for ${view.taken_for}`)] : []);
  const wrongView = (view) => {
    const picture = (one, text) => el("figure", {}, el("button.picture", { type: "button", onclick: () => turn(one) }, el("img", { src: viewAddress(one.object, one.view), alt: text, loading: "lazy" })), el("figcaption", {}, text));
    if (!knows()) return el("div", {}, picture(view, `view ${view.view}`), el("div.small", {}, view.class, ...taken(view)));
    const tone = view.rotation_degrees > 60 ? "bad" : view.rotation_degrees > 20 ? "warm" : "good";
    return el("div", {},
      el("div", { style: "display:grid;grid-template-columns:1fr 1fr;gap:.35rem" }, picture(view, `asked: view ${view.view}`), view.found ? picture(view.found, `found: view ${view.found.view}`) : el("div")),
      el("div.small", {}, el("b", { className: tone }, degrees(view.rotation_degrees)), ` ${view.class}`, ...taken(view)));
  };
  const table = (title, rows, isChosen, choose) => panel(el("h2", {}, title, el("small", {}, "click to see its views")), el("div.scroll", {}, el("table", {},
    el("thead", {}, el("tr", {}, ["", "views", ...(knows() ? ["error", "over 60°"] : []), "right class"].map((text) => el("th", {}, text)))),
    el("tbody", {}, rows.map((row) => el("tr.choose", { className: isChosen(row) ? "choose chosen" : "choose", tabIndex: 0, onclick: () => choose(row), onkeydown: (event) => { if (event.key === "Enter") choose(row); } },
      el("td", {}, row.name), el("td", {}, String(row.views)), knows() ? [el("td", {}, degrees(row.rotation_degrees)), el("td", {}, share(row.far))] : [], el("td", {}, share(row.right_class))))))));

  const load = async () => {
    const own = ++stale;
    const answer = await whenReady(() => get(`api/errors?${query({ ...network(), ...filter })}`), () => own === stale);
    if (!answer) return;
    known = answer;
    const right = answer.all.right_class === null ? "no classes" : `${share(answer.all.right_class)} right class`;
    const object = page.state.data.objects[filter.object];
    const what = filter.object !== null ? ` of ${object.id}` : filter.class !== null ? ` of ${page.state.data.classes[filter.class]}` : "";
    head.replaceChildren(`${answer.count} held-out views${what}`, el("small", {}, knows() ? `worst first; all: mean error ${degrees(answer.all.rotation_degrees, 1)}, ${right}` : `wrong classes first; all: ${right}`));
    about.replaceChildren(knows() ? "An object's first held-out view is moved to each of the others; the error is the angle between the view that is found among them and the one that was asked for." : `There are no errors of rotation: ${answer.no_rotation}.`,
      answer.all.right_class === null ? " Classes are not known either: there are no training views to compare with." : " Classes are those of the nearest training views.");
    list.replaceChildren(...answer.views.map(wrongView));
    more.hidden = answer.views.length >= answer.count || answer.views.length >= 200;
    tables.replaceChildren(
      table("Classes", answer.classes, (row) => row.class === filter.class && filter.object === null, (row) => { filter.class = filter.class === row.class && filter.object === null ? null : row.class; filter.object = null; load(); }),
      table("Objects", answer.objects, (row) => row.object === filter.object, (row) => { filter.object = filter.object === row.object ? null : row.object; filter.class = null; load(); }));
    place.dataset.errors = String(answer.count);
  };
  const only = el("input", { type: "checkbox", checked: filter.wrong_class, onchange: () => { filter.wrong_class = only.checked; load(); } });
  const more = el("button", { type: "button", hidden: true, onclick: () => { filter.limit = 200; load(); } }, "more");
  const command = () => `equicaps evaluate ${chosenRun().word} --data ${page.state.data.word} --preset quick`;
  const json = () => known;
  place.append(el("div.errors-grid", {},
    panel(el("div.row.spread", { style: "margin-bottom:.6rem" }, head, el("div.row", {}, el("label.row.small", {}, only, "wrong class only"),
      el("button", { type: "button", onclick: () => { Object.assign(filter, { class: null, object: null }); load(); } }, "all objects"),
      el("button", { type: "button", onclick: () => copy(command(), "the command line") }, "Copy command"), el("button", { type: "button", onclick: () => copy(JSON.stringify(json()), "JSON") }, "Copy JSON"))),
      about,
      list, el("div.row", { style: "margin-top:1rem" }, more)),
    tables));
  load();
  here = { load, command, json };
  return () => { stale++; };
}

export const networkChanged = () => here.load();
export const key = (name) => copyKey(name, here);
