//! Ops and buffers whose types are known only at run time.

use crate::array::with_data;
use crate::gpu::{Buffer, Executable, Gpu, RawSlice, Recorder, Slice, Waiting};
use crate::plan::Report;
#[cfg(feature = "sim")]
use crate::program::Operand;
use crate::program::front;
use crate::program::prelude::*;
use std::pin::Pin;

/// A device buffer of any element type that files have.
pub struct AnyBuffer(Box<dyn Erased>);

trait Erased {
    fn raw(&self) -> RawSlice<'_>;
    fn read_by(&self, waiting: Waiting) -> Pin<Box<dyn Future<Output = Result<HostData>> + '_>>;
}

impl<T: Element> Erased for Buffer<T>
where
    HostData: From<Vec<T>>,
{
    fn raw(&self) -> RawSlice<'_> {
        Slice::from(self).untyped()
    }

    fn read_by(&self, waiting: Waiting) -> Pin<Box<dyn Future<Output = Result<HostData>> + '_>> {
        Box::pin(async move { Ok(Slice::from(self).read_by(waiting).await?.into()) })
    }
}

impl AnyBuffer {
    /// Returns all elements, for [`Executable::record`].
    pub fn raw(&self) -> RawSlice<'_> {
        self.0.raw()
    }

    /// Waits for everything submitted and returns the elements: as [`Buffer::read`].
    ///
    /// # Errors
    /// Those of [`Buffer::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<HostData> {
        Waiting::block(|waiting| self.0.read_by(waiting))
    }

    /// As [`read`](Self::read), without blocking the thread.
    ///
    /// # Errors
    /// Those of [`Buffer::read_async`].
    pub async fn read_async(&self) -> Result<HostData> {
        self.0.read_by(Waiting::Yielding).await
    }
}

impl std::fmt::Debug for AnyBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnyBuffer").field(&self.raw()).finish()
    }
}

impl Gpu {
    /// Uploads elements to a new buffer: as [`upload`](Self::upload).
    ///
    /// # Errors
    /// Those of [`upload`](Self::upload); [`InvalidArgument`](ErrorKind::InvalidArgument) for
    /// [`HostData::Unseen`].
    pub fn upload_data(&self, data: &HostData) -> Result<AnyBuffer> {
        with_data!(
            data,
            v => Ok(AnyBuffer(Box::new(self.upload(v)?))),
            HostData::Unseen(dtype, n) => Err(err!(InvalidArgument, "{n} elements of {dtype} without contents"))
        )
    }

    /// Allocates a buffer without writing it: as [`alloc`](Self::alloc).
    ///
    /// # Errors
    /// Those of [`alloc`](Self::alloc); [`Unsupported`](ErrorKind::Unsupported) for types that [`HostData`]
    /// cannot hold.
    pub fn alloc_data(&self, dtype: DType, n: usize) -> Result<AnyBuffer> {
        Ok(AnyBuffer(match dtype {
            DType::F32 => Box::new(self.alloc::<f32>(n)?),
            DType::F16 => Box::new(self.alloc::<f16>(n)?),
            DType::I32 => Box::new(self.alloc::<i32>(n)?),
            DType::U32 => Box::new(self.alloc::<u32>(n)?),
            DType::U8 => Box::new(self.alloc::<u8>(n)?),
            DType::I8 => Box::new(self.alloc::<i8>(n)?),
            other => {
                return Err(err!(Unsupported, "no host array holds {other}, so there is no buffer of it"));
            }
        }))
    }

    /// Plans an [`OpCall`]: as [`plan`](crate::Plannable::plan).
    ///
    /// # Errors
    /// Those of planning the op.
    pub fn plan_call(&self, call: &OpCall) -> Result<Executable> {
        self.prepare_lowered(self.lower_call(call)?)
    }

    /// Plans an [`OpCall`] and uploads its inputs.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, HostArray, HostData};
    /// use tilework::program::{Ask, Settings};
    ///
    /// let gpu = Gpu::new()?;
    /// let reduce = tilework::operations().find(|op| op.name == "reduce").unwrap();
    /// let mut settings = Settings::new(reduce);
    /// settings.text("op", "max")?;
    /// let x = HostArray::new(&[4], vec![3u32, 1, 4, 1])?;
    /// let ready = gpu.ready(reduce.build(Ask::new(&settings).input(x))?)?;
    /// let mut rec = gpu.recorder();
    /// ready.record(&mut rec)?;
    /// rec.submit()?;
    /// assert_eq!(*ready.results()?[0].data(), HostData::U32(vec![4]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of planning the op and [`upload`](Self::upload).
    pub fn ready(&self, call: OpCall) -> Result<ReadyCall> {
        let executable = self.plan_call(&call)?;
        self.ready_as(call, executable)
    }

