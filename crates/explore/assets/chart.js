// A line chart as SVG: several runs, their floors, the place of a checkpoint.
import { svg } from "./elements.js";

export const COLOURS = ["#3e7bfa", "#e5734d", "#30a46c", "#9b5de5", "#d6a100", "#00a2ae", "#d6409f", "#7a869a"];

/** Steps of 1, 2 or 5 times a power of ten: about `count` of them from `low` to `high`. */
export function ticks(low, high, count = 5) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
  return found;
}

const label = (value) => {
  const short = Number(value.toPrecision(4));
  return Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-2) ? short.toExponential() : String(short);
};
/** Half of a letter's width, in the chart's units, at most. */
const HALF_LETTER = 4.5;

/** `series`: [{name, colour, points: [[x, y]], floor}]; `mark`: an x to be marked. */
export function chart(series, { mark = null, onpick = null } = {}) {
  const [width, height, left, right, top, bottom] = [420, 240, 46, 10, 8, 24];
  const all = series.flatMap((one) => one.points);
  const values = all.map((point) => point[1]).concat(series.map((one) => one.floor).filter((floor) => floor !== null && floor !== undefined)).filter(Number.isFinite);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img" });
  if (!values.length) { root.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing yet")); return root; }
  // The first steps of a loss are no reason to squash the rest.
  const sorted = [...values].sort((a, b) => a - b);
  let [low, high] = [sorted[Math.floor(0.005 * sorted.length)], sorted[Math.ceil(0.985 * sorted.length) - 1]];
  if (high - low < 1e-9) { low -= 0.5; high += 0.5; }
  const spread = 0.06 * (high - low);
  [low, high] = [low - spread, high + spread];
  const first = Math.min(0, ...all.map((point) => point[0]));
  const last = Math.max(1, ...all.map((point) => point[0]));
  const x = (value) => left + ((value - first) / (last - first)) * (width - left - right);
  const y = (value) => top + ((high - Math.max(low, Math.min(high, value))) / (high - low)) * (height - top - bottom);
  for (const value of ticks(low, high)) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, label(value)));
  }
  for (const value of ticks(first, last)) {
    // The last label ends where the chart does.
    const text = label(value);
    const isLast = x(value) + HALF_LETTER * text.length > width;
    root.append(svg("text", { x: isLast ? width : x(value), y: height - 7, "text-anchor": isLast ? "end" : "middle" }, text));
  }
  for (const one of series) {
    if (one.floor !== null && one.floor !== undefined) {
      root.append(svg("line", { class: "floor", x1: left, x2: width - right, y1: y(one.floor), y2: y(one.floor), style: `stroke:${one.colour}` },
        svg("title", {}, `${one.name}: without information ${one.floor.toFixed(3)}`)));
    }
    const path = one.points.filter((point) => Number.isFinite(point[1])).map((point, index) => `${index ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
    root.append(svg("path", { class: "line", d: path, style: `stroke:${one.colour}` }));
    if (one.points.length === 1) root.append(svg("circle", { cx: x(one.points[0][0]), cy: y(one.points[0][1]), r: 3, style: `fill:${one.colour}` }));
  }
  if (mark !== null) root.append(svg("line", { class: "mark", x1: x(mark), x2: x(mark), y1: top, y2: height - bottom }));
  const readout = svg("text", { x: width - right, y: top + 10, "text-anchor": "end" });
  root.append(readout);
  const position = (event) => {
    const box = root.getBoundingClientRect();
    return first + (((event.clientX - box.left) / box.width) * width - left) / (width - left - right) * (last - first);
  };
  root.addEventListener("pointermove", (event) => {
    const at = position(event);
    const near = series.map((one) => {
      const best = one.points.reduce((best, point) => (best === null || Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best), null);
      return best && `${series.length > 1 ? `${one.name} ` : ""}${Number(best[1].toPrecision(4))}`;
    }).filter(Boolean);
    readout.textContent = `${Number(at.toFixed(1))}: ${near.join(", ")}`;
  });
  root.addEventListener("pointerleave", () => { readout.textContent = ""; });
  if (onpick) { root.style.cursor = "pointer"; root.addEventListener("click", (event) => onpick(position(event))); }
  return root;
}
