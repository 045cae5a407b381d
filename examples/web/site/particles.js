// The section "Particles": each frame finds the cells, sorts by them with tilework, collides neighbours and draws.
import { Executor } from './executor.js';
import { plan } from './calls.js';

const $ = (id) => document.getElementById(id);
const [STORAGE, COPY_DST, COPY_SRC, UNIFORM] = [128, 8, 4, 64]; // of GPUBufferUsage, which is missing without WebGPU
/** Share of the box that particles cover. */
const FILL = 0.42;
/** Counts among which the page chooses, and the time of a frame that it accepts. */
const COUNTS = [1_000_000, 250_000, 50_000, 10_000];
const FRAME_MS = 40;

/** A box of particles on a device. */
async function box(device, executor, count, canvas) {
  // Discs of diameter 1 cover FILL of the box.
  const cells = count * Math.PI / 4 / FILL;
  const height = Math.max(8, Math.round(Math.sqrt(cells * canvas.height / canvas.width)));
  const width = Math.max(8, Math.round(cells / height));
  const bits = Math.ceil(Math.log2(width * height));
  const sort = await executor.prepare(...await plan('sort', [count], bits));
  const buffer = (size, usage = 0) => device.createBuffer({ size, usage: STORAGE | COPY_DST | COPY_SRC | usage });
  const [keys, places, sorted, order] = Array.from({ length: 4 }, () => buffer(4 * count));
  const states = [buffer(16 * count), buffer(16 * count)], tags = [buffer(4 * count), buffer(4 * count)];
  const ranges = buffer(8 * width * height), params = device.createBuffer({ size: 32, usage: UNIFORM | COPY_DST });

  // Rows of particles that fill the box from edge to edge, in bands.
  const start = new Float32Array(4 * count), bands = new Uint32Array(count);
  const across = Math.ceil(Math.sqrt(count * width / height)), down = Math.ceil(count / across);
  for (let i = 0; i < count; i += 1) {
    const [x, y] = [i % across, Math.floor(i / across)];
    start[4 * i] = (x + 0.5 + 0.3 * Math.random()) / across * (width - 1) + 0.25;
    start[4 * i + 1] = (y + 0.5 + 0.3 * Math.random()) / down * (height - 1) + 0.25;
    bands[i] = Math.floor(8 * y / down);
  }
  device.queue.writeBuffer(states[0], 0, start);
  device.queue.writeBuffer(tags[0], 0, bands);

  const code = await (await fetch('particles.wgsl')).text();
  const module = device.createShaderModule({ code, label: 'particles.wgsl' });
  const compute = (entryPoint) => device.createComputePipelineAsync({ layout: 'auto', compute: { module, entryPoint } });
  const [findCells, findRanges, collide] = await Promise.all(['find_cells', 'find_ranges', 'collide'].map(compute));
  const dots = canvas.width / width < 1.5;
  const format = navigator.gpu.getPreferredCanvasFormat();
  const draw = await device.createRenderPipelineAsync({
    layout: 'auto',
    vertex: { module, entryPoint: dots ? 'draw_dot' : 'draw_disc' },
    fragment: { module, entryPoint: 'shade', targets: [{ format }] },
    primitive: { topology: dots ? 'point-list' : 'triangle-strip' },
  });
  const context = canvas.getContext('webgpu');
  context.configure({ device, format });

  const group = (pipeline, buffers) => device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: Object.entries(buffers).map(([binding, buffer]) => ({ binding: Number(binding), resource: { buffer } })),
  });
  // Frames alternate between two buffers.
  const groups = [0, 1].map((i) => ({
    findCells: group(findCells, { 0: params, 1: states[i], 2: keys, 3: places }),
    findRanges: group(findRanges, { 0: params, 4: sorted, 5: ranges }),
    collide: group(collide, {
      0: params, 1: states[i], 6: order, 7: ranges, 8: tags[i], 9: states[1 - i], 10: tags[1 - i],
    }),
    draw: group(draw, { 0: params, 11: states[1 - i], 12: tags[1 - i] }),
  }));
  const all = Math.ceil(count / 256), x = Math.min(all, 32768), y = Math.ceil(all / x);
  let frame = 0;

  return {
    count,
    /** Records and submits a frame. `pointer` is its place from 0 to 1, or nothing. */
    step(pointer) {
      const turn = frame / 240;
      const gravity = Math.min(0.02, 3e-6 * height + 0.002);
      device.queue.writeBuffer(params, 0, Float32Array.of(
        width, height, gravity * Math.sin(turn), -gravity * Math.cos(turn),
        (pointer?.[0] ?? 0) * width, (pointer?.[1] ?? 0) * height, pointer ? height / 5 : 0,
      ));
      device.queue.writeBuffer(params, 28, Uint32Array.of(count));
      const which = groups[frame % 2];
      frame += 1;
      const encoder = device.createCommandEncoder();
      const pass = (name, pipeline) => {
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, which[name]);
        pass.dispatchWorkgroups(x, y);
        pass.end();
      };
      pass('findCells', findCells);
      sort.record(encoder, { keys, keys_out: sorted, values: places, values_out: order });
      encoder.clearBuffer(ranges);
      pass('findRanges', findRanges);
      pass('collide', collide);
      const view = context.getCurrentTexture().createView();
      const drawing = encoder.beginRenderPass({
        colorAttachments: [{ view, loadOp: 'clear', storeOp: 'store', clearValue: [0.05, 0.06, 0.08, 1] }],
      });
      drawing.setPipeline(draw);
      drawing.setBindGroup(0, which.draw);
      if (dots) drawing.draw(count); else drawing.draw(4, count);
      drawing.end();
      device.queue.submit([encoder.finish()]);
    },
    /** Reads the last frame back and returns what is wrong with it. */
    async check() {
      const [cells, from, now] = await Promise.all([read(device, sorted), read(device, order), read(device, states[frame % 2])]);
      const [was, last] = [await read(device, states[1 - frame % 2]), await read(device, tags[frame % 2])];
      const [before, after] = [new Float32Array(was.buffer), new Float32Array(now.buffer)];
      const seen = new Uint8Array(count), counted = new Uint32Array(8);
      for (let i = 0; i < count; i += 1) {
        const at = from[i], cell = (k) => Math.min(Math.max(Math.floor(k[0]), 0), width - 1)
          + width * Math.min(Math.max(Math.floor(k[1]), 0), height - 1);
        if (i && cells[i] < cells[i - 1]) return `key ${i} is out of order`;
        if (at >= count || seen[at]) return `particle ${at} comes twice`;
        seen[at] = 1;
        if (cell([before[4 * at], before[4 * at + 1]]) !== cells[i]) return `particle ${at} has the wrong cell`;
        const [px, py] = [after[4 * i], after[4 * i + 1]];
        if (!(px >= 0.5 && px <= width - 0.5 && py >= 0.5 && py <= height - 0.5)) return `particle ${i} is at ${px}, ${py}`;
        counted[last[i]] += 1;
      }
      const wanted = new Uint32Array(8);
      bands.forEach((band) => { wanted[band] += 1; });
      return counted.every((n, i) => n === wanted[i]) ? '' : 'particles lost their colours';
    },
    destroy() {
      [keys, places, sorted, order, ...states, ...tags, ranges, params].forEach((buffer) => buffer.destroy());
    },
  };
}

