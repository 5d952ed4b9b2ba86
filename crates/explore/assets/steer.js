// Steer: the pose of the shown view times a motion; where it lands among the stored views, beside the truth.
import { degrees, el, nearness, panel, pictures, slider } from "./elements.js";
import { asked, matrixOf, pictureAddress, scene, showStored } from "./scene.js";
import { post } from "./server.js";
import { among, copyButtons, imageWord, pictureKey, Stage } from "./turn.js";
import { chosenRun, network, page, show, whenReady } from "./main.js";

/** The motion; it stays while other views are looked at. */
const motion = { rotate: [0, 0, 45], translate: [0, 0, 0], scale: [1, 1, 1], shear: [0, 0, 0], perspective: [0, 0], matrix: null, all: false };
let here = null;

/** What the chosen run's motions are made of; the sliders are those of it. */
const kindOf = (run) => JSON.stringify([run.space, run.parts, run.uniform_scale]);

export function open(place) {
  let stale = 0;
  let steered = null;
  const found = el("div.pair");
  const rest = el("div.near");
  const verdict = el("div");
  const wrong = el("p.small.bad");
  const steer = async () => {
    const own = ++stale;
    const body = { ...network(), scene: asked(), rotate: motion.rotate, translate: motion.translate, scale: motion.scale, shear: motion.shear, perspective: motion.perspective, matrix: motion.matrix ?? undefined, all_objects: motion.all, k: 12 };
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
    motion.scale = answer.scale.map((factor) => Number(factor.toFixed(3)));
    motion.shear = answer.shear.map((value) => Number(value.toFixed(3)));
    showMotion();
    writeMatrix(answer.matrix);
    const [first, ...others] = answer.found;
    // As sharp as the page shows them.
    const side = found.clientWidth > 1100 ? 512 : 256;
    const live = page.state.data.live && page.state.data.objects[scene.object].live;
    const figure = (source, ...caption) => el("figure", {}, el("img", { src: source, alt: "" }), el("figcaption", {}, ...caption));
    const knows = page.state.data.has_poses;
    const [best] = answer.best ? pictures([answer.best], (view) => [el("b", {}, "nearest stored view to that"), ` ${degrees(view.degrees)} away: no answer can be nearer`], showStored, 256) : [];
    const [landed] = first ? pictures([first], (view) => [el("b", {}, "where the moved pose lands"), ` ${view.class}, view ${view.view}`], showStored, 256) : [];
    landed?.classList.add("best");
    found.replaceChildren(figure(pictureAddress(asked(), scene.view === null ? side : 256, "fast"), el("b", {}, "the view"), ""),
      live && knows ? figure(pictureAddress(answer.asked, side, "standard"), el("b", {}, "the truth"), " rendered at the asked pose") : "",
      landed ?? "", best ?? "");
    const error = first?.degrees;
    const tone = error < 20 ? "good" : error < 60 ? "warm" : "bad";
    const turned = matrixOf(answer.rotate);
    const angle = Math.acos(Math.max(-1, Math.min(1, (turned[0][0] + turned[1][1] + turned[2][2] - 1) / 2))) * 180 / Math.PI;
    const off = [["translation", first?.translation_off, (value) => value.toFixed(2)], ["scale", first?.scale_off, (value) => `×${value.toFixed(2)}`], ["shear", first?.shear_off, (value) => value.toFixed(2)], ["perspective", first?.perspective_off, (value) => value.toFixed(2)]];
    const others_off = off.filter(([part, value]) => has(part) && value !== undefined);
    verdict.replaceChildren(el("div.row", { style: "gap:2rem" },
      el("div", {}, el("h3", {}, "asked turn"), el("div.big", { id: "asked-angle" }, degrees(angle, 1))),
      knows ? el("div", {}, el("h3", {}, "error"), el(`div.big.${tone}`, { id: "steer-error" }, degrees(error, 1))) : el("p.small.soft", { id: "steer-error" }, "These data have no poses, so nobody knows how far off this is."),
      answer.best ? el("div", {}, el("h3", {}, "best possible"), el("div.big.soft", {}, degrees(answer.best.degrees, 1))) : "",
      ...others_off.map(([part, value, text]) => el("div", {}, el("h3", {}, `${part} off`), el("div.big.soft", { "data-off": part }, text(value))))));
    rest.replaceChildren(...pictures(others, (view) => [nearness(view, "off"), motion.all ? ` ${view.class}` : ""], showStored));
    place.dataset.steered = String(own);
  };
  let soon;
  const later = () => { clearTimeout(soon); soon = setTimeout(steer, 60); };
  const stage = new Stage({ rested: steer });
  const { space, parts, uniform_scale: uniform } = chosenRun();
  const has = (part) => parts.includes(part);
  const flat = space === "image";
  if (flat) motion.rotate = [0, 0, motion.rotate[2]];
  // Sliders by [name, index]; a picture is turned about the axis that points at the viewer.
  const axes = flat ? ["x", "y"] : ["x", "y", "z"];
  const controls = [];
  const make = (name, label, index, options) => {
    const control = slider(label, { value: motion[name][index], ...options }, (value) => {
      if (name === "scale" && uniform) motion.scale = [value, value, flat ? 1 : value]; else motion[name][index] = value;
      if (name !== "translate" && name !== "perspective") { motion.matrix = null; if (name === "rotate" && rigid()) writeMatrix(matrixOf(motion.rotate)); }
      later();
    });
    controls.push([name, index, control]);
    return control.elements;
  };
  const rigid = () => motion.scale.every((factor) => factor === 1) && motion.shear.every((value) => value === 0);
  const showMotion = () => controls.forEach(([name, index, control]) => control.set(motion[name][index]));
  const group = (text) => el("h3.group", {}, text);
  const angle = { min: -180, max: 180, step: 1 };
  const sliders = [group("Rotation, degrees"), ...(flat ? make("rotate", "clockwise", 2, angle) : axes.flatMap((axis, index) => make("rotate", axis, index, angle)))];
  if (has("translation")) sliders.push(group("Translation"), ...axes.flatMap((axis, index) => make("translate", axis, index, { min: -1, max: 1, step: 0.01 })));
  if (has("scale")) sliders.push(group("Scale"), ...(uniform ? ["all axes"] : axes).flatMap((axis, index) => make("scale", axis, index, { min: 0.5, max: 2, step: 0.01 })));
  if (has("shear")) sliders.push(group("Shear"), ...(flat ? ["xy"] : ["xy", "xz", "yz"]).flatMap((name, index) => make("shear", name, index, { min: -0.8, max: 0.8, step: 0.01 })));
  if (has("perspective")) sliders.push(group("Perspective"), ...axes.flatMap((axis, index) => make("perspective", axis, index, { min: -0.3, max: 0.3, step: 0.01 })));
  // Turning, scaling and shearing as a matrix: 3x3 for objects, 2x2 in a picture.
  const side = flat ? 2 : 3;
  const beside = ["translation", "perspective"].filter(has);
  const cells = Array.from({ length: side * side }, (_, index) => el("input", { type: "text", inputMode: "decimal", "aria-label": `row ${Math.floor(index / side) + 1}, column ${index % side + 1}` }));
  const writeMatrix = (matrix) => cells.forEach((cell, index) => { if (document.activeElement !== cell) cell.value = matrix[Math.floor(index / side)][index % side].toFixed(3); });
  cells.forEach((cell) => cell.addEventListener("change", () => {
    const values = cells.map((one) => Number(one.value));
    if (values.some(Number.isNaN)) { wrong.textContent = `a matrix is ${cells.length} numbers`; return; }
    const row = (index) => [0, 1, 2].map((column) => (index < side && column < side ? values[index * side + column] : Number(index === column)));
    motion.matrix = [row(0), row(1), row(2)];
    steer();
  }));
  writeMatrix(matrixOf(motion.rotate));
  const set = (rotate) => { Object.assign(motion, { rotate: [...rotate], scale: [1, 1, 1], shear: [0, 0, 0], perspective: [0, 0], matrix: null }); showMotion(); steer(); };
  const presets = [[0, 0, 45], [0, 0, 90], [0, 0, -90], [45, 0, 0], [0, 45, 0], [0, 0, 0]].filter(([x, y]) => !flat || (x === 0 && y === 0));
  const all = el("input", { type: "checkbox", checked: motion.all, onchange: () => { motion.all = all.checked; steer(); } });
  const command = () => {
    const { word, before } = among();
    const more = [["translation", "translate", 0], ["scale", "scale", 1], ["shear", "shear", 0], ["perspective", "perspective", 0]]
      .filter(([part, name, none]) => has(part) && motion[name].some((value) => value !== none))
      .map(([, name]) => ` --${name} ${motion[name].join(",")}`).join("");
    return `${before}equicaps steer ${chosenRun().word} ${imageWord()} --rotate ${motion.rotate.join(",")}${more} --among ${word}`;
  };
  const json = () => ({ run: chosenRun().name, epoch: page.epoch, object: page.state.data.objects[scene.object].id, scene: { ...scene }, ...motion, asked: steered?.asked, found: steered?.found });
  place.append(el("div.steer-grid", {}, stage.panel,
    el("div.stack", {},
      panel(el("h2", {}, "Motion", el("small", {}, "multiplied into the pose from the right: P′ = P·M")),
        el("div.row", {}, el("span.small.soft", {}, "turn by x, y, z:"), ...presets.map((rotate) => el("button", { type: "button", onclick: () => set(rotate) }, rotate.join(", ")))),
        el("div.motion", {},
          el("div.controls", {}, ...sliders),
          el("div", {}, el("h3", { style: "margin:1.05rem 0 .3rem" }, `${beside.length ? `the same without ${beside.join(" and ")}` : "the same"} as a matrix; type to change it`), el("div.matrix", { style: `grid-template-columns:repeat(${side},1fr)` }, ...cells))),
        wrong, el("div.row.spread", { style: "margin-top:.4rem" }, copyButtons(command, json), el("label.row.small", {}, all, "look among the views of all objects"))),
      panel(el("h2", {}, "Where it lands"), verdict, el("div", { style: "margin-top:.8rem" }, found)),
      panel(el("h2", {}, "The next ones", el("small", {}, page.state.data.has_poses ? "degrees off what was asked" : "cosine")), rest))));
  here = { steer, command, json, kind: kindOf(chosenRun()) };
  return () => { stale++; clearTimeout(soon); stage.close(); };
}

/** What is shown, as a command line. */
export const command = () => here.command();
export const networkChanged = () => (here.kind === kindOf(chosenRun()) ? here.steer() : show("steer"));
export const key = (name) => pictureKey(name, here);
