// The section "Picture": grey, a filter and a histogram by tilework, drawn from the same buffers.
import { Executor } from './executor.js';
import { plan } from './calls.js';
import { read } from './particles.js';

const $ = (id) => document.getElementById(id);
const [STORAGE, COPY_DST, COPY_SRC, UNIFORM] = [128, 8, 4, 64]; // of GPUBufferUsage, which is missing without WebGPU
/** Longest side that is filtered; larger pictures are made smaller. */
const SIDE = 960;
/** The option of each filter. */
const NUMBERS = { gaussian: 3, median: 5, sobel: 0, equalize: 0, none: 0 };

/** A picture to begin with: hills under a sun, with some noise. */
function drawn() {
  const canvas = new OffscreenCanvas(640, 360), c = canvas.getContext('2d');
  const sky = c.createLinearGradient(0, 0, 0, 360);
  sky.addColorStop(0, '#27407a');
  sky.addColorStop(1, '#f2b48a');
  c.fillStyle = sky;
  c.fillRect(0, 0, 640, 360);
  c.fillStyle = '#fff2c4';
  c.beginPath();
  c.arc(450, 130, 42, 0, 7);
  c.fill();
  for (const [i, color] of ['#7d6f95', '#55587f', '#34405f', '#1a2438'].entries()) {
    c.fillStyle = color;
    c.beginPath();
    c.moveTo(0, 360);
    for (let x = 0; x <= 640; x += 4) {
      const wave = Math.sin(x / (90 - 15 * i) + 2 * i) + 0.5 * Math.sin(x / (31 - 4 * i) + i);
      c.lineTo(x, 190 + 42 * i - (34 - 4 * i) * wave);
    }
    c.lineTo(640, 360);
    c.fill();
  }
  const pixels = c.getImageData(0, 0, 640, 360);
  let state = 1;
  for (let i = 0; i < pixels.data.length; i += 4) {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    const noise = (state >>> 24) / 16 - 8;
    for (let k = 0; k < 3; k += 1) pixels.data[i + k] += noise;
  }
  return pixels;
}

