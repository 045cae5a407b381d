//! Head sizes that a variant does not take: rows padded with zeros, which change no gradient.

use super::attention_backward::AttentionBackward;
use super::backward_layout::GradientLowering;
use crate::program::prelude::*;

kernel_params! {
    struct PadParams { len: u32 }
}

const WORKGROUP_SIZE: u32 = 256;

/// Lowers the op for heads of `size` elements, between copies to scratch and back.
pub(super) fn lower(padded: &AttentionBackward, of: &GradientLowering<'_>, program: &mut Program) -> Result<()> {
    let inner = padded.lower_as(of.dtype, of.profile)?;
    let size = padded.forward.head_size;
    let is_padded = |operand: &Operand| operand.name != "logsumexp";
    let scratch: Vec<Resource> = (inner.operands.iter().enumerate())
        .map(|(at, operand)| match is_padded(operand) {
            true => program.scratch(operand.bytes()).resource,
            false => Resource::Operand(at),
        })
        .collect();
    // Rows, and the operand and its scratch with the sizes of a row.
    let copies: Vec<_> = (inner.operands.iter().enumerate())
        .filter(|(_, operand)| is_padded(operand))
        .map(|(at, operand)| {
            let heads = ["q", "k", "dq", "dk"].contains(&operand.name);
            let own = if heads { of.op.forward.head_size } else { of.op.value_size };
            (operand.access, operand.len / size, (Resource::Operand(at), own), (scratch[at], size))
        })
        .collect();
    for &(_, rows, operand, padded) in copies.iter().filter(|copy| copy.0 == Access::Read) {
        copy(of, rows, operand, padded, program);
    }
    program.append(inner, &scratch);
    for &(_, rows, operand, padded) in copies.iter().filter(|copy| copy.0 != Access::Read) {
        copy(of, rows, padded, operand, program);
    }
    Ok(())
}

fn copy(
    of: &GradientLowering<'_>, rows: usize, (input, from): (Resource, usize), (output, to): (Resource, usize),
    program: &mut Program,
) {
    let spec = Spec::new()
        .constant("WORKGROUP_SIZE", WORKGROUP_SIZE)
        .constant("FROM", from as u32)
        .constant("TO", to as u32)
        .slot("element", element_fragment(of.dtype));
    let kernel = program.kernel(Kernel::of_file("attention/attention_backward_pad", spec));
    let bytes = |row: usize| (row * of.dtype.size()) as u64;
    for chunk in of.profile.aligned_chunks(rows as u64, bytes(from.max(to))) {
        let len = chunk.count * to as u64;
        let words = len.div_ceil(4 / of.dtype.size() as u64);
        let bindings = vec![chunk.of(input, bytes(from)), chunk.of(output, bytes(to))];
        let grid = Grid::fold(words.div_ceil(WORKGROUP_SIZE.into()));
        program.dispatch(kernel, &PadParams { len: len as u32 }, bindings, grid);
    }
}
