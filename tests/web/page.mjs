// Opens the page examples/web in headless Chromium on SwiftShader and checks what it shows:
//   node tests/web/page.mjs FOLDER [OPTION...]
//
// FOLDER holds the page, as examples/web/build leaves it.
//   --shots FOLDER   writes pictures of the page there, light and dark
//   --record FILE    writes its results there, as the button "Save as JSON" does
//   --quick          measures only the smallest size of each op
// TILEWORK_PLAYWRIGHT and CHROMIUM as for run.mjs. Exit code: 0 all right, 1 a check failed, 2 wrong use, 3 no browser.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DRAWING, chromium, serve, stop } from './browser.mjs';

const options = { shots: { type: 'string' }, record: { type: 'string' }, quick: { type: 'boolean' } };
let parsed;
try {
  parsed = parseArgs({ options, allowPositionals: true });
} catch (e) {
  stop(2, e.message);
}
const { values: { shots, record, quick }, positionals: [folder] } = parsed;
if (!folder) stop(2, 'usage: node tests/web/page.mjs FOLDER [--shots FOLDER] [--record FILE] [--quick]');

const { address, close } = await serve([folder]);
const failures = [];
const is = (right, what) => right || failures.push(what);
const begin = Date.now();

// Without WebGPU: a sentence that says what to do, and no error.
{
  const browser = await chromium(['--disable-features=WebGPU', '--disable-blink-features=WebGPU']);
  const page = await browser.newPage();
  const errors = [];
  page.on('pageerror', (e) => errors.push(e.message));
  await page.goto(address);
  await page.waitForSelector('body[data-ready]');
  const said = await page.textContent('#problem');
  is(said.includes('this browser offers no WebGPU') && said.includes('https'), `without WebGPU the page says: ${said}`);
  is(!errors.length && await page.isDisabled('#run'), `without WebGPU: ${errors}`);
  await browser.close();
}

const browser = await chromium([...DRAWING, '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream']);
const page = await browser.newPage({ viewport: { width: 1240, height: 900 } });
page.on('pageerror', (e) => failures.push(`error in the page: ${e.message}`));
page.on('console', (message) => {
  if (message.type() === 'error') failures.push(`the console says: ${message.text()}`);
});
await page.goto(address);
await page.waitForSelector('body[data-ready]');
is(await page.isHidden('#problem'), `the page complains: ${await page.textContent('#problem')}`);

/** Grey, edges and counts of the picture that the page shows, computed anew here. Returns its extents and pixels. */
async function checkEdges(what) {
  await page.waitForFunction(() => !pictures.busy, undefined, { polling: 50 });
  const { width: w, height: h, rgba, grey, filtered, counts } = await page.evaluate(() => pictures.seen());
  const luma = (i) => Math.round(0.299 * rgba[4 * i] + 0.587 * rgba[4 * i + 1] + 0.114 * rgba[4 * i + 2]);
  const off = grey.findIndex((byte, i) => Math.abs(byte - luma(i)) > 1);
  is(grey.length === w * h && off < 0, `${what}: pixel ${off} is grey ${grey[off]}, expected ${luma(off)}`);
  const at = (x, y) => grey[Math.min(Math.max(y, 0), h - 1) * w + Math.min(Math.max(x, 0), w - 1)];
  let wrong = 0;
  for (let y = 1; y < h - 1; y += 1) {
    for (let x = 1; x < w - 1; x += 1) {
      const side = (s) => at(x + s, y - 1) + 2 * at(x + s, y) + at(x + s, y + 1);
      const line = (s) => at(x - 1, y + s) + 2 * at(x, y + s) + at(x + 1, y + s);
      const edge = Math.min(255, Math.hypot(side(1) - side(-1), line(1) - line(-1)));
      if (Math.abs(filtered[y * w + x] - edge) > 1) wrong += 1;
    }
  }
  is(wrong === 0, `${what}: ${wrong} edges are wrong`);
  const wanted = new Array(256).fill(0);
  filtered.forEach((byte) => { wanted[byte] += 1; });
  is(wanted.every((n, i) => n === counts[i]), `${what}: the counts are wrong`);
  return { w, h, rgba };
}
await checkEdges('the first picture');

