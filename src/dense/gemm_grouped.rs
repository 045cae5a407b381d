use crate::program::prelude::*;

/// Multiplies pairs of matrices of different shapes in one dispatch: `C[g] = alpha A[g] B[g] + beta C[g]`, where `A[g]`
/// is m x k, `B[g]` k x n and `C[g]` m x n, with extents of its own for each `g`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// // 1 x 2 times 2 x 1, and 2 x 1 times 1 x 2.
/// let (a, b) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.upload(&[5.0f32, 6.0, 7.0, 8.0])?);
/// let c = gpu.alloc::<f32>(1 + 4)?;
/// let plan = GemmGrouped::new([[1, 1, 2], [2, 2, 1]]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [17.0, 21.0, 24.0, 28.0, 32.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// Matrices are row-major, and follow each other in `a`, `b` and `c` in the order of the shapes `[m, n, k]`. With
/// [`with_offsets`](Self::with_offsets) an operand `offsets` (u32, three for each product) says where each A, B and C
/// begins, and the operands have the lengths that you state; matrices of `a` and of `b` may overlap. A product that
/// would leave an operand is left out, and its C stays. `c` must be another wgpu buffer than the others, and matrices
/// of `c` must not overlap. Any extent may be 0. With `beta` = 0 (the default) `c` is not read.
///
/// # Precision and determinism
/// As [`Gemm`](crate::Gemm) in f32. The same device gives the same bits in every run.
///
/// # Cost
/// `2 m n k` flop for each product, in tiles of 64 x 64. One dispatch, no scratch; the plan keeps 32 bytes a product.
/// Products of one shape at equal distances are faster by [`GemmBatched`](crate::GemmBatched), a large one by
/// [`Gemm`](crate::Gemm).
///
/// # Variants
/// One, `tiles`.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand or the list of products above the largest binding, 2^32
///   tiles, or a k whose loop the device would end.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/dense/gemm_grouped.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmGrouped {
    pub(crate) shapes: Vec<[usize; 3]>,
    pub(crate) lens: Option<[usize; 3]>,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    variant: String,
}

/// Rows and columns of a tile.
const TILE: usize = 64;
const TILE_K: usize = 16;

const VARIANTS: &[Variant] = &[Variant::portable("tiles", "a workgroup computes a tile of one product")];

kernel_params! {
    struct GroupedParams { products: u32, tiles: u32, len_a: u32, len_b: u32, len_c: u32, alpha: f32, beta: f32 }
}

impl GemmGrouped {
    /// Takes `[m, n, k]` of each product. `alpha` is 1, `beta` 0.
    pub fn new(shapes: impl Into<Vec<[usize; 3]>>) -> Self {
        Self { shapes: shapes.into(), lens: None, alpha: 1.0, beta: 0.0, variant: "auto".into() }
    }

    /// Takes the places of the matrices from the device: an operand `offsets`, which plans take by `with_offsets`. The
    /// operands `a`, `b` and `c` have these numbers of elements.
    #[must_use]
    pub fn with_offsets(mut self, lens: [usize; 3]) -> Self {
        self.lens = Some(lens);
        self
    }

    /// Sets the factor of the products.
    #[must_use]
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// Sets the factor of the old contents of C.
    #[must_use]
    pub fn beta(mut self, beta: f32) -> Self {
        self.beta = beta;
        self
    }

    variants!(variant);

