mod catalogue;

pub(super) use self::catalogue::INFO;

use crate::dense::{
    Activation, Division, ProductParams, ProductTile, RegisterForm, StepCount, ThreadTile, dispatch_chunks,
    register_sides, tiles,
};
use crate::program::prelude::*;

/// Multiplies matrices of signed bytes with sums of `i32`: `C = A B`, or scaled,
/// `C[i, j] = activation(a_scale[i] b_scale[j] sum + bias[j])`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let a = gpu.upload(&[1i8, 2, 3, 4, 5, 6, 7, 8])?; // 2 x 4
/// let b = gpu.upload(&[1i8, 1, 1, 1, -1, 0, 0, 1])?; // 4 x 2, stored 2 x 4
/// let c = gpu.alloc::<i32>(4)?;
/// let product = GemmInt8::new(2, 2, 4).trans_b().plan::<i32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// product.record(&mut rec, &a, &b, &c)?;
/// rec.submit()?;
/// assert_eq!(c.read()?, [10, 3, 26, 3]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::gemm_int8`](crate::Gpu::gemm_int8).
///
/// # Shapes
/// `a` is m x k, `b` is k x n, or n x k with [`trans_b`](Self::trans_b), C is m x n, all row-major. Operands are
/// `a`, `b`, `c`, in this order. [`scaled`](Self::scaled) adds `a_scale`, m elements, and `b_scale`, n elements:
/// those that [`Quantize`](super::Quantize) finds for the rows of A and of a transposed B. C is then of `f32` or
/// [`f16`](half::f16). Any extent may be 0. `c` must be a wgpu buffer of its own.
///
/// # Precision and determinism
/// Sums are exact: k is at most 131071, so that even 128 * 128 k fits an `i32`. A scaled C rounds the sum to f32,
/// and rounds again after each of two products and the bias;
/// [`reference::gemm_int8_bound`](crate::reference::gemm_int8_bound) is the bound. The same device gives the same
/// bits.
///
/// # Cost
/// 2 m n k operations; each operand is read or written once. A factor is read in place if its rows run along k and
/// are whole words. Any other (a `b` that is not transposed, or k no multiple of 4) is first packed to scratch of
/// its size in a pass, so store weights n x k.
///
/// # Variants
/// `naive`: each thread reads a row and a column; `tiled`: tiles in workgroup memory; `register`: sums in
/// registers; `double`: the same, with the loads of the next tile in flight; `unstaged`: sums in registers and no
/// workgroup memory, for processors. All multiply four bytes at a time with
/// `dot4I8Packed`: one instruction where the device has it, and correct on all devices. `auto`, the default,
/// chooses by shape and device. [`tile`](Self::tile) and [`thread_tile`](Self::thread_tile) adjust a variant.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant; a tile that the variant does not
///   offer.
/// - [`TooLarge`](ErrorKind::TooLarge): k above 131071; an operand above the largest binding or buffer; a
///   tile above the workgroup limits.
/// - [`Unsupported`](ErrorKind::Unsupported): a C of `f16` on a device without SHADER_F16; scales with a C
///   of `i32`, or a C of floats without scales.
///
/// # Algorithm
/// The kernels of [`Gemm`](crate::Gemm) with words of four bytes for elements: `shaders/dense/gemm_naive.wgsl`,
/// `gemm_tiled.wgsl`, `gemm_register.wgsl`, `gemm_double.wgsl` and `gemm_unstaged.wgsl`, with
/// `shaders/quantize/gemm_int8_end.wgsl`. CUDA multiplies bytes on tensor cores: `shaders/quantize/gemm_int8_mma.cu`
/// and `gemm_int8_wgmma.cu`.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmInt8 {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) trans_b: bool,
    scaled: bool,
    bias: bool,
    activation: Activation,
    pub(crate) tile: Option<[u32; 3]>,
    pub(crate) thread: Option<[u32; 2]>,
    pub(crate) variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one thread reads a row of A and a column of B for one element of C"),
    Variant::portable("tiled", "a workgroup shares tiles of A and B through workgroup memory"),
    Variant::portable("register", "sums in registers, tiles of both factors staged through workgroup memory"),
    Variant::portable("double", "the same with two tiles in workgroup memory, while the next one loads"),
    Variant::portable("unstaged", "sums in registers, both factors straight from storage, for processors"),
];

/// The longest sum that cannot overflow i32.
const MAX_K: usize = 131_071;

kernel_params! {
    struct PackBytesParams {
        k: u32,
        n: u32,
        ld: u32,
        words: u32,
    }
}

/// Threads of a workgroup that packs.
const WORKGROUP_SIZE: u64 = 256;

