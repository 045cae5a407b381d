//! Products of many matrices of one shape.

use super::gemm::form;
use super::gemm::register::{Form, Steps};
use super::gemm::{Params, Tile, Types, check_operand, dispatch_flop};
use super::{Activation, Gemm, Layout};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Binding, Comparison, Cost, DeviceClass, DeviceProfile, Example, Grid, Kernel, Op, Operand,
    Operation, Program, Requires, Variant, choose, operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, index_u32};
use half::f16;
use std::ops::Range;

/// Matrix product of each pair of a batch: `C[b] = activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias)`.
///
/// # Shapes
/// Every `op(A[b])` is m x k, `op(B[b])` k x n, `C[b]` m x n, row-major; `a` holds matrices of k x m
/// with [`trans_a`](Self::trans_a), `b` of n x k with [`trans_b`](Self::trans_b). Elements are `f32` or
/// [`f16`](half::f16), or f16 in the factors and f32 in all else ([`mixed_precision`](Self::mixed_precision)). Operands are `a`, `b`,
/// `c`, in this order; [`with_bias`](Self::with_bias) adds `bias`, n elements, one for each column of every C,
/// and [`with_row_bias`](Self::with_row_bias) m elements, one for each row. Leading dimensions ([`lda`](Self::lda),
/// [`ldb`](Self::ldb), [`ldc`](Self::ldc)) are the elements from one stored row to the next, strides
/// ([`strides`](Self::strides)) those from one matrix to the next: 0 has all products read the one matrix, and matrices
/// of `a` and of `b` may overlap. Those of `c` follow each other, or lie side by side in longer rows. An operand has
/// `(batch - 1) * stride + (rows - 1) * ld + row length` elements; those of `c` between its rows and matrices are left
/// as they are. `c` must not overlap the others.
///
/// Any extent may be 0, and so may the batch. With `beta` = 0 (the default) `c` is not read, so what it
/// holds, NaN too, does not matter. With `alpha` = 0 or k = 0 the result is `activation(beta C + bias)` and `a` and
/// `b` are not read.
///
/// # Precision and determinism
/// Products are summed in f32, in the order of k, for both element types; the end is computed in f32 and rounded
/// once to the element type of C: large results overflow f16 to infinity. The error is that of [`Gemm`], before the
/// activation at most `gamma(k + 4) (|alpha| |A| |B| + |beta C| + |bias|)`
/// ([`reference::gemm_batched_bound`](crate::reference::gemm_batched_bound)). NaN and infinities go through as
/// IEEE arithmetic has them. Same device, same inputs, same variant: same bits.
///
/// # Cost
/// 2 batch m n k flop; every matrix of `a` and `b` and the bias read once, C written once, and read once if `beta` is not 0. No
/// scratch. One dispatch, or several where one would take so long that a watchdog might end it.
///
/// # Variants
/// `naive`; `small` (a workgroup takes whole products, [`products`](Self::products) of them, m and n up to 64, an
/// invocation [`thread_tile`](Self::thread_tile) of C);
/// `register` (tiles of C, those of a product after those of the one before). `auto`, the default, chooses
/// by shape and device.
///
/// # On CUDA
/// As [`Gemm`].
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a leading dimension below the row length, a stride with which
/// matrices of `c` would overlap; a shape that the variant does not take; an unknown
/// variant. [`TooLarge`](crate::ErrorKind::TooLarge): an operand above about 2^32 elements, or above the largest
/// binding or buffer of the device; more products in a workgroup than its limits allow; a k above 2^20 steps
/// of a kernel (60000 on processors), for which there is [`Gemm`]. [`Unsupported`](crate::ErrorKind::Unsupported): `f16`
/// on a device without SHADER_F16.
///
/// # Algorithm
/// `shaders/dense/gemm_batched_naive.wgsl`: the definition. `gemm_register.wgsl` and `gemm_double.wgsl`, as of [`Gemm`].
/// `gemm_small.wgsl` is the same with whole matrices in workgroup memory (Abdelfattah, Haidar, Tomov and Dongarra,
/// *Performance, Design, and Autotuning of Batched GEMM for GPUs*, 2016).
///
/// # Example
/// ```
/// use tilework::dense::GemmBatched;
/// use tilework::program::{DeviceProfile, Op};
///
/// // 1000 points in each of 64 frames, every frame with a rotation of its own.
/// let turned = GemmBatched::new(64, 1000, 3, 3);
/// let program = Op::<f32>::lower(&turned, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.operands[0].len, 64 * 1000 * 3);
/// assert_eq!(program.cost.flop, 2.0 * 64.0 * 1000.0 * 3.0 * 3.0);
///
/// // The same rotation for all frames.
/// let program = Op::<f32>::lower(&turned.strides(3000, 0, 3000), &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.operands[1].len, 3 * 3);
///
/// // Scores of attention, queries times transposed keys: 12 heads of 64 side by side in the rows of 100 tokens.
/// let scores = GemmBatched::new(12, 100, 100, 64).lda(12 * 64).ldb(12 * 64).trans_b(true);
/// let scores = scores.strides(64, 64, 100 * 100).alpha(0.125);
/// let program = Op::<f32>::lower(&scores, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.operands[0].len, 100 * 12 * 64);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GemmBatched {
    pub(crate) batch: usize,
    one: Gemm,
    strides: Option<[usize; 3]>,
    products: Option<u32>,
    thread: [u32; 2],
    pub(crate) variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "one invocation reads a row of A and a column of B for one element of C"),
    Variant::portable(
        "small",
        "a workgroup holds whole matrices, up to 64 x 64; sums in registers, 4 x 4 each",
    ),
    Variant::portable("register", "a workgroup computes a tile of one product, sums in registers"),
];

