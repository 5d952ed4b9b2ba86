// Map: all views as points, coloured by what is known about them; a click or a lasso shows the pictures.
import { copy, degrees, el, panel, pictures, toast } from "./elements.js";
import { css, hueColour, Points, rampColour } from "./points.js";
import { COLOURS } from "./chart.js";
import { showStored } from "./scene.js";
import { columns, get, query } from "./server.js";
import { chosenRun, network, page, whenReady } from "./main.js";

const chosen = { by: "representation", how: "pca", colour: "class" };
let here = null;

/** How each colouring makes a colour (or nothing) of a point, and its legend. */
const COLOURINGS = {
  class: { title: "class", colour: (map, i) => classColour(map.columns.class[i]), legend: () => classLegend() },
  angle: { title: "rotation angle", colour: (map, i) => rampColour(map.columns.angle[i] / 180), legend: () => rampLegend("0°", "180°"), needs: (data) => data.has_poses },
  floor_hue: { title: "floor hue", colour: (map, i) => hueColour(map.columns.floor_hue[i]), legend: () => [], needs: (data) => data.has_light },
  spot_hue: { title: "spot hue", colour: (map, i) => hueColour(map.columns.spot_hue[i]), legend: () => [], needs: (data) => data.has_light },
  error: { title: "error of rotation", colour: (map, i) => known(map.columns.error[i], (value) => rampColour(value / 120)), legend: (map) => (map.columns.error.every(Number.isNaN) ? [el("span", {}, "none is known; the view Errors says why")] : rampLegend("0°", "120° and more", "grey: not held out")), needs: (data) => data.has_poses },
  wrong: { title: "wrong class", colour: (map, i) => known(map.columns.wrong[i], (value) => (value ? [0.89, 0.28, 0.3] : [0.19, 0.64, 0.42])), legend: () => [dot("#30a46c", "right"), dot("#e5484d", "wrong"), el("span", {}, "grey: not held out")] },
  split: { title: "held out", colour: (map, i) => (map.columns.held_out[i] ? [0.9, 0.45, 0.3] : [0.45, 0.5, 0.58]), legend: () => [dot("#e5734d", "held out"), dot("#737f94", "training")] },
  object: { title: "object", colour: (map, i) => hueColour((map.columns.object[i] * 0.381966) % 1), legend: () => [] },
};
const known = (value, colour) => (Number.isNaN(value) ? [0.6, 0.62, 0.66] : colour(value));
const classColour = (label) => hueColour((label * 0.381966 + 0.58) % 1, 0.48 + 0.1 * (label % 2));
const dot = (colour, text) => el("span", {}, el("i", { style: `background:${colour}` }), text);
const classLegend = () => page.state.data.classes.map((name, label) => dot(css(classColour(label)), name));
const rampLegend = (low, high, note = "") => [el("span", {}, low), el("span.ramp", { style: `background:linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map((share) => css(rampColour(share))).join(",")})` }), el("span", {}, high), el("span", {}, note)];

