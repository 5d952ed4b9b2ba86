// Points by WebGL: 100,000 of them move as one. Drags pan, the wheel zooms, Shift and drag (or the lasso) encloses.
//
// Everything about the points lies in buffers that are filled when they change, never for a frame. They are in a shuffled
// order, so the first few are an even choice of all: that is what slow devices draw while something moves.
import { Grid } from "./grid.js";
import { Pace } from "./pace.js";

const VERTEX = `
attribute vec2 from; attribute vec2 place; attribute vec3 colour;
uniform vec2 centre; uniform vec2 scale; uniform float size; uniform float share;
varying vec3 shade;
void main() {
  gl_Position = vec4((mix(from, place, share) - centre) * scale, 0.0, 1.0);
  gl_PointSize = size;
  shade = colour;
}`;
const FRAGMENT = `
precision mediump float; varying vec3 shade; uniform float opacity;
void main() {
  float r = length(gl_PointCoord - 0.5);
  if (r > 0.5) discard;
  gl_FragColor = vec4(shade, smoothstep(0.5, 0.36, r) * opacity);
}`;
/** Milliseconds after the last motion until all points are drawn, and of a glide. */
const [REST, GLIDE] = [160, 450];
/** Pixels of a point, at most. */
const LARGEST = 24;
/** What a device manages is known from one map to the next. */
const pace = new Pace();

export class Points {
  /** `picked(index | null)`, `enclosed(indices)` tell what the hand does. */
  constructor(place, { picked, enclosed }) {
    this.canvas = document.createElement("canvas");
    this.over = document.createElement("canvas");
    this.over.style.pointerEvents = "none";
    place.replaceChildren(this.canvas, this.over);
    this.gl = this.canvas.getContext("webgl", { antialias: false, depth: false, stencil: false, premultipliedAlpha: false, alpha: true });
    this.count = 0; this.x = new Float32Array(); this.y = new Float32Array(); this.order = new Uint32Array();
    this.chosen = []; this.share = 1; this.began = -Infinity; this.painted = 0;
    this.centre = [0, 0]; this.zoom = 1; this.lassoing = false;
    this.picked = picked; this.enclosed = enclosed;
    if (this.gl) this.prepare();
    else place.append(Object.assign(document.createElement("p"), { className: "small warm", textContent: "This browser shows no WebGL here, which the points are drawn with; switch on hardware acceleration, or look from another browser." }));
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(place);
  }

