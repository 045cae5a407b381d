use super::buffer::{CudaSlice, RawCudaSlice, check_written};
use super::device::{CudaGpu, check};
use super::program::{Arg, ArgMemory, CudaKernel, CudaProgram, Launch, Swizzle, TensorMap};
use super::stream::CudaStream;
use crate::program::prelude::*;
use crate::store::{CompiledCache, InUse};
use cudarc::driver::sys;
use std::ffi::{CString, c_int, c_void};
use std::fmt;

/// Operands start at a multiple of this many bytes, for vector loads and the bulk copy engine.
const ALIGNMENT: u64 = 16;

/// Dynamic shared memory of a block without opting in.
const SHARED_DEFAULT: u32 = 48 << 10;

/// A loaded module with its kernel, unloaded when dropped.
#[derive(Debug)]
pub(super) struct LoadedModule {
    context: sys::CUcontext,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for LoadedModule {}
// SAFETY: as above; the driver locks what it must.
unsafe impl Sync for LoadedModule {}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        // A lost device refuses, and has freed the module.
        // SAFETY: the module was loaded into this context, which the `CudaGpu` retains until its modules are gone. No
        // plan has the module, and work that was launched before ends first.
        unsafe {
            if sys::cuCtxSetCurrent(self.context) == sys::CUresult::CUDA_SUCCESS {
                let _ = sys::cuCtxSynchronize();
                let _ = sys::cuModuleUnload(self.module);
            }
        }
    }
}

/// What a compiled kernel takes of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaResources {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared_bytes: u32,
    /// Bytes of a thread's local memory: arrays and registers that did not fit.
    pub local_bytes: u32,
}

pub(super) type Modules = CompiledCache<CudaKernel, LoadedModule>;

type ModuleInUse = InUse<CudaKernel, LoadedModule>;

/// A program prepared for a device. Untyped; [`CudaPlan`](crate::CudaPlan) is the typed form.
pub struct CudaExecutable {
    gpu: CudaGpu,
    program: CudaProgram,
    modules: Vec<ModuleInUse>,
}

impl Executor for CudaExecutable {
    type Program = CudaProgram;
    type Slice<'a, T: Element> = CudaSlice<'a, T>;
    type RawSlice<'a> = RawCudaSlice<'a>;

    fn program(&self) -> &CudaProgram {
        &self.program
    }

    fn op(&self) -> &'static str {
        self.program.op
    }

    fn operands(&self) -> &[Operand] {
        &self.program.operands
    }

    fn untyped<'a, T: Element>(slice: Self::Slice<'a, T>) -> Self::RawSlice<'a> {
        slice.untyped()
    }
}

impl Sink<CudaExecutable> for &CudaStream {
    fn put(&mut self, executable: &CudaExecutable, operands: &[RawCudaSlice<'_>]) -> Result<()> {
        executable.run(self, operands)
    }
}

impl fmt::Debug for CudaExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaExecutable({} {} on {:?})", self.program.op, self.program.variant(), self.gpu)
    }
}

impl CudaGpu {
    /// Prepares a program: compiles its kernels or loads them from the cache, and checks launches against device
    /// limits.
    ///
    /// # Safety
    /// Kernels must stay within the operands and scratch of their launches. Programs from an op's `lower` do; the safe
    /// way to prepare those is [`Plannable::plan`](crate::Plannable::plan).
    ///
    /// # Errors
    /// As [`CudaProgram::check`] and [`Nvrtc`](super::Nvrtc); [`TooLarge`](ErrorKind::TooLarge) if a launch has
    /// a grid-wide barrier and its blocks do not fit at once; out of memory; device lost.
    pub unsafe fn prepare(&self, program: CudaProgram) -> Result<CudaExecutable> {
        self.prepare_lowered(program)
    }

