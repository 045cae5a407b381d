//! The products by names.

use super::super::{Activation, GemmBatched, Precision};
use super::Gemm;
use crate::array::{HostArray, shape_text};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{Asked, Form, Input, Op, Role, Setting, by_type};
use half::f16;

pub(in super::super) const INPUTS: &[Input] =
    &[Input::new("a", "(m, k)"), Input::new("b", "(k, n)"), Input::optional("c", "(m, n)")];

pub(in super::super) const OPTIONS: &[Setting] = &[
    ALPHA,
    BETA,
    TRANS_A,
    TRANS_B,
    BIAS,
    ROW_BIAS,
    Activation::SETTING,
    MIXED,
    Precision::SETTING,
    TILE,
    THREAD_TILE,
    Setting::number("slices", ""),
    UNROLLED,
    Setting::flag("deterministic"),
];

pub(in super::super) const BATCHED_INPUTS: &[Input] =
    &[Input::new("a", "(B, m, k)"), Input::new("b", "(B, k, n)"), Input::optional("c", "(B, m, n)")];

pub(in super::super) const BATCHED_OPTIONS: &[Setting] = &[
    ALPHA,
    BETA,
    TRANS_A,
    TRANS_B,
    BIAS,
    ROW_BIAS,
    Activation::SETTING,
    MIXED,
    Setting::number("products", ""),
    THREAD_TILE,
];

pub(in super::super) const ALPHA: Setting = Setting::number("alpha", "1");
pub(in super::super) const BETA: Setting = Setting::number("beta", "0");
const TRANS_A: Setting = Setting::flag("trans-a");
const TRANS_B: Setting = Setting::flag("trans-b");
const BIAS: Setting = Setting::array("bias", "(n)");
const ROW_BIAS: Setting = Setting::array("row-bias", "(m)");
const MIXED: Setting = Setting::flag("mixed-precision");
const TILE: Setting = Setting::text("tile", "M,N,K", "");
const THREAD_TILE: Setting = Setting::text("thread-tile", "ROWS,COLUMNS", "");
const UNROLLED: Setting = Setting::word("unrolled", || vec!["true", "false"]);

/// The extents, the last two exchanged if `swap` says so.
fn turned<const N: usize>(swap: bool, mut dims: [usize; N]) -> [usize; N] {
    if swap {
        dims.swap(N - 2, N - 1);
    }
    dims
}

/// What a product has besides its factors.
struct Product<const N: usize> {
    a: HostArray,
    b: HostArray,
    bias: Option<HostArray>,
    by_row: bool,
    c: Role,
    beta: f32,
    /// Extents of op(A), and the columns of op(B).
    of_a: [usize; N],
    n: usize,
}

impl<const N: usize> Product<N> {
    fn new(asked: &mut Asked<'_>) -> Result<Self> {
        let (op, settings) = (asked.name(), asked.settings());
        let [trans_a, trans_b, mixed] = [TRANS_A, TRANS_B, MIXED].map(|flag| settings.has(flag.name));
        let (a, dims) = asked.array("a")?;
        let of_a = turned(trans_a, dims);
        // Where B is not given it has the shape of op(A), transposed.
        let (b, dims) = asked.free("b", turned(trans_b, turned(true, of_a)))?;
        let of_b = turned(trans_b, dims);
        if of_a[..N - 2] != of_b[..N - 2] || of_a[N - 1] != of_b[N - 2] {
            let many = if N > 2 { "they must hold as many matrices, and " } else { "" };
            return Err(err!(
                Shape,
                "{op}: op(a) is {}, op(b) is {}; {many}the columns of the first must be the rows of the second",
                shape_text(&of_a),
                shape_text(&of_b)
            ));
        }
        asked.check("b", &b, b.shape(), a.dtype())?;
        let (m, n) = (of_a[N - 2], of_b[N - 1]);
        let of_sums = if mixed { DType::F32 } else { a.dtype() };
        let [of_columns, of_rows] = [(BIAS, n), (ROW_BIAS, m)].map(|(option, len)| {
            let array = settings.array(option.name);
            array
                .map(|array| asked.check(option.name, array, &[len], of_sums).map(|()| array.clone()))
                .transpose()
        });
        let (of_columns, of_rows) = (of_columns?, of_rows?);
        if of_columns.is_some() && of_rows.is_some() {
            return Err(err!(InvalidArgument, "{op}: --bias and --row-bias are given; give one of them"));
        }
        let mut shape = of_a;
        shape[N - 1] = n;
        let beta = settings.number(BETA.name)?;
        let c = if asked.has_more() {
            Role::Updated(asked.of("c", &shape, of_sums)?)
        } else if beta != 0.0 {
            return Err(err!(InvalidArgument, "{op}: --beta {beta} needs c, the third input"));
        } else {
            Role::Result(shape.to_vec())
        };
        let by_row = of_rows.is_some();
        Ok(Self { a, b, bias: of_columns.or(of_rows), by_row, c, beta, of_a, n })
    }

