// Checks examples/web/executor.ts in Node, with Dawn: node tests/web/dawn.mjs FOLDER
//
// FOLDER holds executor.js, tilework_planner.js and its wasm, as .ci/npm leaves them. TILEWORK_TINT is the folder whose
// node_modules holds the npm package `webgpu`; VK_DRIVER_FILES names a Vulkan driver that Dawn takes.
// Exit code: 0 all right, 1 a check failed, 3 no adapter.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check } from './ops.mjs';

const folder = resolve(process.argv[2] ?? '.');
const load = (file) => import(pathToFileURL(file));
const executor = await load(join(folder, 'executor.js'));
const planner = await load(join(folder, 'tilework_planner.js'));
planner.initSync({ module: readFileSync(join(folder, 'tilework_planner_bg.wasm')) });

const dawn = await load(createRequire(resolve(process.env.TILEWORK_TINT ?? '.', 'x.js')).resolve('webgpu'));
const gpu = dawn.create(['backend=vulkan']); // must stay in scope as long as the device
let wrong = 0;
// As a page opens it by default, and with all that the adapter has. An adapter gives one device.
for (const all of [false, true]) {
  const adapter = await gpu.requestAdapter();
  if (!adapter) {
    console.error('dawn: no adapter; VK_DRIVER_FILES must name SwiftShader or Mesa 25');
    process.exit(3);
  }
  const requiredFeatures = ['shader-f16', 'subgroups'].filter((name) => all && adapter.features.has(name));
  const device = await adapter.requestDevice({ requiredFeatures });
  const name = `${adapter.info.description || adapter.info.device} with ${requiredFeatures.join(', ') || 'no features'}`;
  const failures = await check(executor, planner.plan, device);
  failures.forEach((why) => console.error(why));
  wrong += failures.length;
  console.log(`dawn: ${failures.length} failures on ${name}`);
}
process.exit(wrong ? 1 : 0);