  prepare() {
    const gl = this.gl;
    const compile = (kind, text) => { const shader = gl.createShader(kind); gl.shaderSource(shader, text); gl.compileShader(shader); return shader; };
    const program = gl.createProgram();
    gl.attachShader(program, compile(gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, compile(gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program);
    gl.useProgram(program);
    this.at = Object.fromEntries(["from", "place", "colour"].map((name) => [name, gl.getAttribLocation(program, name)]));
    Object.values(this.at).forEach((attribute) => gl.enableVertexAttribArray(attribute));
    this.uniform = Object.fromEntries(["centre", "scale", "size", "share", "opacity"].map((name) => [name, gl.getUniformLocation(program, name)]));
    const buffers = () => ({ from: gl.createBuffer(), place: gl.createBuffer(), colour: gl.createBuffer(), count: 0 });
    // All points, and those that are chosen once more, on top.
    this.all = buffers(); this.strongs = buffers();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  fill(buffer, values) {
    if (!this.gl) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.STATIC_DRAW);
  }

  /** Puts the places of `order` into buffers. */
  fillPlaces(buffers, order) {
    const pairs = ([x, y]) => { const values = new Float32Array(2 * order.length); order.forEach((index, i) => { values[2 * i] = x[index]; values[2 * i + 1] = y[index]; }); return values; };
    this.fill(buffers.from, pairs(this.from));
    this.fill(buffers.place, pairs([this.x, this.y]));
    buffers.count = order.length;
  }

  fillColours(buffers, order) {
    const values = new Uint8Array(4 * order.length);
    order.forEach((index, i) => { for (let channel = 0; channel < 3; channel++) values[4 * i + channel] = 255 * (this.rgb?.[3 * index + channel] ?? 0.5); });
    this.fill(buffers.colour, values);
  }

  /** Other positions; the same number of points as before glides to them. */
  set(x, y) {
    const glides = this.count === x.length && this.count > 0;
    const before = [this.x, this.y];
    if (!glides) { this.count = x.length; this.order = shuffled(this.count); this.rgb = null; this.chosen = []; }
    [this.x, this.y] = [normal(x), normal(y)];
    this.from = glides ? before : [this.x, this.y];
    this.grid = null;
    if (!this.gl) return;
    this.fillPlaces(this.all, this.order);
    if (!glides) this.fillColours(this.all, this.order);
    this.strong(this.chosen);
    this.began = glides ? performance.now() : -Infinity;
    if (glides) this.move(); else this.draw();
  }

  /** Red, green and blue of all points, 0 to 1. */
  colours(rgb) {
    this.rgb = rgb;
    if (!this.gl) return;
    this.fillColours(this.all, this.order);
    this.strong(this.chosen);
  }

  /** Points that are drawn once more, larger and above the others. */
  strong(indices) {
    this.chosen = indices;
    if (!this.gl) return;
    this.fillPlaces(this.strongs, indices);
    this.fillColours(this.strongs, indices);
    this.draw();
  }

  fit() { this.centre = [0, 0]; this.zoom = 1; this.draw(); }

  /** Units of the map in half the width and half the height of the canvas. */
  scale() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const side = Math.min(width, height) || 1;
    return [(this.zoom * 0.92 * side) / (width || 1), (this.zoom * 0.92 * side) / (height || 1)];
  }

  /** Something moves: from now on frames are timed, until it rests. */
  move() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.moving = false;
      pace.rest();
      if (this.shown < this.count) this.draw();
    }, Math.max(REST, this.began + GLIDE + 50 - performance.now()));
    this.moving = true;
    this.draw();
  }

  draw() {
    this.stale = true;
    if (!this.gl || this.waiting) return;
    this.waiting = requestAnimationFrame((now) => this.frame(now));
  }

  /** A frame; while something moves there is always a next one, so that it can be timed. */
  frame(now) {
    this.waiting = this.moving ? requestAnimationFrame((next) => this.frame(next)) : null;
    if (this.moving) pace.tick(now, this.painted, this.count);
    const share = Math.max(0, Math.min(1, (performance.now() - this.began) / GLIDE));
    const changes = this.stale || this.share !== share;
    [this.share, this.stale] = [share, false];
    if (changes) this.paint();
    this.painted = changes ? this.shown : 0;
  }

  paint() {
    const gl = this.gl;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.canvas.clientWidth * ratio), Math.round(this.canvas.clientHeight * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) { this.canvas.width = width; this.canvas.height = height; }
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2fv(this.uniform.centre, this.centre);
    gl.uniform2fv(this.uniform.scale, this.scale());
    gl.uniform1f(this.uniform.share, this.share * this.share * (3 - 2 * this.share));
    const base = this.count > 40000 ? 3 : this.count > 8000 ? 5 : this.count > 2000 ? 7 : 10;
    const size = Math.min(LARGEST, base * Math.min(2, Math.max(1, this.zoom ** 0.3))) * ratio;
    this.shown = this.moving ? pace.share(this.count) : this.count;
    this.several(this.all, this.shown, size, this.chosen.length ? 0.42 : 0.85);
    this.several(this.strongs, Math.min(this.strongs.count, this.shown), size * 1.7, 1);
    this.drawn = (this.drawn ?? 0) + 1;
  }

  several(buffers, count, size, opacity) {
    if (!count) return;
    const gl = this.gl;
    for (const [name, width, kind, step] of [["from", 2, gl.FLOAT, 8], ["place", 2, gl.FLOAT, 8], ["colour", 3, gl.UNSIGNED_BYTE, 4]]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
      gl.vertexAttribPointer(this.at[name], width, kind, kind === gl.UNSIGNED_BYTE, step, 0);
    }
    gl.uniform1f(this.uniform.size, size);
    gl.uniform1f(this.uniform.opacity, opacity);
    gl.drawArrays(gl.POINTS, 0, count);
  }

  /** From the canvas to the map. */
  toMap(event) {
    const box = this.canvas.getBoundingClientRect();
    const [sx, sy] = this.scale();
    return [((event.clientX - box.left) / box.width * 2 - 1) / sx + this.centre[0], (1 - (event.clientY - box.top) / box.height * 2) / sy + this.centre[1]];
  }

  /** The points in a grid, made when somebody looks for one. */
  cells() { return (this.grid ??= new Grid(this.x, this.y)); }

  /** The point nearest to a place of the map, within a few pixels. */
  nearest(place) {
    const pixels = (this.scale()[0] * this.canvas.clientWidth) / 2;
    return this.cells().within(place, 14 / pixels)[0] ?? null;
  }

  /** Where a point is on the canvas. */
  place_of(index) {
    const [sx, sy] = this.scale();
    return [(1 + (this.x[index] - this.centre[0]) * sx) / 2 * this.canvas.clientWidth, (1 - (this.y[index] - this.centre[1]) * sy) / 2 * this.canvas.clientHeight];
  }

  listen() {
    let from = null, moved = false, path = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      from = [event.clientX, event.clientY]; moved = false;
      path = event.shiftKey || this.lassoing ? [this.toMap(event)] : null;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from[0], event.clientY - from[1]];
      if (Math.hypot(dx, dy) > 3) moved = true;
      if (path) { path.push(this.toMap(event)); this.outline(path); return; }
      if (!moved) return;
      const [sx, sy] = this.scale();
      this.centre[0] -= (dx / this.canvas.clientWidth) * 2 / sx;
      this.centre[1] += (dy / this.canvas.clientHeight) * 2 / sy;
      from = [event.clientX, event.clientY];
      this.move();
    });
    const end = (event) => {
      if (!from) return;
      from = null;
      if (path && moved) this.enclosed(this.cells().inside(path));
      else if (!moved) this.picked(this.nearest(this.toMap(event)));
      path = null;
      this.outline([]);
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", () => { from = null; path = null; this.outline([]); });
    this.canvas.addEventListener("dblclick", () => this.fit());
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const before = this.toMap(event);
      this.zoom = Math.min(200, Math.max(0.5, this.zoom * Math.exp(-event.deltaY * 0.0015)));
      const after = this.toMap(event);
      this.centre = [this.centre[0] + before[0] - after[0], this.centre[1] + before[1] - after[1]];
      this.move();
    }, { passive: false });
  }

  outline(path) {
    const canvas = this.over;
    canvas.width = canvas.clientWidth; canvas.height = canvas.clientHeight;
    if (path.length < 2) return;
    const context = canvas.getContext("2d");
    const [sx, sy] = this.scale();
    context.strokeStyle = "#3e7bfa"; context.fillStyle = "#3e7bfa22"; context.lineWidth = 1.5;
    context.beginPath();
    for (const [x, y] of path) context.lineTo((1 + (x - this.centre[0]) * sx) / 2 * canvas.width, (1 - (y - this.centre[1]) * sy) / 2 * canvas.height);
    context.closePath(); context.fill(); context.stroke();
  }

  close() { this.observer.disconnect(); clearTimeout(this.resting); cancelAnimationFrame(this.waiting); this.gl?.getExtension("WEBGL_lose_context")?.loseContext(); }
}

