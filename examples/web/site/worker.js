// Answers calls of calls.js by the Rust module, so that its work does not hold up the page.
import init, * as page from './tilework_page.js';

const loaded = init({ module_or_path: new URL('tilework_page_bg.wasm', import.meta.url) });
// A row is an object of the module; its fields are a plain one.
const plain = (answer) => {
  if (!(answer instanceof page.Row)) return answer;
  const { variant, seconds, min_seconds, gbps, gflops, clock, compared, wrong } = answer;
  answer.free();
  return { variant, seconds, min_seconds, gbps, gflops, clock, compared, wrong };
};
onmessage = async ({ data: { id, name, args } }) => {
  try {
    await loaded;
    postMessage({ id, answer: plain(await page[name](...args)) });
  } catch (e) {
    postMessage({ id, error: typeof e === 'string' ? e : `the page's module failed: ${e.message ?? e}` });
  }
};
