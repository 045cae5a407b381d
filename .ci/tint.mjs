// Compiles every DIR/*.wgsl with Tint, the browsers' WGSL compiler: node .ci/tint.mjs DIR
//
// TILEWORK_TINT is the folder whose node_modules holds the npm package `webgpu` (Dawn and Tint).
// TILEWORK_TINT_BACKEND is Dawn's backend: `null` (the default: no driver, WebGPU's default limits,
// f16 and subgroups) or `vulkan` (the limits of the driver that VK_DRIVER_FILES names).
// One JSON line per file: `module` tells whether the WGSL compiles, `ok` whether each entry point also
// makes a pipeline, which is where workgroup sizes, workgroup memory and bindings meet the limits.
// Exit code: 0 all ok, 1 a shader failed, 2 wrong use, 3 no adapter or no `webgpu`.
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const stop = (code, text) => { console.error(`tint: ${text}`); process.exit(code); };

// Comments nest in WGSL; they are cut so that no entry point is found inside one.
function withoutComments(wgsl) {
  let depth = 0;
  let code = '';
  for (let i = 0; i < wgsl.length; i += 1) {
    const pair = wgsl.slice(i, i + 2);
    if (depth === 0 && pair === '//') {
      const end = wgsl.indexOf('\n', i);
      i = end < 0 ? wgsl.length : end;
      code += ' ';
    } else if (pair === '/*' || (depth > 0 && pair === '*/')) {
      depth += pair === '/*' ? 1 : -1;
      i += 1;
      code += ' ';
    } else if (depth === 0) {
      code += wgsl[i];
    }
  }
  return code;
}
const entryPoints = (wgsl) => [...withoutComments(wgsl).matchAll(/@compute\b[^{]*?\bfn\s+(\w+)/g)].map((m) => m[1]);

const [dir] = process.argv.slice(2);
if (!dir) stop(2, 'usage: node .ci/tint.mjs DIR');
let files;
try {
  files = readdirSync(dir).filter((name) => name.endsWith('.wgsl')).sort();
} catch (e) {
  stop(2, e.message);
}
if (files.length === 0) stop(2, `no .wgsl file in ${dir}`);

const home = process.env.TILEWORK_TINT ?? stop(2, 'set TILEWORK_TINT to the folder that holds node_modules/webgpu');
let dawn;
try {
  dawn = await import(pathToFileURL(createRequire(resolve(home, 'x.js')).resolve('webgpu')));
} catch (e) {
  stop(3, `cannot load the npm package webgpu from ${home}: ${e.message}`);
}

const backend = process.env.TILEWORK_TINT_BACKEND || 'null';
const requiredLimits = {};
let gpu, adapter, requiredFeatures, device;
try {
  gpu = dawn.create([`backend=${backend}`]); // must stay in scope as long as the device
  adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error('no adapter; for Vulkan, VK_DRIVER_FILES must name SwiftShader or Mesa 25');
  for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
  requiredFeatures = ['shader-f16', 'subgroups'].filter((name) => adapter.features.has(name));
  device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
} catch (e) {
  stop(3, `Dawn's backend ${backend}: ${e.message}`);
}

let failed = 0;
for (const file of files) {
  const code = readFileSync(join(dir, file), 'utf8');
  const messages = [];
  device.pushErrorScope('validation');
  const shader = device.createShaderModule({ code });
  const info = (await shader.getCompilationInfo()).messages;
  if (info.some(({ type }) => type === 'error')) { // the notes beside an error say why; alone they are no fault
    for (const { type, lineNum, message } of info) {
      messages.push({ line: lineNum, message: type === 'error' ? message : `${type}: ${message}` });
    }
  }
  const invalid = await device.popErrorScope();
  if (invalid && messages.length === 0) messages.push({ line: 0, message: invalid.message });
  const module = messages.length === 0;
  const entries = entryPoints(code);
  if (entries.length === 0) messages.push({ line: 0, message: 'no @compute entry point' });
  for (const entryPoint of module ? entries : []) {
    device.pushErrorScope('validation');
    device.createComputePipeline({ layout: 'auto', compute: { module: shader, entryPoint } });
    const error = await device.popErrorScope();
    if (error) messages.push({ line: 0, message: `${entryPoint}: ${error.message}` });
  }
  const ok = messages.length === 0;
  failed += ok ? 0 : 1;
  console.log(JSON.stringify({ file, ok, module, messages }));
}
const where = `${adapter.info.description || backend} with ${requiredFeatures.join(', ') || 'no features'}`;
console.error(`tint: ${files.length - failed} of ${files.length} shaders pass on ${where}`);
device.destroy();
process.exitCode = failed ? 1 : 0;
