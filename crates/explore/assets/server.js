// Requests to the program. Nothing here leaves the machine: every address is relative.

/** What a request failed with, in a sentence. */
export class Refused extends Error {}

/** Something that is being computed: {what, done, total}. */
export class Later extends Error {
  constructor(loading) { super(loading.what); this.loading = loading; }
}

async function answer(response) {
  if (response.status === 202) throw new Later((await response.json()).loading);
  if (response.ok) return response;
  let text = `${response.status} ${response.statusText}`;
  try { text = (await response.json()).error ?? text; } catch { /* no JSON: the status says it */ }
  throw new Refused(text);
}

async function request(url, options) {
  try {
    return await answer(await fetch(url, options));
  } catch (error) {
    if (error instanceof TypeError) throw new Refused("the program does not answer; is it still running?");
    throw error;
  }
}

export const get = async (url) => (await request(url)).json();

export const post = async (url, body, signal) =>
  (await request(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal })).json();

/** A picture as a local address, which the caller revokes. */
export async function picture(url) {
  return URL.createObjectURL(await (await request(url)).blob());
}

/** Columns of float32 after a JSON header. */
export async function columns(url) {
  const bytes = await (await request(url)).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const found = {};
  header.columns.forEach((name, index) => {
    found[name] = new Float32Array(bytes, 4 + length + 4 * index * header.rows, header.rows);
  });
  return { ...header, columns: found };
}

/** `a=1&b=2` of what is defined. */
export function query(values) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString();
}

/** The address of a stored view's picture. */
export const viewAddress = (object, view, side = 128) => `api/image?${query({ object, view, side })}`;

/** Sleeps. */
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