// A file of the user, one that is no picture, and Chromium's false camera, whose picture moves.
{
  const png = await page.evaluate(async () => {
    const canvas = new OffscreenCanvas(301, 199), c = canvas.getContext('2d');
    c.fillStyle = '#204060';
    c.fillRect(0, 0, 301, 199);
    c.fillStyle = '#e0a020';
    c.fillRect(100, 50, 90, 70);
    return Array.from(new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer()));
  });
  const file = (name, bytes) => page.setInputFiles('#file', { name, mimeType: 'image/png', buffer: Buffer.from(bytes) });
  const says = (text) => page.waitForFunction((text) => document.getElementById('seen').textContent.includes(text), text, { polling: 50 });
  await file('picture.png', png);
  await says('301 x 199 pixels');
  const { rgba } = await checkEdges('the file');
  const pixel = (x, y) => rgba.slice(4 * (301 * y + x), 4 * (301 * y + x) + 3).join();
  is(pixel(10, 10) === '32,64,96' && pixel(150, 80) === '224,160,32', `the file has ${pixel(10, 10)} and ${pixel(150, 80)}`);
  await file('words.png', Buffer.from('no picture'));
  await says('words.png is no picture that this browser can read');
  await page.click('#camera');
  await says('640 x 480 pixels');
  const first = (await page.evaluate(() => pictures.seen())).rgba.join();
  await page.waitForFunction(async (first) => (await pictures.seen()).rgba.join() !== first, first, { polling: 100 });
  is(await page.textContent('#camera') === 'Stop camera', 'the camera cannot be stopped');
  await page.click('#camera');
  is(await page.textContent('#camera') === 'Camera', 'the camera does not stop');
  await checkEdges('the camera');
}
for (const filter of ['gaussian', 'median', 'equalize', 'none']) {
  await page.selectOption('#filter', filter);
  await page.waitForFunction((filter) => pictures.shown === filter, filter);
}
await page.selectOption('#filter', 'sobel');

// Particles: cells sorted, none lost, all inside.
for (const [count, frames] of [[100_000, 2], [10_000, quick ? 20 : 120]]) {
  const why = await page.evaluate(([count, frames]) => pictures.checkParticles(count, frames), [count, frames]);
  is(why === '', `${count} particles: ${why}`);
}

// All rows. The page stays responsive: a timer of its own fires while they run.
await page.evaluate(() => {
  let last = performance.now();
  globalThis.longest = 0;
  setInterval(() => {
    globalThis.longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 20);
});
await page.evaluate((quick) => { document.body.dataset.only = quick ? '1' : ''; }, quick);
await page.click('#run');
await page.waitForSelector('body[data-measured]', { timeout: 300_000 });
const results = JSON.parse(await page.getAttribute('body', 'data-measured'));
const text = await page.textContent('#cards');
for (const { op, size, passed, seconds, compared } of results) {
  is(passed && compared > 0 && seconds > 0, `${op} ${size}: passed ${passed}, ${compared} compared, ${seconds} s`);
}
for (const op of ['reduce', 'scan', 'sort', 'histogram', 'gemm', 'spmv', 'conv', 'attention']) {
  is(results.some((row) => row.op === op), `no row of ${op}: ${text}`);
}
const longest = await page.evaluate(() => longest);
is(longest < 1000, `the page did not respond for ${Math.round(longest)} ms`);
const [saved] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
is(saved.suggestedFilename() === 'tilework.json', saved.suggestedFilename());
if (record) await saved.saveAs(record);
if (shots) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(shots, `page-${colorScheme}.png`), fullPage: true });
  }
}

// A lost device: a sentence, and the measurements go on, which have a device of their own.
await page.evaluate(() => {
  pictures.device.destroy();
  return pictures.device.lost.then(() => {});
});
await page.selectOption('#filter', 'median');
// Not by frames: without a device there may be none.
const seen = () => document.getElementById('seen').textContent.includes('the device is lost');
await page.waitForFunction(seen, undefined, { polling: 100 });
await browser.close();
close();
failures.forEach((what) => console.error(what));
const rows = `${results.filter((row) => row.passed).length} of ${results.length} rows right`;
console.log(`page: ${rows}, ${failures.length} failures, in ${Math.round((Date.now() - begin) / 1000)} s`);
process.exit(failures.length ? 1 : 0);
