// A server of files, and headless Chromium on SwiftShader, for the tests of this folder.
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

export function stop(code, text) {
  console.error(`web: ${text}`);
  process.exit(code);
}

const TYPES = {
  css: 'text/css', html: 'text/html', js: 'text/javascript', json: 'application/json', mjs: 'text/javascript',
  wasm: 'application/wasm', wgsl: 'text/plain',
};

/** Serves files of these folders, the first that has one; `/` is `index.html`, or an empty page. */
export async function serve(folders, headers = {}) {
  const server = createServer((request, response) => {
    const name = request.url === '/' ? 'index.html' : request.url.slice(1);
    const path = /^[\w.]+$/.test(name) && folders.map((folder) => join(folder, name)).find(existsSync);
    if (!path && name !== 'index.html') return void response.writeHead(404).end(`no file ${name}`);
    const body = path ? readFileSync(path) : '<!doctype html><title>tilework</title>';
    response.writeHead(200, { 'content-type': TYPES[name.split('.').pop()] ?? 'text/plain', ...headers }).end(body);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { address: `http://127.0.0.1:${server.address().port}/`, close };
}

const WEBGPU = [
  '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader',
  '--enable-webgpu-developer-features', // the adapter's name
];
/** With these a page can also draw: without them the browser ends with the first frame. */
export const DRAWING = [
  ...WEBGPU, '--enable-features=Vulkan', '--use-vulkan=swiftshader', '--use-angle=vulkan', '--ignore-gpu-blocklist',
];

/** The npm package playwright-core's Chromium, or the end of the program with code 3. */
export async function chromium(args = WEBGPU, more = {}) {
  try {
    const home = process.env.TILEWORK_PLAYWRIGHT ?? '.';
    const { chromium } = createRequire(resolve(home, 'x.js'))('playwright-core');
    const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
    return await chromium.launch({ executablePath, args: ['--no-sandbox', ...args], ...more });
  } catch (e) {
    return stop(3, `no browser: ${e.message}`);
  }
}
