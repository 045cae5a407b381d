// The section "Measure": runs the cases, draws them beside committed figures, and saves them.
import { call } from './calls.js';

const $ = (id) => document.getElementById(id);
// Ops whose figure is bytes, and what they do.
const OPS = {
  reduce: ['adds up', 'gbps'], scan: ['running totals', 'gbps'], sort: ['random keys', 'gbps'],
  histogram: ['1,024 bins', 'gbps'], gemm: ['matrix product', 'gflops'], spmv: ['sparse matrix times vector', 'gbps'],
  conv: ['3 x 3 convolution layer', 'gflops'], attention: ['scaled dot products, heads of 64', 'gflops'],
};
const UNITS = { gbps: 'GB/s', gflops: 'GFLOP/s' };
// Decades of the scale.
const SCALE = { gbps: [-3, 4], gflops: [-1, 5] };
// A case that is expected to take longer for one run is left out unless asked for.
const SLOW = 0.8;

const plural = (n, what) => `${n} ${what}${n === '1' ? '' : 's'}`;
/** A size as the page shows it. */
function short(op, size) {
  const n = size.match(/\d+/g) ?? [];
  switch (op) {
    case 'histogram': return n[1];
    case 'gemm': return `${n[0]}³`;
    case 'spmv': return plural(n[0], 'row');
    case 'conv': return `${plural(n[0], 'image')}, ${n[1]} channels`;
    case 'attention': return `${n[0] * n[1]} heads, ${plural(n[2], 'token')}`;
    default: return n[0];
  }
}
const pretty = (text) => text.replace(/\d{4,}/g, (n) => Number(n).toLocaleString('en'));
const three = (x) => (x >= 100 ? Math.round(x).toLocaleString('en') : x.toPrecision(3));

/** What one run of a case costs beside another of its op, by its numbers. */
function work(op, size) {
  const numbers = (size.match(/\d+/g) ?? []).map(Number);
  if (op === 'attention') return numbers[0] * numbers[1] * numbers[2] ** 2;
  if (op === 'gemm') return numbers[0] ** 3;
  if (op === 'conv') return numbers[0] * numbers[1] ** 2 * numbers[2] * numbers[3];
  return op === 'histogram' ? numbers[1] : numbers[0];
}

function bar(kind, value, metric) {
  const track = document.createElement('div');
  track.className = 'track';
  // Only this device keeps an empty place.
  if (value === undefined) return kind === 'here' ? [track] : [];
  const [low, high] = SCALE[metric];
  const share = Math.min(1, Math.max(0.004, (Math.log10(value) - low) / (high - low)));
  const inside = share > 0.55;
  const filled = document.createElement('div');
  filled.className = `bar ${kind}`;
  filled.style.width = `${100 * share}%`;
  const text = document.createElement('span');
  text.textContent = `${three(value)} ${UNITS[metric]}`;
  text.className = inside ? 'inside' : '';
  text.style[inside ? 'right' : 'left'] = inside ? `${100 * (1 - share)}%` : `${100 * share}%`;
  track.append(filled, text);
  return [track];
}

export async function measure({ name, driver }) {
  const list = await call('list');
  const cases = Array.from({ length: list.length / 3 }, (_, i) => {
    const [op, dtype, size] = list.slice(3 * i, 3 * i + 3);
    return { index: i, op, dtype, size };
  });
  const figures = await (await fetch('figures.json')).json();
  $('software').textContent = `${figures.software.adapter}, in ${figures.software.browser}`;
  const known = (of, { op, dtype, size }) => {
    return figures[of].rows.find((row) => row.op === op && row.dtype === dtype && row.size === size);
  };

  const rows = new Map();
  for (const [op, [about, metric]] of Object.entries(OPS)) {
    const card = document.createElement('div');
    card.className = 'card';
    card.innerHTML = `<header><h3>${op}</h3><span>${about}</span></header>`;
    for (const each of cases.filter((c) => c.op === op)) {
      const row = document.createElement('div');
      row.className = 'row';
      row.innerHTML = '<div class="size"></div><div class="bars"></div>';
      rows.set(each.index, { ...each, row, metric });
      card.append(row);
    }
    $('cards').append(card);
  }
  const draw = ({ index, op, size, row, metric }, result, note = '') => {
    row.className = `row ${result ? (result.wrong ? 'wrong' : 'right') : ''}`;
    const small = document.createElement('small');
    small.textContent = result ? (result.wrong || `✓ ${result.compared.toLocaleString('en')} compared`) : note;
    if (result) small.title = `${result.variant}, ${(result.seconds * 1e3).toPrecision(3)} ms, ${result.clock}`;
    row.querySelector('.size').replaceChildren(pretty(short(op, size)), small);
    row.querySelector('.bars').replaceChildren(
      ...bar('here', result?.[metric], metric),
      ...bar('h100', known('h100', cases[index])?.[metric], metric),
      ...bar('software', known('software', cases[index])?.[metric], metric),
    );
  };
  for (const each of rows.values()) draw(each);

  let results = [], stopped = false;
  $('stop').onclick = () => { stopped = true; };
  $('run').onclick = async () => {
    results = [];
    stopped = false;
    $('run').disabled = true;
    $('save').disabled = true;
    $('stop').hidden = false;
    for (const each of rows.values()) draw(each, undefined, 'waiting');
    const rates = {}; // seconds for each unit of an op's work, by its largest size so far
    let wrong = 0, left = 0;
    $('done').max = rows.size;
    const smallest = Boolean(document.body.dataset.only); // for tests: only the smallest size of each op
    for (const [i, each] of [...rows.values()].entries()) {
      const { index, op, dtype, size } = each;
      $('done').value = i;
      const slow = work(op, size) * (rates[op] ?? 0) > SLOW && !$('slow').checked;
      if (stopped || slow || (smallest && rates[op])) {
        draw(each, undefined, stopped ? '' : 'left out: slow here');
        left += 1;
        continue;
      }
      $('doing').textContent = `${op} ${pretty(short(op, size))}`;
      draw(each, undefined, 'running ...');
      let result;
      try {
        result = await call('run', index);
        rates[op] = result.seconds / work(op, size);
      } catch (e) {
        // What does not fit the device is no wrong result.
        draw(each, undefined, e.message);
        left += 1;
        continue;
      }
      wrong += result.wrong ? 1 : 0;
      draw(each, result);
      const { variant, seconds, min_seconds, gbps, gflops, clock, compared } = result;
      results.push({
        adapter: name, backend: 'webgpu', browser: browser(), clock, compared, date: new Date().toISOString().slice(0, 10),
        driver, dtype, gbps, gflops, min_seconds, op, passed: !result.wrong, seconds, size, variant,
      });
    }
    $('done').value = rows.size;
    const ran = results.length;
    $('doing').textContent = `${ran - wrong} of ${ran} results are right${left ? `; ${left} cases left out` : ''}`;
    $('run').disabled = false;
    $('stop').hidden = true;
    $('save').disabled = !ran;
    document.body.dataset.measured = JSON.stringify(results);
  };
  $('save').onclick = () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([`${JSON.stringify(results, null, 2)}\n`], { type: 'application/json' }));
    link.download = 'tilework.json';
    link.click();
    URL.revokeObjectURL(link.href);
  };
  $('run').disabled = false;
}

/** Name and version of the browser, as far as it tells. */
function browser() {
  const brand = navigator.userAgentData?.brands.find(({ brand }) => /Chromium|Edge|Opera/.test(brand));
  return brand ? `${brand.brand} ${brand.version}` : navigator.userAgent.match(/(Firefox|Version)\/[\d.]+/)?.[0] ?? 'a browser';
}
