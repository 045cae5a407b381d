//! Ops of any shape and option, lowered for any device: an error, or a consistent program.

#![no_main]

mod descriptors;
mod draw;
mod forms;

use draw::Draw;
use libfuzzer_sys::fuzz_target;
use tilework::program::{DeviceProfile, Grid, Program, Resource};

fuzz_target!(|data: &[u8]| {
    let mut draw = Draw::new(data);
    let drawn = draw.profile();
    if let Ok(program) = descriptors::lowered(&mut draw, &drawn.profile) {
        assert!(!program.decision.why.is_empty() && program.cost.flop >= 0.0 && program.cost.bytes >= 0.0);
        if drawn.real {
            check(&program, &drawn.profile);
        }
    }
});

/// Lowering must reject every program that a device would reject.
fn check(program: &Program, profile: &DeviceProfile) {
    let op = (program.op, program.variant());
    let limits = &profile.limits;
    let round = |bytes: u64| bytes.max(4).checked_add(3).expect("bytes that can be counted") / 4 * 4;
    let there = |resource| match resource {
        Resource::Operand(i) => round(program.operands[i].bytes()),
        Resource::Scratch(i) => round(program.scratch[i]),
        Resource::Constant(i) => round(program.constants[i].len() as u64),
    };
    for bytes in &program.scratch {
        assert!(*bytes <= limits.max_buffer_size, "{op:?}: {bytes} bytes of scratch");
    }
    for dispatch in &program.dispatches {
        assert!(dispatch.kernel < program.kernels.len(), "{op:?}");
        assert!(dispatch.bindings.len() <= limits.max_storage_buffers as usize, "{op:?}: too many bindings");
        for b in &dispatch.bindings {
            let (size, all) = (round(b.size), there(b.resource));
            let end = b.offset.checked_add(size);
            assert!(end.is_some_and(|end| end <= all), "{op:?}: {b:?} of {all} bytes");
            assert!(size <= limits.max_storage_binding, "{op:?}: {b:?} is too large to bind");
            assert!(b.offset % u64::from(limits.storage_alignment) == 0, "{op:?}: {b:?} is not aligned");
        }
        match dispatch.grid {
            Grid::Direct(grid) => {
                let most = limits.max_workgroups_per_dimension;
                assert!(grid.iter().all(|n| *n <= most), "{op:?}: {grid:?} workgroups");
            }
            Grid::Indirect { resource, offset } => {
                assert!(offset.checked_add(12).is_some_and(|end| end <= there(resource)), "{op:?}");
            }
        }
    }
}
