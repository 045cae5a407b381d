// Checks the typed calls of examples/web/executor.ts against loops in JavaScript. Runs in Node with Dawn and in a page.
const STORAGE = 128, COPY_SRC = 4, COPY_DST = 8, MAP_READ = 1;

/** Returns what is wrong, a line for each failure; none if all is right. Destroys the device. */
export async function check({ Executor, Ops }, plan, device) {
  const failures = [];
  const is = (right, what) => right || failures.push(what);
  // splitmix32
  let state = 7;
  const random = () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  const buffer = (size) => device.createBuffer({ size: Math.max(4, size), usage: STORAGE | COPY_SRC | COPY_DST });
  const upload = (array) => {
    const made = buffer(array.byteLength);
    device.queue.writeBuffer(made, 0, array);
    return made;
  };
  const read = async (from, make) => {
    const staging = device.createBuffer({ size: from.size, usage: MAP_READ | COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, staging, 0, from.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(1);
    const words = new make(staging.getMappedRange().slice(0));
    staging.destroy();
    return words;
  };
  const run = (prepared, operands) => {
    const encoder = device.createCommandEncoder();
    prepared.record(encoder, operands);
    device.queue.submit([encoder.finish()]);
  };
  const same = (name, got, want, near = 0) => {
    const at = want.findIndex((x, i) => !(Math.abs(x - got[i]) <= near));
    is(at < 0, `${name}: element ${at} is ${got[at]}, expected ${want[at]}`);
  };
  const rejects = async (name, work, text) => {
    try {
      await work();
      failures.push(`${name}: nothing was rejected`);
    } catch (e) {
      is(e instanceof Error && e.message.includes(text), `${name}: ${e}`);
    }
  };

  const ops = new Ops(device, plan);
  for (const n of [1, 255, 4097, 100_003]) {
    const keys = Uint32Array.from({ length: n }, random);
    const small = keys.map((key) => key % 100);
    const [given, values] = [upload(keys), upload(Uint32Array.from(keys, (_, i) => i))];
    const [out, moved] = [buffer(4 * n), buffer(4 * n)];

    run(await ops.sort(n), { keys: given, keys_out: out });
    same(`sort of ${n}`, await read(out, Uint32Array), keys.slice().sort());
    const pairs = { keys: given, keys_out: out, values, values_out: moved };
    run(await ops.sort(n, { descending: true, values: true }), pairs);
    const order = [...keys.keys()].sort((a, b) => keys[b] - keys[a] || a - b);
    same(`sort of ${n} pairs`, await read(moved, Uint32Array), order);

    const smalls = upload(small);
    let total = 0;
    run(await ops.scan(n), { input: smalls, output: out });
    same(`scan of ${n}`, await read(out, Uint32Array), small.map((x) => (total += x)));
    run(await ops.reduce(n, { type: 'u32' }), { input: smalls, output: moved });
    same(`reduce of ${n}`, (await read(moved, Uint32Array)).slice(0, 1), [total]);
    run(await ops.reduce(n, { type: 'u32', op: 'max' }), { input: smalls, output: moved });
    same(`maximum of ${n}`, (await read(moved, Uint32Array)).slice(0, 1), [small.reduce((a, b) => Math.max(a, b))]);

    const flags = upload(keys.map((key) => key % 2)), count = buffer(4);
    run(await ops.select(n), { input: given, flags, output: out, count });
    const kept = keys.filter((key) => key % 2);
    same(`number selected of ${n}`, await read(count, Uint32Array), [kept.length]);
    same(`select of ${n}`, await read(out, Uint32Array), kept);

    const counts = buffer(4 * 100), wanted = new Uint32Array(100);
    small.forEach((x) => { wanted[x] += 1; });
    run(await ops.histogram(n, { bins: 100 }), { input: smalls, counts });
    same(`histogram of ${n}`, await read(counts, Uint32Array), wanted);
  }
  const [m, n, k] = [33, 70, 129];
  const floats = (length) => Float32Array.from({ length }, () => (random() % 2000) / 1000 - 1);
  const [a, b] = [floats(m * k), floats(k * n)], c = buffer(4 * m * n);
  run(await ops.gemm(m, n, k, { alpha: 2 }), { a: upload(a), b: upload(b), c });
  const product = Array.from({ length: m * n }, (_, at) => {
    let sum = 0;
    for (let i = 0; i < k; i += 1) sum += a[Math.floor(at / n) * k + i] * b[i * n + (at % n)];
    return 2 * sum;
  });
  same('gemm', await read(c, Float32Array), product, 1e-3);

  // A part of a buffer, and a prepared op recorded twice into one encoder.
  const twice = await ops.scan(64);
  const [input, output] = [upload(new Uint32Array(192).fill(1)), buffer(768)];
  const encoder = device.createCommandEncoder();
  twice.record(encoder, { input, output });
  twice.record(encoder, { input: { buffer: input, offset: 256 }, output: { buffer: output, offset: 256 } });
  device.queue.submit([encoder.finish()]);
  const both = await read(output, Uint32Array);
  is(both[63] === 64 && both[64] === 1 && both[127] === 64, `two scans: ${both.slice(60, 70)}`);
  is(twice === await ops.scan(64), 'an equal request was planned anew');

  const sort = await ops.sort(100), keys = buffer(400), short = buffer(396);
  const at = (operands) => () => sort.record(device.createCommandEncoder(), operands);
  await rejects('a missing operand', at({ keys }), 'sort: the operand keys_out is missing');
  await rejects('an unknown operand', at({ keys, keys_out: buffer(400), more: keys }), 'sort: there is no operand more');
  await rejects('a short buffer', at({ keys, keys_out: short }), 'need 400 bytes from 0; the buffer has 396');
  await rejects('an odd offset', at({ keys, keys_out: { buffer: buffer(800), offset: 4 } }), 'not a multiple of');
  await rejects('one buffer twice', at({ keys, keys_out: keys }), 'shares its buffer');
  const target = device.createBuffer({ size: 400, usage: COPY_DST });
  await rejects('a wrong usage', at({ keys, keys_out: target }), 'STORAGE');
  await rejects('an unknown op', () => ops.plan('no-such-op', []), 'no-such-op');
  const five = [{ shape: [5], type: 'u32' }];
  await rejects('an unknown option', () => ops.plan('sort', five, { upwards: true }), 'upwards');
  await rejects('no elements of a reduction', () => ops.reduce(0, { op: 'max' }), 'reduce');
  await rejects('too many keys', () => ops.sort(2 ** 31), 'sort');
  const executor = new Executor(device), { program } = sort;
  await rejects('a missing file', () => executor.prepare(program, {}), 'is missing');
  await rejects('another format', () => executor.prepare({ ...program, format: 2 }, {}), 'format 2');
  const more = { ...program, features: ['no-feature'] };
  await rejects('a missing feature', () => executor.prepare(more, {}), 'without no-feature');
  const wrong = Object.fromEntries(program.kernels.map(({ file }) => [file, 'fn k( {']));
  await rejects('text that is no WGSL', () => executor.prepare(program, wrong), `sort: ${program.kernels[0].file}`);

  device.destroy();
  await rejects('planning on a lost device', () => ops.sort(70_000), 'the device is lost');
  await rejects('recording on a lost device', at({ keys, keys_out: short }), 'the device is lost');
  return failures;
}
