//! Cases, and how they run with guard words around every operand.

use crate::support::far;
use half::f16;
use std::fmt::Debug;
use std::rc::Rc;
use tilework::gpu::{Executable, RawSlice};
use tilework::program::{Determinism, DeviceProfile, Op, OpCall, Program, Resource, Role};
use tilework::reference::{Number, Wanted};
use tilework::{Buffer, DType, Element, ErrorKind, Gpu, HostData, Plannable, Slice};

/// The guard word around operands: a NaN that no kernel writes.
const GUARD: u8 = 0xff;

/// The contents of results before they are written.
const UNWRITTEN: u8 = 0xa5;

/// Bytes in front of an operand: the strictest alignment.
const FRONT: usize = 256;

/// Minimum bytes after an operand: whole elements of every type.
const BEHIND: usize = 64;

/// Checks all operands and returns what is wrong.
type Check = dyn Fn(&[Vec<u8>]) -> Option<String>;

/// Plans the op on a device, with runtime checks or not.
type Planning = dyn Fn(&Gpu, bool) -> tilework::Result<Executable>;

/// The expected contents of an operand after the op.
enum Want {
    /// Unchanged.
    Same,
    /// These bytes, then anything.
    Bits(Vec<u8>),
    /// Numbers within bounds, then anything.
    Near(Vec<f64>, Vec<f64>),
    /// Checked by a function.
    Checked(Box<Check>),
}

struct Operand {
    dtype: DType,
    /// Before the op.
    bytes: Vec<u8>,
    want: Want,
    /// Bounds for cooperative matrices, which round differently.
    on_matrices: Option<Vec<f64>>,
}

impl Operand {
    fn of(dtype: DType, bytes: Vec<u8>, want: Want) -> Self {
        Self { dtype, bytes, want, on_matrices: None }
    }
}

/// An op with its operands and their expected contents.
pub(super) struct Case {
    pub(super) what: String,
    plan: Box<Planning>,
    operands: Vec<Operand>,
}

/// The contents of all operands after an op.
pub(super) struct Outcome {
    contents: Vec<Vec<u8>>,
    types: Vec<DType>,
    determinism: Determinism,
    variant: &'static str,
}

impl Outcome {
    /// The difference from the results of the same kernels with runtime checks, if they must be equal.
    pub(super) fn differs(&self, other: &Self) -> Option<String> {
        let same = self.determinism == Determinism::SameBits && self.variant == other.variant;
        let mut pairs = self.contents.iter().zip(&other.contents).zip(&self.types).enumerate();
        let wrong = pairs.find_map(|(i, ((a, b), dtype))| {
            let wrong = differs(*dtype, &one_nan(*dtype, b), &one_nan(*dtype, a))?;
            Some(format!("operand {i} has other bits than without runtime checks: {wrong}"))
        })?;
        same.then_some(wrong)
    }
}

/// With one bit pattern for every NaN: no operation defines which.
fn one_nan(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    match dtype {
        DType::F32 => {
            let one = |x: f32| if x.is_nan() { f32::NAN } else { x };
            bytes_of(&elements_of(bytes).into_iter().map(one).collect::<Vec<_>>())
        }
        DType::F16 => {
            let one = |x: f16| if x.is_nan() { f16::NAN } else { x };
            bytes_of(&elements_of(bytes).into_iter().map(one).collect::<Vec<_>>())
        }
        _ => bytes.to_vec(),
    }
}

fn bytes_of<T: Element>(x: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(x).to_vec()
}

impl Case {
    pub(super) fn new<T: Element>(op: impl Op<T> + Debug + 'static) -> Self {
        let mut what = format!("{} {op:?}", T::DTYPE);
        // Tables that a descriptor holds.
        if what.len() > 600 {
            what.truncate((0..=600).rev().find(|&at| what.is_char_boundary(at)).unwrap_or(0));
            what.push_str("...");
        }
        Self {
            what,
            plan: Box::new(move |gpu, open| match open {
                true => gpu.prepare(opened(op.lower(gpu.profile())?)),
                false => Ok(op.plan::<T>(gpu)?.into_executable()),
            }),
            operands: Vec::new(),
        }
    }

