//! Programs that set memory to one value.

use super::{Access, Cost, Decision, DeviceProfile, Grid, Kernel, Operand, Program, Resource, kernel_params};
use crate::element::DType;
use crate::error::Result;
use crate::shader::Spec;
use crate::shape::index_u32;

kernel_params! { struct FillParams { words: u32, low: u32, high: u32 } }

pub(crate) fn fill(words: usize, [low, high]: [u32; 2], profile: &DeviceProfile) -> Result<Program> {
    index_u32("fill", "words", words)?;
    let mut program = Program::new("fill", Decision::policy("words", "every word is written once"));
    program.operands = vec![Operand { name: "output", dtype: DType::U32, len: words, access: Access::Write }];
    program.cost = Cost { flop: 0.0, bytes: 4.0 * words as f64 };
    let kernel = program.kernel(Kernel::of_file("dispatch/fill_words", Spec::new()));
    // Chunks start at an even word.
    for chunk in profile.aligned_chunks(words as u64, 4) {
        let params = FillParams { words: chunk.count as u32, low, high };
        let bindings = vec![chunk.of(Resource::Operand(0), 4)];
        program.dispatch(kernel, &params, bindings, Grid::fold(chunk.count.div_ceil(1024)));
    }
    Ok(program)
}
