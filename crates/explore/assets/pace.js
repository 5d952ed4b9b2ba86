// How many points are drawn while they move: as many as this device manages at 30 pictures a second. At rest all are drawn.
const GOAL = 33;
/** Milliseconds of a frame that are too many, and so few that more can be drawn. */
const [SLOW, FAST] = [40, 24];
const LEAST = 5000;
/** A frame that took longer was waiting for something else. */
const ASLEEP = 1500;

export class Pace {
  constructor() { this.most = Infinity; this.frame = GOAL; this.before = null; }

  /** Of `count` points, how many to draw while they move. */
  share(count) { return Math.min(count, Math.max(LEAST, Math.floor(this.most))); }

  /** A frame of a motion begins at `now` (ms); `drawn` points were drawn in the one before, or none. */
  tick(now, drawn, count) {
    const took = this.before === null ? null : now - this.before;
    this.before = now;
    if (took === null || !drawn || took > ASLEEP) return;
    this.frame = 0.5 * this.frame + 0.5 * took;
    if (this.frame > SLOW) this.most = Math.max(LEAST, drawn * Math.max(0.3, GOAL / this.frame));
    else if (this.frame < FAST && drawn < count) this.most = drawn * 1.25;
    else return;
    this.frame = GOAL;
  }

  /** The motion ended. */
  rest() { this.before = null; this.frame = GOAL; }
}