/// Elements of C of a workgroup of `naive`.
const NAIVE_ELEMENTS: u64 = 256;

/// The longest side of C that `small` takes: 256 invocations of 4 x 4.
const SMALL_SIDE: usize = 64;

/// Steps of k that a kernel holds at the most.
const SMALL_K: usize = 32;

/// Invocations that a workgroup of `small` comes to, if the products are so many and one takes no more. On an H100
/// (Vulkan, driver 580.159.04): 2^18 of 8^3 in 81 us (16 invocations 81, 64 90), 2^16 of 16^3 in 75 us (64 77, 512 85).
const SMALL_INVOCATIONS: u32 = 32;

/// The same where one product alone takes [`SMALL_INVOCATIONS`], and is read by fours: 10,000 of 32^3 in 54 us (64
/// invocations 56, 512 72), of f16 in 42 (64 51). By single elements more are slower.
const SMALL_INVOCATIONS_OF_FOURS: u32 = 128;

/// Bytes of workgroup memory that `small` stays below, so that many workgroups run side by side.
const SMALL_BYTES: u64 = 12 << 10;

/// How far a kernel counts behind the last element: the sides of the largest tile.
const BEHIND: usize = 256;

impl GemmBatched {
    /// Products of `batch` pairs of an m x k and a k x n matrix.
    pub fn new(batch: usize, m: usize, n: usize, k: usize) -> Self {
        Self {
            batch,
            one: Gemm::new(m, n, k),
            strides: None,
            products: None,
            thread: [4, 4],
            variant: "auto".into(),
        }
    }

    fn with(self, form: impl FnOnce(Gemm) -> Gemm) -> Self {
        Self { one: form(self.one), ..self }
    }

    /// Factor of the products; 1 by default. With 0, `a` and `b` are not read.
    #[must_use]
    pub fn alpha(self, alpha: f32) -> Self {
        self.with(|one| one.alpha(alpha))
    }

    /// Factor of what `c` holds before; 0 by default, and `c` is then not read.
    #[must_use]
    pub fn beta(self, beta: f32) -> Self {
        self.with(|one| one.beta(beta))
    }

    /// Whether matrices of `a` are stored transposed, k x m; false by default.
    #[must_use]
    pub fn trans_a(self, trans: bool) -> Self {
        self.with(|one| one.trans_a(trans))
    }

    /// Whether matrices of `b` are stored transposed, n x k; false by default.
    #[must_use]
    pub fn trans_b(self, trans: bool) -> Self {
        self.with(|one| one.trans_b(trans))
    }

