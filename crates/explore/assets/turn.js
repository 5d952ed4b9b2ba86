// Turn: an object at any pose, rendered live, and what the network makes of it.
import { copy, copyKey, el, nearness, panel, pictures, slider, toast } from "./elements.js";
import { drawBars, drawPoses } from "./capsules.js";
import { asked, change, pictureAddress, scene, showStored, turn, watch } from "./scene.js";
import { get, pause, picture, post, query } from "./server.js";
import { chosenRun, network, page, randomView, showObject, whenReady } from "./main.js";

/** Milliseconds of rest after which the picture becomes sharp and the network looks. */
const REST = 180;
/** Sides of pictures while the hand moves and at rest, at least and at most. */
const [LEAST, MOST] = [256, 768];
/** Milliseconds of a moving picture so few that it can be larger, and so many that it must be smaller. */
const [QUICK, SLOW] = [11, 30];

/** The object, its sliders, and a picture that follows them. Steer has one, too. */
export class Stage {
  constructor({ rested }) {
    this.rested = rested;
    this.image = el("img", { alt: "the object", draggable: false });
    this.rate = el("span.rate", { hidden: true });
    this.box = el("div.stage", { tabIndex: 0, title: "drag to turn; Shift and drag turns in the plane; arrow keys" }, this.image, this.rate);
    this.times = [];
    this.side = LEAST;
    this.took = (QUICK + SLOW) / 2;
    this.busy = false;
    this.stop = watch(() => this.changed());
    this.drag();
    this.controls = el("div.controls");
    this.makeControls();
    this.changed();
  }

  get live() { return page.state.data.live && page.state.data.objects[scene.object].live; }

  drag() {
    let from = null;
    this.box.addEventListener("pointerdown", (event) => { this.box.setPointerCapture(event.pointerId); from = [event.clientX, event.clientY]; this.box.classList.add("dragging"); });
    this.box.addEventListener("pointermove", (event) => {
      if (!from || !this.live) return;
      const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
      from = [event.clientX, event.clientY];
      // The camera looks along -y and down: right is -x of the world.
      turn(event.shiftKey ? [0, dx * 0.5, 0] : [-dy * 0.5, 0, dx * 0.5]);
    });
    const end = () => { from = null; this.box.classList.remove("dragging"); };
    this.box.addEventListener("pointerup", end);
    this.box.addEventListener("pointercancel", end);
  }

