// Compares the executor's sort in Dawn with the native one on the same adapter: node tests/web/speed.mjs FOLDER OP
//
// FOLDER as for dawn.mjs; OP is the built example `op`. VK_DRIVER_FILES names the driver, TILEWORK_ADAPTER the adapter
// for OP. Both sort the same 2^20 keys by turns; the fastest run of each counts. Exit code 1 if the executor needs more
// than 1.2 times as long, or sorts wrongly.
//
// While a promise of Dawn is open, its binding for Node asks the device for news without a pause, which occupies a
// core. A software driver computes on that core, so this file sleeps between questions.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const N = 1 << 20, ROUNDS = 3, RUNS = 3, MAX_RATIO = 1.2;
const [folder, op] = process.argv.slice(2).map((path) => resolve(path));
if (!op) {
  console.error('usage: node tests/web/speed.mjs FOLDER OP');
  process.exit(2);
}
const load = (file) => import(pathToFileURL(file));
const { Ops } = await load(join(folder, 'executor.js'));
const planner = await load(join(folder, 'tilework_planner.js'));
planner.initSync({ module: readFileSync(join(folder, 'tilework_planner_bg.wasm')) });
const dawn = await load(createRequire(resolve(process.env.TILEWORK_TINT ?? '.', 'x.js')).resolve('webgpu'));
const gpu = dawn.create(['backend=vulkan']); // must stay in scope as long as the device
const adapter = await gpu.requestAdapter();
const device = await adapter.requestDevice({ requiredFeatures: ['subgroups'].filter((name) => adapter.features.has(name)) });

const keys = Uint32Array.from({ length: N }, (_, i) => Math.imul(i ^ (i >>> 7), 0x9e3779b9) >>> 0);
const wanted = keys.slice().sort();
const home = mkdtempSync(join(tmpdir(), 'tilework-'));
const header = `{'descr': '<u4', 'fortran_order': False, 'shape': (${N},), }`.padEnd(117) + '\n';
const magic = Uint8Array.of(0x93, ...Buffer.from('NUMPY'), 1, 0, header.length % 256, header.length >> 8);
writeFileSync(join(home, 'keys.npy'), Buffer.concat([magic, Buffer.from(header), Buffer.from(keys.buffer)]));

/** Seconds of the fastest native run, by the report of `op --repeat`. */
function native() {
  const args = ['sort', join(home, 'keys.npy'), '-o', join(home, 'out.npy'), '--repeat', String(RUNS)];
  const text = execFileSync(op, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const [, number, unit] = text.match(/min (?:time )?([\d.]+) (us|ms|s)\b/) ?? [];
  if (!number) throw new Error(`${op} printed no time: ${text}`);
  return Number(number) * { us: 1e-6, ms: 1e-3, s: 1 }[unit];
}

const [STORAGE, COPY_SRC, COPY_DST, MAP_READ] = [128, 4, 8, 1];
const buffer = (usage) => device.createBuffer({ size: 4 * N, usage });
const [given, sorted] = [buffer(STORAGE | COPY_DST), buffer(STORAGE | COPY_SRC)];
device.queue.writeBuffer(given, 0, keys);
const sort = await new Ops(device, planner.plan).sort(N);
const never = new Int32Array(new SharedArrayBuffer(4));
/** Waits until the device has done all work, and leaves the processor to it. */
async function finished() {
  let busy = true;
  const done = device.queue.onSubmittedWorkDone().finally(() => { busy = false; });
  while (busy) {
    Atomics.wait(never, 0, 0, 1); // sleeps 1 ms, this thread's event loop included
    await new Promise(setImmediate);
  }
  return done;
}
/** Seconds of the fastest run in Dawn, from submission to its end. */
async function executor() {
  let best = Infinity;
  for (let i = 0; i < RUNS; i += 1) {
    const encoder = device.createCommandEncoder();
    sort.record(encoder, { keys: given, keys_out: sorted });
    const commands = encoder.finish();
    await finished();
    const start = performance.now();
    device.queue.submit([commands]);
    await finished();
    best = Math.min(best, (performance.now() - start) / 1e3);
  }
  return best;
}

let [ours, theirs] = [Infinity, Infinity];
for (let i = 0; i < ROUNDS; i += 1) {
  theirs = Math.min(theirs, native());
  ours = Math.min(ours, await executor());
}
const staging = buffer(MAP_READ | COPY_DST), encoder = device.createCommandEncoder();
encoder.copyBufferToBuffer(sorted, 0, staging, 0, 4 * N);
device.queue.submit([encoder.finish()]);
await staging.mapAsync(1);
const got = new Uint32Array(staging.getMappedRange());
const wrong = wanted.findIndex((key, i) => key !== got[i]);
rmSync(home, { recursive: true });
const ms = (seconds) => `${(1e3 * seconds).toFixed(1)} ms`;
const { variant } = sort.program;
console.log(`speed: 2^20 keys on ${adapter.info.description || adapter.info.device}: in Dawn ${ms(ours)} (${variant}), native ${ms(theirs)}, ratio ${(ours / theirs).toFixed(2)}`);
if (wrong >= 0) console.error(`speed: key ${wrong} is ${got[wrong]}, expected ${wanted[wrong]}`);
process.exit(wrong >= 0 || ours > MAX_RATIO * theirs ? 1 : 0);