    /// Where the matrices of each product begin if they follow each other, and the lengths of the operands.
    pub(crate) fn packed(&self) -> Result<(Vec<[usize; 3]>, [usize; 3])> {
        let (mut at, mut begins) = ([0usize; 3], Vec::with_capacity(self.shapes.len()));
        for &[m, n, k] in &self.shapes {
            begins.push(at);
            for (end, shape) in at.iter_mut().zip([[m, k], [k, n], [m, n]]) {
                *end = end.saturating_add(elements(INFO.name, "a matrix", &shape)?);
            }
        }
        Ok((begins, at))
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let name = INFO.name;
        let mut program = Program::of_only_variant(name, &self.variant, VARIANTS, profile)?;
        let (begins, packed) = self.packed()?;
        let lens = self.lens.unwrap_or(packed);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let written = if self.beta == 0.0 && self.lens.is_none() { Access::Write } else { Access::ReadWrite };
        program.operands = vec![
            operand("a", dtype, lens[0], Access::Read),
            operand("b", dtype, lens[1], Access::Read),
            operand("c", dtype, lens[2], written),
        ];
        if self.lens.is_some() {
            let len = elements(name, "offsets", &[self.shapes.len(), 3])?;
            program.operands.insert(2, operand("offsets", DType::U32, len, Access::Read));
        }
        profile.check_bindings(name, &program.operands, "multiply fewer pairs at a time")?;
        let flop: f64 = self.shapes.iter().map(|shape| 2.0 * shape.iter().map(|&x| x as f64).product::<f64>()).sum();
        program.cost = Cost::of(flop, &program.operands);
        let (mut table, mut tiles) = (Vec::new(), 0u64);
        for (number, (&[m, n, k], begin)) in self.shapes.iter().zip(&begins).enumerate() {
            for shape in [[m, k], [k, n], [m, n]] {
                index_u32(name, "elements of a matrix", elements(name, "a matrix", &shape)?)?;
            }
            let begin = if self.lens.is_some() { [number, 0, 0] } else { *begin };
            let rounds = k.div_ceil(TILE_K) as u64 + 32;
            if !profile.runs_rounds(rounds) {
                return Err(err!(
                    TooLarge,
                    "{name}: k is {k}, {rounds} rounds of a loop; {} ends loops after {}; use `gemm` for this product",
                    profile.name,
                    profile.max_rounds()
                ));
            }
            let words = [tiles, m as u64, n as u64, k as u64, begin[0] as u64, begin[1] as u64, begin[2] as u64];
            let across = n.div_ceil(TILE) as u64;
            let each = m.div_ceil(TILE) as u64 * across;
            if each > 0 {
                table.extend(words.map(|word| word as u32));
                table.push(across as u32);
            }
            tiles += each;
        }
        let tiles = index_u32(name, "tiles", tiles as usize)?;
        if tiles == 0 {
            return Ok(program);
        }
        let bytes = 4 * table.len() as u64;
        let products = self.shapes.len();
        let what = format_args!("a list of {products} products");
        profile.check_scratch(name, what, bytes, "multiply fewer pairs at a time")?;
        let products = (table.len() / 8) as u32;
        let table = program.constant(bytemuck::cast_slice(&table).to_vec());
        let [len_a, len_b, len_c] = lens.map(|len| len as u32);
        let params = GroupedParams { products, tiles, len_a, len_b, len_c, alpha: self.alpha, beta: self.beta };
        let spec = Spec::new().flag("OFFSETS", self.lens.is_some());
        let kernel = program.kernel(Kernel::of_file("dense/gemm_grouped", spec));
        let last = program.operands.len() - 1;
        let of = |index| Binding::operand(index, &program.operands);
        let mut bindings = vec![table, of(0), of(1), of(last)];
        if self.lens.is_some() {
            bindings.push(of(2));
        }
        program.dispatch(kernel, &params, bindings, Grid::fold(u64::from(tiles)));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] GemmGrouped, T {
        fn record(a: T, b: T, c: T);
        /// Takes where the matrices begin from the device.
        optional with_offsets(offsets: u32);
    }
}

lowered_as!(GemmGrouped: f32);

pub(super) const INFO: Operation = Operation {
    name: "gemm-grouped",
    about: "products of matrices of different shapes, which follow each other",
    inputs: &[Input::new("a", "(sum of m k)"), Input::new("b", "(sum of k n)"), Input::optional("c", "(sum of m n)")],
    outputs: &[("c", "(len)")],
    types: &[DType::F32],
    options: &[SHAPES, Setting::number("alpha", "1"), Setting::number("beta", "0")],
    make: Some(make),
    variants: GemmGrouped::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[18], options: &[("shapes", "2x3x4,5x1x2")] },
    ..Operation::UNDECLARED
};

const SHAPES: Setting = Setting::text("shapes", "MxNxK,...", "");

/// Reads shapes such as `2x3x4,5x1x2`.
fn asked_shapes(asked: &Asked<'_>) -> Result<Vec<[usize; 3]>> {
    let text = asked.settings().word(SHAPES.name).unwrap_or_default().to_owned();
    let shape = |part: &str| {
        let numbers: Vec<usize> = part.split('x').map_while(|number| number.parse().ok()).collect();
        <[usize; 3]>::try_from(numbers).ok().filter(|_| part.split('x').count() == 3)
    };
    text.split(',')
        .map(|part| {
            shape(part).ok_or_else(|| {
                err!(
                    InvalidArgument,
                    "{}: --shapes has `{part}`; write the extents m, n and k of each product, such as 2x3x4,5x1x2",
                    asked.name()
                )
            })
        })
        .collect()
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let op = GemmGrouped::new(asked_shapes(asked)?).variant(asked.variant());
    let settings = asked.settings();
    let op = op.alpha(settings.number("alpha")?).beta(settings.number("beta")?);
    let lens = op.packed()?.1;
    asked.set("len", &lens[2..]);
    let (a, [len]) = asked.array("a")?;
    asked.check_type(&a)?;
    if len != lens[0] {
        let name = asked.name();
        return Err(err!(Shape, "{name}: a has {len} elements; matrices of these shapes have {}", lens[0]));
    }
    let b = asked.of("b", &[lens[1]], DType::F32)?;
    let c = match asked.has_more() {
        true => asked.of("c", &[lens[2]], DType::F32)?,
        false => HostArray::zeros(&[lens[2]], DType::F32)?,
    };
    let c = if op.beta == 0.0 { Role::Result(vec![lens[2]]) } else { Role::Updated(c) };
    Ok(OpCall::new::<f32>(op, vec![Role::Given(a), Role::Given(b), c]))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = GemmGrouped::new([[70, 3, 20], [0, 4, 4], [5, 80, 33]]).variant(variant);
    let of = |op: GemmGrouped| Op::<f32>::lower(&op, profile);
    Ok(vec![of(op.clone())?, of(op.with_offsets([5000, 5000, 1000]).beta(1.0))?])
}