export async function picture(device) {
  const canvas = $('view'), executor = new Executor(device), context = canvas.getContext('webgpu');
  const format = navigator.gpu.getPreferredCanvasFormat();
  context.configure({ device, format });
  const module = device.createShaderModule({ code: await (await fetch('picture.wgsl')).text(), label: 'picture.wgsl' });
  const draw = await device.createRenderPipelineAsync({
    layout: 'auto',
    vertex: { module, entryPoint: 'cover' },
    fragment: { module, entryPoint: 'show', targets: [{ format }] },
  });
  const params = device.createBuffer({ size: 32, usage: UNIFORM | COPY_DST });
  const prepared = new Map();
  const op = (name, extents, number) => {
    const key = `${name} ${extents} ${number}`;
    if (!prepared.has(key)) prepared.set(key, plan(name, extents, number).then((planned) => executor.prepare(...planned)));
    return prepared.get(key);
  };

  // Buffers of the size of the pictures that come.
  let there;
  const buffers = (width, height) => {
    if (there?.width === width && there.height === height) return there;
    if (there) [there.rgb, there.grey, there.filtered, there.counts].forEach((buffer) => buffer.destroy());
    const buffer = (size) => {
      return device.createBuffer({ size: Math.ceil(size / 4) * 4, usage: STORAGE | COPY_DST | COPY_SRC });
    };
    const n = width * height;
    there = { width, height, rgb: buffer(3 * n), grey: buffer(n), filtered: buffer(n), counts: buffer(1024) };
    there.bytes = new Uint8Array(Math.ceil(3 * n / 4) * 4);
    return there;
  };

  let last, camera, done, turn = 0, drawnTurn = 0;
  const say = (text) => { $('seen').textContent = text; };
  /** Filters and draws a picture; a later call overtakes it. */
  async function show(pixels) {
    last = pixels;
    turn += 1;
    const own = turn, filter = $('filter').value;
    const { width, height, data } = pixels, image = [height, width];
    const toGrey = await op('grey', image, 0);
    const work = filter === 'none' ? undefined : await op(filter, image, NUMBERS[filter]);
    const histogram = await op('histogram', [width * height], 256);
    if (own !== turn) return;
    const { rgb, grey, filtered, counts, bytes } = buffers(width, height);
    for (let i = 0, j = 0; i < data.length; i += 4) {
      bytes[j++] = data[i];
      bytes[j++] = data[i + 1];
      bytes[j++] = data[i + 2];
    }
    device.queue.writeBuffer(rgb, 0, bytes);
    // The picture takes the upper part of the canvas.
    const scale = Math.min(canvas.width / width, 0.8 * canvas.height / height);
    const extents = [scale * width / canvas.width, scale * height / canvas.height];
    const corner = [(1 - extents[0]) / 2, (0.81 - extents[1]) / 2];
    device.queue.writeBuffer(params, 0, Float32Array.of(width, height, ...corner, ...extents, width * height, 0));
    const shown = work ? filtered : grey, start = performance.now();
    const encoder = device.createCommandEncoder();
    toGrey.record(encoder, { input: rgb, output: grey });
    work?.record(encoder, { input: grey, output: filtered });
    histogram.record(encoder, { input: shown, counts });
    const view = context.getCurrentTexture().createView();
    const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: 'clear', storeOp: 'store' }] });
    pass.setPipeline(draw);
    pass.setBindGroup(0, device.createBindGroup({
      layout: draw.getBindGroupLayout(0),
      entries: [params, shown, counts].map((buffer, binding) => ({ binding, resource: { buffer } })),
    }));
    pass.draw(3);
    pass.end();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    [done, drawnTurn] = [filter, own];
    say(`${width} x ${height} pixels in ${(performance.now() - start).toFixed(1)} ms, drawing included`);
  }

  const pixelsOf = (source, width, height) => {
    const scale = Math.min(1, SIDE / Math.max(width, height));
    const [w, h] = [width, height].map((n) => Math.max(1, Math.round(scale * n)));
    const c = new OffscreenCanvas(w, h).getContext('2d', { willReadFrequently: true });
    c.drawImage(source, 0, 0, w, h);
    return c.getImageData(0, 0, w, h);
  };
  const stopCamera = () => {
    camera?.getTracks().forEach((track) => track.stop());
    camera = undefined;
    $('camera').textContent = 'Camera';
  };
  const tell = (work) => work().catch((e) => say(e.message));
  const open = async (file) => {
    stopCamera();
    let image;
    try {
      image = await createImageBitmap(file);
    } catch {
      throw new Error(`${file.name} is no picture that this browser can read`);
    }
    await show(pixelsOf(image, image.width, image.height));
  };
  $('file').onchange = () => {
    const [file] = $('file').files;
    if (file) tell(() => open(file));
    $('file').value = '';
  };
  canvas.ondragover = (e) => e.preventDefault();
  canvas.ondrop = (e) => {
    e.preventDefault();
    const [file] = e.dataTransfer.files;
    if (file) tell(() => open(file));
  };
  $('filter').onchange = () => { if (!camera) tell(() => show(last)); };
  $('camera').onclick = () => tell(async () => {
    if (camera) return stopCamera();
    $('camera').disabled = true; // until the user has answered
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { width: 640, height: 480 } });
    } catch (e) {
      throw new Error(`no camera: ${e.message}`);
    } finally {
      $('camera').disabled = false;
    }
    camera = stream;
    $('camera').textContent = 'Stop camera';
    try {
      const video = document.createElement('video');
      video.srcObject = stream;
      video.muted = true;
      await video.play();
      // A camera that is unplugged ends its stream.
      while (camera === stream && stream.active) {
        await new Promise(requestAnimationFrame);
        if (camera === stream && video.videoWidth) await show(pixelsOf(video, video.videoWidth, video.videoHeight));
      }
    } finally {
      if (camera === stream) stopCamera();
    }
  });
  await show(drawn());
  return {
    /** What the device made of the last picture: bytes of the grey and of the shown picture, and the counts. */
    async seen() {
      const { width, height, grey, filtered, counts } = there;
      const bytes = async (buffer) => Array.from(new Uint8Array((await read(device, buffer)).buffer)).slice(0, width * height);
      return {
        width, height, rgba: Array.from(last.data), grey: await bytes(grey), filtered: await bytes(filtered),
        counts: Array.from(await read(device, counts)),
      };
    },
    /** The filter of the picture that is shown. */
    get shown() { return done; },
    /** Whether a picture waits to be drawn. */
    get busy() { return drawnTurn !== turn; },
  };
}