    /// An op built by name, with these expected outputs.
    pub(super) fn built(what: String, call: OpCall, wanted: Vec<Wanted>) -> Self {
        let profile = DeviceProfile::h100();
        let lengths: Vec<_> = call.lower(&profile).map_or(Vec::new(), |p| p.operands.iter().map(|o| o.len).collect());
        let (mut wanted, mut operands) = (wanted.into_iter(), Vec::new());
        let mut count = 0;
        for (i, role) in call.operands.iter().enumerate() {
            operands.push(match role {
                Role::Given(array) => Operand::of(array.dtype(), array.data().bytes().to_vec(), Want::Same),
                // Tests of the ops compare it.
                Role::Invalid { .. } => {
                    let any = Want::Near(vec![0.0], vec![f64::INFINITY]);
                    Operand::of(DType::U32, vec![UNWRITTEN; size_of::<u32>()], any)
                }
                Role::Count => {
                    let bytes = vec![UNWRITTEN; size_of::<u32>()];
                    Operand::of(DType::U32, bytes, Want::Bits(bytes_of(&[count])))
                }
                Role::Updated(_) | Role::Result(_) | Role::Front(..) | Role::Counted | Role::CountedRows(_) => {
                    let Wanted { array, bound } = wanted.next().expect("a judge has said what each output is");
                    if let Role::Counted | Role::CountedRows(_) = role {
                        count = array.shape()[0] as u32;
                    }
                    let len = lengths.get(i).map_or(array.len(), |len| *len.max(&array.len()));
                    let mut after = array.data().bytes().to_vec();
                    let bytes = len * array.dtype().size();
                    // Nothing is written past the count; behind a given length there may be anything.
                    if !matches!(role, Role::Front(..)) {
                        after.resize(bytes, UNWRITTEN);
                    }
                    let before = role.input().map(|array| array.data().bytes().to_vec());
                    let before = before.unwrap_or_else(|| vec![UNWRITTEN; bytes]);
                    let want = match bound {
                        None => Want::Bits(after),
                        Some(mut bound) => {
                            bound.resize(after.len() / array.dtype().size(), 0.0);
                            Want::Near(numbers_of(array.dtype(), &after), bound)
                        }
                    };
                    Operand::of(array.dtype(), before, want)
                }
            });
        }
        let plan = move |gpu: &Gpu, open: bool| match open {
            true => gpu.prepare(opened(call.lower(gpu.profile())?)),
            false => gpu.plan_call(&call),
        };
        Self { what, plan: Box::new(plan), operands }
    }

    fn operand(mut self, dtype: DType, bytes: Vec<u8>, want: Want) -> Self {
        self.operands.push(Operand::of(dtype, bytes, want));
        self
    }

    /// Other bounds for the last result of the variant `coop`.
    pub(super) fn on_matrices(mut self, bound: Vec<f64>) -> Self {
        self.operands.last_mut().unwrap().on_matrices = Some(bound);
        self
    }

    /// A read-only operand.
    pub(super) fn given<T: Element>(self, x: &[T]) -> Self {
        self.operand(T::DTYPE, bytes_of(x), Want::Same)
    }

    /// A result with exactly these elements.
    pub(super) fn near<T: Element>(self, want: Vec<f64>, bound: Vec<f64>) -> Self {
        let bytes = vec![UNWRITTEN; want.len() * size_of::<T>()];
        self.operand(T::DTYPE, bytes, Want::Near(want, bound))
    }

    /// A result of these elements, within bounds.
    pub(super) fn close<T: Number>(self, want: &[T], bound: Vec<f64>) -> Self {
        self.near::<T>(want.iter().map(|x| x.to_f64()).collect(), bound)
    }

    /// An operand that is overwritten.
    pub(super) fn updated<T: Element>(self, before: &[T], want: Vec<f64>, bound: Vec<f64>) -> Self {
        self.operand(T::DTYPE, bytes_of(before), Want::Near(want, bound))
    }

    /// An operand that is overwritten with exactly these elements.
    pub(super) fn rewritten<T: Element>(self, before: &[T], after: &[T]) -> Self {
        self.operand(T::DTYPE, bytes_of(before), Want::Bits(bytes_of(after)))
    }

    /// A result of these elements.
    pub(super) fn exactly<T: Element>(self, want: &[T]) -> Self {
        self.front_of(want.len(), want)
    }

    /// A result of `n` elements, of which only the front is written.
    pub(super) fn front_of<T: Element>(self, len: usize, want: &[T]) -> Self {
        let before = vec![UNWRITTEN; len * size_of::<T>()];
        let mut after = bytes_of(want);
        after.resize(before.len(), UNWRITTEN);
        self.operand(T::DTYPE, before, Want::Bits(after))
    }

    /// A result of `n` elements, checked by `check`, which gets all operands.
    pub(super) fn checked<T: Element>(
        self, len: usize, check: impl Fn(&[Vec<u8>]) -> Option<String> + 'static,
    ) -> Self {
        let before = vec![UNWRITTEN; len * size_of::<T>()];
        self.operand(T::DTYPE, before, Want::Checked(Box::new(check)))
    }

    /// Whether the op computes with subnormal numbers, which a device may flush to 0.
    pub(super) fn has_subnormals(&self) -> bool {
        let computed = self.operands.iter().any(|o| matches!(o.want, Want::Near(..) | Want::Checked(_)));
        let mut floats = self.operands.iter().filter(|o| o.dtype == DType::F32);
        computed && floats.any(|o| elements_of::<f32>(&o.bytes).iter().any(|x| x.is_subnormal()))
    }

