//! Sets of buffers for the chunks of a stream, and their submission.

use super::pool::{Direction, Memory, Raw};
use super::{Buffer, Gpu, Recorder};
use crate::program::prelude::*;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// One input or output of a chunk: a device buffer, and staging if the host cannot map that.
pub(crate) struct Port {
    gpu: Gpu,
    buffer: Box<dyn Any + Send + Sync>,
    memory: Arc<Memory>,
    /// None if the device buffer itself is mapped.
    staging: Option<Raw>,
    direction: Direction,
    /// Bytes of the elements, in whole words.
    bytes: u64,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port({:?}, {} bytes)", self.direction, self.bytes)
    }
}

fn unmappable(e: &impl fmt::Display) -> crate::Error {
    err!(DeviceLost, "stream: memory that was mapped cannot be reached ({e}); open a new Gpu")
}

impl Gpu {
    /// Whether the host can map storage buffers. Staging would then be a needless copy, because device and host
    /// share memory.
    fn maps_storage(&self) -> bool {
        matches!(self.profile().class, DeviceClass::Integrated | DeviceClass::Cpu)
            && self.inner.device.features().contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS)
    }
}

impl Port {
    /// For `len` elements that the host writes.
    pub(crate) fn input<T: Element>(gpu: &Gpu, len: usize) -> Result<Self> {
        Self::new::<T>(gpu, len, Direction::Up)
    }

    /// For `len` elements that the host reads.
    pub(crate) fn output<T: Element>(gpu: &Gpu, len: usize) -> Result<Self> {
        Self::new::<T>(gpu, len, Direction::Down)
    }

    fn new<T: Element>(gpu: &Gpu, len: usize, direction: Direction) -> Result<Self> {
        let bytes = gpu.bytes_of::<T>("stream", len)?.max(4).next_multiple_of(4);
        let (buffer, staging) = if gpu.maps_storage() {
            let (usage, mapped) = match direction {
                Direction::Up => (wgpu::BufferUsages::MAP_WRITE, true),
                Direction::Down => (wgpu::BufferUsages::MAP_READ, false),
            };
            let raw = gpu.create_raw("stream", bytes, Gpu::USAGE | usage, mapped)?;
            (Buffer::<T>::new(gpu, gpu.unpooled(raw), len), None)
        } else {
            (gpu.alloc::<T>(len)?.labelled("stream"), Some(gpu.staging(direction, bytes)?))
        };
        let memory = buffer.stored.memory.clone();
        if direction == Direction::Up {
            memory.written.set();
        }
        Ok(Self { gpu: gpu.clone(), buffer: Box::new(buffer), memory, staging, direction, bytes })
    }

    pub(crate) fn buffer<T: Element>(&self) -> Option<&Buffer<T>> {
        self.buffer.downcast_ref()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.raw.size + self.staging.as_ref().map_or(0, |raw| raw.size)
    }

    fn host(&self) -> &wgpu::Buffer {
        self.staging.as_ref().map_or(&self.memory.raw.buffer, |raw| &raw.buffer)
    }

    /// The memory to fill. The port must be at rest.
    pub(crate) fn write_view(&self) -> Result<WriteView> {
        let range = self.host().slice(..self.bytes);
        let view = self.gpu.scoped("stream", || range.get_mapped_range_mut())?;
        Ok(WriteView(view.map_err(|e| unmappable(&e))?))
    }

    /// The first `bytes` bytes. A finished submission must have mapped them.
    pub(crate) fn read_view(&self, bytes: u64) -> Result<ReadView> {
        if bytes == 0 {
            return Ok(ReadView(None));
        }
        let range = self.host().slice(..bytes.next_multiple_of(4));
        let view = self.gpu.scoped("stream", || range.get_mapped_range())?;
        Ok(ReadView(Some(view.map_err(|e| unmappable(&e))?)))
    }

    fn close(&mut self, begun: bool) {
        let Some(raw) = self.staging.take() else { return };
        match self.direction {
            Direction::Up if begun => self.gpu.recycle_upload(raw),
            direction => self.gpu.inner.staging.put(direction, raw),
        }
    }
}

/// Mapped memory for writing only: reading it may be slow.
pub(crate) struct WriteView(wgpu::BufferViewMut);

impl WriteView {
    /// Copies `bytes` to byte `at`. They must fit.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.0.slice(at..at + bytes.len()).copy_from_slice(bytes);
    }
}

pub(crate) struct ReadView(Option<wgpu::BufferView>);

impl ReadView {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// The buffers of one chunk. At rest its inputs are mapped for writing, and its outputs are not mapped.
#[derive(Debug)]
pub(crate) struct Set {
    gpu: Gpu,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    stamps: Option<ChunkStamps>,
    /// Whether inputs were unmapped for a submission that has not happened.
    begun: bool,
}

impl Set {
    pub(crate) fn new(gpu: &Gpu, inputs: Vec<Port>, outputs: Vec<Port>) -> Result<Self> {
        let stamps = gpu.profile().features.timestamps.then(|| ChunkStamps::new(gpu)).transpose()?;
        Ok(Self { gpu: gpu.clone(), inputs, outputs, stamps, begun: false })
    }

    /// Whether chunks are copied between staging and device buffers.
    pub(crate) fn copies(&self) -> bool {
        self.inputs.iter().chain(&self.outputs).any(|port| port.staging.is_some())
    }