  makeControls() {
    const { data } = page.state;
    const select = el("select", { "aria-label": "Object", onchange: () => showObject(Number(select.value)) });
    data.classes.forEach((name, label) => {
      const own = data.objects.map((object, index) => [object, index]).filter(([object]) => object.class === label);
      if (own.length) select.append(el("optgroup", { label: name }, own.map(([object, index]) => el("option", { value: String(index) }, `${name} ${object.id.split("/").pop()}${object.held_out && data.split === "objects" ? " (held out)" : ""}`))));
    });
    this.select = select;
    this.sliders = {};
    const add = (name, label, options, also = []) => {
      this.sliders[name] = slider(label, { value: scene[name], ...options }, (value) => change(Object.fromEntries([name, ...also].map((each) => [each, value]))));
      return this.sliders[name].elements;
    };
    // What the data or one of the runs knows about; one slider for a scale that is the same along all axes.
    const knows = (part) => [data, ...page.state.runs].some((one) => one.space === "object" && one.parts.includes(part));
    const uniform = [data, ...page.state.runs].every((one) => one.uniform_scale || !one.parts.includes("scale"));
    const group = (text) => el("h3.group", {}, text);
    const angle = { min: -180, max: 180, step: 1 };
    this.view = slider("stored view", { min: 0, max: 1, step: 1, value: 0 }, async (view) => {
      const { object } = scene;
      showStored({ ...(await get(`api/view?${query({ object, view })}`)), object, view });
    });
    this.kind = el("p.small.soft");
    this.controls.append(...this.view.elements);
    if (data.live) {
      this.controls.append(group("Rotation, degrees"), ...add("rx", "x", angle), ...add("ry", "y", angle), ...add("rz", "z", angle));
      if (knows("translation")) this.controls.append(group("Translation"), ...["tx", "ty", "tz"].flatMap((name) => add(name, name[1], { min: -0.5, max: 0.5, step: 0.01 })));
      const factor = { min: 0.5, max: 2, step: 0.01 };
      if (knows("scale")) this.controls.append(group("Scale"), ...(uniform ? add("scale_x", "all axes", factor, ["scale_y", "scale_z"]) : ["x", "y", "z"].flatMap((axis) => add(`scale_${axis}`, axis, factor))));
      if (knows("shear")) this.controls.append(group("Shear"), ...["xy", "xz", "yz"].flatMap((axes) => add(`shear_${axes}`, axes, { min: -0.6, max: 0.6, step: 0.01 })));
      this.controls.append(group("Light"), ...add("floor_hue", "floor hue", { min: 0, max: 1, step: 0.01, hue: true }), ...add("spot_hue", "spot hue", { min: 0, max: 1, step: 0.01, hue: true }),
        ...add("spot_theta", "spot height", { min: 0, max: 45, step: 1 }), ...add("spot_phi", "spot direction", { min: 0, max: 360, step: 1 }));
    }
    this.panel = panel(el("h2", {}, "View"), el("div.row.spread", {}, select, el("button", { type: "button", title: "a random stored view (r)", onclick: () => randomView() }, "random view")),
      el("div", { style: "margin-top:.7rem" }, this.box), this.controls, this.kind, data.not_live ? el("p.small.soft.not-live", {}, data.not_live) : "");
  }

  changed() {
    const object = page.state.data.objects[scene.object];
    this.select.value = String(scene.object);
    for (const [name, control] of Object.entries(this.sliders)) control.set(scene[name]);
    const [, range] = this.view.elements;
    range.max = String(object.views - 1);
    this.view.elements[2].max = range.max;
    if (scene.view !== null) this.view.set(scene.view); else this.view.elements[2].value = "";
    const held = scene.view !== null && (page.state.data.split === "views" ? scene.view >= object.held_out_from : object.held_out);
    const most = Math.ceil(page.state.data.most_degrees);
    const far = scene.view === null && [scene.rx, scene.ry, scene.rz].some((angle) => Math.abs(angle) > most + 1);
    this.kind.classList.toggle("warm", far);
    this.kind.textContent = far ? `a live view, turned further than any stored one (${most}°)` : scene.view === null ? "a live view" : `stored view ${scene.view} of ${object.views}${held ? ", held out" : ""}`;
    clearTimeout(this.resting);
    this.atRest = false;
    this.resting = setTimeout(() => { this.atRest = true; this.sharpen(); this.rested(); }, REST);
    this.follow();
  }