    /// The function applied last; [`Activation::None`] by default.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.with(|one| one.activation(activation))
    }

    /// Elements from one stored row to the next in matrices of `a`; the row length by default.
    #[must_use]
    pub fn lda(self, lda: usize) -> Self {
        self.with(|one| one.lda(lda))
    }

    /// Elements from one stored row to the next in matrices of `b`; the row length by default.
    #[must_use]
    pub fn ldb(self, ldb: usize) -> Self {
        self.with(|one| one.ldb(ldb))
    }

    /// Elements from one row to the next in matrices of `c`; n by default.
    #[must_use]
    pub fn ldc(self, ldc: usize) -> Self {
        self.with(|one| one.ldc(ldc))
    }

    /// Elements from one matrix to the next in `a`, `b` and `c`; by default they follow each other, each as long as its
    /// rows times its leading dimension. A stride of 0 in `a` or `b` is the same matrix for all products.
    #[must_use]
    pub fn strides(mut self, a: usize, b: usize, c: usize) -> Self {
        self.strides = Some([a, b, c]);
        self
    }

    /// Products that a workgroup of `small` computes; by default as many as make 64 invocations. Other
    /// variants ignore it.
    #[must_use]
    pub fn products(mut self, products: u32) -> Self {
        self.products = Some(products);
        self
    }

    /// Rows and columns of C that one invocation of `small` computes, multiples of 4 up to 16; 4 x 4 by default. Other
    /// variants ignore it.
    #[must_use]
    pub fn thread_tile(mut self, rows: u32, columns: u32) -> Self {
        self.thread = [rows, columns];
        self
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Adds a bias for each column of every C: an operand `bias` of n elements, which plans take by `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.one = self.one.with_bias();
        self
    }

    /// Adds a bias for each row of every C: an operand `bias` of m elements, which plans take by `with_bias`.
    #[must_use]
    pub fn with_row_bias(mut self) -> Self {
        self.one = self.one.with_row_bias();
        self
    }

    /// As [`Gemm::mixed_precision`].
    #[must_use]
    pub fn mixed_precision(mut self) -> Self {
        self.one = self.one.mixed_precision();
        self
    }

    /// Every way to run it.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// One product of the batch.
    pub(crate) fn one(&self) -> &Gemm {
        &self.one
    }

    /// For a, b and c: where the first matrix lies, its elements from first to last, and those from one matrix to the
    /// next.
    pub(crate) fn places(&self) -> Result<[Place; 3]> {
        let name = self.name();
        let place = |i: usize, operand, at: Layout| {
            let span = at.span(&name, operand)?;
            let stride = match self.strides {
                Some(strides) => strides[i],
                None => elements(&name, operand, &[at.rows, at.ld])?,
            };
            Ok(Place { at, span, stride })
        };
        let one = &self.one;
        let places =
            [place(0, "a", one.layout_a())?, place(1, "b", one.layout_b())?, place(2, "c", one.layout_c())?];
        let Place { at: Layout { rows, cols, ld }, span, stride } = places[2];
        let side_by_side = stride >= cols && stride.saturating_mul(self.batch.saturating_sub(1)) <= ld - cols;
        if self.batch > 1 && stride < span && !side_by_side {
            return Err(err!(
                InvalidArgument,
                "{name}: with a stride of {stride} the matrices of c ({rows} x {cols}, ldc = {ld}) overlap; it is at \
                 least {span}, the elements of one, or they lie side by side: the stride is at least {cols} and ldc at \
                 least (batch - 1) * stride + {cols}"
            ));
        }
        Ok(places)
    }

    /// The shape, for texts.
    pub(crate) fn name(&self) -> String {
        let Gemm { m, n, k, .. } = self.one;
        format!("gemm-batched {} x {m} x {n} x {k}", self.batch)
    }

    fn lower_as(&self, types: Types, bias: bool, profile: &DeviceProfile) -> Result<Program> {
        let name = self.name();
        let f16 = types.factors == DType::F16;
        if let Some(missing) = (Requires { f16, ..Requires::NOTHING }).missing(profile) {
            return Err(err!(
                Unsupported,
                "{name}: elements of f16 need {missing}, which {} does not have; convert them to f32",
                profile.name
            ));
        }
        let places = self.places()?;
        let mut operands = Vec::new();
        for (operand, Place { span, stride, .. }) in ["a", "b", "c"].into_iter().zip(places) {
            let len = match self.batch {
                0 => 0,
                _ if span == 0 => 0,
                batch => elements(&name, operand, &[batch - 1, stride])?.saturating_add(span),
            };
            let (dtype, access) = match operand {
                "c" => (types.result, Access::ReadWrite),
                _ => (types.factors, Access::Read),
            };
            let operand = Operand { name: operand, dtype, len, access };
            index_u32(&name, &format!("the end of {} and a tile", operand.name), len.saturating_add(BEHIND))?;
            check_operand(&name, &operand, profile, "take fewer products a call")?;
            operands.push(operand);
        }
        if bias {
            let len = self.one.bias_len();
            let operand = Operand { name: "bias", dtype: types.result, len, access: Access::Read };
            check_operand(&name, &operand, profile, "take fewer rows or columns a call")?;
            operands.insert(2, operand);
        }
        let (variant, mut decision) =
            choose("gemm-batched", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let mut form = self.form(variant.name, places, profile)?;
        let product = self.one.k > 0 && self.one.alpha != 0.0;
        if !product {
            let zero = if self.one.k == 0 { "k" } else { "alpha" };
            decision.because(format_args!("{zero} is 0, so A and B are not read"));
            // What is left is the end of each element.
            form = None;
        }
        let mut program = Program::new("gemm-batched", decision);
        program.cost = self.cost(places, types, bias, product);
        program.operands = operands;
        if self.batch > 0 && places[2].span > 0 {
            let k = if product { self.one.k } else { 0 };
            self.check_steps(k, form, profile)?;
            let kernel = self.kernel(types, bias, places, form);
            self.dispatch(&mut program, kernel, places, k, form, profile)?;
        }
        Ok(program)
    }

    /// Which variant, and why.
    fn policy(&self, profile: &DeviceProfile) -> (&'static str, String) {
        let Gemm { m, n, k, .. } = self.one;
        if m.min(n) < 4 || k < 4 {
            ("naive", format!("{m} x {n} x {k} does not fill a thread tile of 4 x 4"))
        } else if m.saturating_mul(n).saturating_mul(k) <= 64 {
            // 2^20 of 4^3 on an H100 (Vulkan, driver 580.159.04): 102 us against 132.
            ("naive", "one thread tile is the whole product: nothing is used twice".into())
        } else if profile.quirks.serial_workgroups && m.min(n) < 16 && k < 1 << 12 {
            ("naive", "too small for tiles to pay their barriers, which are dear on a processor".into())
        } else if m.max(n) <= SMALL_SIDE {
            ("small", format!("whole matrices of {m} x {n} fit a workgroup"))
        } else {
            (
                "register",
                format!("a workgroup computes a part of {m} x {n}; tiles use each element several times"),
            )
        }
    }

    /// What a register-tiled kernel is specialised for; none for `naive`.
    fn form(&self, variant: &str, places: [Place; 3], profile: &DeviceProfile) -> Result<Option<Form>> {
        let form = |[m, n, k]: [u32; 3], thread, products| Form {
            tile: Tile { m, n, k },
            thread,
            double: false,
            unrolled: true,
            vectors: !profile.quirks.stores_whole_vectors,
            trans_a: self.one.trans_a,
            trans_b: self.one.trans_b,
            vec_a: self.fours(places[0]),
            vec_b: self.fours(places[1]),
            steps: Steps::of(self.one.k, Tile { m, n, k }),
            products,
            bytes: false,
            walked: None,
        };
        match variant {
            "naive" => Ok(None),
            "small" => self.small(form, profile).map(Some),
            _ => {
                let (tile, thread) = match profile.class {
                    DeviceClass::Cpu => ([32, 32, 8], [4, 4]),
                    DeviceClass::Discrete if self.one.m.min(self.one.n) >= 256 => ([128, 128, 8], [8, 8]),
                    _ => ([64, 64, 16], [8, 4]),
                };
                let single = form(tile, thread, None);
                // Two tiles of each factor where there is room for them.
                let double = Form { double: true, ..single };
                let room = double.workgroup_bytes() <= profile.limits.max_workgroup_bytes.into();
                Ok(Some(if room { double } else { single }))
            }
        }
    }

    /// Whether an operand can be bound as vectors of four.
    fn fours(&self, Place { at, span, stride }: Place) -> bool {
        // An operand without elements is bound as one of four bytes.
        span > 0 && at.fours() && (self.batch == 1 || stride.is_multiple_of(4))
    }

    /// The form of `small`.
    fn small(
        &self,
        form: impl Fn([u32; 3], [u32; 2], Option<u32>) -> Form,
        profile: &DeviceProfile,
    ) -> Result<Form> {
        let name = self.name();
        let Gemm { m, n, k, .. } = self.one;
        if m.max(n) > SMALL_SIDE {
            return Err(err!(
                InvalidArgument,
                "{name}: `small` holds whole matrices, of at most {SMALL_SIDE} rows and columns of C; take `register`"
            ));
        }
        let [rows, columns] = self.thread;
        if [rows, columns].iter().any(|x| !x.is_multiple_of(4) || !(4..=16).contains(x)) {
            return Err(err!(
                InvalidArgument,
                "{name}: an invocation of `small` cannot compute {rows} x {columns} elements of C; the thread tiles of this \
                 variant are multiples of 4 up to 16 by such"
            ));
        }
        let whole = |x: usize, of: u32| (x.max(1) as u32).next_multiple_of(of);
        let (m, n) = (whole(m, rows), whole(n, columns));
        let lanes = m / rows * (n / columns);
        let batch = u32::try_from(self.batch).unwrap_or(u32::MAX).max(1);
        let by_fours = form([m, n, 4], [rows, columns], None);
        let wanted = if lanes >= SMALL_INVOCATIONS && by_fours.vec_a && by_fours.vec_b {
            SMALL_INVOCATIONS_OF_FOURS
        } else {
            SMALL_INVOCATIONS
        };
        let products = self.products.unwrap_or_else(|| (wanted / lanes).clamp(1, batch));
        let limits = &profile.limits;
        let invocations = u64::from(lanes) * u64::from(products);
        if products == 0 || invocations > limits.max_invocations.min(limits.max_workgroup_size[0]).into() {
            return Err(err!(
                TooLarge,
                "{name}: {products} products of {lanes} invocations each are a workgroup of {invocations}; {} allows 1 to {}",
                profile.name,
                limits.max_invocations.min(limits.max_workgroup_size[0])
            ));
        }
        // No more steps than `SMALL_K` are asked for.
        let form = |k: usize| form([m, n, whole(k, 4)], [rows, columns], Some(products));
        // So many steps of k at a time that an invocation has at most 16 loads of each factor in registers.
        let width = if form(0).vec_a && form(0).vec_b { 4 } else { 1 };
        // Processors compile what is written out slowly.
        let longest = if profile.quirks.slow_compiler { SMALL_K / 4 } else { SMALL_K };
        let most = longest.min((16 * width * m.min(n) / (rows * columns)).max(4) as usize);
        // Slices of k of about the same length, more of them until they fit.
        let all = u64::from(limits.max_workgroup_bytes);
        let budget = all.min(SMALL_BYTES);
        let mut slices = k.div_ceil(most).max(1);
        loop {
            let form = form(k.div_ceil(slices));
            let bytes = form.workgroup_bytes();
            if bytes <= budget || (form.tile.k == 4 && bytes <= all) {
                return Ok(form);
            }
            if form.tile.k == 4 {
                return Err(err!(
                    TooLarge,
                    "{name}: {products} products need {bytes} bytes of workgroup memory; {} has {all}; take fewer",
                    profile.name
                ));
            }
            slices += 1;
        }
    }

    /// Whether k is no longer than one invocation should walk.
    fn check_steps(&self, k: usize, form: Option<Form>, profile: &DeviceProfile) -> Result<()> {
        // A round for each step, and room for the few of the end.
        let most = if profile.runs_rounds(1 << 20) { 1 << 20 } else { 60_000 };
        let step = form.map_or(1, |form| form.tile.k) as usize;
        if k.div_ceil(step) <= most {
            return Ok(());
        }
        Err(err!(
            TooLarge,
            "{}: k = {k} is above {}, the most that a kernel of {step} steps at a time walks on {}; take `gemm`, which \
             cuts k",
            self.name(),
            most * step,
            profile.name
        ))
    }

    pub(crate) fn cost(&self, places: [Place; 3], types: Types, bias: bool, product: bool) -> Cost {
        let batch = self.batch as f64;
        let [a, b, c] = places.map(|Place { at, .. }| at.rows as f64 * at.cols as f64);
        let times = |place: Place| if place.stride == 0 { batch.min(1.0) } else { batch };
        let factors = match product && c > 0.0 {
            true => times(places[0]) * a + times(places[1]) * b,
            false => 0.0,
        };
        let results = if self.one.beta == 0.0 { batch * c } else { 2.0 * batch * c };
        let bias = if bias && batch * c > 0.0 { self.one.bias_len() as f64 } else { 0.0 };
        let [of_factor, of_result] = [types.factors, types.result].map(|dtype| dtype.size() as f64);
        let flop = if product { 2.0 * batch * c * self.one.k as f64 } else { 0.0 };
        Cost { flop, bytes: factors * of_factor + (results + bias) * of_result }
    }

    fn dispatch(
        &self,
        program: &mut Program,
        kernel: Kernel,
        places: [Place; 3],
        k: usize,
        form: Option<Form>,
        profile: &DeviceProfile,
    ) -> Result<()> {
        // All that is counted here is at most the elements of an operand, but for strides that are not used.
        let stride = |Place { span, stride, .. }| if self.batch > 1 && span > 0 { stride as u32 } else { 0 };
        let [batch, m, n] = [self.batch, self.one.m, self.one.n].map(|x| x as u64);
        let tile = form.map_or(Tile { m: 1, n: 1, k: 1 }, |form| form.tile);
        let [tile_m, tile_n] = [tile.m, tile.n].map(u64::from);
        let (workgroups, elements) = match form {
            None => ((batch * m * n).div_ceil(NAIVE_ELEMENTS), NAIVE_ELEMENTS),
            Some(Form { products: Some(products), .. }) => {
                (batch.div_ceil(products.into()), u64::from(products) * tile_m * tile_n)
            }
            Some(_) => (batch * m.div_ceil(tile_m) * n.div_ceil(tile_n), tile_m * tile_n),
        };
        let params = Params {
            end_k: k as u32,
            batch: batch as u32,
            stride_a: stride(places[0]),
            stride_b: stride(places[1]),
            stride_c: stride(places[2]),
            ..self.one.params(k, tile)?
        };
        let kernel = program.kernel(kernel);
        let bindings: Vec<_> =
            (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        // Bands that take a bounded time, of at most 2^31 workgroups: the index of one stays below 2^32.
        let band = (dispatch_flop(profile.class) / (2 * elements * k.max(1) as u64)).clamp(1, 1 << 31);
        for Range { start, end } in program.bands(workgroups, band)? {
            let params = Params { first_tile: start as u32, tiles: (end - start) as u32, ..params };
            program.dispatch(kernel, &params, bindings.clone(), Grid::fold(end - start));
        }
        Ok(())
    }

    fn kernel(&self, types: Types, bias: bool, places: [Place; 3], form: Option<Form>) -> Kernel {
        let wgsl = |dtype| if dtype == DType::F16 { "f16" } else { "f32" };
        let spec = Spec::new()
            .alias("T", wgsl(types.factors))
            .alias("R", wgsl(types.result))
            .flag("F16", types.factors == DType::F16)
            .flag("BATCHED", true)
            .flag("BIAS", bias)
            .flag("ROW_BIAS", bias && self.one.row_bias)
            .flag("READ_C", self.one.beta != 0.0)
            .constant("C_BINDING", 3 + u32::from(bias))
            .slot("activation", Fragment::Library(self.one.activation.fragment()));
        let Some(form) = form else {
            let spec = spec.flag("TRANS_A", self.one.trans_a).flag("TRANS_B", self.one.trans_b);
            return Kernel::library("dense/gemm_batched_naive", "gemm_batched_naive", spec);
        };
        let spec = spec
            .flag("VEC_C", self.fours(places[2]))
            .flag("WHOLE_TILES", form.divides(self.one.m, self.one.n));
        form.kernel(spec)
    }
}

/// Where the matrices of an operand lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) at: Layout,
    /// Elements from the first to the last of one.
    pub(crate) span: usize,
    /// Elements from one to the next.
    pub(crate) stride: usize,
}

operands! {
    impl[T: Element,] GemmBatched, T [cuda] {
        fn record<C>(a: T, b: T, c: C);
        /// What is added to each column or row of every C.
        optional with_bias<C>(bias: C);
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl Op<$t> for GemmBatched {
            crate::program::proven!();

            fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
                self.lower_as(self.one.types(&self.name(), <$t>::DTYPE)?, self.one.bias, profile)
            }
        }
    )*};
}
op!(f32, f16);

/// What the catalogue knows of [`GemmBatched`].
pub(super) const INFO: Operation = Operation {
    name: "gemm-batched",
    about: "C[b] = activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias), for every b of a batch",
    inputs: form::BATCHED_INPUTS,
    types: &[DType::F32, DType::F16],
    options: form::BATCHED_OPTIONS,
    make: Some(form::make_batched),
    variants: GemmBatched::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[2, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut types = vec![Types::all(DType::F32)];
    if profile.features.f16 {
        types.extend([Types::all(DType::F16), Types::MIXED]);
    }
    let new = |batch, m, n, k| GemmBatched::new(batch, m, n, k).variant(variant);
    let mut programs = Vec::new();
    for types in types {
        for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
            for [batch, m, n, k] in [[10, 8, 8, 8], [3, 17, 21, 9], [2, 32, 32, 32], [2, 61, 64, 35]] {
                let op = new(batch, m, n, k).trans_a(trans_a).trans_b(trans_b);
                programs.push(op.lower_as(types, false, profile)?);
            }
        }
        programs.push(new(2, 4, 4, 0).beta(1.0).lower_as(types, true, profile)?);
        for op in [new(2, 12, 20, 16), new(2, 13, 21, 16)] {
            programs.push(op.clone().with_bias().lower_as(types, true, profile)?);
            programs.push(op.with_row_bias().lower_as(types, true, profile)?);
        }
        for activation in Activation::ALL {
            programs.push(new(2, 12, 20, 16).activation(activation).lower_as(types, false, profile)?);
        }
    }
    if variant != "small" {
        programs.push(new(2, 300, 256, 64).lower_as(Types::all(DType::F32), false, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn lower(op: &GemmBatched, profile: &DeviceProfile) -> Result<Program> {
        Op::<f32>::lower(op, profile)
    }

    fn refusal(op: &GemmBatched, profile: &DeviceProfile) -> (ErrorKind, String) {
        let e = lower(op, profile).unwrap_err();
        (e.kind(), e.to_string())
    }

    #[test]
    fn variant_follows_the_shape() {
        let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
        let chosen = |m, n, k, profile| lower(&GemmBatched::new(100, m, n, k), profile).unwrap().variant();
        assert_eq!(chosen(32, 32, 32, &h100), "small");
        assert_eq!(chosen(64, 5, 1000, &h100), "small");
        assert_eq!(chosen(65, 64, 64, &h100), "register");
        assert_eq!(chosen(3, 3, 3, &h100), "naive");
        assert_eq!(chosen(1000, 3, 3, &h100), "naive");
        assert_eq!(chosen(8, 8, 8, &mesa), "naive");
        assert_eq!(chosen(32, 32, 32, &mesa), "small");
    }

    #[test]
    fn small_matrices_share_a_workgroup() {
        let h100 = DeviceProfile::h100();
        for (side, batch, workgroups) in [(32, 10_000, 5000), (16, 10_000, 5000), (4, 1000, 32), (8, 3, 1)] {
            let program = lower(&GemmBatched::new(batch, side, side, side).variant("small"), &h100).unwrap();
            assert_eq!(program.dispatches[0].grid, Grid::fold(workgroups), "{batch} x {side}");
        }
    }

    #[test]
    fn every_small_shape_fits_every_device() {
        for profile in [DeviceProfile::webgpu_defaults(), DeviceProfile::mesa(), DeviceProfile::h100()] {
            for m in 1..=SMALL_SIDE {
                for n in 1..=SMALL_SIDE {
                    for k in [1, 31, 33, 64, 1000] {
                        let op = GemmBatched::new(100, m, n, k);
                        let form = op.form("small", op.places().unwrap(), &profile).unwrap().unwrap();
                        let loads = form.tile.k * form.tile.m.max(form.tile.n) / form.lanes();
                        assert!(
                            form.invocations() <= 256 && form.workgroup_bytes() <= SMALL_BYTES && loads <= 64,
                            "{form:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_large_batch_is_cut_into_dispatches() {
        let op = GemmBatched::new(65, 512, 512, 512).strides(0, 0, 512 * 512);
        let mut virtual_device = DeviceProfile::h100();
        virtual_device.class = DeviceClass::Virtual;
        let program = lower(&op, &virtual_device).unwrap();
        // 2^33 flop each: 32 products, in tiles of 64 x 64; an H100 gets more.
        let parts: Vec<_> = (0..program.dispatches.len())
            .map(|i| (program.param(i, "first_tile"), program.param(i, "tiles")))
            .collect();
        assert_eq!(parts, [(0, 2048), (2048, 2048), (4096, 64)]);
        assert_eq!(lower(&op, &DeviceProfile::h100()).unwrap().dispatches.len(), 1);
    }

    #[test]
    fn a_bias_and_mixed_types_have_their_operands_and_bytes() {
        let h100 = DeviceProfile::h100();
        let op = GemmBatched::new(10, 4, 5, 6);
        let program = Op::<f16>::lower(&op.clone().with_row_bias().mixed_precision(), &h100).unwrap();
        let operands: Vec<_> = program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect();
        let (f16, f32) = (DType::F16, DType::F32);
        assert_eq!(operands, [("a", f16, 240), ("b", f16, 300), ("bias", f32, 4), ("c", f32, 200)]);
        assert_eq!(program.cost.bytes, 2.0 * 540.0 + 4.0 * 204.0);
        assert_eq!(Op::<f32>::lower(&op.with_bias(), &h100).unwrap().operands[2].len, 5);
    }

    #[test]
    fn cost_counts_a_shared_matrix_once() {
        let cost = |op: GemmBatched| lower(&op, &DeviceProfile::h100()).unwrap().cost;
        let op = GemmBatched::new(10, 4, 5, 6);
        assert_eq!(cost(op.clone()), Cost { flop: 2400.0, bytes: 4.0 * (240.0 + 300.0 + 200.0) });
        assert_eq!(cost(op.clone().strides(0, 30, 20)).bytes, 4.0 * (24.0 + 300.0 + 200.0));
        assert_eq!(cost(op.beta(1.0).alpha(0.0)), Cost { flop: 0.0, bytes: 4.0 * 400.0 });
    }

    #[test]
    fn strides_that_cannot_be_are_refused_with_the_numbers() {
        let h100 = DeviceProfile::h100();
        let op = GemmBatched::new(2, 3, 5, 7);
        let strided = |op: &GemmBatched, c| op.clone().strides(0, 1, c);
        for (op, text) in [
            (
                strided(&op, 14),
                "with a stride of 14 the matrices of c (3 x 5, ldc = 5) overlap; it is at least 15",
            ),
            (strided(&op, 0), "with a stride of 0"),
            (strided(&op.clone().ldc(9), 22), "ldc = 9) overlap; it is at least 23"),
            // Side by side, but the second is too far or not far enough.
            (strided(&op.clone().ldc(10), 6), "ldc at least (batch - 1) * stride + 5"),
            (strided(&op.clone().ldc(10), 4), "with a stride of 4"),
            (op.clone().lda(6), "lda = 6 is below 7"),
            (op.clone().trans_b(true).ldb(6), "ldb = 6 is below 7"),
            (op.clone().ldc(4), "ldc = 4 is below 5"),
        ] {
            let (kind, message) = refusal(&op, &h100);
            assert_eq!(kind, ErrorKind::InvalidArgument);
            assert!(
                message.starts_with("gemm-batched 2 x 3 x 5 x 7: ") && message.contains(text),
                "{message}"
            );
        }
        assert!(lower(&strided(&op, 15), &h100).is_ok());
        assert!(lower(&strided(&op.clone().ldc(10), 5), &h100).is_ok());
        assert!(lower(&GemmBatched::new(1, 3, 5, 7).strides(1, 1, 1), &h100).is_ok());
    }

    #[test]
    fn operands_reach_from_the_first_matrix_to_the_last() {
        let lens = |op: &GemmBatched| -> Vec<_> {
            lower(op, &DeviceProfile::h100()).unwrap().operands.iter().map(|o| o.len).collect()
        };
        let op = GemmBatched::new(4, 3, 5, 7);
        assert_eq!(lens(&op), [84, 140, 60]);
        assert_eq!(lens(&op.clone().strides(0, 1, 20)), [21, 38, 75]);
        assert_eq!(lens(&op.clone().lda(10).ldb(6).ldc(8)), [117, 167, 93]);
        // Side by side in rows.
        let heads = op.lda(28).ldb(20).ldc(20).strides(7, 5, 5);
        assert_eq!(lens(&heads), [84, 140, 60]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let (h100, mesa) = (DeviceProfile::h100(), DeviceProfile::mesa());
        let (kind, text) = refusal(&GemmBatched::new(1 << 16, 32, 32, 32), &mesa);
        assert!(kind == ErrorKind::TooLarge && text.contains("268435456 bytes"), "{text}");
        assert!(text.contains("134217728 bytes") && text.contains("fewer products"), "{text}");
        for op in [GemmBatched::new(usize::MAX, 2, 2, 2), GemmBatched::new(2, usize::MAX, 2, 2)] {
            assert_eq!(refusal(&op, &h100).0, ErrorKind::TooLarge);
        }
        let far = GemmBatched::new(2, 1, 1, 1).strides(usize::MAX, 1, 1);
        assert_eq!(refusal(&far, &h100).0, ErrorKind::TooLarge);
        let (kind, text) = refusal(&GemmBatched::new(2, 65, 4, 4).variant("small"), &h100);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("take `register`"), "{text}");
        let small = GemmBatched::new(100, 32, 32, 32).variant("small");
        for thread in [[4, 6], [0, 4], [20, 4]] {
            let (kind, text) = refusal(&small.clone().thread_tile(thread[0], thread[1]), &h100);
            assert!(kind == ErrorKind::InvalidArgument && text.contains("multiples of 4 up to 16"), "{text}");
        }
        for products in [0, 1000] {
            let (kind, text) = refusal(&small.clone().products(products), &h100);
            assert!(kind == ErrorKind::TooLarge && text.contains("64 invocations"), "{text}");
        }
        let (kind, text) = refusal(&GemmBatched::new(1, 2, 2, 100_000).variant("naive"), &mesa);
        assert!(kind == ErrorKind::TooLarge && text.contains("60000"), "{text}");
        let (kind, text) = refusal(&GemmBatched::new(1, 2, 2, 2).variant("fast"), &mesa);
        assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, naive, small"), "{text}");
        let e = Op::<f16>::lower(&GemmBatched::new(1, 4, 4, 4), &DeviceProfile::swiftshader()).unwrap_err();
        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("SHADER_F16"), "{e}");
    }
}