/** The words of a buffer. */
export async function read(device, buffer) {
  const staging = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const words = new Uint32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return words;
}

export function particles(device) {
  const canvas = $('box'), executor = new Executor(device);
  let there, moving = false, pointer;
  const say = (text) => { $('frames').textContent = text; };
  const finished = async (work) => {
    const start = performance.now();
    work();
    await device.queue.onSubmittedWorkDone();
    return performance.now() - start;
  };
  const make = async (count) => {
    there?.destroy();
    there = undefined;
    say(`preparing ${count.toLocaleString('en')} particles ...`);
    there = await box(device, executor, count, canvas);
  };
  /** The largest count whose frames are expected to be fast enough, by the time of frames with few. */
  const suitable = async () => {
    await make(COUNTS.at(-1));
    for (let i = 0; i < 3; i += 1) await finished(() => there.step());
    const times = [];
    for (let i = 0; i < 3; i += 1) times.push(await finished(() => there.step()));
    const each = Math.min(...times) / COUNTS.at(-1);
    // Few particles do not fill a fast device, so a large count is tried before it is refused.
    return COUNTS.find((count) => each * count < 8 * FRAME_MS) ?? COUNTS.at(-1);
  };
  const run = async () => {
    let frames = 0, since = performance.now(), slow = 0;
    while (moving) {
      await new Promise(requestAnimationFrame);
      if (!moving) break;
      const took = await finished(() => there.step(pointer));
      frames += 1;
      const passed = performance.now() - since;
      if (passed > 500) {
        const each = passed / frames;
        say(`${there.count.toLocaleString('en')} particles, ${(1000 / each).toPrecision(2)} frames a second; `
          + `a frame takes ${took.toFixed(took < 10 ? 1 : 0)} ms`);
        [frames, since] = [0, performance.now()];
        slow = took > FRAME_MS ? slow + 1 : 0;
        const fewer = COUNTS.find((count) => count < there.count);
        if (slow === 2 && $('count').value === '0' && fewer) {
          await make(fewer);
          slow = 0;
        }
      }
    }
  };
  const start = async () => {
    const wanted = Number($('count').value);
    await make(wanted || await suitable());
    moving = true;
    $('move').textContent = 'Stop';
    run().catch((e) => { moving = false; say(e.message); });
  };
  const stop = () => {
    moving = false;
    $('move').textContent = 'Start';
  };
  const busy = async (work) => {
    $('move').disabled = true;
    try {
      await work();
    } catch (e) {
      stop();
      say(e.message);
    }
    $('move').disabled = false;
  };
  $('move').onclick = () => busy(moving ? stop : start);
  $('count').onchange = () => busy(async () => { if (moving) { stop(); await start(); } });
  canvas.onpointermove = ({ offsetX, offsetY }) => {
    pointer = [offsetX / canvas.clientWidth, 1 - offsetY / canvas.clientHeight];
  };
  canvas.onpointerleave = () => { pointer = undefined; };
  $('move').disabled = false;
  return {
    /** Makes some frames of `count` particles, and returns what is wrong with the last. */
    async checkParticles(count, frames) {
      await make(count);
      for (let i = 0; i < frames; i += 1) await finished(() => there.step());
      const why = await there.check();
      say(`${count.toLocaleString('en')} particles`);
      return why;
    },
  };
}