    /// As [`CudaGpu::prepare`], for a program from an op's `lower`.
    pub(crate) fn prepare_lowered(&self, program: CudaProgram) -> Result<CudaExecutable> {
        program.check(self.profile())?;
        let modules = program.kernels.iter().map(|kernel| self.module(kernel)).collect::<Result<Vec<_>>>()?;
        for (i, launch) in program.launches.iter().enumerate() {
            self.opt_in(&program, launch, &modules[launch.kernel])
                .map_err(|e| e.context(&format!("{}: launch {i}", program.op)))?;
        }
        Ok(CudaExecutable { gpu: self.clone(), program, modules })
    }

    fn module(&self, kernel: &CudaKernel) -> Result<ModuleInUse> {
        self.inner.modules.get_or_make(kernel, || self.load(kernel))
    }

    fn load(&self, kernel: &CudaKernel) -> Result<LoadedModule> {
        let code = self.nvrtc()?.load_or_compile(kernel, &self.profile().target(), self.store())?;
        let label = kernel.label();
        let entry =
            CString::new(kernel.entry).map_err(|_| err!(Shader, "{label}: the entry name contains a 0 byte"))?;
        let (context, mut module) = (self.context().cast(), std::ptr::null_mut());
        // SAFETY: the code is a complete image from NVRTC, which holds its length; the name ends with a 0.
        self.call(&format!("{label}: loading"), || unsafe {
            sys::cuModuleLoadData(&mut module, code.as_ptr().cast())
        })?;
        let mut loaded = LoadedModule { context, module, function: std::ptr::null_mut() };
        // SAFETY: the module is loaded, and the name ends with a 0.
        self.call(&label, || unsafe { sys::cuModuleGetFunction(&mut loaded.function, loaded.module, entry.as_ptr()) })?;
        Ok(loaded)
    }

    /// Returns what the driver knows of a loaded kernel.
    fn attribute(&self, label: &str, module: &LoadedModule, which: sys::CUfunction_attribute_enum) -> Result<u32> {
        let mut value: c_int = 0;
        // SAFETY: the pointer is valid and the kernel loaded.
        self.call(label, || unsafe { sys::cuFuncGetAttribute(&mut value, which, module.function) })?;
        Ok(value.max(0) as u32)
    }

    /// Grants a kernel what a launch needs beyond the defaults, or fails if the driver cannot.
    fn opt_in(&self, program: &CudaProgram, launch: &Launch, module: &LoadedModule) -> Result<()> {
        use sys::CUfunction_attribute_enum as A;
        let label = program.kernels[launch.kernel].label();
        let attribute = |which| self.attribute(&label, module, which);
        let set = |which, value: u32| {
            // SAFETY: the kernel is loaded.
            self.call(&label, || unsafe { sys::cuFuncSetAttribute(module.function, which, value as c_int) })
        };
        let max = attribute(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if launch.block > max {
            return Err(err!(
                TooLarge,
                "{label} has {} threads in a block; registers allow {max}; use another variant",
                launch.block
            ));
        }
        let fixed = attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let optin = self.profile().shared_per_block_optin;
        if fixed + launch.shared > optin {
            return Err(err!(
                TooLarge,
                "{label} needs {fixed} + {} bytes of shared memory; a block of {} has {optin}; use another variant",
                launch.shared,
                self.profile().name
            ));
        }
        if fixed + launch.shared > SHARED_DEFAULT {
            // Enough for all launches of the kernel, in any order of preparation.
            set(A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin - fixed)?;
        }
        if launch.cluster.iter().product::<u32>() > 8 {
            set(A::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)?;
        }
        if launch.cooperative {
            let mut each: c_int = 0;
            // SAFETY: the pointer is valid and the kernel loaded.
            self.call(&label, || unsafe {
                sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &mut each,
                    module.function,
                    launch.block as c_int,
                    launch.shared as usize,
                )
            })?;
            let room = u64::from(each.max(0) as u32) * u64::from(self.profile().multiprocessors);
            let blocks: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
            if blocks > room {
                return Err(err!(
                    TooLarge,
                    "{label} has {blocks} blocks that wait for each other; {} runs {room} at once; use another variant",
                    self.profile().name
                ));
            }
        }
        Ok(())
    }
}

/// An argument as the driver reads it: a number or address at the start, or a whole tensor map.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
struct CudaValue([u64; 16]);