    /// Runs the case and returns the contents of all operands; `None` if the device or the variant does not accept it.
    /// An open run binds the guards too, so that runtime checks do not hide an access to them.
    pub(super) fn run(&self, gpu: &Gpu, open: bool) -> Result<Option<Outcome>, String> {
        let executable = match (self.plan)(gpu, open) {
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge) => return Ok(None),
            other => other.map_err(|e| format!("planning: {e}"))?,
        };
        let guarded: tilework::Result<Vec<_>> =
            self.operands.iter().map(|o| Ok(upload(gpu, &[o], 0)?.remove(0))).collect();
        let held = guarded.and_then(|guarded| Self::record(gpu, &executable, &guarded, open));
        held.map_err(|e| format!("{e}"))?.judge(self, &executable).map(Some)
    }

    /// Runs the case on blocks of one buffer for each type, none of which begins where a binding may. `None` also if an
    /// operand must be bound where it lies.
    pub(super) fn run_in_blocks(&self, gpu: &Gpu) -> Result<Option<Outcome>, String> {
        let executable = match (self.plan)(gpu, false) {
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::TooLarge) => return Ok(None),
            other => other.map_err(|e| format!("planning: {e}"))?,
        };
        let mut guarded: Vec<(usize, Box<dyn Guarded>)> = Vec::new();
        for dtype in HostData::TYPES {
            let (at, of): (Vec<_>, Vec<_>) = self.operands.iter().enumerate().filter(|(_, o)| o.dtype == dtype).unzip();
            guarded.extend(at.into_iter().zip(upload(gpu, &of, 1).map_err(|e| format!("blocks: {e}"))?));
        }
        guarded.sort_by_key(|(at, _)| *at);
        let guarded: Vec<_> = guarded.into_iter().map(|(_, operand)| operand).collect();
        match Self::record(gpu, &executable, &guarded, false) {
            Err(e) if matches!(e.kind(), ErrorKind::Aliasing | ErrorKind::Buffer) => Ok(None),
            held => held.map_err(|e| format!("blocks: {e}"))?.judge(self, &executable).map(Some),
        }
    }

    fn record(gpu: &Gpu, executable: &Executable, guarded: &[Box<dyn Guarded>], open: bool) -> tilework::Result<Held> {
        let slices: Vec<_> = guarded.iter().map(|g| g.slice(if open { BEHIND } else { 0 })).collect();
        let mut rec = gpu.recorder();
        executable.record(&mut rec, &slices)?;
        rec.submit()?;
        let all = guarded.iter().map(|g| g.read()).collect::<tilework::Result<_>>()?;
        Ok(Held { all })
    }
}

/// Binds operands with the guards after them, so that neither a driver nor runtime checks hide an access.
fn opened(mut program: Program) -> Program {
    for binding in program.dispatches.iter_mut().flat_map(|d| &mut d.bindings) {
        if let Resource::Operand(operand) = binding.resource
            && binding.offset + binding.size >= program.operands[operand].bytes()
        {
            binding.size += BEHIND as u64;
        }
    }
    for operand in &mut program.operands {
        operand.len += BEHIND / operand.dtype.size();
    }
    program
}

/// Operands with their guards, read back.
struct Held {
    all: Vec<Vec<u8>>,
}

impl Held {
    fn judge(mut self, case: &Case, executable: &Executable) -> Result<Outcome, String> {
        let program = executable.program();
        let name = |i: usize| program.operands[i].name;
        let mut contents = Vec::new();
        for (i, (all, operand)) in self.all.iter_mut().zip(&case.operands).enumerate() {
            let mut bytes = all.split_off(FRONT);
            let behind = bytes.split_off(operand.bytes.len());
            if let Some(at) = all.iter().rposition(|b| *b != GUARD) {
                return Err(format!("{} bytes in front of {} were overwritten", FRONT - at, name(i)));
            }
            if let Some(at) = behind.iter().position(|b| *b != GUARD) {
                return Err(format!("byte {at} behind {} was overwritten", name(i)));
            }
            contents.push(bytes);
        }
        for (i, (bytes, operand)) in contents.iter().zip(&case.operands).enumerate() {
            let wrong = match &operand.want {
                Want::Same => differs(operand.dtype, bytes, &operand.bytes),
                Want::Bits(want) => differs(operand.dtype, &bytes[..want.len()], want),
                Want::Near(want, bound) => {
                    let bound = operand.on_matrices.as_ref().filter(|_| program.variant() == "coop").unwrap_or(bound);
                    far(&numbers_of(operand.dtype, bytes)[..want.len()], want, bound)
                }
                Want::Checked(check) => check(&contents),
            };
            if let Some(wrong) = wrong {
                let operands: Vec<_> = (case.operands.iter().zip(&program.operands))
                    .map(|(o, named)| format!("{} {:?}", named.name, Short(&numbers_of(o.dtype, &o.bytes))))
                    .collect();
                return Err(format!("{}: {}: {wrong}; of {}", program.variant(), name(i), operands.join(", ")));
            }
        }
        let types = case.operands.iter().map(|o| o.dtype).collect();
        Ok(Outcome { contents, types, determinism: program.determinism, variant: program.variant() })
    }
}