  /** One picture at a time: the newest scene when the one before has come. */
  async follow() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    do {
      this.again = false;
      const began = performance.now();
      const isLive = scene.view === null;
      await this.load(pictureAddress(asked(), isLive ? this.side : LEAST, "fast"));
      this.measure(performance.now() - began, isLive);
    } while (this.again && !this.closed);
    this.busy = false;
    // The hand came to rest while the last picture was on its way.
    if (this.atRest) this.sharpen();
  }

  /** The side of a picture that has a pixel for each of the screen. */
  get sharp() { return Math.min(MOST, Math.max(LEAST, Math.round(this.box.clientWidth * (window.devicePixelRatio || 1)))); }

  async sharpen() {
    if (this.busy || this.closed || scene.view !== null) return;
    const before = JSON.stringify(asked());
    const address = await picture(pictureAddress(asked(), this.sharp, "standard")).catch(() => null);
    if (address && before === JSON.stringify(asked()) && !this.closed) this.put(address);
  }

  async load(address) {
    try {
      const found = await picture(address);
      // Nothing is replaced before it was shown, however fast pictures come.
      await this.shown;
      this.put(found);
    } catch (error) {
      this.kind.textContent = error.message;
      this.kind.classList.add("bad");
    }
  }

  put(address) {
    const before = this.image.src;
    this.image.src = address;
    this.shown = Promise.race([this.image.decode().catch(() => null), pause(200)]);
    this.kind.classList.remove("bad");
    if (before.startsWith("blob:")) URL.revokeObjectURL(before);
    this.frames = (this.frames ?? 0) + 1;
  }

  measure(milliseconds, isLive) {
    const now = performance.now();
    this.times = this.times.filter((time) => now - time < 1000);
    this.times.push(now);
    this.rate.hidden = this.times.length < 4;
    this.rate.textContent = `${this.times.length} pictures/s, ${milliseconds.toFixed(0)} ms`;
    if (!isLive) return;
    // Where they come fast (from a GPU, say), they are as sharp in motion as at rest.
    this.took = 0.7 * this.took + 0.3 * milliseconds;
    const side = this.took < QUICK ? Math.min(this.sharp, Math.round(1.25 * this.side)) : this.took > SLOW ? Math.max(LEAST, Math.round(this.side / 1.25)) : this.side;
    if (side !== this.side) [this.side, this.took] = [side, (QUICK + SLOW) / 2];
  }

  close() { this.closed = true; this.stop(); clearTimeout(this.resting); }
}

/** The shown view on a command line: a stored one is a file, a live one a picture to be saved. */
export function imageWord() {
  const { data } = page.state;
  const object = data.objects[scene.object];
  return scene.view !== null && data.files ? `${data.word}/${object.id}/image_${scene.view}.jpg` : "view.jpg";
}

/** Where the stored views are on a command line, and what has to be done first. */
export function among() {
  const { data } = page.state;
  return data.render ? { word: "views", before: `${data.render}\n` } : { word: data.word, before: "" };
}

/** Buttons that copy and save what is shown. */
export function copyButtons(command, json) {
  return el("div.row", { style: "margin-top:.7rem" },
    el("button", { type: "button", title: "c", onclick: () => copy(command(), "the command line") }, "Copy command"),
    el("button", { type: "button", title: "j", onclick: () => copy(JSON.stringify(json(), null, 1), "JSON") }, "Copy JSON"),
    el("button", { type: "button", title: "p", onclick: copyPicture }, "Copy picture"),
    el("button", { type: "button", title: "s", onclick: savePicture }, "Save"));
}

/** The shown picture, as sharp as it gets. */
const sharpest = () => picture(pictureAddress(asked(), scene.view === null ? 512 : page.state.data.side, "standard"));

async function copyPicture() {
  const address = await sharpest();
  const image = el("img", { src: address });
  await image.decode();
  const canvas = el("canvas", { width: image.naturalWidth, height: image.naturalHeight });
  canvas.getContext("2d").drawImage(image, 0, 0);
  URL.revokeObjectURL(address);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    toast("copied the picture");
  } catch {
    toast("this browser does not let pages copy pictures; save it instead");
  }
}