/** The numbers below `count` in an order that is the same every time and follows nothing. */
function shuffled(count) {
  const order = Uint32Array.from({ length: count }, (_, index) => index);
  for (let i = count - 1, state = 2463534242; i > 0; i--) {
    state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
    const other = (state >>> 0) % (i + 1);
    [order[i], order[other]] = [order[other], order[i]];
  }
  return order;
}

/** Most of the values between -1 and 1. */
function normal(values) {
  const sorted = Float32Array.from(values).sort();
  const [low, high] = [sorted[Math.floor(0.002 * sorted.length)], sorted[Math.ceil(0.998 * sorted.length) - 1]];
  const [middle, half] = [(low + high) / 2, Math.max(1e-9, (high - low) / 2)];
  return values.map((value) => (value - middle) / half);
}

/** Red, green, blue (0 to 1) of a hue, 0 to 1. */
export function hueColour(hue, light = 0.55) {
  const channel = (offset) => { const k = (offset + hue * 12) % 12; return light - 0.42 * Math.max(-1, Math.min(k - 3, 9 - k, 1)); };
  return [channel(0), channel(8), channel(4)];
}

/** A ramp from blue over green to yellow, for numbers from 0 to 1. */
export function rampColour(share) {
  const stops = [[0.27, 0.0, 0.33], [0.23, 0.32, 0.55], [0.13, 0.57, 0.55], [0.37, 0.79, 0.38], [0.99, 0.91, 0.14]];
  const at = Math.max(0, Math.min(0.9999, share)) * (stops.length - 1);
  const [low, rest] = [Math.floor(at), at - Math.floor(at)];
  return stops[low].map((value, index) => value + (stops[low + 1][index] - value) * rest);
}

export const css = (rgb) => `rgb(${rgb.map((value) => Math.round(255 * value)).join(" ")})`;
