// Points by WebGL: 100,000 of them move as one. Drags pan, the wheel zooms, Shift and drag (or the lasso) encloses.
const VERTEX = `
attribute vec2 place; attribute vec3 colour; attribute float strong;
uniform vec2 centre; uniform vec2 scale; uniform float size;
varying vec3 shade; varying float weight;
void main() {
  gl_Position = vec4((place - centre) * scale, 0.0, 1.0);
  gl_PointSize = size * (strong > 0.5 ? 1.7 : 1.0);
  shade = colour; weight = strong;
}`;
const FRAGMENT = `
precision mediump float; varying vec3 shade; varying float weight; uniform float faint;
void main() {
  float r = length(gl_PointCoord - 0.5);
  if (r > 0.5) discard;
  float edge = smoothstep(0.5, 0.36, r);
  gl_FragColor = vec4(shade, edge * (weight > 0.5 ? 1.0 : faint));
}`;

export class Points {
  /** `picked(index | null)`, `enclosed(indices)` tell what the hand does. */
  constructor(place, { picked, enclosed }) {
    this.canvas = document.createElement("canvas");
    this.over = document.createElement("canvas");
    this.over.style.pointerEvents = "none";
    place.replaceChildren(this.canvas, this.over);
    this.place = place;
    this.gl = this.canvas.getContext("webgl", { antialias: false, premultipliedAlpha: false, alpha: true });
    this.count = 0; this.x = new Float32Array(); this.y = new Float32Array();
    this.centre = [0, 0]; this.zoom = 1; this.lassoing = false;
    this.picked = picked; this.enclosed = enclosed;
    if (this.gl) this.prepare();
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
    this.at = Object.fromEntries(["place", "colour", "strong"].map((name) => [name, gl.getAttribLocation(program, name)]));
    this.uniform = Object.fromEntries(["centre", "scale", "size", "faint"].map((name) => [name, gl.getUniformLocation(program, name)]));
    this.buffers = { place: gl.createBuffer(), colour: gl.createBuffer(), strong: gl.createBuffer() };
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  fill(name, values, size) {
    const gl = this.gl;
    if (!gl) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(this.at[name]);
    gl.vertexAttribPointer(this.at[name], size, gl.FLOAT, false, 0, 0);
  }

  /** Other positions; the same number of points as before glides to them. */
  set(x, y) {
    const from = this.count === x.length && this.count ? [this.x.slice(), this.y.slice()] : null;
    this.count = x.length;
    this.goal = [normal(x), normal(y)];
    cancelAnimationFrame(this.moving);
    const put = (share) => {
      const eased = share * share * (3 - 2 * share);
      this.x = from ? mix(from[0], this.goal[0], eased) : this.goal[0];
      this.y = from ? mix(from[1], this.goal[1], eased) : this.goal[1];
      const places = new Float32Array(2 * this.count);
      for (let i = 0; i < this.count; i++) { places[2 * i] = this.x[i]; places[2 * i + 1] = this.y[i]; }
      this.fill("place", places, 2);
      this.draw();
    };
    if (!from) { put(1); return; }
    const began = performance.now();
    const step = (now) => { const share = Math.min(1, (now - began) / 450); put(share); if (share < 1) this.moving = requestAnimationFrame(step); };
    this.moving = requestAnimationFrame(step);
  }

  colours(rgb) { this.fill("colour", rgb, 3); this.draw(); }

  strong(indices) {
    const strong = new Float32Array(this.count);
    indices.forEach((index) => { strong[index] = 1; });
    this.any = indices.length > 0;
    this.fill("strong", strong, 1);
    this.draw();
  }

  fit() { this.centre = [0, 0]; this.zoom = 1; this.draw(); }

  /** Units of the map in half the width and half the height of the canvas. */
  scale() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const side = Math.min(width, height) || 1;
    return [(this.zoom * 0.92 * side) / (width || 1), (this.zoom * 0.92 * side) / (height || 1)];
  }

  draw() {
    if (!this.gl || this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const gl = this.gl;
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [Math.round(this.canvas.clientWidth * ratio), Math.round(this.canvas.clientHeight * ratio)];
      if (this.canvas.width !== width || this.canvas.height !== height) { this.canvas.width = width; this.canvas.height = height; }
      gl.viewport(0, 0, width, height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2fv(this.uniform.centre, this.centre);
      gl.uniform2fv(this.uniform.scale, this.scale());
      const size = this.count > 40000 ? 3 : this.count > 8000 ? 5 : this.count > 2000 ? 7 : 10;
      gl.uniform1f(this.uniform.size, size * ratio * Math.min(2, Math.max(1, this.zoom ** 0.3)));
      gl.uniform1f(this.uniform.faint, this.any ? 0.42 : 0.85);
      gl.drawArrays(gl.POINTS, 0, this.count);
      this.drawn = (this.drawn ?? 0) + 1;
    });
  }

  /** From the canvas to the map. */
  toMap(event) {
    const box = this.canvas.getBoundingClientRect();
    const [sx, sy] = this.scale();
    return [((event.clientX - box.left) / box.width * 2 - 1) / sx + this.centre[0], (1 - (event.clientY - box.top) / box.height * 2) / sy + this.centre[1]];
  }

  /** The point nearest to a place of the map, within a few pixels. */
  nearest([x, y]) {
    const [sx, sy] = this.scale();
    const [w, h] = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    let [best, index] = [14 * 14, null];
    for (let i = 0; i < this.count; i++) {
      const dx = (this.x[i] - x) * sx * w, dy = (this.y[i] - y) * sy * h;
      const distance = dx * dx + dy * dy;
      if (distance < best) { best = distance; index = i; }
    }
    return index;
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
      this.draw();
    });
    const end = (event) => {
      if (!from) return;
      from = null;
      if (path && moved) this.enclosed(this.inside(path));
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
      this.draw();
    }, { passive: false });
  }

  inside(path) {
    const found = [];
    for (let i = 0; i < this.count; i++) {
      let is = false;
      for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
        const [ax, ay] = path[a], [bx, by] = path[b];
        if (ay > this.y[i] !== by > this.y[i] && this.x[i] < ((bx - ax) * (this.y[i] - ay)) / (by - ay) + ax) is = !is;
      }
      if (is) found.push(i);
    }
    return found;
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

  close() { this.observer.disconnect(); cancelAnimationFrame(this.moving); this.gl?.getExtension("WEBGL_lose_context")?.loseContext(); }
}

const mix = (a, b, share) => a.map((value, index) => value + (b[index] - value) * share);

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
