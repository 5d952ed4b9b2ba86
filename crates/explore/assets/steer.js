// Steer: the pose of the shown view times a motion; where it lands among the stored views, beside the truth.
import { degrees, el, panel, pictures, slider } from "./elements.js";
import { asked, matrixOf, pictureAddress, scene, showStored } from "./scene.js";
import { post } from "./server.js";
import { among, copyButtons, imageWord, pictureKey, Stage } from "./turn.js";
import { chosenRun, network, page, whenReady } from "./main.js";

/** The motion; it stays while other views are looked at. */
const motion = { rotate: [0, 0, 45], translate: [0, 0, 0], matrix: null, all: false };
let here = null;

export function open(place) {
  let stale = 0;
  let steered = null;
  const found = el("div.pair");
  const rest = el("div.near");
  const verdict = el("div");
  const wrong = el("p.small.bad");
  const steer = async () => {
    const own = ++stale;
    const body = { ...network(), scene: asked(), rotate: motion.rotate, translate: motion.translate, matrix: motion.matrix ?? undefined, all_objects: motion.all, k: 12 };
    wrong.textContent = "";
    const answer = await whenReady(async () => {
      try {
        return await post("api/steer", body);
      } catch (error) {
        if (error.name !== "Error" || error.loading) throw error;
        if (own === stale) { wrong.textContent = error.message; found.replaceChildren(); rest.replaceChildren(); verdict.replaceChildren(); }
        return null;
      }
    }, () => own === stale);
    if (!answer) return;
    steered = answer;
    motion.rotate = answer.rotate.map((angle) => Number(angle.toFixed(2)));
    sliders.forEach((control, index) => control.set(motion.rotate[index]));
    writeMatrix(answer.matrix);
    const [first, ...others] = answer.found;
    const live = page.state.data.live && page.state.data.objects[scene.object].live;
    const figure = (source, ...caption) => el("figure", {}, el("img", { src: source, alt: "" }), el("figcaption", {}, ...caption));
    const [best] = answer.best ? pictures([answer.best], (view) => [el("b", {}, "nearest stored view to that"), ` ${degrees(view.degrees)} away: no answer can be nearer`], showStored, 256) : [];
    const [landed] = first ? pictures([first], (view) => [el("b", {}, "where the moved pose lands"), ` ${view.class}, view ${view.view}`], showStored, 256) : [];
    landed?.classList.add("best");
    found.replaceChildren(figure(pictureAddress(asked(), 256, "fast"), el("b", {}, "the view"), ""),
      live ? figure(pictureAddress(answer.asked, 256, "standard"), el("b", {}, "the truth"), " rendered at the asked pose") : "",
      landed ?? "", best ?? "");
    const error = first?.degrees;
    const tone = error < 20 ? "good" : error < 60 ? "warm" : "bad";
    const angle = Math.acos(Math.max(-1, Math.min(1, (answer.matrix[0][0] + answer.matrix[1][1] + answer.matrix[2][2] - 1) / 2))) * 180 / Math.PI;
    verdict.replaceChildren(el("div.row", { style: "gap:2rem" },
      el("div", {}, el("h3", {}, "asked turn"), el("div.big", { id: "asked-angle" }, degrees(angle, 1))),
      el("div", {}, el("h3", {}, "error"), el(`div.big.${tone}`, { id: "steer-error" }, degrees(error, 1))),
      answer.best ? el("div", {}, el("h3", {}, "best possible"), el("div.big.soft", {}, degrees(answer.best.degrees, 1))) : ""));
    rest.replaceChildren(...pictures(others, (view) => [`${degrees(view.degrees)} off, ${view.similarity.toFixed(3)}`, motion.all ? ` ${view.class}` : ""], showStored));
    place.dataset.steered = String(own);
  };
  let soon;
  const later = () => { clearTimeout(soon); soon = setTimeout(steer, 60); };
  const stage = new Stage({ rested: steer });
  const sliders = ["x", "y", "z"].map((name, index) => slider(name, { min: -180, max: 180, step: 1, value: motion.rotate[index] }, (value) => {
    motion.rotate[index] = value; motion.matrix = null; writeMatrix(matrixOf(motion.rotate)); later();
  }));
  const moves = ["x", "y", "z"].map((name, index) => slider(name, { min: -1, max: 1, step: 0.01, value: motion.translate[index] }, (value) => { motion.translate[index] = value; later(); }));
  const cells = Array.from({ length: 9 }, (_, index) => el("input", { type: "text", inputMode: "decimal", "aria-label": `row ${Math.floor(index / 3) + 1}, column ${index % 3 + 1}` }));
  const writeMatrix = (matrix) => cells.forEach((cell, index) => { if (document.activeElement !== cell) cell.value = matrix[Math.floor(index / 3)][index % 3].toFixed(3); });
  cells.forEach((cell) => cell.addEventListener("change", () => {
    const values = cells.map((one) => Number(one.value));
    motion.matrix = [values.slice(0, 3), values.slice(3, 6), values.slice(6, 9)];
    if (values.some(Number.isNaN)) { wrong.textContent = "a matrix is nine numbers"; return; }
    steer();
  }));
  writeMatrix(matrixOf(motion.rotate));
  const set = (rotate) => { motion.rotate = rotate; motion.matrix = null; sliders.forEach((control, index) => control.set(rotate[index])); steer(); };
  const all = el("input", { type: "checkbox", checked: motion.all, onchange: () => { motion.all = all.checked; steer(); } });
  const translations = chosenRun().transform !== "rotation";
  const command = () => {
    const { word, before } = among();
    const shift = translations && motion.translate.some(Boolean) ? ` --translate ${motion.translate.join(",")}` : "";
    return `${before}equicaps steer ${chosenRun().word} ${imageWord()} --rotate ${motion.rotate.join(",")}${shift} --among ${word}`;
  };
  const json = () => ({ run: chosenRun().name, epoch: page.epoch, object: page.state.data.objects[scene.object].id, scene: { ...scene }, ...motion, asked: steered?.asked, found: steered?.found });
  place.append(el("div.steer-grid", {}, stage.panel,
    el("div.stack", {},
      panel(el("h2", {}, "Motion", el("small", {}, "multiplied into the pose from the right: P′ = P·M")),
        el("div.row", {}, ...[[0, 0, 45], [0, 0, 90], [0, 0, -90], [45, 0, 0], [0, 45, 0], [0, 0, 0]].map((rotate) => el("button", { type: "button", onclick: () => set(rotate) }, rotate.join(", ")))),
        el("div.motion", {},
          el("div.controls", {}, el("h3.group", {}, "Rotation, degrees"), ...sliders.flatMap((control) => control.elements), ...(translations ? [el("h3.group", {}, "Translation"), ...moves.flatMap((control) => control.elements)] : [])),
          el("div", {}, el("h3", { style: "margin:1.05rem 0 .3rem" }, "the same as a matrix; type to change it"), el("div.matrix", {}, ...cells))),
        wrong, el("div.row.spread", { style: "margin-top:.4rem" }, copyButtons(command, json), el("label.row.small", {}, all, "look among the views of all objects"))),
      panel(el("h2", {}, "Where it lands"), verdict, el("div", { style: "margin-top:.8rem" }, found)),
      panel(el("h2", {}, "The next ones", el("small", {}, "degrees off what was asked")), rest))));
  here = { steer, command, json };
  return () => { stale++; clearTimeout(soon); stage.close(); };
}

export const networkChanged = () => here.steer();
export const key = (name) => pictureKey(name, here);
