/* Runs a model of this folder on the GPU, by WebGPU.
 *
 *   const model = await Dovetail.load("");          // or the folder's address
 *   const outputs = await model.run({ image: [...] });
 *
 * load(folder) -> Model: compiles the kernels and copies the weights to the GPU.
 * model.inputs, model.outputs: [{ name, shape, dtype }].
 * model.run(inputs) -> { name: typed array }: inputs are numbers in the order of memory, one array for
 *   each name; int64 and uint64 are BigInt64Array and BigUint64Array, float16 and bfloat16 are given
 *   and returned as their 16 bits.  model.seconds: what the last run took.
 * Dovetail.ARRAYS[dtype]: the kind of array of each dtype.
 * Errors are thrown as Error: no WebGPU, no adapter, a kernel that is refused, a wrong input.
 */
"use strict";

const Dovetail = (() => {
  const FORMAT = 1;
  const SLOT = 256; // bytes of the places of one launch
  const SLOTS = 1024; // launches between two submissions
  const ARRAYS = {
    bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
    int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
    float16: Uint16Array, bfloat16: Uint16Array, float32: Float32Array,
  };

  const whole = (size) => Math.ceil(Math.max(size, 1) / 4) * 4;
  const elements = (tensor) => tensor.shape.reduce((total, size) => total * size, 1);

  async function fetched(address) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status} ${answer.statusText}`);
    return answer;
  }

  async function openDevice(bytes) {
    if (!navigator.gpu) throw new Error("this browser has no WebGPU, or the page is not served by https or localhost");
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("WebGPU finds no adapter: no GPU that it may use");
    const names = ["maxStorageBufferBindingSize", "maxBufferSize"];
    for (const name of names) {
      if (adapter.limits[name] < bytes) {
        throw new Error(`the model needs ${bytes} bytes in one buffer; this GPU allows ${adapter.limits[name]}`);
      }
    }
    const wanted = [...names, "maxComputeWorkgroupStorageSize"];
    const requiredLimits = Object.fromEntries(wanted.map((name) => [name, adapter.limits[name]]));
    return adapter.requestDevice({ requiredLimits });
  }

  async function load(folder = "") {
    const base = folder && !folder.endsWith("/") ? `${folder}/` : folder;
    const manifest = await (await fetched(`${base}manifest.json`)).json();
    if (manifest.format !== FORMAT) {
      throw new Error(`the folder has format ${manifest.format}; required ${FORMAT}`);
    }
    const [code, weights, device] = await Promise.all([
      fetched(`${base}model.wgsl`).then((answer) => answer.text()),
      fetched(`${base}weights.bin`).then((answer) => answer.arrayBuffer()),
      openDevice(manifest.bytes),
    ]);
    const model = new Model(manifest, device);
    await model.prepare(code, weights);
    return model;
  }

  class Model {
    constructor(manifest, device) {
      this.manifest = manifest;
      this.device = device;
      this.inputs = manifest.inputs;
      this.outputs = manifest.outputs;
      this.title = manifest.title;
      this.seconds = 0;
      this.pending = Promise.resolve();
    }

    async prepare(code, weights) {
      const { device, manifest } = this;
      const usage = GPUBufferUsage;
      const module = device.createShaderModule({ code });
      const said = (await module.getCompilationInfo()).messages.find((each) => each.type === "error");
      if (said) throw new Error(`WGSL, line ${said.lineNum}: ${said.message}`);
      this.arena = device.createBuffer({
        size: whole(manifest.bytes), usage: usage.STORAGE | usage.COPY_DST | usage.COPY_SRC,
      });
      this.places = device.createBuffer({ size: SLOT * SLOTS, usage: usage.UNIFORM | usage.COPY_DST });
      const visibility = GPUShaderStage.COMPUTE;
      const layout = device.createBindGroupLayout({
        entries: [
          { binding: 0, visibility, buffer: { type: "storage" } },
          { binding: 1, visibility, buffer: { type: "uniform", hasDynamicOffset: true } },
        ],
      });
      this.group = device.createBindGroup({
        layout,
        entries: [
          { binding: 0, resource: { buffer: this.arena } },
          { binding: 1, resource: { buffer: this.places, size: SLOT } },
        ],
      });
      const shape = device.createPipelineLayout({ bindGroupLayouts: [layout] });
      this.kernels = await Promise.all(manifest.kernels.map((kernel) =>
        device.createComputePipelineAsync({
          layout: shape, compute: { module, entryPoint: kernel.name },
        })));
      if (weights.byteLength) device.queue.writeBuffer(this.arena, manifest.weights, weights);
    }

    /* Runs wait for each other: they share one memory. */
    run(inputs) {
      const result = this.pending.then(() => this.runNow(inputs));
      this.pending = result.catch(() => {});
      return result;
    }

    async runNow(inputs) {
      const start = performance.now();
      for (const tensor of this.inputs) this.write(tensor, inputs[tensor.name]);
      this.rest = this.manifest.most_work;
      this.launches = [];
      await this.steps(0, this.manifest.steps.length, []);
      this.submit();
      const found = {};
      for (const tensor of this.outputs) found[tensor.name] = await this.read(tensor);
      this.seconds = (performance.now() - start) / 1000;
      return found;
    }

    write(tensor, values) {
      const count = elements(tensor);
      if (!values || values.length !== count) {
        throw new Error(`input ${tensor.name}: ${values ? values.length : "no"} numbers; required ${count}, ` +
          `${tensor.dtype} of shape [${tensor.shape}]`);
      }
      const kind = ARRAYS[tensor.dtype];
      const given = values instanceof kind ? values : kind.from(values, kind === BigInt64Array || kind === BigUint64Array ? BigInt : Number);
      const bytes = new Uint8Array(whole(given.byteLength));
      bytes.set(new Uint8Array(given.buffer, given.byteOffset, given.byteLength));
      this.device.queue.writeBuffer(this.arena, tensor.at, bytes);
    }

    async read(tensor) {
      const kind = ARRAYS[tensor.dtype];
      const count = elements(tensor);
      const bytes = await this.readBytes(tensor.at, count * kind.BYTES_PER_ELEMENT);
      return new kind(bytes, 0, count);
    }

    async readBytes(at, size) {
      const { device } = this;
      const first = at - (at % 4);
      const copied = whole(at + size - first);
      const usage = GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ;
      const buffer = device.createBuffer({ size: copied, usage });
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(this.arena, first, buffer, 0, copied);
      device.queue.submit([encoder.finish()]);
      await buffer.mapAsync(GPUMapMode.READ);
      const bytes = buffer.getMappedRange().slice(at - first, at - first + size);
      buffer.destroy();
      return bytes;
    }

    /* The steps from start to before end; indices: the iterations of loops around. */
    async steps(start, end, indices) {
      const all = this.manifest.steps;
      while (start < end) {
        const step = all[start++];
        if (step.kernel !== undefined) {
          this.launch(step, indices);
        } else {
          await this.loop(step, start, indices);
          start += step.body + step.last;
        }
      }
    }

    async loop(step, start, indices) {
      let done = 0;
      let again = step.count > 0 && (!step.guard || await this.holds(step.guard, indices));
      while (again) {
        if (step.counter) this.set(step.counter, done, indices);
        await this.steps(start, start + step.body, [...indices, done]);
        done++;
        again = done < step.count;
        if (step.condition) {
          again = await this.holds(step.condition, indices) && again;
          this.rest -= Math.max(step.work, 1);
          if (again && this.rest < 0) throw new Error(`node ${step.node}: its loop does not end`);
        }
      }
      if (step.done) this.set(step.done, done, indices);
      await this.steps(start + step.body, start + step.body + step.last, [...indices, done]);
    }

    at(place, indices) {
      let at = place.at;
      for (const { depth, bytes, alternating } of place.strides || []) {
        at += bytes * (alternating ? indices[depth] % 2 : indices[depth]);
      }
      return at;
    }

    launch(step, indices) {
      if (this.launches.length === SLOTS) this.submit();
      this.launches.push({ kernel: step.kernel, places: step.places.map((each) => this.at(each, indices)) });
    }

    /* Hand all launches so far to the GPU, in order. */
    submit() {
      const { device, launches } = this;
      if (!launches.length) return;
      const places = new Uint32Array(launches.length * SLOT / 4);
      launches.forEach((each, number) => places.set(each.places, number * SLOT / 4));
      device.queue.writeBuffer(this.places, 0, places);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      launches.forEach((each, number) => {
        pass.setPipeline(this.kernels[each.kernel]);
        pass.setBindGroup(0, this.group, [number * SLOT]);
        pass.dispatchWorkgroups(...this.manifest.kernels[each.kernel].grid);
      });
      pass.end();
      device.queue.submit([encoder.finish()]);
      this.launches = [];
    }

    async holds(place, indices) {
      this.submit();
      const bytes = await this.readBytes(this.at(place, indices), 1);
      return new Uint8Array(bytes)[0] !== 0;
    }

    set(place, value, indices) {
      this.submit();
      this.device.queue.writeBuffer(this.arena, this.at(place, indices), BigInt64Array.of(BigInt(value)));
    }
  }

  return { load, ARRAYS };
})();
