use crate::program::prelude::*;

/// Alpha and beta as an operand.
pub(super) const SCALARS: Setting = Setting::array("scalars", "(2)");

kernel_params! {
    struct ScalarsParams { count: u32, cols: u32, stride: u32 }
}

/// Where the result of a product is stored.
pub(super) struct ResultLayout {
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Elements from one row to the next.
    pub(super) stride: usize,
    pub(super) operand: Operand,
}

/// Returns `y = alpha t + beta y`, with alpha and beta as an operand before y. `product` computes t; its last operand
/// has the elements of t without gaps.
pub(super) fn with_scalars(product: Program, y: ResultLayout, profile: &DeviceProfile) -> Result<Program> {
    const WORKGROUP_SIZE: u64 = 256;
    let ResultLayout { rows, cols, stride, operand } = y;
    let mut program = Program::new(product.op, product.decision.clone());
    program.operands = product.operands.clone();
    let lists = program.operands.len().saturating_sub(1);
    program.operands.truncate(lists);
    let scalars = Operand { name: SCALARS.name, dtype: DType::F32, len: 2, access: Access::Read };
    program.operands.extend([scalars, operand]);
    profile.check_bindings(product.op, &program.operands, "multiply chunks of rows, one call each")?;
    program.determinism = product.determinism;
    program.cost = product.cost;
    program.cost.bytes += 4.0 * (rows * cols) as f64;
    program.traffic = product.traffic.map(|bytes| bytes + 12.0 * (rows * cols) as f64);
    let Ok(count) = u32::try_from(rows * cols) else {
        return Err(err!(TooLarge, "{}: {rows} x {cols} elements of the result; at most 2^32 - 1", product.op));
    };
    if count == 0 {
        return Ok(program);
    }
    let sums = program.scratch(4 * u64::from(count));
    let operands: Vec<_> = (0..lists).map(Resource::Operand).chain([sums.resource]).collect();
    program.append(product, &operands);
    let spec = Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE as u32);
    let kernel = program.kernel(Kernel::library("sparse/spmv_scalars", "spmv_scalars", spec));
    let params = ScalarsParams { count, cols: cols as u32, stride: stride as u32 };
    let [scalars, y] = [lists, lists + 1].map(|i| Binding::operand(i, &program.operands));
    program.dispatch(kernel, &params, vec![sums, scalars, y], Grid::fold(u64::from(count).div_ceil(WORKGROUP_SIZE)));
    Ok(program)
}
