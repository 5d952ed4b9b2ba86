// Drawings of what a network makes of a view: activations as bars, poses as heat maps or axes.
import { sharp, tone } from "./elements.js";

/** Activations as bars from their mean, the three highest in colour. */
export function drawBars(canvas, values) {
  const context = sharp(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const count = values.length;
  if (!count) return;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const most = Math.max(1e-9, ...values.map((value) => Math.abs(value - mean)));
  const y = (value) => 4 + ((most - (value - mean)) / (2 * most)) * (height - 22);
  const step = width / count;
  const order = [...values.keys()].sort((a, b) => values[b] - values[a]);
  const rank = new Map(order.slice(0, 3).map((index, place) => [index, place]));
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "center";
  values.forEach((value, index) => {
    context.fillStyle = rank.has(index) ? tone("accent") : tone("soft");
    context.globalAlpha = rank.has(index) ? 1 : 0.55;
    const top = y(Math.max(value, mean));
    context.fillRect(index * step + step * 0.12, top, Math.max(1, step * 0.76), Math.max(1, y(Math.min(value, mean)) - top));
    context.globalAlpha = 1;
    if (step > 13 || index % Math.ceil(14 / step) === 0) {
      context.fillStyle = tone("soft");
      context.fillText(String(index), index * step + step / 2, height - 3);
    }
  });
}

/** Blue below zero, orange above, the ground at zero. */
function diverging(share) {
  const clamped = Math.max(-1, Math.min(1, share));
  return `hsl(${clamped < 0 ? "214 85% 52%" : "28 92% 50%"} / ${Math.abs(clamped)})`;
}

/** One pose matrix as a heat map, normalised by its Frobenius norm. */
export function drawHeat(canvas, matrix, side) {
  const context = sharp(canvas);
  const cell = canvas.clientWidth / side;
  const norm = Math.hypot(...matrix) / Math.sqrt(side) || 1;
  matrix.forEach((value, index) => {
    context.fillStyle = diverging(value / norm);
    context.fillRect((index % side) * cell, Math.floor(index / side) * cell, cell, cell);
  });
}

const COLOURS = ["#e5484d", "#30a46c", "#3e7bfa"];

/** The columns of a pose matrix as axes: the object's own axes, as the capsule sees them; faint ones point away. */
export function drawAxes(canvas, matrix, side) {
  const context = sharp(canvas);
  const middle = canvas.clientWidth / 2;
  const norm = Math.hypot(...matrix) / Math.sqrt(3) || 1;
  context.lineWidth = 2;
  context.lineCap = "round";
  const axes = [0, 1, 2].map((axis) => [0, 1, 2].map((row) => matrix[row * side + axis] / norm));
  const order = [0, 1, 2].sort((a, b) => axes[b][1] - axes[a][1]);
  for (const axis of order) {
    const [x, y, z] = axes[axis];
    const scale = middle * 0.82;
    context.strokeStyle = COLOURS[axis];
    context.globalAlpha = y > 0 ? 0.5 : 1;
    context.beginPath();
    context.moveTo(middle, middle);
    context.lineTo(middle + scale * (x + 0.25 * y), middle - scale * (z + 0.25 * y));
    context.stroke();
  }
  context.globalAlpha = 1;
}

/** All pose matrices into `place`, as `heat` or `axes`; those of the most active capsules first. */
export function drawPoses(place, poses, [capsules, side], activations, kind) {
  const order = [...Array(capsules).keys()].sort((a, b) => (activations[b] ?? 0) - (activations[a] ?? 0));
  while (place.children.length < capsules) place.append(document.createElement("canvas"));
  while (place.children.length > capsules) place.lastChild.remove();
  order.forEach((capsule, index) => {
    const canvas = place.children[index];
    const matrix = poses.slice(capsule * side * side, (capsule + 1) * side * side);
    canvas.title = `capsule ${capsule}, activation ${(activations[capsule] ?? 0).toFixed(3)}\n` +
      Array.from({ length: side }, (_, row) => matrix.slice(row * side, (row + 1) * side).map((value) => value.toFixed(2)).join("  ")).join("\n");
    (kind === "axes" ? drawAxes : drawHeat)(canvas, matrix, side);
  });
}