    fn form<T: Element>(self, op: impl Op<T> + 'static) -> Form {
        let mut operands = vec![Role::Given(self.a), Role::Given(self.b)];
        operands.extend(self.bias.map(Role::Given));
        operands.push(self.c);
        Form::new::<T>(op, operands)
    }
}

pub(in super::super) fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let product = Product::<2>::new(asked)?;
    let settings = asked.settings();
    let [m, k] = product.of_a;
    let mut op = Gemm::new(m, product.n, k)
        .alpha(settings.number(ALPHA.name)?)
        .beta(product.beta)
        .trans_a(settings.has(TRANS_A.name))
        .trans_b(settings.has(TRANS_B.name))
        .activation(Activation::asked(settings)?)
        .precision(Precision::asked(settings)?)
        .unrolled(settings.choice(UNROLLED.name)? == "true")
        .variant(asked.variant());
    if let Some([m, n, k]) = settings.given_numbers(&TILE)? {
        op = op.tile(m, n, k);
    }
    if let Some([rows, columns]) = settings.given_numbers(&THREAD_TILE)? {
        op = op.thread_tile(rows, columns);
    }
    if let Some(slices) = settings.maybe("slices")? {
        op = op.slices(slices);
    }
    if settings.has(MIXED.name) {
        op = op.mixed_precision();
    }
    if settings.has("deterministic") {
        op = op.deterministic();
    }
    op = match (&product.bias, product.by_row) {
        (None, _) => op,
        (Some(_), false) => op.with_bias(),
        (Some(_), true) => op.with_row_bias(),
    };
    by_type!(asked, product.a.dtype(), [f32, f16], T => Ok(product.form::<T>(op)))
}

pub(in super::super) fn make_batched(asked: &mut Asked<'_>) -> Result<Form> {
    let product = Product::<3>::new(asked)?;
    let settings = asked.settings();
    let [batch, m, k] = product.of_a;
    let mut op = GemmBatched::new(batch, m, product.n, k)
        .alpha(settings.number(ALPHA.name)?)
        .beta(product.beta)
        .trans_a(settings.has(TRANS_A.name))
        .trans_b(settings.has(TRANS_B.name))
        .activation(Activation::asked(settings)?)
        .variant(asked.variant());
    if let Some([rows, columns]) = settings.given_numbers(&THREAD_TILE)? {
        op = op.thread_tile(rows, columns);
    }
    if let Some(products) = settings.maybe("products")? {
        op = op.products(products);
    }
    if settings.has(MIXED.name) {
        op = op.mixed_precision();
    }
    op = match (&product.bias, product.by_row) {
        (None, _) => op,
        (Some(_), false) => op.with_bias(),
        (Some(_), true) => op.with_row_bias(),
    };
    by_type!(asked, product.a.dtype(), [f32, f16], T => Ok(product.form::<T>(op)))
}
