// Calls the Rust module in its worker: await call('run', 3).
const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
const waiting = new Map();
let last = 0;
worker.onmessage = ({ data: { id, answer, error } }) => {
  const { done, failed } = waiting.get(id);
  waiting.delete(id);
  if (error === undefined) done(answer); else failed(new Error(error));
};
worker.onerror = (e) => {
  for (const { failed } of waiting.values()) failed(new Error(e.message || 'the worker did not start'));
  waiting.clear();
};

export function call(name, ...args) {
  return new Promise((done, failed) => {
    last += 1;
    waiting.set(last, { done, failed });
    worker.postMessage({ id: last, name, args });
  });
}

/** Plans an op for the executor: the program, and the text of its shaders by name. */
export async function plan(op, extents, number = 0) {
  const [json, ...rest] = await call('plan', op, Uint32Array.from(extents), number);
  const files = {};
  for (let i = 0; i < rest.length; i += 2) files[rest[i]] = rest[i + 1];
  return [JSON.parse(json), files];
}
