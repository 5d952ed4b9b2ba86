// The page: which of the five views is shown, with which network, in which colours.
import { el, toast } from "./elements.js";
import { get, Later, pause, query } from "./server.js";
import { change, scene, showStored, turn, UNMOVED } from "./scene.js";
import * as turnView from "./turn.js";
import * as steerView from "./steer.js";
import * as mapView from "./map.js";
import * as runsView from "./runs.js";
import * as errorsView from "./errors.js";

const VIEWS = { turn: ["Turn", turnView], steer: ["Steer", steerView], map: ["Map", mapView], runs: ["Runs", runsView], errors: ["Errors", errorsView] };

/** What all views share: what the program said at the start, and the chosen network. */
export const page = { state: null, run: 0, epoch: null, name: "turn", view: null, close: null };

/** The network of requests. */
export const network = () => ({ run: page.run, epoch: page.epoch });

/** The chosen run. */
export const chosenRun = () => page.state.runs[page.run];

const status = document.getElementById("status");

/** Says what is going on, or nothing. */
export function say(text, { error = false, done = null, total = null } = {}) {
  status.hidden = !text;
  status.classList.toggle("error", error);
  status.replaceChildren(text ?? "", total ? el("progress", { value: done, max: total }) : "");
}

/** Asks until the network is ready; says how far it is. Gives up when `current()` is no longer true. */
export async function whenReady(ask, current = () => true) {
  for (let wait = 250; current(); wait = Math.min(1500, wait * 1.2)) {
    try {
      const answer = await ask();
      if (current()) say(null);
      return current() ? answer : null;
    } catch (error) {
      if (!current()) return null;
      if (!(error instanceof Later)) { if (error.name !== "AbortError") say(error.message, { error: true }); return null; }
      const { what, done, total } = error.loading;
      say(`${chosenRun().name}: ${what}, ${done} of ${total}`, { done, total });
      await pause(wait);
    }
  }
  return null;
}

/** Shows one of the views. */
export async function show(name) {
  if (!VIEWS[name]) name = "turn";
  page.close?.();
  page.name = name;
  document.querySelectorAll(".tabs a").forEach((tab) => tab.setAttribute("aria-selected", String(tab.dataset.view === name)));
  document.title = `${VIEWS[name][0]} – EquiCaps explorer`;
  say(null);
  const place = document.getElementById("view");
  place.replaceChildren();
  // What was done in the view before, for tests.
  Object.keys(place.dataset).forEach((name) => delete place.dataset[name]);
  page.view = VIEWS[name][1];
  page.close = page.view.open(place) ?? null;
  document.body.dataset.view = name;
}

function networkChooser() {
  const { runs } = page.state;
  const epochs = chosenRun().epochs;
  const run = el("select", { "aria-label": "Run", onchange: () => choose(Number(run.value), null) },
    runs.map((one, index) => el("option", { value: String(index), selected: index === page.run }, `${one.name} · ${one.title}`)));
  const parts = [run];
  if (epochs.length > 1) {
    const place = page.epoch === null ? epochs.length - 1 : Math.max(0, epochs.indexOf(page.epoch));
    const range = el("input", { type: "range", min: 0, max: epochs.length - 1, step: 1, value: String(place), "aria-label": "Checkpoint" });
    const text = el("span.small.soft", {}, `epoch ${epochs[place]}`);
    range.addEventListener("input", () => { text.textContent = `epoch ${epochs[Number(range.value)]}`; });
    range.addEventListener("change", () => choose(page.run, epochs[Number(range.value)]));
    parts.push(range, text);
  } else if (epochs.length === 1) parts.push(el("span.small.soft", {}, `epoch ${epochs[0]}`));
  else parts.push(el("span.small.warm", {}, "no checkpoint yet"));
  document.getElementById("network").replaceChildren(...parts);
}

/** Looks through another network. */
export function choose(run, epoch) {
  page.run = run;
  const { epochs } = chosenRun();
  page.epoch = epoch === epochs.at(-1) ? null : epoch;
  networkChooser();
  page.view?.networkChanged?.();
}

/** New checkpoints of runs that train. */
export function noteCheckpoints(run, epochs) {
  const known = page.state.runs[run];
  if (known.epochs.length === epochs.length && known.epochs.at(-1) === epochs.at(-1)) return;
  known.epochs = epochs;
  if (page.epoch !== null && run === page.run && !epochs.includes(page.epoch)) page.epoch = null;
  networkChooser();
}

/** A random stored view. */
export async function randomView() {
  const { objects } = page.state.data;
  const object = Math.floor(Math.random() * objects.length);
  const view = Math.floor(Math.random() * objects[object].views);
  showStored({ ...(await get(`api/view?${query({ object, view })}`)), object, view });
}

/** Another object at the same pose; without meshes, its first view. */
export async function showObject(object) {
  const { objects, live } = page.state.data;
  object = (object + objects.length) % objects.length;
  if (live && objects[object].live) change({ object, view: null });
  else showStored({ ...(await get(`api/view?${query({ object, view: 0 })}`)), object, view: 0 });
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  // Whoever types a number does not turn the object; a slider keeps its arrows.
  const typing = event.target.closest?.("input:not([type=range], [type=checkbox]), select, textarea");
  if (typing || (event.key.startsWith("Arrow") && event.target.closest?.("input"))) return;
  const names = Object.keys(VIEWS);
  const step = event.shiftKey ? 15 : 3;
  const live = page.state.data.live;
  const turns = { ArrowLeft: [0, 0, -step], ArrowRight: [0, 0, step], ArrowUp: [step, 0, 0], ArrowDown: [-step, 0, 0], "[": [0, -step, 0], "]": [0, step, 0] };
  if (Number(event.key) >= 1 && Number(event.key) <= names.length) location.hash = names[Number(event.key) - 1];
  else if (turns[event.key] && live && ["turn", "steer"].includes(page.name)) turn(turns[event.key]);
  else if (event.key === ",") showObject(scene.object - 1);
  else if (event.key === ".") showObject(scene.object + 1);
  else if (event.key === "r") randomView();
  else if (event.key === "0" && live) change(UNMOVED);
  else if (event.key === "t") theme(true);
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (!page.view?.key?.(event.key)) return;
  event.preventDefault();
}

function theme(toggle) {
  const stored = localStorage.getItem("theme");
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  let chosen = stored ?? system;
  if (toggle) { chosen = chosen === "dark" ? "light" : "dark"; localStorage.setItem("theme", chosen); }
  document.documentElement.dataset.theme = chosen;
  if (toggle) page.view?.themeChanged?.();
}

async function start() {
  theme(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme(false); page.view?.themeChanged?.(); });
  try {
    page.state = await get("api/state");
  } catch (error) {
    say(error.message, { error: true });
    return;
  }
  document.querySelector(".tabs").replaceChildren(...Object.entries(VIEWS).map(([name, [title]], index) =>
    el("a", { href: `#${name}`, role: "tab", title: `${title} (${index + 1})`, "data-view": name }, title)));
  networkChooser();
  const { live, objects } = page.state.data;
  if (!live || !objects[0]?.live) await showObject(0);
  else change({ object: 0 });
  document.getElementById("theme").addEventListener("click", () => theme(true));
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  addEventListener("hashchange", () => show(location.hash.slice(1)));
  addEventListener("keydown", keys);
  addEventListener("unhandledrejection", (event) => { toast(event.reason?.message ?? String(event.reason)); });
  await show(location.hash.slice(1) || "turn");
}

start();