/// The front of a list.
struct Short<'a>(&'a [f64]);

impl Debug for Short<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.0[..self.0.len().min(24)];
        write!(f, "[{}]", self.0.len())?;
        f.debug_list().entries(shown).finish()
    }
}

fn differs(dtype: DType, got: &[u8], want: &[u8]) -> Option<String> {
    let size = dtype.size();
    let at = got.chunks(size).zip(want.chunks(size)).position(|(g, w)| g != w)?;
    let [got, want] = [got, want].map(|bytes| &bytes[at * size..][..size]);
    let [g, w] = [got, want].map(|bytes| numbers_of(dtype, bytes)[0]);
    Some(format!("element {at} is {g} ({got:02x?}), wanted {w} ({want:02x?})"))
}

pub(super) fn elements_of<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

fn numbers_of(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn of<T: Number>(bytes: &[u8]) -> Vec<f64> {
        elements_of::<T>(bytes).iter().map(|x| x.to_f64()).collect()
    }
    match dtype {
        DType::F32 => of::<f32>(bytes),
        DType::F16 => of::<f16>(bytes),
        DType::I32 => of::<i32>(bytes),
        DType::U32 => of::<u32>(bytes),
        DType::U8 => of::<u8>(bytes),
        DType::I8 => of::<i8>(bytes),
        other => panic!("no op has operands of {other}"),
    }
}

/// An operand on a device, between its guards.
trait Guarded {
    /// The operand, and this many bytes after it.
    fn slice(&self, behind: usize) -> RawSlice<'_>;
    fn read(&self) -> tilework::Result<Vec<u8>>;
}

/// From a byte of a buffer on.
struct On<T: Element> {
    buffer: Rc<Buffer<T>>,
    start: usize,
    bytes: usize,
}

impl<T: Element> Guarded for On<T> {
    fn slice(&self, behind: usize) -> RawSlice<'_> {
        let [start, end] = [self.start, self.start + self.bytes + behind].map(|byte| byte / size_of::<T>());
        self.buffer.slice(start..end).map(|slice: Slice<'_, T>| slice.untyped()).unwrap()
    }

    fn read(&self) -> tilework::Result<Vec<u8>> {
        let all = bytes_of(&self.buffer.read()?);
        Ok(all[self.start - FRONT..self.start + self.bytes + BEHIND].to_vec())
    }
}

/// Uploads operands of one type to one buffer, `shift` elements and more behind a place where bindings may begin.
fn upload(gpu: &Gpu, operands: &[&Operand], shift: usize) -> tilework::Result<Vec<Box<dyn Guarded>>> {
    fn of<T: Element>(gpu: &Gpu, operands: &[&Operand], shift: usize) -> tilework::Result<Vec<Box<dyn Guarded>>> {
        let (mut all, mut starts) = (Vec::new(), Vec::new());
        for (i, operand) in operands.iter().enumerate() {
            let place = (all.len() + FRONT).next_multiple_of(FRONT) + shift * (1 + i) * size_of::<T>();
            all.resize(place, GUARD);
            starts.push(place);
            all.extend(&operand.bytes);
            all.resize(all.len() + BEHIND, GUARD);
        }
        all.resize(all.len().next_multiple_of(4), GUARD);
        let buffer = Rc::new(gpu.upload(&elements_of::<T>(&all))?);
        let on = |(start, operand): (usize, &&Operand)| {
            Box::new(On { buffer: Rc::clone(&buffer), start, bytes: operand.bytes.len() }) as Box<dyn Guarded>
        };
        Ok(starts.into_iter().zip(operands).map(on).collect())
    }
    let Some(first) = operands.first() else { return Ok(Vec::new()) };
    match first.dtype {
        DType::F32 => of::<f32>(gpu, operands, shift),
        DType::F16 => of::<f16>(gpu, operands, shift),
        DType::I32 => of::<i32>(gpu, operands, shift),
        DType::U32 => of::<u32>(gpu, operands, shift),
        DType::U8 => of::<u8>(gpu, operands, shift),
        DType::I8 => of::<i8>(gpu, operands, shift),
        other => panic!("no op has operands of {other}"),
    }
}

/// Numbers of the reference as f64.
pub(super) fn wide<T: Number>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.to_f64()).collect()
}
