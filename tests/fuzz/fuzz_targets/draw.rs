//! Odd numbers, names and devices from the bytes of an input.

use super::forms::{self, Source};
use arbitrary::Unstructured;
use tilework::operations;
use tilework::program::{Choice, DeviceProfile, Program};

/// The source of randomness; at its end every draw gives the first choice.
pub(crate) struct Draw<'a>(pub(crate) Unstructured<'a>);

impl<'a> Draw<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// True once in `n`.
    pub(crate) fn rarely(&mut self, one_in: u8) -> bool {
        self.byte() % one_in == one_in - 1
    }

    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    pub(crate) fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    /// Small, around a power of two, or an extreme.
    pub(crate) fn u64(&mut self) -> u64 {
        let kind = self.byte();
        match kind % 8 {
            0..=2 => u64::from(self.byte() % 20),
            3 => u64::from(self.0.arbitrary::<u16>().unwrap_or(0)),
            4 => self.0.arbitrary::<u32>().unwrap_or(0).into(),
            5 => {
                let power = 1u64 << (self.byte() % 64);
                power.wrapping_add(u64::from(kind >> 3 & 3)).wrapping_sub(2)
            }
            6 => self.0.arbitrary().unwrap_or(0),
            _ => u64::MAX - u64::from(self.byte() % 4),
        }
    }

    /// Like [`u64`](Self::u64), mostly so small that products do not overflow.
    pub(crate) fn size(&mut self) -> usize {
        if self.rarely(6) { self.u64() as usize } else { usize::from(self.byte()) % 70 }
    }

    pub(crate) fn sizes<const N: usize>(&mut self) -> [usize; N] {
        std::array::from_fn(|_| self.size())
    }

    pub(crate) fn float(&mut self) -> f64 {
        let any = self.u64();
        self.pick(&[1.0, 0.0, -1.0, 0.5, f64::NAN, f64::INFINITY, 1e300, 1e-300, f64::from_bits(any)])
    }

    /// A few f32: coefficients of a filter, edges, weights.
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float() as f32).collect()
    }

    /// A known device, sometimes with other limits.
    pub(crate) fn profile(&mut self) -> Drawn {
        let mut profile = self.pick(&[
            DeviceProfile::webgpu_defaults(),
            DeviceProfile::swiftshader(),
            DeviceProfile::mesa(),
            DeviceProfile::h100(),
        ]);
        if self.rarely(6) {
            let op = self.below(operations().count());
            let variant = operations().nth(op).map(|o| (o.name, forms::variant(self, o)));
            if let Some((op, variant)) = variant {
                profile.choices.forced.insert(op.into(), Choice::variant(variant, "drawn"));
            }
        }
        let real = !self.rarely(4);
        if !real {
            for _ in 0..1 + self.below(3) {
                self.change(&mut profile);
            }
            // Each run of an operand is a dispatch, and kernels number 4 GiB at most; no device has such small bindings
            // and such large buffers.
            let limits = &mut profile.limits;
            limits.max_buffer_size =
                limits.max_buffer_size.min(limits.max_storage_binding.min(1 << 32) << 10);
        }
        Drawn { profile, real }
    }

    /// Changes a limit or feature to one that a device may have.
    fn change(&mut self, profile: &mut DeviceProfile) {
        let limits = &mut profile.limits;
        match self.below(12) {
            0 => limits.max_buffer_size = (1 << 10) + (self.u64() >> 8),
            1 => limits.max_storage_binding = (1 << 15) + (self.u64() >> 8),
            2 => limits.max_uniform_binding = (1 << 14) + (self.u64() >> 8),
            3 => limits.max_storage_buffers = 4 + self.u32() / 2,
            4 => limits.storage_alignment = self.pick(&[1, 4, 16, 32, 64, 128, 256]),
            5 => limits.uniform_alignment = self.pick(&[1, 4, 16, 32, 64, 128, 256]),
            6 => limits.max_workgroup_bytes = self.pick(&[16352, 32 << 10, 64 << 10, 228 << 10, u32::MAX]),
            7 => {
                limits.max_invocations = self.pick(&[128, 256, 384, 512, 1024, 2048]);
                limits.max_workgroup_size = [limits.max_invocations, self.pick(&[128, 1024]), 64];
            }
            8 => {
                limits.max_workgroups_per_dimension = self.pick(&[65535, 1 << 16, i32::MAX as u32, u32::MAX])
            }
            9 => {
                profile.subgroup_sizes = self.pick(&[(1, 1), (4, 128), (8, 32), (64, 64), (128, 128), (0, 0)])
            }
            10 => profile.features.subgroups ^= true,
            _ => {
                profile.features.f16 ^= true;
                for shape in &mut profile.cooperative {
                    [shape.m, shape.n, shape.k] = [8; 3];
                }
            }
        }
    }
}

impl Source for Draw<'_> {
    fn byte(&mut self) -> u8 {
        Draw::byte(self)
    }
}

/// A device, and whether it is a known one.
pub(crate) struct Drawn {
    pub(crate) profile: DeviceProfile,
    pub(crate) real: bool,
}

/// A program or an error.
pub(crate) type Lowered = tilework::Result<Program>;
