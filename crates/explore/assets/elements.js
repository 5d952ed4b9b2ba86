// Small pieces of the page: elements, sliders, captions, copying.
import { viewAddress } from "./server.js";

/** An element: `el("div.near", { onclick }, child, ...)`. */
export function el(what, attributes = {}, ...children) {
  const [name, ...classes] = what.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  // Styles as text would be refused by the page's own policy.
  for (const [key, value] of Object.entries(attributes)) key === "style" ? (element.style.cssText = value) : element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const panel = (title, ...children) => el("section.panel", {}, typeof title === "string" ? el("h2", {}, title) : title, ...children);

/** A name, a slider and its number; `set` shows another value without telling. */
export function slider(label, { min, max, step, value, unit = "", hue = false }, changed) {
  const id = `s${Math.random().toString(36).slice(2)}`;
  const range = el("input", { type: "range", min, max, step, id, value: String(value) });
  if (hue) range.classList.add("hue");
  const number = el("input", { type: "number", min, max, step, value: String(value), "aria-label": `${label} ${unit}` });
  const tell = (source) => {
    const next = Math.min(max, Math.max(min, Number(source.value) || 0));
    (source === range ? number : range).value = String(next);
    changed(next);
  };
  range.addEventListener("input", () => tell(range));
  number.addEventListener("change", () => { tell(number); number.value = range.value; });
  const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : 2;
  return {
    elements: [el("label", { htmlFor: id }, unit ? `${label} (${unit})` : label), range, number],
    set(next) { range.value = String(next); number.value = Number(next).toFixed(digits); },
  };
}

/** Stored views with their captions; `chosen(view)` when one is clicked. */
export function pictures(views, caption, chosen, side = 128) {
  return views.map((view, index) => el("figure", {},
    el("button.picture", { type: "button", title: `${view.id}, view ${view.view}`, onclick: () => chosen?.(view) },
      el("img", { src: viewAddress(view.object, view.view, side), alt: `${view.class}, view ${view.view}`, loading: "lazy" })),
    el("figcaption", {}, ...caption(view, index))));
}

/** Puts text into the clipboard and says so. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`copied ${what}: ${text.length > 400 ? `${text.slice(0, 400)} …` : text}`);
}

/** The keys of every view that can be copied: c its command line, j its JSON. Whether `name` is one of them. */
export function copyKey(name, view) {
  if (name === "c") copy(view.command(), "the command line");
  else if (name === "j") copy(JSON.stringify(view.json()), "JSON");
  else return false;
  return true;
}

let gone;
export function toast(text) {
  document.querySelector(".toast")?.remove();
  clearTimeout(gone);
  const element = el("div.toast", { role: "status" }, text);
  document.body.append(element);
  gone = setTimeout(() => element.remove(), 3500);
}

export const degrees = (value, digits = 0) => (value === null || value === undefined || Number.isNaN(value) ? "–" : `${value.toFixed(digits)}°`);
/** How near a view is that was found: its angle, followed by `word`, where the data have poses, and its cosine. */
export const nearness = (view, word) => `${view.degrees === undefined ? "" : `${degrees(view.degrees)} ${word}, `}${view.similarity.toFixed(3)}`;
export const share = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(0)} %`);

/** A canvas with as many pixels as the screen has for it. */
export function sharp(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.max(1, Math.round(canvas.clientWidth * ratio)), Math.max(1, Math.round(canvas.clientHeight * ratio))];
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return context;
}

/** A colour of the page. */
export const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
