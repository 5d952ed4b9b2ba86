// The view that is shown: an object at a pose, in a light. Turn and Steer share it.
import { query } from "./server.js";

export const NAMES = ["rx", "ry", "rz", "tx", "ty", "tz", "floor_hue", "spot_theta", "spot_phi", "spot_hue", "scale_x", "scale_y", "scale_z", "shear_xy", "shear_xz", "shear_yz"];

/** The object as it is: neither turned nor moved nor deformed. */
export const UNMOVED = { rx: 0, ry: 0, rz: 0, tx: 0, ty: 0, tz: 0, scale_x: 1, scale_y: 1, scale_z: 1, shear_xy: 0, shear_xz: 0, shear_yz: 0 };

/** The scene as numbers; `view` is set where it is a stored view. */
export const scene = { object: 0, view: null, ...UNMOVED, rz: 30, floor_hue: 0.58, spot_theta: 25, spot_phi: 40, spot_hue: 0.12 };

const listeners = new Set();
/** Calls `listener` after every change, until the returned function is called. */
export function watch(listener) { listeners.add(listener); return () => listeners.delete(listener); }

/** Changes the scene. Any change of the pose or the light makes it a live view. */
export function change(values, { stored = false } = {}) {
  Object.assign(scene, values);
  if (!stored && !("view" in values) && NAMES.some((name) => name in values)) scene.view = null;
  listeners.forEach((listener) => listener());
}

/** Shows a stored view, with its own scene. */
export function showStored(view) {
  const values = Object.fromEntries(NAMES.map((name) => [name, view[name]]));
  change({ object: view.object, view: view.view, ...values }, { stored: true });
}

/** The scene for a request; of a stored view its number is enough. */
export function asked() {
  const rounded = Object.fromEntries(NAMES.map((name) => [name, Number(scene[name].toFixed(4))]));
  return scene.view === null ? { object: scene.object, ...rounded } : { object: scene.object, view: scene.view };
}

export const pictureAddress = (values, side, quality) => `api/image?${query({ ...values, side, quality })}`;

// Rotations: R = Rz Ry Rx, angles in degrees, as everywhere in this program.
const radians = (degrees) => (degrees * Math.PI) / 180;

export function matrixOf([x, y, z]) {
  const [sx, sy, sz] = [x, y, z].map((angle) => Math.sin(radians(angle)));
  const [cx, cy, cz] = [x, y, z].map((angle) => Math.cos(radians(angle)));
  return [
    [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
    [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
    [-sy, cy * sx, cy * cx],
  ];
}

export function anglesOf(r) {
  const z = Math.atan2(r[1][0], r[0][0]);
  const [sin, cos] = [Math.sin(z), Math.cos(z)];
  const x = Math.atan2(sin * r[0][2] - cos * r[1][2], cos * r[1][1] - sin * r[0][1]);
  const y = Math.atan2(-r[2][0], cos * r[0][0] + sin * r[1][0]);
  return [x, y, z].map((angle) => (angle * 180) / Math.PI);
}

export const times = (a, b) => a.map((row) => [0, 1, 2].map((j) => row[0] * b[0][j] + row[1] * b[1][j] + row[2] * b[2][j]));

/** Turns the object about the axes of the world, by degrees about x, y and z. */
export function turn(by) {
  const [rx, ry, rz] = anglesOf(times(matrixOf(by), matrixOf([scene.rx, scene.ry, scene.rz])));
  change({ rx, ry, rz });
}