async function savePicture() {
  const address = await sharpest();
  el("a", { href: address, download: "view.jpg" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The keys of views with a picture: those of all views, p copies the picture, s saves it. */
export function pictureKey(name, view) {
  if (name === "s") savePicture();
  else if (name === "p") copyPicture();
  else return copyKey(name, view);
  return true;
}

let here = null;

/** What the embedding beside the representation is called, and what it is. */
function partWords({ capsules, motion }) {
  if (capsules) return ["Nearest by poses", el("small", {}, "the part that follows the motion")];
  if (motion) return ["Nearest by equivariant embedding", el("small", {}, "the part that follows the motion")];
  return ["Nearest by embedding", el("small", {}, "what the loss compares; no part of it follows motions")];
}

export function open(place) {
  const waiting = () => el("p.small.soft", { style: "grid-column:1/-1" }, "They come when the features of all views are there; the object can be turned meanwhile.");
  const near = { representation: el("div.near", {}, waiting()), poses: el("div.near", {}, waiting()) };
  const bars = el("canvas.bars", { role: "img", "aria-label": "activations of the capsules" });
  const poses = el("div.poses");
  const note = el("p.small.soft");
  let kind = "heat";
  let looked = null;
  let stale = 0;
  const draw = () => {
    if (!looked) return;
    drawBars(bars, looked.activations);
    poses.replaceChildren();
    if (looked.capsules) drawPoses(poses, looked.poses, looked.capsules, looked.activations, kind);
  };
  const caption = (view) => [el("b", {}, view.class), ` ${nearness(view, "away")}`];
  const own_object = el("input", { type: "checkbox", onchange: () => look() });
  const look = async () => {
    const own = ++stale;
    const answer = await whenReady(() => post("api/look", { ...network(), scene: asked(), own_object: own_object.checked, k: 12 }), () => own === stale);
    if (!answer) return;
    looked = answer;
    near.representation.replaceChildren(...pictures(answer.by_representation, caption, showStored));
    near.poses.replaceChildren(...pictures(answer.by_poses, caption, showStored));
    posesPanel.hidden = !answer.by_poses.length;
    barsPanel.hidden = !answer.activations.length;
    posesHead.replaceChildren(...partWords(answer));
    barsHead.replaceChildren(...(answer.capsules ? ["Activations", el("small", {}, "of the capsules")] : ["Invariant embedding", el("small", {}, "the part that stays when the object moves")]));
    matrices.hidden = !answer.capsules;
    note.textContent = answer.note ?? "";
    const values = answer.activations;
    barsNote.textContent = values.length ? `bars go up and down from their mean, ${(values.reduce((a, b) => a + b, 0) / values.length).toFixed(4)}; from ${Math.min(...values).toFixed(4)} to ${Math.max(...values).toFixed(4)}` : "";
    draw();
    place.dataset.looked = String(own);
  };
  const command = () => {
    const { word, before } = among();
    return `${before}equicaps neighbours ${chosenRun().word} ${imageWord()} --among ${word} -k 12 --by poses`;
  };
  const json = () => ({ ...network(), run: chosenRun().name, scene: { ...scene }, object: page.state.data.objects[scene.object].id, nearest: looked && { representation: looked.by_representation, poses: looked.by_poses }, activations: looked?.activations, poses: looked?.poses });
  const stage = new Stage({ rested: look });
  stage.panel.append(copyButtons(command, json));
  const [posesHead, barsHead] = [el("h2", { id: "poses-head" }, "Nearest by embedding"), el("h2", {}, "Activations")];
  const posesPanel = panel(posesHead, near.poses);
  const barsNote = el("p.small.soft");
  const barsPanel = panel(barsHead, bars, barsNote);
  const toggle = el("button", { type: "button", onclick: () => { kind = kind === "heat" ? "axes" : "heat"; toggle.textContent = kind === "heat" ? "as axes" : "as heat maps"; draw(); } }, "as axes");
  const matrices = panel(el("div.row.spread", { style: "margin-bottom:.5rem" }, el("h2", {}, "Pose matrices"), toggle), poses, el("p.small.soft", {}, "one for each capsule, the most active first"));
  place.append(el("div.turn-grid", {}, stage.panel,
    el("div.stack", {}, panel(el("div.row.spread", { style: "margin-bottom:.5rem" }, el("h2", {}, "Nearest by representation", el("small", {}, page.state.data.has_poses ? "angle to the shown rotation, cosine" : "cosine; these data have no poses")), el("label.row.small", {}, own_object, "of this object")), near.representation), posesPanel, note),
    el("div.stack", {}, barsPanel, matrices)));
  addEventListener("resize", draw);
  here = { look, draw, command, json };
  return () => { stale++; stage.close(); removeEventListener("resize", draw); };
}

export const networkChanged = () => here.look();
export const themeChanged = () => here.draw();
export const key = (name) => pictureKey(name, here);
