// Measures size and start of the program examples/web/sort: node tests/web/start.mjs FOLDER
//
// FOLDER holds tilework_sort.js and its wasm, as examples/web/build leaves them. Prints bytes, gzipped, and
// milliseconds from navigation to the first sorted array in headless Chromium on SwiftShader: with an empty cache, and
// with a warm one. The fastest of some visits counts, because other programs may use the machine. Exit code 1 above the
// limits.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium, serve, stop } from './browser.mjs';

const MAX_BYTES = 600_000, MAX_MS = 1500, VISITS = 3;
const folder = process.argv[2];
if (!folder) stop(2, 'usage: node tests/web/start.mjs FOLDER');
const bytes = gzipSync(readFileSync(join(folder, 'tilework_sort_bg.wasm')), { level: 9 }).length;

const { address, close } = await serve([folder, join(import.meta.dirname, 'start')], { 'cache-control': 'max-age=3600' });
async function visit(context) {
  const page = await context.newPage();
  await page.goto(`${address}start.html`);
  const text = await page.waitForFunction(() => document.body?.dataset.done, undefined, { timeout: 60_000 });
  const done = JSON.parse(await text.jsonValue());
  await page.close();
  if (done.error || done.sorted.join() !== '1,2,3,5,8') stop(1, `the page sorted 5, 3, 8, 1, 2 to ${done.error ?? done.sorted}`);
  return done.ms;
}
const cold = [], warm = [];
for (let i = 0; i < VISITS; i += 1) {
  const browser = await chromium();
  const context = await browser.newContext();
  cold.push(await visit(context));
  // Chromium keeps compiled wasm when it has seen the file twice.
  await visit(context);
  warm.push(await visit(context));
  await browser.close();
}
close();
const [first, later] = [cold, warm].map((all) => Math.round(Math.min(...all)));
console.log(`start: ${bytes} bytes gzipped; first sorted array after ${first} ms, with a warm cache ${later} ms`);
if (bytes > MAX_BYTES || first > MAX_MS || later > MAX_MS) {
  stop(1, `${MAX_BYTES} bytes and ${MAX_MS} ms are allowed`);
}
