// Runs: curves of one or several runs, live while they train; a click on a curve looks through the checkpoint there.
import { chart, COLOURS } from "./chart.js";
import { copy, copyKey, el, panel } from "./elements.js";
import { get, pause } from "./server.js";
import { choose, noteCheckpoints, page, say } from "./main.js";

const FIRST = ["loss", "probe/rotation_r2/poses", "probe/rotation_r2/representation", "probe/class_accuracy/representation", "probe/knn_accuracy/representation", "probe/translation_r2/poses", "health/effective_rank"];
const WORDS = { held_out: "held out", epoch: "training, mean of an epoch", step: "training, steps" };
/** `probe/rotation_r2/poses` as people say it. */
const inWords = (name) => name.replace(/^probe\/([^/]+)\//, "$1 of ").replace(/^[a-z]+\//, "").replaceAll("_", " ").replace(" r2", " R²").replace("knn", "kNN");
let all = false;
let here = null;

export function open(place) {
  let open = true;
  const known = new Map();
  const table = el("div.scroll");
  const grid = el("div.runs-grid");
  const more = el("input", { type: "checkbox", checked: all, onchange: () => { all = more.checked; draw(); } });

  const draw = () => {
    const runs = [...known.values()];
    const checkpoint = page.epoch ?? page.state.runs[page.run].epochs.at(-1) ?? null;
    // Points are over steps; shown are epochs where those of all runs have the same number of steps, as far as it is known.
    const bySteps = new Set(runs.map((run) => run.steps_per_epoch && Math.round(run.steps_per_epoch))).size > 1 || runs.some((run) => !run.steps_per_epoch);
    const scale = (run) => (bySteps ? 1 : 1 / run.steps_per_epoch);
    const chosen = bySteps ? known.get(page.run)?.steps_per_epoch ?? null : 1;
    const names = new Map();
    for (const [kind, word] of Object.entries(WORDS)) {
      for (const { curves } of runs) for (const name of Object.keys(curves[kind])) {
        // Steps repeat what epochs say.
        if (kind === "step" && runs.some((run) => run.curves.epoch[name]?.points.length > 1)) continue;
        names.set(`${kind} ${name}`, { kind, name, word });
      }
    }
    const rank = ({ name, kind }) => { const place = FIRST.indexOf(name); return (place < 0 ? 99 : place) + (kind === "held_out" ? 0 : 0.5); };
    const listed = [...names.values()].sort((a, b) => rank(a) - rank(b)).filter((one) => all || (rank(one) < 99 && (one.kind === "held_out" || one.name === "loss" || one.name.startsWith("health"))));
    grid.replaceChildren(...listed.map(({ kind, name, word }) => {
      const series = runs.filter((run) => run.curves[kind][name]).map((run) => ({ name: run.name, colour: COLOURS[run.index % COLOURS.length], ...run.curves[kind][name], points: run.curves[kind][name].points.map(([x, y]) => [x * scale(run), y]) }));
      const pick = (at) => {
        const { epochs } = page.state.runs[page.run];
        if (epochs.length && chosen !== null) choose(page.run, epochs.reduce((best, epoch) => (Math.abs(epoch * chosen - at) < Math.abs(best * chosen - at) ? epoch : best)));
        draw();
      };
      const floors = series.some((one) => one.floor !== null && one.floor !== undefined);
      return panel(el("h2", {}, inWords(name), el("small", {}, word, bySteps ? "; over steps" : "", floors ? "; dashed: without information" : "")), chart(series, { mark: checkpoint === null || chosen === null ? null : checkpoint * chosen, onpick: pick }));
    }));
    table.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ["run", "method", "state", "epoch", "step", "checkpoints"].map((text) => el("th", {}, text)))),
      el("tbody", {}, page.state.runs.map((run, index) => {
        const now = known.get(index);
        const colour = el("i", { style: `display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em;background:${COLOURS[index % COLOURS.length]}` });
        const links = run.epochs.slice(-8).map((epoch) => el("button.quiet", { type: "button", title: `look through the checkpoint of epoch ${epoch}`, onclick: () => { choose(index, epoch); location.hash = "map"; } }, String(epoch)));
        return el("tr", { className: index === page.run ? "chosen" : "" }, el("td", {}, colour, run.name), el("td", {}, run.title),
          el("td", { className: now?.state === "running" ? "good" : "" }, now?.state ?? (run.has_curves ? "…" : "weights only")), el("td", {}, now ? `${now.epoch} / ${now.epochs}` : "–"), el("td", {}, now ? String(now.step) : "–"), el("td", {}, ...links));
      }))));
    const verdicts = runs.map((run) => run.pose?.message && `${run.name}: ${run.pose.message}`).filter(Boolean);
    verdict.replaceChildren(...verdicts.map((text) => el("p.small.warm", {}, text)));
    place.dataset.drawn = String(runs.reduce((sum, run) => sum + run.step, 0));
  };

  const poll = async () => {
    while (open) {
      let running = false;
      let changed = false;
      for (let index = 0; index < page.state.runs.length && open; index++) {
        if (!page.state.runs[index].has_curves) continue;
        try {
          const curves = await get(`api/curves?run=${index}`);
          const before = known.get(index);
          changed ||= !before || before.step !== curves.step || before.state !== curves.state || JSON.stringify(before.checkpoints) !== JSON.stringify(curves.checkpoints);
          known.set(index, { ...curves, index });
          noteCheckpoints(index, curves.checkpoints);
          running ||= curves.state === "running";
        } catch (error) {
          if (open) say(error.message, { error: true });
        }
      }
      if (open && (changed || !known.size)) draw();
      await pause(running ? 1000 : 3000);
    }
  };
  const command = () => `equicaps runs ${page.state.runs.length > 1 ? "compare" : "show"} ${page.state.runs.filter((run) => run.has_curves).map((run) => run.word).join(" ")}`;
  const json = () => [...known.values()];
  const verdict = el("div");
  place.append(el("div.stack", {},
    panel(el("div.row.spread", { style: "margin-bottom:.5rem" }, el("h2", {}, "Runs"), el("div.row", {}, el("label.small.row", {}, more, "all numbers"),
      el("button", { type: "button", onclick: () => copy(command(), "the command line") }, "Copy command"), el("button", { type: "button", onclick: () => copy(JSON.stringify(json()), "JSON") }, "Copy JSON"))), table, verdict,
      page.state.runs.some((run) => run.has_curves) ? "" : el("p.small.soft", {}, "The network inside the program has no curves; name a run's folder: equicaps explore RUN")),
    grid));
  draw();
  poll();
  here = { draw, command, json };
  return () => { open = false; };
}

export const networkChanged = () => here.draw();
export const key = (name) => copyKey(name, here);
