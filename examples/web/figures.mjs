// Prints the committed figures that the page draws beside its own, as JSON: node examples/web/figures.mjs
//
// For each case of an op, the fastest variant on an H100 through Vulkan, and the page's own results on a software
// driver, which `.ci/web page --record` writes.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const results = join(import.meta.dirname, '../../benches/results');
const load = (name) => JSON.parse(readFileSync(join(results, name), 'utf8'));
const files = ['primitives', 'dense', 'sparse', 'conv', 'attention'].map((family) => `h100-vulkan-${family}.json`);
const ops = ['reduce', 'scan', 'sort', 'histogram', 'gemm', 'spmv', 'conv', 'attention'];

const fastest = new Map();
for (const row of files.flatMap(load)) {
  const { op, dtype, size, seconds } = row;
  const key = `${op} ${dtype} ${size}`;
  const fits = ops.includes(op) && ['f32', 'u32'].includes(dtype) && row.adapter.includes('H100');
  if (fits && !(fastest.get(key)?.seconds <= seconds)) fastest.set(key, row);
}
const kept = ({ op, dtype, size, variant, seconds, gbps, gflops }) => ({ op, dtype, size, variant, seconds, gbps, gflops });
const software = load('web/chromium-swiftshader.json');
console.log(JSON.stringify({
  h100: { adapter: 'NVIDIA H100', rows: [...fastest.values()].map(kept) },
  software: { adapter: 'SwiftShader', browser: software[0].browser, rows: software.map(kept) },
}));
