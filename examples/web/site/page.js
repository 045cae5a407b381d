// Starts the page: asks for a device, and brings the sections to life.
import { call } from './calls.js';
import { measure } from './measure.js';
import { particles } from './particles.js';
import { picture } from './picture.js';

/** Says in a sentence why something does not work. */
export function problem(text) {
  const place = document.getElementById('problem');
  place.textContent = text;
  place.hidden = false;
}

try {
  // The worker's request tells what to do if there is no WebGPU.
  const [name, driver] = await call('open');
  document.getElementById('adapter').textContent = `${name || 'A GPU whose name the browser keeps to itself'}${driver ? `, ${driver}` : ''}`;
  measure({ name, driver });
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  const device = await adapter.requestDevice();
  device.lost.then(({ reason, message }) => {
    if (reason !== 'destroyed') problem(`The device of the pictures was lost (${message || reason}): reload the page.`);
  });
  device.onuncapturederror = ({ error }) => problem(`The browser refused work of the pictures: ${error.message}`);
  // For tests of the page.
  globalThis.pictures = Object.assign(await picture(device), particles(device), { device });
} catch (e) {
  document.getElementById('adapter').textContent = 'No measurements here.';
  problem(`${e.message}.`.replace(/\.\.$/, '.'));
}
document.body.dataset.ready = 'yes';