    /// A recorder that starts with the upload of these bytes of each input.
    pub(crate) fn begin(&mut self, inputs: &[u64]) -> Result<Recorder> {
        let mut encoder = self.gpu.encoder();
        self.begun = true;
        self.gpu.scoped("stream: uploading", || {
            self.stamp(&mut encoder, 0);
            for (port, bytes) in self.inputs.iter().zip(inputs) {
                port.host().unmap();
                if let Some(staging) = port.staging.as_ref().filter(|_| *bytes > 0) {
                    let bytes = bytes.next_multiple_of(4);
                    encoder.copy_buffer_to_buffer(&staging.buffer, 0, &port.memory.raw.buffer, 0, bytes);
                }
            }
            self.stamp(&mut encoder, 1);
        })?;
        Ok(self.gpu.record_into(encoder, None))
    }

    /// Submits the recorded work and the download of these bytes of each output. Then requests mappings of all
    /// memory.
    pub(crate) fn submit(&mut self, rec: Recorder, outputs: &[u64]) -> Result<Ticket> {
        let (mut encoder, _, keep) = rec.into_parts();
        let submission = self.gpu.scoped("stream: submitting", || {
            self.stamp(&mut encoder, 2);
            for (port, bytes) in self.outputs.iter().zip(outputs) {
                if let Some(staging) = port.staging.as_ref().filter(|_| *bytes > 0) {
                    let bytes = bytes.next_multiple_of(4);
                    encoder.copy_buffer_to_buffer(&port.memory.raw.buffer, 0, &staging.buffer, 0, bytes);
                }
            }
            self.stamp(&mut encoder, 3);
            if let Some(stamps) = &self.stamps {
                encoder.resolve_query_set(&stamps.queries, 0..STAMPS, &stamps.resolved, 0);
                encoder.copy_buffer_to_buffer(&stamps.resolved, 0, &stamps.read, 0, 8 * u64::from(STAMPS));
            }
            self.gpu.inner.queue.submit([encoder.finish()])
        })?;
        self.begun = false;
        self.gpu.scoped("stream: mapping", || {
            // A failed mapping shows when the memory is used.
            for port in &self.inputs {
                port.host().slice(..).map_async(wgpu::MapMode::Write, |_| {});
            }
            for (port, bytes) in self.outputs.iter().zip(outputs).filter(|(_, bytes)| **bytes > 0) {
                let range = port.host().slice(..bytes.next_multiple_of(4));
                range.map_async(wgpu::MapMode::Read, |_| {});
            }
            if let Some(stamps) = &self.stamps {
                stamps.read.slice(..).map_async(wgpu::MapMode::Read, |_| {});
            }
        })?;
        // After submission, the queue orders later uses of this memory.
        drop(keep);
        let stamps = self.stamps.as_ref().map(|stamps| stamps.read.clone());
        Ok(Ticket { gpu: self.gpu.clone(), submission, stamps })
    }

    /// Puts the set to rest after its outputs, of these bytes, were read.
    pub(crate) fn reset(&self, outputs: &[u64]) -> Result<()> {
        self.gpu.scoped("stream", || {
            for (port, _) in self.outputs.iter().zip(outputs).filter(|(_, bytes)| **bytes > 0) {
                port.host().unmap();
            }
        })
    }

    /// Returns staging to its pools. No work of the set may be under way.
    pub(crate) fn close(mut self) {
        let begun = self.begun;
        // On a lost device everything is dropped instead.
        let _ = self.gpu.clone().scoped("stream", || {
            self.inputs.iter_mut().chain(&mut self.outputs).for_each(|port| port.close(begun));
        });
    }

    /// Records the time at which all work before it is done, by an empty pass.
    fn stamp(&self, encoder: &mut wgpu::CommandEncoder, index: u32) {
        let Some(stamps) = &self.stamps else { return };
        let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
            query_set: &stamps.queries,
            beginning_of_pass_write_index: Some(index),
            end_of_pass_write_index: None,
        });
        let desc = wgpu::ComputePassDescriptor { label: Some("tilework stream"), timestamp_writes };
        drop(encoder.begin_compute_pass(&desc));
    }
}

/// Before the upload, before the kernels, before the download, and at the end.
const STAMPS: u32 = 4;

/// Times of one chunk on the device.
#[derive(Debug)]
struct ChunkStamps {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
}

impl ChunkStamps {
    fn new(gpu: &Gpu) -> Result<Self> {
        let device = &gpu.inner.device;
        gpu.scoped("stream: timestamps", || {
            let buffer = |usage| {
                let size = 8 * u64::from(STAMPS);
                let label = Some("tilework stream timer");
                device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
            };
            Self {
                queries: device.create_query_set(&wgpu::QuerySetDescriptor {
                    label: Some("tilework stream timer"),
                    ty: wgpu::QueryType::Timestamp,
                    count: STAMPS,
                }),
                resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
                read: buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            }
        })
    }
}

/// A chunk under way on the device.
pub(crate) struct Ticket {
    gpu: Gpu,
    submission: wgpu::SubmissionIndex,
    stamps: Option<wgpu::Buffer>,
}

impl Ticket {
    /// Waits until the chunk is done. Returns the device's times in seconds, if it has a clock: of the start, the
    /// end of the upload, the end of the kernels, and the end.
    pub(crate) fn wait(self) -> Result<Option<[f64; 4]>> {
        self.gpu.wait_for(Some(self.submission))?;
        let Some(stamps) = self.stamps else { return Ok(None) };
        let period = f64::from(self.gpu.inner.queue.get_timestamp_period()) * 1e-9;
        self.gpu.scoped("stream: timestamps", || {
            let view = stamps.slice(..).get_mapped_range().map_err(|e| unmappable(&e))?;
            let mut times = [0.0; STAMPS as usize];
            for (time, ticks) in times.iter_mut().zip(view.chunks_exact(8)) {
                *time = bytemuck::pod_read_unaligned::<u64>(ticks) as f64 * period;
            }
            drop(view);
            stamps.unmap();
            Ok(Some(times))
        })?
    }
}
