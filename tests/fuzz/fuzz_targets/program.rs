//! Lowered programs with changed fields: rejected, or run by the simulator and prepared for a device.

#![no_main]

mod compilers;
mod descriptors;
mod draw;
mod forms;
mod noop;

use draw::Draw;
use libfuzzer_sys::fuzz_target;
use tilework::DType;
use tilework::program::{Access, Binding, Grid, Program, Resource};
use tilework::sim::{self, Options};

/// Maximum bytes of all operands: tilework does not bound a caller's data.
const MOST: u64 = 1 << 18;

fuzz_target!(init: compilers::leave_panics_to_the_library(), |data: &[u8]| {
    let mut draw = Draw::new(data);
    let profile = draw.profile().profile;
    let Ok(mut program) = descriptors::lowered(&mut draw, &profile) else { return };
    for _ in 0..draw.below(4) {
        change(&mut draw, &mut program);
    }
    let bytes = program.operands.iter().fold(0u64, |sum, o| sum.saturating_add(o.bytes()));
    if bytes > MOST {
        return;
    }
    let _ = program.scratch_bytes();
    let mut operands: Vec<Vec<u8>> = program.operands.iter().map(|o| vec![draw.byte(); o.bytes() as usize]).collect();
    if draw.rarely(8) {
        operands.pop();
    }
    let options = Options { subgroup_size: 4, step_limit: 200, max_workgroups: 2, ..Options::default() };
    if let Ok(report) = sim::run(&program, &mut operands, &options) {
        drop(report.to_string());
    }
    let _ = noop::GPU.prepare(program);
});

fn resource(draw: &mut Draw<'_>) -> Resource {
    let i = draw.below(6);
    match draw.below(3) {
        0 => Resource::Operand(i),
        1 => Resource::Scratch(i),
        _ => Resource::Constant(i),
    }
}

/// Changes one field, anywhere.
fn change(draw: &mut Draw<'_>, program: &mut Program) {
    let bytes = draw.u64();
    let at = draw.below(program.dispatches.len());
    let kind = draw.below(22);
    match kind {
        0 => program.scratch.push(bytes),
        1 => program.scratch.truncate(draw.below(3)),
        2 => program.scratch.iter_mut().for_each(|s| *s = bytes),
        3 => program.constants.push(vec![1; draw.below(40)]),
        4 => program.constants.clear(),
        5 => drop(program.operands.pop()),
        6 => program.operands.iter_mut().for_each(|o| o.len = draw.u64() as usize),
        7 => {
            let dtype = draw.pick(&[DType::F32, DType::F16, DType::U8, DType::U64, DType::I32]);
            program.operands.iter_mut().for_each(|o| o.dtype = dtype);
        }
        8 => program.operands.iter_mut().for_each(|o| o.access = Access::Read),
        9 => drop(program.kernels.pop()),
        10 => {
            if let Some(kernel) = program.kernels.first_mut() {
                kernel.entry = draw.pick(&["", "reduce_tree", "none"]);
            }
        }
        11 => {
            if let Some(kernel) = program.kernels.first_mut() {
                let name = draw.pick(&["WORKGROUP_SIZE", "ITEMS_PER_THREAD", "TILE_M", "TILE_K"]);
                kernel.spec = kernel.spec.clone().constant(name, draw.u32());
            }
        }
        _ => {}
    }
    let Some(dispatch) = program.dispatches.get_mut(at) else { return };
    match kind {
        12 => dispatch.kernel = draw.below(4),
        13 => dispatch.params.truncate(draw.below(64)),
        14 => dispatch.params.iter_mut().for_each(|b| *b ^= draw.byte()),
        15 => dispatch.params.resize(draw.u64().min(1 << 18) as usize, 0xff),
        16 => dispatch.grid = Grid::Direct([draw.u32(), draw.u32(), draw.u32()]),
        17 => dispatch.grid = Grid::Indirect { resource: resource(draw), offset: bytes },
        18 => drop(dispatch.bindings.pop()),
        19 => dispatch.bindings.push(Binding { resource: resource(draw), offset: bytes, size: draw.u64() }),
        20 => dispatch.bindings.iter_mut().for_each(|b| (b.offset, b.size) = (draw.u64(), draw.u64())),
        21 => dispatch.bindings.iter_mut().for_each(|b| b.resource = resource(draw)),
        _ => {}
    }
}