    /// As [`ready`](Self::ready), by an executable that the call was lowered to for another profile.
    ///
    /// # Errors
    /// Those of [`upload`](Self::upload).
    #[doc(hidden)]
    pub fn ready_as(&self, call: OpCall, executable: Executable) -> Result<ReadyCall> {
        let buffers =
            call.operands.iter().zip(&executable.program().operands).map(|(role, operand)| match role.input() {
                Some(array) => self.upload_data(array.data()),
                None => self.alloc_data(operand.dtype, operand.len),
            });
        Ok(ReadyCall { buffers: buffers.collect::<Result<_>>()?, executable, roles: call.operands })
    }
}

/// A planned op with its operands on the device: see [`Gpu::ready`].
#[derive(Debug)]
pub struct ReadyCall {
    executable: Executable,
    buffers: Vec<AnyBuffer>,
    roles: Vec<Role>,
}

impl ReadyCall {
    /// Returns the executable.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Returns the plan's report.
    pub fn report(&self) -> Report {
        Report::of(&self.executable)
    }

    /// Returns the plan's report with what the simulator counts for these inputs: [`Report::count`].
    #[cfg(feature = "sim")]
    pub fn counted_report(&self) -> Report {
        let (program, mut report) = (self.executable.program(), self.report());
        let bytes = |(role, operand): (&Role, &Operand)| match role.input() {
            Some(array) => array.data().bytes().to_vec(),
            None => vec![0; operand.bytes() as usize],
        };
        report.count(program, self.roles.iter().zip(&program.operands).map(bytes).collect());
        report
    }

    /// Records the op.
    ///
    /// # Errors
    /// Those of [`PlanOn`].
    pub fn record(&self, rec: &mut Recorder) -> Result<()> {
        let raw: Vec<_> = self.buffers.iter().map(AnyBuffer::raw).collect();
        self.executable.record(rec, &raw)
    }

    /// Waits for everything submitted and returns the outputs, in order. A counted output has only its first
    /// elements, as many as its count.
    ///
    /// # Errors
    /// Those of [`Buffer::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn results(&self) -> Result<Vec<HostArray>> {
        Waiting::block(|waiting| self.results_by(waiting))
    }

    /// As [`results`](Self::results), without blocking the thread.
    ///
    /// # Errors
    /// Those of [`Buffer::read_async`].
    pub async fn results_async(&self) -> Result<Vec<HostArray>> {
        self.results_by(Waiting::Yielding).await
    }

    async fn results_by(&self, waiting: Waiting) -> Result<Vec<HostArray>> {
        results(&self.roles, async |i| self.buffers[i].0.read_by(waiting).await).await
    }
}

/// Reads the outputs among operands of these roles.
pub(super) async fn results(roles: &[Role], read: impl AsyncFn(usize) -> Result<HostData>) -> Result<Vec<HostArray>> {
    let last = async || match read(roles.len() - 1).await? {
        HostData::U32(count) => Ok(count.first().map_or(0, |n| *n as usize)),
        _ => Ok(0),
    };
    let count = match roles.last() {
        Some(Role::Count) => last().await?,
        Some(Role::Invalid { op, below }) => match last().await? {
            0 => 0,
            n => {
                return Err(err!(InvalidArgument, "{op}: indices out of range: {n}; each must be below {below}"));
            }
        },
        _ => 0,
    };
    let mut arrays = Vec::new();
    for (i, role) in roles.iter().enumerate().filter(|(_, role)| role.is_output()) {
        let data = read(i).await?;
        arrays.push(match role {
            Role::Updated(array) => HostArray::new(array.shape(), data),
            Role::Result(shape) => HostArray::new(shape, data),
            Role::Front(shape, there) => {
                let shape = front(shape, *there);
                HostArray::new(&shape, data.front(shape.iter().product()))
            }
            Role::CountedRows(each) => HostArray::new(&[count, *each], data.front(count * each)),
            _ => HostArray::new(&[count], data.front(count)),
        }?);
    }
    Ok(arrays)
}