impl CudaExecutable {
    /// Returns the program.
    pub fn program(&self) -> &CudaProgram {
        &self.program
    }

    /// Returns the device.
    pub fn gpu(&self) -> &CudaGpu {
        &self.gpu
    }

    /// Returns the resources of each kernel as the driver compiled it, in the order of the program's kernels. A kernel
    /// that no launch uses has none.
    ///
    /// # Errors
    /// Device lost.
    pub fn resources(&self) -> Result<Vec<Option<CudaResources>>> {
        use sys::CUfunction_attribute_enum as A;
        let of = |(kernel, module): (usize, &ModuleInUse)| {
            let launches = || self.program.launches.iter().filter(|launch| launch.kernel == kernel);
            let Some(threads) = launches().map(|launch| launch.block).max() else { return Ok(None) };
            let label = self.program.kernels[kernel].label();
            let get = |which| self.gpu.attribute(&label, module, which);
            let dynamic = launches().map(|launch| launch.shared).max().unwrap_or(0);
            Ok(Some(CudaResources {
                threads,
                registers: get(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                shared_bytes: get(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? + dynamic,
                local_bytes: get(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            }))
        };
        self.modules.iter().enumerate().map(of).collect()
    }

    /// Enqueues the program with these operands, in the order of [`CudaProgram::operands`]. Returns at once.
    ///
    /// # Errors
    /// As [`CudaPlan`](crate::CudaPlan). After an error nothing runs, unless the device is lost.
    pub fn run(&self, stream: &CudaStream, operands: &[RawCudaSlice<'_>]) -> Result<()> {
        self.check(stream, operands)?;
        stream.with_scratch(&self.program.scratch, |scratch| {
            let mut launches = Vec::with_capacity(self.program.launches.len());
            for launch in &self.program.launches {
                let values = launch.args.iter().map(|arg| self.value(arg, operands, scratch));
                launches.push(values.collect::<Result<Vec<_>>>()?);
            }
            for &area in &self.program.zeroed {
                stream.clear_bytes(scratch[area], self.program.scratch[area])?;
            }
            for (launch, values) in self.program.launches.iter().zip(&mut launches) {
                self.launch(stream, launch, values)?;
            }
            Ok(())
        })?;
        for (given, want) in operands.iter().zip(&self.program.operands) {
            if want.access != Access::Read && !self.program.launches.is_empty() {
                given.written.set();
            }
        }
        Ok(())
    }

    fn check(&self, stream: &CudaStream, operands: &[RawCudaSlice<'_>]) -> Result<()> {
        let op = self.program.op;
        let wanted = &self.program.operands;
        if stream.gpu() != &self.gpu {
            let (stream, plan) = (stream.gpu(), &self.gpu);
            return Err(err!(Buffer, "{op}: the stream belongs to {stream:?}, the plan to {plan:?}"));
        }
        Operand::check_count(op, operands.len(), wanted)?;
        for (given, want) in operands.iter().zip(wanted) {
            let name = want.name;
            if given.gpu != &self.gpu {
                return Err(err!(
                    Buffer,
                    "{op}: {name} lives on another CudaGpu ({:?}) than the plan ({:?}); read it back and upload it there",
                    given.gpu,
                    self.gpu
                ));
            }
            want.check_given(op, given.dtype, given.len)?;
            if given.len > 0 && !given.address.is_multiple_of(ALIGNMENT) {
                return Err(err!(
                    Buffer,
                    "{op}: {name} starts at {:#x}, which is not a multiple of {ALIGNMENT} bytes; slice at multiples of {} \
                     elements, or copy it",
                    given.address,
                    ALIGNMENT as usize / given.dtype.size()
                ));
            }
        }
        for (i, (a, want_a)) in operands.iter().zip(wanted).enumerate() {
            for (b, want_b) in operands.iter().zip(wanted).skip(i + 1) {
                let written = want_a.access != Access::Read || want_b.access != Access::Read;
                if written && a.overlaps(b) {
                    return Err(err!(
                        Aliasing,
                        "{op}: {} and {} overlap, and one of them is written; use two buffers, or slices that do not \
                         overlap",
                        want_a.name,
                        want_b.name
                    ));
                }
            }
        }
        if self.program.launches.is_empty() || operands.iter().all(|o| o.written.get()) {
            return Ok(());
        }
        let uses: Vec<_> = operands.iter().zip(wanted).map(|(o, want)| o.used(want.name, want.access)).collect();
        check_written(op, &uses)
    }

    fn value(&self, arg: &Arg, operands: &[RawCudaSlice<'_>], scratch: &[u64]) -> Result<CudaValue> {
        let address = |place| match place {
            ArgMemory::Operand(i) => operands[i].address,
            ArgMemory::Scratch(i) => scratch[i],
        };
        let word = match arg {
            Arg::Operand(i) => address(ArgMemory::Operand(*i)),
            Arg::Scratch(i) => address(ArgMemory::Scratch(*i)),
            // Machines with CUDA are little-endian: the number's bytes come first.
            Arg::U32(n) => u64::from(*n),
            Arg::U64(n) => *n,
            Arg::F32(x) => u64::from(x.to_bits()),
            Arg::Null => 0,
            Arg::Tensor(map) => {
                return encode(map, address(map.of) + map.offset)
                    .map_err(|e| e.context(&format!("{}: {map:?}", self.program.op)));
            }
        };
        let mut value = CudaValue([0; 16]);
        value.0[0] = word;
        Ok(value)
    }

    fn launch(&self, stream: &CudaStream, launch: &Launch, values: &mut [CudaValue]) -> Result<()> {
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|v| std::ptr::from_mut(v).cast()).collect();
        let attribute = |id, fill: &dyn Fn(&mut sys::CUlaunchAttributeValue)| {
            let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
            fill(&mut value);
            sys::CUlaunchAttribute { id, pad: [0; 4], value }
        };
        let mut attributes = Vec::new();
        if launch.cluster != [1; 3] {
            let [x, y, z] = launch.cluster;
            attributes.push(attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &|v| {
                v.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            }));
        }
        if launch.cooperative {
            attributes.push(attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &|v| {
                v.cooperative = 1;
            }));
        }
        let config = sys::CUlaunchConfig {
            gridDimX: launch.grid[0],
            gridDimY: launch.grid[1],
            gridDimZ: launch.grid[2],
            blockDimX: launch.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: launch.shared,
            hStream: stream.handle(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        let label = || format!("{}: {}", self.program.op, self.program.kernels[launch.kernel].label());
        let function = self.modules[launch.kernel].function;
        // SAFETY: the lists live until the call returns, and the driver copies the arguments. The op's `lower` made
        // arguments of the kernel's types and sizes, which were checked above. Freeing memory waits for all work.
        let launched = self.gpu.call("", || unsafe {
            sys::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), std::ptr::null_mut())
        });
        launched.map_err(|e| e.context(&label()))
    }
}

/// Encodes a map for the bulk copy engine.
fn encode(map: &TensorMap, address: u64) -> Result<CudaValue> {
    use sys::CUtensorMapDataType_enum as D;
    let dtype = match map.dtype {
        DType::F32 if map.rounds_to_tf32 => D::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        DType::F32 => D::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F16 => D::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::Bf16 => D::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::I32 => D::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::U32 => D::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        DType::U64 => D::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        DType::U8 | DType::I8 => D::CU_TENSOR_MAP_DATA_TYPE_UINT8,
    };
    let swizzle = match map.swizzle {
        Swizzle::None => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::B32 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::B64 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::B128 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    };
    let mut value = CudaValue([0; 16]);
    let steps = [1u32; 5];
    // SAFETY: `CudaValue` has the size of a map and more than its alignment. `CudaProgram::check` has checked that the
    // lists match the rank. The address is only stored.
    let code = unsafe {
        sys::cuTensorMapEncodeTiled(
            std::ptr::from_mut(&mut value).cast(),
            dtype,
            map.dims.len() as u32,
            address as usize as *mut c_void,
            map.dims.as_ptr(),
            map.strides.as_ptr(),
            map.box_dims.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    check(code, "tensor map")?;
    Ok(value)
}
