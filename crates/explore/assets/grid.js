// Points in the cells of a grid, so that those beside a place are found without looking at all of them.
const SIDE = 128;
/** Cells cover -1 to 1 and as much around; what lies further out is in those of the border. */
const cell = (value) => Math.max(0, Math.min(SIDE - 1, Math.floor((value + 2) / 4 * SIDE)));

export class Grid {
  constructor(x, y) {
    this.x = x; this.y = y;
    const count = x.length;
    const cells = new Uint16Array(count);
    this.starts = new Uint32Array(SIDE * SIDE + 1);
    for (let i = 0; i < count; i++) { cells[i] = cell(y[i]) * SIDE + cell(x[i]); this.starts[cells[i] + 1]++; }
    for (let i = 0; i < SIDE * SIDE; i++) this.starts[i + 1] += this.starts[i];
    const free = this.starts.slice();
    this.points = new Uint32Array(count);
    for (let i = 0; i < count; i++) this.points[free[cells[i]]++] = i;
  }

  /** Calls `found(index)` for all points in a rectangle, and some around it. */
  visit([left, right], [bottom, top], found) {
    for (let row = cell(bottom); row <= cell(top); row++) {
      const [from, to] = [this.starts[row * SIDE + cell(left)], this.starts[row * SIDE + cell(right) + 1]];
      for (let i = from; i < to; i++) found(this.points[i]);
    }
  }

  /** The points within a distance of a place, the nearest first. */
  within([x, y], radius) {
    const near = [];
    this.visit([x - radius, x + radius], [y - radius, y + radius], (index) => {
      const distance = Math.hypot(this.x[index] - x, this.y[index] - y);
      if (distance < radius) near.push([distance, index]);
    });
    return near.sort(([a, i], [b, j]) => a - b || i - j).map(([, index]) => index);
  }

  /** The points inside a closed path of [x, y], in their order. */
  inside(path) {
    const range = (axis) => [Math.min(...path.map((at) => at[axis])), Math.max(...path.map((at) => at[axis]))];
    const found = [];
    this.visit(range(0), range(1), (index) => {
      const [px, py] = [this.x[index], this.y[index]];
      let is = false;
      for (let a = 0, b = path.length - 1; a < path.length; b = a++) {
        const [ax, ay] = path[a], [bx, by] = path[b];
        if (ay > py !== by > py && px < ((bx - ax) * (py - ay)) / (by - ay) + ax) is = !is;
      }
      if (is) found.push(index);
    });
    return found.sort((a, b) => a - b);
  }
}