/// For cards, largest first; k in words. On an H100 (Vulkan, driver 580.159.04), TOP/s at 512, 1024, 2048 and 4096
/// cubed: the first 8.8, 41.5, 101, 105; the third 22.7, 67.9, 89, 96.
const CARD: &[Division] =
    &[Division::new([128, 128, 8], [8, 8]), Division::new([64, 64, 8], [8, 4]), Division::new([32, 32, 16], [4, 4])];
/// For GPUs that were not measured.
const GPU: &[Division] = &[Division::new([64, 64, 8], [8, 4]), Division::new([32, 32, 8], [4, 4])];
/// For processors, which compile slowly.
const CPU: &[Division] = &[Division::new([16, 16, 4], [4, 4])];
/// For `unstaged` on processors: eight threads.
const UNSTAGED: Division = Division::new([16, 32, 4], [8, 8]);
const UNSTAGED_NARROW: Division = Division::new([8, 16, 4], [4, 4]);
const UNSTAGED_ON_CARDS: Division = Division::new([64, 64, 4], [4, 4]);
/// The tile that every WebGPU device runs.
const TILED: Division = Division::new([16, 16, 16], [1, 1]);

/// Products up to which a GPU is not filled.
const TINY: usize = 1 << 15;

/// Products of words up to which `unstaged` gains little on processors. us of `naive` and `unstaged`, Mesa 22.3 and
/// SwiftShader: 40 x 40 x 31 125, 89 and 221, 411; 128 x 128 x 16 307, 126 and 946, 610.
const FEW: usize = 1 << 14;

/// The result made from sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Int8End {
    pub(crate) result: DType,
    pub(crate) scaled: bool,
    pub(crate) bias: bool,
    pub(crate) activation: Activation,
}

struct Int8Factor {
    binding: Binding,
    /// Words from one row to the next.
    ld: u32,
    /// Bound as vec4s of words.
    vec4s: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Int8Way {
    Naive,
    Tiled,
    Register { double: bool },
    Unstaged,
}

impl GemmInt8 {
    /// Creates the product of an m x k and a k x n matrix.
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        Self {
            m,
            n,
            k,
            trans_b: false,
            scaled: false,
            bias: false,
            activation: Activation::None,
            tile: None,
            thread: None,
            variant: "auto".into(),
        }
    }

    /// Reads `b` transposed, stored as n x k.
    #[must_use]
    pub fn trans_b(mut self) -> Self {
        self.trans_b = true;
        self
    }

    /// Sets the tile that a workgroup computes. `k` must be a multiple of 4 (of 16 for `register`, `double` and
    /// `unstaged`). The default suits the device and the shape.
    #[must_use]
    pub fn tile(mut self, tile: ProductTile) -> Self {
        self.tile = Some([tile.m, tile.n, tile.k]);
        self
    }

    /// Sets the part of the tile that one thread of `register`, `double` and `unstaged` computes: multiples of 4 up
    /// to 16 that divide the tile. The default is 4 x 4 if a tile is set.
    #[must_use]
    pub fn thread_tile(mut self, tile: ThreadTile) -> Self {
        self.thread = Some([tile.rows, tile.columns]);
        self
    }

    /// Adds a scale for each row of A and each column of B: operands `a_scale` and `b_scale`. A plan takes them
    /// with `with_scales`. C is then of floats: plan for `f32` or `f16`.
    #[must_use]
    pub fn scaled(mut self) -> Self {
        self.scaled = true;
        self
    }

