// Runs programs of tilework on a GPUDevice of the caller, recorded into the caller's encoder. `op --emit FOLDER` and
// Program::emit write programs; the documentation of Program::emit describes the format.
//
//     const executor = new Executor(device);
//     const sort = await executor.prepare(program, files); // program.json, and the text of each .wgsl by its name
//     const encoder = device.createCommandEncoder();
//     sort.record(encoder, { keys, keys_out: sorted });
//     device.queue.submit([encoder.finish()]);

// `Ops` plans ops by itself, with the module tilework-planner:
//
//     const ops = new Ops(device, plan);
//     const sort = await ops.sort(1 << 20, { descending: true });

/** A GPUBuffer, or a part of it. */
export type Operand = GPUBuffer | { buffer: GPUBuffer; offset?: number };

type Of = { operand?: number; scratch?: number; constant?: number };
type Range = Of & { offset: number; size: number };

/** `program.json`. */
export interface Program {
  format: number;
  op: string;
  variant: string;
  why: string;
  features: string[];
  operands: { name: string; type: string; length: number; access: 'read' | 'write' | 'read-write' }[];
  scratch: number[];
  constants: string[];
  kernels: {
    file: string;
    entry: string;
    bindings: { binding: number; type: GPUBufferBindingType; size: number }[];
  }[];
  dispatches: {
    kernel: number;
    params: string;
    bindings: Range[];
    workgroups: [number, number, number] | (Of & { offset: number });
  }[];
}

type Kernel = { pipeline: GPUComputePipeline; layout: GPUBindGroupLayout };

const SIZES: Record<string, number> = { f32: 4, i32: 4, u32: 4, f16: 2, u8: 1, i8: 1 };
// GPUBufferUsage and GPUShaderStage, which Node does not have as globals.
const [COPY_DST, UNIFORM, STORAGE, INDIRECT, COMPUTE] = [8, 64, 128, 256, 4];

const roundUp = (n: number, unit: number) => Math.ceil(n / unit) * unit;
const bytesOf = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));

/** Prepares programs for one device. Equal kernels are compiled once, and all programs share their scratch. */
export class Executor {
  readonly #kernels = new Map<string, Promise<Kernel>>();
  readonly #scratch: GPUBuffer[] = [];
  #lost?: string;