export function open(place) {
  let stale = 0;
  let map = null;
  const about = el("p.small.soft");
  const legend = el("div.legend");
  const shown = el("div.near");
  const title = el("h2", {}, "Pictures");
  const box = el("div.map");
  const show = async (indices) => {
    points.strong(indices);
    place.dataset.picked = String(indices.length);
    const some = indices.slice(0, 120);
    const views = some.map((i) => ({ object: map.columns.object[i], view: map.columns.view[i] })).map((view) => ({ ...view, id: page.state.data.objects[view.object].id, class: page.state.data.classes[page.state.data.objects[view.object].class] }));
    title.replaceChildren(`${indices.length} ${indices.length === 1 ? "view" : "views"}`, el("small", {}, indices.length > some.length ? `the first ${some.length}` : indices.length ? "click to turn it" : ""));
    const caption = (view, place) => {
      const error = map.columns.error[some[place]];
      return [el("b", {}, view.class), ` view ${view.view}`, Number.isNaN(error) ? "" : `, error ${degrees(error)}`];
    };
    const turn = async ({ object, view }) => { showStored({ ...(await get(`api/view?${query({ object, view })}`)), object, view }); location.hash = "turn"; };
    shown.replaceChildren(...pictures(views, caption, turn));
  };
  const points = new Points(box, { picked: (index) => show(index === null ? [] : [index, ...nearby(index)]), enclosed: show });
  /** The points beside a clicked one: it is seldom alone. */
  const nearby = (index) => {
    const near = points.cells().within([points.x[index], points.y[index]], 0.05 / points.zoom);
    return near.filter((other) => other !== index).slice(0, 23);
  };
  const paint = () => {
    if (!map) return;
    const rgb = new Float32Array(3 * map.rows);
    for (let i = 0; i < map.rows; i++) rgb.set(COLOURINGS[chosen.colour].colour(map, i), 3 * i);
    points.colours(rgb);
    legend.replaceChildren(...COLOURINGS[chosen.colour].legend(map));
  };
  const load = async () => {
    const own = ++stale;
    about.textContent = chosen.how === "tsne" ? "computing t-SNE …" : "computing …";
    const answer = await whenReady(() => columns(`api/map?${query({ ...network(), by: chosen.by, how: chosen.how })}`), () => own === stale);
    if (!answer) { about.textContent = ""; return; }
    map = answer;
    points.set(map.columns.x, map.columns.y);
    points.strong([]);
    paint();
    const part = map.rows < map.all ? `, every ${Math.round(map.all / map.rows)}th of ${map.all}` : "";
    const variance = map.shares.length ? `; the two components hold ${map.shares.map((share) => `${(100 * share).toFixed(0)} %`).join(" and ")} of the variance` : "";
    about.textContent = `${map.rows} views${part}${variance}`;
    place.dataset.points = String(map.rows);
  };
  const select = (name, options) => {
    const element = el("select", { "aria-label": name, onchange: () => { chosen[name] = element.value; if (name === "colour") paint(); else load(); } },
      options.map(([value, text]) => el("option", { value, selected: chosen[name] === value }, text)));
    return element;
  };
  const colourings = Object.entries(COLOURINGS).filter(([, colouring]) => colouring.needs?.(page.state.data) ?? true).map(([name, { title: text }]) => [name, `by ${text}`]);
  const lasso = el("button", { type: "button", title: "or Shift and drag", onclick: () => { points.lassoing = !points.lassoing; lasso.classList.toggle("on", points.lassoing); } }, "Lasso");
  const json = () => ({ run: chosenRun().name, epoch: page.epoch, ...chosen, points: map && [...Array(map.rows).keys()].map((i) => [map.columns.object[i], map.columns.view[i], Number(map.columns.x[i].toFixed(5)), Number(map.columns.y[i].toFixed(5))]) });
  place.append(el("div.map-grid", {},
    panel(el("div.row", { style: "margin-bottom:.6rem" },
      select("by", [["representation", "representations"], ["poses", "poses"], ["activations", "activations"]]),
      select("how", [["pca", "principal components"], ["tsne", "t-SNE"]]), select("colour", colourings), lasso,
      el("button", { type: "button", onclick: () => points.fit() }, "Fit"),
      el("button", { type: "button", onclick: () => copy(JSON.stringify(json()), "the points as JSON") }, "Copy JSON"), about),
      box, legend),
    panel(title, el("p.small.soft", { style: "margin-bottom:.6rem" }, "Click a point, or enclose some with Shift and drag. The wheel zooms, dragging moves, a double click fits."), el("div.scroll", { style: "max-height:70vh" }, shown))));
  load();
  here = { load, json, points, paint };
  window.mapForTests = here;
  return () => { stale++; points.close(); };
}

export const networkChanged = () => here.load();
export function key(name) {
  if (name === "j") copy(JSON.stringify(here.json()), "the points as JSON");
  else if (name === "c") toast("a map has no command line; j copies it as JSON");
  else return false;
  return true;
}