    /// Adds a bias for each column of a C that is [`scaled`](Self::scaled): an operand `bias` of n elements of f32.
    /// A plan takes it with `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    /// Sets the function applied to each element of a C that is [`scaled`](Self::scaled) before it is stored; none
    /// by default.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    pub(crate) fn activates(&self) -> Activation {
        self.activation
    }

    variants!(variant);

    pub(crate) fn op(&self) -> &'static str {
        INFO.name
    }

    pub(crate) fn name(&self) -> String {
        format!("gemm-int8 {} x {} x {}", self.m, self.n, self.k)
    }

    /// Words along k. A packed factor is padded with zeros to a whole vec4.
    fn words(&self) -> usize {
        if self.k.is_multiple_of(4) { self.k / 4 } else { self.k.div_ceil(16) * 4 }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let end = self.end(dtype)?;
        let (name, [m, n, k]) = (self.name(), [self.m, self.n, self.k]);
        let f16 = end.result == DType::F16;
        if let Some(missing) = (Requires { f16, ..Requires::NOTHING }).missing(profile) {
            return Err(err!(Unsupported, "{name}: a C of f16 needs {missing}, {}; take f32", profile.lacks()));
        }
        let operands = self.operands(end)?;
        profile.check_bindings(&name, &operands, "compute blocks of C in separate calls")?;
        let (variant, mut decision) = choose(self.op(), &self.variant, VARIANTS, profile, || self.policy(profile))?;
        // Without products there is nothing to tile: factors have not even one vec4.
        let variant = if k == 0 { &VARIANTS[0] } else { variant };
        let way = match variant.name {
            "naive" => Int8Way::Naive,
            "tiled" => Int8Way::Tiled,
            "unstaged" => Int8Way::Unstaged,
            name => Int8Way::Register { double: name == "double" },
        };
        let division = self.division(way, variant.name, profile)?;
        let Division { tile, thread: [rows, columns], .. } = division;
        if way != Int8Way::Naive {
            decision.because(format_args!("tile {} x {} x {} by {rows} x {columns}", tile.m, tile.n, 4 * tile.k));
        }
        let mut program = Program::new(self.op(), decision);
        program.cost = Cost::of(2.0 * m as f64 * n as f64 * k as f64, &operands);
        program.operands = operands;
        if m > 0 && n > 0 {
            self.product(&mut program, way, division, end, profile)?;
        }
        Ok(program)
    }

    /// The operands: a, b, the scales and the bias if there are any, and c.
    pub(crate) fn operands(&self, end: Int8End) -> Result<Vec<Operand>> {
        let (name, [m, n, k]) = (self.name(), [self.m, self.n, self.k]);
        if k > MAX_K {
            return Err(err!(
                TooLarge,
                "{name}: sums of {k} products of bytes may overflow i32; k is at most {MAX_K}; add the products of \
                 parts of k"
            ));
        }
        let read = |name, dtype, len| Operand { name, dtype, len, access: Access::Read };
        let mut operands = vec![
            read("a", DType::I8, elements(&name, "a", &[m, k])?),
            read("b", DType::I8, elements(&name, "b", &[k, n])?),
        ];
        if end.scaled {
            operands.extend([read("a_scale", DType::F32, m), read("b_scale", DType::F32, n)]);
        }
        if end.bias {
            operands.push(read("bias", DType::F32, n));
        }
        let len = elements(&name, "c", &[m, n])?;
        operands.push(Operand { name: "c", dtype: end.result, len, access: Access::Write });
        Ok(operands)
    }

    /// Chooses a variant and says why.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let words = self.words();
        let all = self.m.saturating_mul(self.n).saturating_mul(words);
        if words == 0 {
            ("naive", "no products to tile".into())
        } else if profile.quirks.serial_workgroups && all > FEW && self.m.min(self.n) >= 4 {
            ("unstaged", "sums in registers; a processor's caches replace workgroup memory".into())
        } else if all <= TINY || profile.quirks.serial_workgroups {
            ("naive", "too few products for tiles to pay".into())
        } else {
            ("double", "sums in registers use each word in workgroup memory several times".into())
        }
    }

    /// Returns the requested division of C, or one that suits; checked.
    fn division(&self, way: Int8Way, variant: &str, profile: &DeviceProfile) -> Result<Division> {
        let registers = matches!(way, Int8Way::Register { .. } | Int8Way::Unstaged);
        let suits = match way {
            Int8Way::Register { .. } => self.suits(profile),
            Int8Way::Unstaged if !profile.quirks.serial_workgroups => UNSTAGED_ON_CARDS,
            Int8Way::Unstaged if self.n <= 16 || self.m * self.n <= 1024 => UNSTAGED_NARROW,
            Int8Way::Unstaged => UNSTAGED,
            _ => TILED,
        };
        if self.tile.is_none() && self.thread.is_none() || way == Int8Way::Naive {
            return Ok(suits);
        }
        let [m, n, k] = self.tile.unwrap_or([suits.tile.m, suits.tile.n, 4 * suits.tile.k]);
        let one = if registers { [4, 4] } else { [1, 1] };
        let [rows, columns] = self.thread.unwrap_or(if self.tile.is_some() { one } else { suits.thread });
        let name = format!("{}: the tile {m} x {n} x {k} by {rows} x {columns} of `{variant}`", self.name());
        let right = if registers {
            register_sides([rows, columns]) && k.is_multiple_of(16) && m % rows == 0 && n % columns == 0
        } else {
            [rows, columns] == [1, 1] && k.is_multiple_of(4)
        };
        if !right || m == 0 || n == 0 || k == 0 {
            let has = if registers {
                "threads compute multiples of 4 up to 16 in rows and columns, the tile is made of whole thread \
                 tiles, and its last side is a multiple of 16"
            } else {
                "threads compute 1 x 1, and the last side is a multiple of 4"
            };
            return Err(err!(InvalidArgument, "{name} is invalid: {has}; no side is 0"));
        }
        let division = Division::new([m, n, k / 4], [rows, columns]);
        let limits = &profile.limits;
        let (threads, bytes) = if let Int8Way::Register { double } = way {
            let form = self.form(double, division, [false, false], profile);
            (u64::from(form.threads()), form.workgroup_bytes())
        } else if way == Int8Way::Unstaged {
            (division.threads(), 0)
        } else {
            let [m, n, k] = [m, n, k].map(u64::from);
            (m * n, k.saturating_mul(m + (n | 1)))
        };
        if threads > limits.max_invocations.into() || bytes > limits.max_workgroup_bytes.into() {
            return Err(err!(
                TooLarge,
                "{name} needs {threads} threads and {bytes} bytes of workgroup memory; {} has {} and {}; take \
                 smaller sides",
                profile.name,
                limits.max_invocations,
                limits.max_workgroup_bytes
            ));
        }
        Ok(division)
    }

    /// The largest division that fits the device and still fills it.
    fn suits(&self, profile: &DeviceProfile) -> Division {
        let (rows, fill) = match profile.class {
            DeviceClass::Cpu => (CPU, 1),
            DeviceClass::Discrete => (CARD, 120 * 256),
            _ => (GPU, 32 * 256),
        };
        let fits = |d: &&Division| self.form(true, **d, [false, false], profile).fits(profile);
        let fills = |d: &&Division| d.total(self.m, self.n) >= fill;
        *rows.iter().filter(fits).find(fills).unwrap_or(&rows[rows.len() - 1])
    }

    /// The form of a register-tiled kernel.
    fn form(&self, double: bool, division: Division, vec4s: [bool; 2], profile: &DeviceProfile) -> RegisterForm {
        RegisterForm {
            double,
            vectors: !profile.quirks.stores_whole_vectors,
            trans_b: self.trans_b,
            vec_a: vec4s[0],
            vec_b: vec4s[1],
            steps: StepCount::of(self.words(), division.tile),
            bytes: true,
            ..RegisterForm::of(division)
        }
    }

    fn product(
        &self, program: &mut Program, way: Int8Way, division: Division, end: Int8End, profile: &DeviceProfile,
    ) -> Result<()> {
        let (name, tile) = (self.name(), division.tile);
        // `tiled` has two loops that load a step of k and one over it. The others take far fewer rounds for the
        // largest k.
        let each = tile.k.div_ceil(tile.n) + tile.k.div_ceil(tile.m) + tile.k + 4;
        let rounds = (self.words() as u64).div_ceil(tile.k.into()) * u64::from(each);
        if way == Int8Way::Tiled && !profile.runs_rounds(rounds) {
            return Err(err!(
                Unsupported,
                "{name}: the tile {} x {} x {} of `tiled` takes {rounds} rounds of loops; {} ends the loops of a \
                 thread after {}; take a larger last side, or `auto`",
                tile.m,
                tile.n,
                4 * tile.k,
                profile.name,
                profile.max_rounds()
            ));
        }
        let a = self.factor(program, 0, [self.m, self.k], false, profile)?;
        let b_shape = if self.trans_b { [self.n, self.k] } else { [self.k, self.n] };
        let b = self.factor(program, 1, b_shape, !self.trans_b, profile)?;
        let mut spec = Spec::new()
            .alias("T", "u32")
            .alias("F", "u32")
            .alias("S", "i32")
            .alias(
                "R",
                match end.result {
                    DType::F16 => "f16",
                    DType::F32 => "f32",
                    _ => "i32",
                },
            )
            .flag("F16", end.result == DType::F16)
            .flag("SCALED", end.scaled)
            .flag("BIAS", end.bias)
            .constant("C_BINDING", program.operands.len() as u32)
            .constant("TILE_M", tile.m)
            .constant("TILE_N", tile.n)
            .slot("epilogue", Fragment::Library("quantize/gemm_int8_end"))
            .slot("activation", Fragment::Library(end.activation.fragment()));
        spec = if let Int8Way::Register { .. } | Int8Way::Unstaged = way {
            let whole = self.m.is_multiple_of(tile.m as usize) && self.n.is_multiple_of(tile.n as usize);
            spec.flag("WHOLE_TILES", whole).flag("VEC_C", self.n.is_multiple_of(4))
        } else {
            spec.flag("TRANS_B", self.trans_b).slot("multiply", Fragment::Library("quantize/gemm_int8_multiply"))
        };
        let kernel = match way {
            Int8Way::Naive => Kernel::library("dense/gemm_naive", "gemm_naive", spec),
            Int8Way::Tiled => Kernel::library("dense/gemm_tiled", "gemm_tiled", spec.constant("TILE_K", tile.k)),
            Int8Way::Register { double } => self.form(double, division, [a.vec4s, b.vec4s], profile).kernel(spec),
            Int8Way::Unstaged => {
                let spec = spec.constant("THREAD_M", division.thread[0]).constant("THREAD_N", division.thread[1]);
                let spec = spec.flag("VEC_A", a.vec4s).flag("VEC_B", b.vec4s);
                let spec = spec.flag("TRANS_B", self.trans_b).flag("BYTES", true);
                Kernel::library("dense/gemm_unstaged", "gemm_unstaged", spec)
            }
        };
        let kernel = program.kernel(kernel);
        let mut bindings = vec![a.binding, b.binding];
        bindings.extend((2..program.operands.len()).map(|i| Binding::operand(i, &program.operands)));
        let tiles_n = tiles(&name, "n", self.n, tile.n)?;
        let words = self.words();
        let lds = [a.ld, b.ld, self.n as u32];
        let params = ProductParams::of([self.m, self.n, words], lds, tiles_n);
        let all = u64::from(tiles(&name, "m", self.m, tile.m)?) * u64::from(tiles_n);
        let flop = 2 * tile.elements() * words.max(1) as u64;
        dispatch_chunks(program, kernel, &bindings, all, flop, profile, |chunk| params.of_chunk(chunk))
    }

    /// Reads a factor of words along k in place, or packs it in a pass. `columns`: stored rows do not run along k.
    fn factor(
        &self, program: &mut Program, operand: usize, [rows, length]: [usize; 2], columns: bool,
        profile: &DeviceProfile,
    ) -> Result<Int8Factor> {
        let words = self.words();
        if self.k == 0 {
            let binding = Binding::operand(operand, &program.operands);
            return Ok(Int8Factor { binding, ld: length as u32, vec4s: false });
        }
        if !columns && self.k.is_multiple_of(4) {
            let binding = Binding::operand(operand, &program.operands);
            return Ok(Int8Factor { binding, ld: words as u32, vec4s: words.is_multiple_of(4) });
        }
        let (lines, ld) = if columns { (words, length) } else { (rows, words) };
        let vec4s = ld.is_multiple_of(4);
        let bytes = 4 * lines as u64 * ld as u64;
        let what = format_args!("the words of {} along k", program.operands[operand].name);
        profile.check_scratch(&self.name(), what, bytes, "compute blocks of C in separate calls")?;
        let binding = program.scratch(bytes);
        let turned = columns && vec4s;
        let spec = Spec::new().flag("COLUMNS", columns).flag("VEC4S", turned);
        let kernel = program.kernel(Kernel::library("quantize/gemm_int8_pack", "gemm_int8_pack", spec));
        let all = (lines * ld) as u64 / if turned { 4 } else { 1 };
        let params = PackBytesParams { k: self.k as u32, n: length as u32, ld: ld as u32, words: all as u32 };
        let input = Binding::operand(operand, &program.operands);
        program.dispatch(kernel, &params, vec![input, binding], Grid::fold(all.div_ceil(WORKGROUP_SIZE)));
        Ok(Int8Factor { binding, ld: ld as u32, vec4s })
    }
}

operands! {
    impl[T: Element,] GemmInt8, T [cuda] {
        fn record(a: i8, b: i8, c: T);
        /// The scales of the rows of A and of the columns of B.
        optional with_scales(a_scale: f32, b_scale: f32);
        /// The bias added to each column of C.
        optional with_bias(bias: f32);
    }
}

impl GemmInt8 {
    /// The epilogue of a product whose C is of this type: the sums themselves, or scaled.
    pub(crate) fn end(&self, result: DType) -> Result<Int8End> {
        let Self { scaled, bias, activation, .. } = *self;
        let name = self.name();
        if scaled != result.is_float() {
            let (what, remedy) = match scaled {
                true => ("scales", "plan it for f32 or f16, or leave `scaled` out"),
                false => ("no scales", "plan it for i32, or ask for `scaled`"),
            };
            return Err(err!(Unsupported, "{name}: a C of {result} with {what}; {remedy}"));
        }
        if !scaled && (bias || activation != Activation::None) {
            return Err(err!(
                Unsupported,
                "{name}: a bias and an activation follow scales; ask for `scaled`, or leave them out"
            ));
        }
        Ok(Int8End { result, scaled, bias, activation })
    }
}

lowered_as!(GemmInt8: i32, f32, f16);