  constructor(readonly device: GPUDevice) {
    void device.lost.then(({ reason, message }) => (this.#lost = message || reason));
  }

  /** Throws an Error if the device is known to be lost. */
  alive(): void {
    if (this.#lost === undefined) return;
    throw new Error(`the device is lost (${this.#lost}); request a new one; everything on the old one is lost`);
  }

  /**
   * Compiles the kernels of a program, and uploads its parameters and constants. `files` has the text of each kernel by
   * the name that the program gives. Rejects with an Error that names the op and the reason.
   */
  async prepare(program: Program, files: Record<string, string>): Promise<Prepared> {
    const fail = (why: string): never => {
      throw new Error(`${program.op}: ${why}`);
    };
    if (program.format !== 1) fail(`the program has format ${program.format}; this executor runs format 1`);
    const missing = program.features.filter((feature) => !this.device.features.has(feature));
    if (missing.length) {
      fail(`the device was requested without ${missing.join(' and ')}; emit the program for this device`);
    }
    const largest = Math.max(0, ...program.dispatches.flatMap((d) => d.bindings.map((b) => b.size)));
    const limit = this.device.limits.maxStorageBufferBindingSize;
    if (largest > limit) fail(`a binding of ${largest} bytes is above the ${limit} of the device; split the data`);
    const kernels = await Promise.all(program.kernels.map((kernel) => this.#kernel(program.op, kernel, files)));
    return this.#checked(program.op, () => new Prepared(this, program, kernels));
  }

  /** Scratch of at least `size` bytes: what a program leaves there, another may overwrite. */
  scratch(slot: number, size: number): GPUBuffer {
    const there = this.#scratch[slot];
    if (there && there.size >= size) return there;
    // The old one may be in work that is not submitted yet, so it is left to the garbage collector.
    const usage = STORAGE | COPY_DST | INDIRECT;
    const made = this.device.createBuffer({ label: 'tilework scratch', size: roundUp(size, 256), usage });
    return (this.#scratch[slot] = made);
  }

  /** Frees the scratch. Work that is recorded must be submitted before. */
  destroy(): void {
    this.#scratch.splice(0).forEach((buffer) => buffer.destroy());
    this.#kernels.clear();
  }

  #kernel(op: string, kernel: Program['kernels'][number], files: Record<string, string>): Promise<Kernel> {
    const code = files[kernel.file];
    if (code === undefined) throw new Error(`${op}: the text of ${kernel.file} is missing`);
    const key = `${kernel.entry}\n${code}`;
    const made = this.#kernels.get(key) ?? this.#compile(op, kernel, code);
    this.#kernels.set(key, made);
    // A failure is not remembered.
    made.catch(() => this.#kernels.delete(key));
    return made;
  }

  async #compile(op: string, { file, entry, bindings }: Program['kernels'][number], code: string): Promise<Kernel> {
    const label = `${op}: ${file}`;
    const { layout, made } = await this.#checked(label, () => {
      const module = this.device.createShaderModule({ label, code });
      const entries = bindings.map(({ binding, type, size }) => {
        return { binding, visibility: COMPUTE, buffer: { type, minBindingSize: size } };
      });
      const layout = this.device.createBindGroupLayout({ label, entries });
      const made = this.device.createComputePipelineAsync({
        label,
        layout: this.device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
        compute: { module, entryPoint: entry },
      });
      // If the text is wrong, the error of the module is the better one.
      made.catch(() => {});
      return { layout, made };
    });
    try {
      return { pipeline: await made, layout };
    } catch (e) {
      throw new Error(`${label}: ${(e as Error).message}`);
    }
  }

  /** Runs `work`. An error of the device that it causes becomes one of `doing`. */
  async #checked<T>(doing: string, work: () => T): Promise<T> {
    const filters: GPUErrorFilter[] = ['validation', 'out-of-memory', 'internal'];
    filters.forEach((filter) => this.device.pushErrorScope(filter));
    let popped: Promise<GPUError | null>[];
    let done: T;
    try {
      done = work();
    } finally {
      // Closed before anything is awaited, so that they see this work only.
      popped = filters.map(() => this.device.popErrorScope());
    }
    const error = (await Promise.all(popped)).find((error) => error);
    this.alive();
    if (error) throw new Error(`${doing}: ${error.message}`);
    return done;
  }
}

/** A program on a device: what `Executor.prepare` returns. `Names` are those of its operands. */
export class Prepared<Names extends string = string> {
  readonly #uniforms?: GPUBuffer;
  readonly #offsets: number[] = [];
  readonly #constants: GPUBuffer[];
  #groups?: { buffers: GPUBuffer[]; offsets: number[]; groups: GPUBindGroup[] };

  constructor(
    readonly executor: Executor,
    readonly program: Program,
    private readonly kernels: Kernel[],
  ) {
    const { device } = executor;
    const blocks = program.dispatches.map((dispatch) => bytesOf(dispatch.params));
    const unit = Math.max(16, device.limits.minUniformBufferOffsetAlignment);
    let size = 0;
    for (const block of blocks) {
      this.#offsets.push(size);
      size += roundUp(block.length, unit);
    }
    const upload = (size: number, usage: number, parts: [number, Uint8Array][]) => {
      const buffer = device.createBuffer({ label: `tilework ${program.op}`, size, usage: usage | COPY_DST });
      for (const [at, bytes] of parts) if (bytes.length) device.queue.writeBuffer(buffer, at, bytes);
      return buffer;
    };
    if (size) this.#uniforms = upload(size, UNIFORM, blocks.map((block, i) => [this.#offsets[i], block]));
    this.#constants = program.constants.map((hex) => {
      const bytes = bytesOf(hex);
      return upload(Math.max(16, roundUp(bytes.length, 16)), STORAGE | UNIFORM, [[0, bytes]]);
    });
  }

