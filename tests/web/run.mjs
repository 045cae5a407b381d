// Runs the tests of tests/web in headless Chromium on SwiftShader: node tests/web/run.mjs FOLDER [OPTION...] [NAME...]
//
// FOLDER holds tilework_web.js and tilework_web_bg.wasm, as .ci/web leaves them. NAME is a test or a part of its name.
//   --all            every case of each op; otherwise the example of each variant
//   --part N         every Nth op, and all tests of the runtime
//   --defaults       a device with WebGPU's default limits and no optional features
//   --record FOLDER  writes what ran there, for tests/matrix.rs
//   --package FOLDER also checks the JavaScript of .ci/npm
// TILEWORK_PLAYWRIGHT is the folder whose node_modules holds the npm package `playwright-core`; CHROMIUM the browser.
// Exit code: 0 all passed, 1 a test failed, 2 wrong use, 3 no browser.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium, serve, stop } from './browser.mjs';

let parsed;
try {
  const options = {
    all: { type: 'boolean' }, defaults: { type: 'boolean' }, part: { type: 'string' }, record: { type: 'string' },
    package: { type: 'string' },
  };
  parsed = parseArgs({ options, allowPositionals: true });
} catch (e) {
  stop(2, e.message);
}
const { all = false, defaults = false, part = '1', record, package: packed } = parsed.values;
const [folder, ...wanted] = parsed.positionals;
if (!folder || !(part >= 1)) {
  stop(2, 'usage: node tests/web/run.mjs FOLDER [--all] [--defaults] [--part N] [--record FOLDER] [NAME...]');
}
// A test that takes longer has hung.
const PATIENCE = all ? 1_800_000 : 300_000;

const { address, close } = await serve([folder, import.meta.dirname, ...(packed ? [packed] : [])]);
const browser = await chromium();

// A page with its own device. After a panic it is of no more use.
let page, failed, said;
async function open() {
  await page?.close();
  page = await browser.newPage();
  said = [];
  failed = new Promise((_, reject) => {
    page.on('pageerror', (e) => reject(new Error(said.join('\n') || e.message)));
    page.on('crash', () => reject(new Error('the page crashed')));
  });
  failed.catch(() => {});
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('favicon')) {
      said.push(message.text());
      // A panic of a future ends in an error that no page sees.
      if (message.text().includes('panicked at')) setTimeout(() => page?.emit('pageerror', new Error('panic')), 200);
    }
  });
  await page.goto(address);
  await page.evaluate(async (defaults) => {
    globalThis.web = await import('/tilework_web.js');
    await web.default({ module_or_path: '/tilework_web_bg.wasm' });
    await web.open(defaults);
  }, defaults);
}

// Tests of what a page meets. Each returns what is wrong.
const pages = {
  'page::without_webgpu': async () => {
    const other = await browser.newPage();
    await other.addInitScript(() => Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }));
    await other.goto(address);
    const said = await other.evaluate(async () => {
      const web = await import('/tilework_web.js');
      await web.default({ module_or_path: '/tilework_web_bg.wasm' });
      return web.open(false).then(() => 'a device was opened', (why) => why);
    });
    await other.close();
    return said.includes('this browser offers no WebGPU') ? '' : said;
  },
  // As when the user turns to another window for long: the page is out of sight, and its timers and promises stop while
  // the device works on. Headless Chromium freezes no page by itself, so the debugger stops its scripts.
  'page::hidden_while_it_works': async () => {
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Emulation.setFocusEmulationEnabled', { enabled: false });
    const { windowId } = await devtools.send('Browser.getWindowForTarget');
    const window = (windowState) => devtools.send('Browser.setWindowBounds', { windowId, bounds: { windowState } });
    await window('minimized');
    await page.evaluate(() => {
      let last = performance.now();
      globalThis.stood = 0; // the longest time in which a timer of 10 ms did not come
      globalThis.ticks = setInterval(() => {
        stood = Math.max(stood, performance.now() - last);
        last = performance.now();
      }, 10);
    });
    const answer = page.evaluate(() => web.run('runtime::trains_a_network', false).then(() => '', (why) => why));
    await devtools.send('Debugger.enable');
    await devtools.send('Debugger.pause');
    await new Promise((done) => setTimeout(done, 1000));
    await devtools.send('Debugger.resume').catch(() => {}); // nothing ran that could be stopped: found below
    await devtools.send('Debugger.disable');
    await window('normal');
    const said = await answer;
    const stood = await page.evaluate(() => new Promise((done) => {
      setTimeout(() => { clearInterval(ticks); done(stood); }, 30);
    }));
    return said || (stood > 600 ? '' : `the page was not stopped: its timer came within ${stood} ms`);
  },
};
if (packed) {
  pages['page::executor'] = () => page.evaluate(async () => {
    const files = ['/executor.js', '/tilework_planner.js', '/ops.mjs'];
    const [executor, planner, { check }] = await Promise.all(files.map((file) => import(file)));
    await planner.default({ module_or_path: '/tilework_planner_bg.wasm' });
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    const failures = await check(executor, planner.plan, device);
    return failures.join('\n');
  });
}

const begin = Date.now();
await open();
const about = await page.evaluate(() => web.recorded());
const known = [...Object.keys(pages), ...await page.evaluate(() => web.names())];
const names = known.filter((name, i) => (!name.startsWith('op::') || i % part === 0)
  && (!wanted.length || wanted.some((w) => name.includes(w))));
if (names.length === 0) stop(2, `no test is named ${wanted.join(' or ')}`);
if (record) {
  rmSync(record, { recursive: true, force: true });
  mkdirSync(record, { recursive: true });
}
let wrong = 0, compared = 0;
for (const name of names) {
  const start = Date.now();
  let text = '', recorded = '';
  try {
    const late = new Promise((_, reject) => {
      setTimeout(() => reject(new Error(`no answer in ${PATIENCE / 1000} s`)), PATIENCE).unref();
    });
    const answer = pages[name] ? pages[name]().then((why) => ({ why })) : page.evaluate(async ([name, all]) => {
      try {
        return { cases: await web.run(name, all) };
      } catch (e) {
        if (typeof e !== 'string') throw e;
        return { why: e };
      }
    }, [name, all]);
    answer.catch(() => {});
    const { cases = 0, why = '' } = await Promise.race([answer, failed, late]);
    [text, compared] = [why, compared + cases];
    recorded = await page.evaluate(() => web.recorded());
  } catch (e) {
    text = e.message;
    await open();
  }
  const seconds = (Date.now() - start) / 1000;
  if (text) wrong += 1;
  console.log(`${text ? 'FAILED' : 'ok'} ${name} ${seconds.toFixed(1)} s${text ? `\n${text}` : ''}`);
  if (record) {
    const file = join(record, `web.${name.replace('::', '.')}`);
    writeFileSync(`${file}.jsonl`, about + recorded);
    writeFileSync(`${file}.out`, text);
    writeFileSync(`${file}.end`, `${text ? 1 : 0} 1 ${Math.round(seconds)}\n`);
  }
}
const adapter = JSON.parse(about.split('\n')[0]).name;
await browser.close();
close();
const seconds = Math.round((Date.now() - begin) / 1000);
const right = `${names.length - wrong} of ${names.length} tests pass, ${compared} cases`;
console.log(`web: ${right}, on ${adapter} in Chromium, in ${seconds} s`);
process.exitCode = wrong ? 1 : 0;