  /**
   * Records the program. `operands` has a buffer for each of `program.operands`, by name. Throws an Error that names
   * the op and the operand, and records nothing, if one is missing, too small or of the wrong usage.
   */
  record(encoder: GPUCommandEncoder, operands: Record<Names, Operand>): void {
    const { program, executor } = this;
    executor.alive();
    const [buffers, offsets] = this.#operands(operands);
    const scratch = program.scratch.map((size, slot) => executor.scratch(slot, size));
    const all = [...buffers, ...scratch];
    const known = this.#groups;
    const same = known?.buffers.every((buffer, i) => buffer === all[i])
      && known.offsets.every((at, i) => at === offsets[i]);
    const resource = ({ operand, scratch: slot, constant }: Of, offset: number): [GPUBuffer, number] => {
      if (operand !== undefined) return [buffers[operand], offsets[operand] + offset];
      return [slot !== undefined ? scratch[slot] : this.#constants[constant!], offset];
    };
    const groups = same ? known!.groups : program.dispatches.map((_, i) => this.#group(i, resource));
    this.#groups = { buffers: all, offsets, groups };
    if (!program.dispatches.length) return;
    const pass = encoder.beginComputePass({ label: `tilework ${program.op}` });
    program.dispatches.forEach(({ kernel, workgroups }, i) => {
      pass.setPipeline(this.kernels[kernel].pipeline);
      pass.setBindGroup(0, groups[i]);
      if (Array.isArray(workgroups)) pass.dispatchWorkgroups(...workgroups);
      else pass.dispatchWorkgroupsIndirect(...resource(workgroups, workgroups.offset));
    });
    pass.end();
  }

  /** Frees the parameters and constants. Work that is recorded must be submitted before. */
  destroy(): void {
    this.#uniforms?.destroy();
    this.#constants.forEach((buffer) => buffer.destroy());
  }

  /** The buffers and offsets of the operands, checked. */
  #operands(given: Record<string, Operand>): [GPUBuffer[], number[]] {
    const { op, operands } = this.program;
    const fail = (why: string): never => {
      throw new Error(`${op}: ${why}`);
    };
    const unknown = Object.keys(given).find((name) => !operands.some((operand) => operand.name === name));
    if (unknown) fail(`there is no operand ${unknown}; it has ${operands.map(({ name }) => name).join(', ')}`);
    const alignment = this.executor.device.limits.minStorageBufferOffsetAlignment;
    const found = operands.map(({ name, type, length }) => {
      const operand = given[name] ?? fail(`the operand ${name} is missing`);
      const { buffer, offset = 0 } = 'buffer' in operand ? operand : { buffer: operand };
      const bytes = roundUp(length * SIZES[type], 4);
      if (!(buffer.usage & STORAGE)) fail(`${name}: the buffer needs the usage STORAGE`);
      if (offset % alignment) fail(`${name}: the offset ${offset} is not a multiple of ${alignment}`);
      if (offset + bytes > buffer.size) {
        const needs = `${length} elements of ${type} need ${bytes} bytes from ${offset}`;
        fail(`${name}: ${needs}; the buffer has ${buffer.size}`);
      }
      return [buffer, offset] as const;
    });
    found.forEach(([buffer], i) => {
      const other = found.findIndex(([b], j) => b === buffer && j !== i);
      if (other >= 0 && operands[i].access !== 'read') {
        fail(`${operands[i].name} is written and shares its buffer with ${operands[other].name}`);
      }
    });
    return [found.map(([buffer]) => buffer), found.map(([, offset]) => offset)];
  }

  #group(index: number, resource: (of: Of, offset: number) => [GPUBuffer, number]): GPUBindGroup {
    const { kernel, params, bindings } = this.program.dispatches[index];
    const types = new Map(this.program.kernels[kernel].bindings.map(({ binding, type }) => [binding, type]));
    const entries: GPUBindGroupEntry[] = bindings.map((range, i) => {
      const [buffer, offset] = resource(range, range.offset);
      const unit = types.get(i + 1) === 'uniform' ? 16 : 4;
      return { binding: i + 1, resource: { buffer, offset, size: Math.max(unit, roundUp(range.size, unit)) } };
    });
    if (params) {
      const size = roundUp(params.length / 2, 16);
      const resource = { buffer: this.#uniforms!, offset: this.#offsets[index], size };
      entries.push({ binding: 0, resource });
    }
    return this.executor.device.createBindGroup({ layout: this.kernels[kernel].layout, entries });
  }
}

/** Element types. */
export type Type = 'f32' | 'f16' | 'i32' | 'u32' | 'u8' | 'i8';

type SortOptions = { type?: 'f32' | 'i32' | 'u32'; descending?: boolean };
type ScanOptions = { type?: Type; op?: 'sum' | 'prod' | 'min' | 'max'; exclusive?: boolean };
type HistogramOptions = { type?: Type; bins?: number; lo?: number; hi?: number };
type ReduceOptions = { type?: Type; op?: 'sum' | 'prod' | 'min' | 'max' | 'argmin' | 'argmax' };

/** Plans an op: `plan` of the module tilework-planner, or a function that looks up answers made before. */
export type Planner = (request: string) => string | Promise<string>;

const LIMITS = [
  'maxBufferSize', 'maxStorageBufferBindingSize', 'maxUniformBufferBindingSize', 'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize', 'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupsPerDimension',
  'maxComputeWorkgroupSizeX', 'maxComputeWorkgroupSizeY', 'maxComputeWorkgroupSizeZ',
] as const;

/** Plans ops for one device. Equal requests share one result. All methods reject with an Error that names the op. */
export class Ops {
  readonly executor: Executor;
  readonly #plans = new Map<string, Promise<Prepared>>();

  constructor(
    readonly device: GPUDevice,
    readonly planner: Planner,
  ) {
    this.executor = new Executor(device);
  }

  /** Plans any op by name. `op --list` lists ops, inputs and options; `true` gives an option without a value. */
  plan<Names extends string = string>(
    op: string,
    inputs: { shape: number[]; type: Type }[],
    options: Record<string, string | number | boolean> = {},
    variant = 'auto',
  ): Promise<Prepared<Names>> {
    const { limits, features } = this.device;
    type Info = { subgroupMinSize?: number; subgroupMaxSize?: number; isFallbackAdapter?: boolean };
    const info = (this.device as { adapterInfo?: Info }).adapterInfo;
    const request = JSON.stringify({
      op, inputs, options, variant,
      features: [...features],
      limits: Object.fromEntries(LIMITS.map((name) => [name, limits[name]])),
      subgroupSizes: [info?.subgroupMinSize || 4, info?.subgroupMaxSize || 128],
      fallback: Boolean(info?.isFallbackAdapter),
    });
    const make = async () => {
      let answer: string;
      try {
        answer = await this.planner(request);
      } catch (e) {
        throw e instanceof Error ? e : new Error(String(e));
      }
      const { program, files } = JSON.parse(answer);
      return this.executor.prepare(program, files);
    };
    const made = this.#plans.get(request) ?? make();
    this.#plans.set(request, made);
    // A failure is not remembered.
    made.catch(() => this.#plans.delete(request));
    return made as Promise<Prepared<Names>>;
  }

  /** Sorts keys, stably: `keys` to `keys_out`; with `values`, `values` of u32 move to `values_out`. */
  sort(length: number, options?: SortOptions & { values?: false }): Promise<Prepared<'keys' | 'keys_out'>>;
  sort(
    length: number,
    options: SortOptions & { values: true },
  ): Promise<Prepared<'keys' | 'keys_out' | 'values' | 'values_out'>>;
  sort(
    length: number,
    { type = 'u32', descending = false, values = false }: SortOptions & { values?: boolean } = {},
  ): Promise<Prepared> {
    const inputs: { shape: number[]; type: Type }[] = [{ shape: [length], type }];
    if (values) inputs.push({ shape: [length], type: 'u32' });
    return this.plan('sort', inputs, { descending });
  }

  /** All prefixes of `input`, to `output`. */
  scan(length: number, { type = 'u32', op = 'sum', exclusive = false }: ScanOptions = {}) {
    return this.plan<'input' | 'output'>('scan', [{ shape: [length], type }], { op, exclusive });
  }

  /** The elements of `input` whose flag in `flags`, of u32, is not 0: to `output`, their number to `count`. */
  select(length: number, { type = 'u32' }: { type?: Type } = {}) {
    const inputs: { shape: number[]; type: Type }[] = [{ shape: [length], type }, { shape: [length], type: 'u32' }];
    return this.plan<'input' | 'flags' | 'output' | 'count'>('select', inputs);
  }

  /** Counts the elements of `input` in equal bins from `lo` to `hi`; by value without them. Counts go to `counts`. */
  histogram(length: number, { type = 'u32', bins = 256, ...range }: HistogramOptions = {}) {
    return this.plan<'input' | 'counts'>('histogram', [{ shape: [length], type }], { bins, ...range });
  }

  /** One value of all elements of `input`, to `output`. */
  reduce(length: number, { type = 'f32', op = 'sum' }: ReduceOptions = {}) {
    return this.plan<'input' | 'output'>('reduce', [{ shape: [length], type }], { op });
  }

  /** The product of `a`, m x k, and `b`, k x n, times `alpha`, to `c`, m x n. All are in row order. */
  gemm(m: number, n: number, k: number, { type = 'f32', alpha = 1 }: { type?: 'f32' | 'f16'; alpha?: number } = {}) {
    return this.plan<'a' | 'b' | 'c'>('gemm', [{ shape: [m, k], type }, { shape: [k, n], type }], { alpha });
  }
}
