//! The catalogue entries of the products: options and arrays by name.

use super::{Product, ProductTile};
use crate::dense::{Activation, Gemm, GemmBatched, Precision};
use crate::program::prelude::*;

pub(in super::super) const INPUTS: &[Input] = &[
    Input::new("a", "(m, k); (k, m) with trans-a"),
    Input::new("b", "(k, n); (n, k) with trans-b"),
    Input::optional("c", "(m, n)"),
];

pub(in super::super) const OPTIONS: &[Setting] = &[
    ALPHA,
    BETA,
    SCALARS,
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

pub(in super::super) const BATCHED_INPUTS: &[Input] = &[
    Input::new("a", "(B, m, k); (B, k, m) with trans-a"),
    Input::new("b", "(B, k, n); (B, n, k) with trans-b"),
    Input::optional("c", "(B, m, n)"),
];

pub(in super::super) const BATCHED_OPTIONS: &[Setting] = &[
    ALPHA,
    BETA,
    SCALARS,
    TRANS_A,
    TRANS_B,
    BIAS,
    ROW_BIAS,
    Activation::SETTING,
    MIXED,
    Precision::SETTING,
    Setting::number("products", ""),
    THREAD_TILE,
];

pub(in super::super) const ALPHA: Setting = Setting::number("alpha", "1");
pub(in super::super) const BETA: Setting = Setting::number("beta", "0");
/// Alpha and beta as an operand.
pub(in super::super) const SCALARS: Setting = Setting::array("scalars", "(2)");
const TRANS_A: Setting = Setting::flag("trans-a");
const TRANS_B: Setting = Setting::flag("trans-b");
const BIAS: Setting = Setting::array("bias", "(n)");
const ROW_BIAS: Setting = Setting::array("row-bias", "(m)");
const MIXED: Setting = Setting::flag("mixed-precision");
const TILE: Setting = Setting::text("tile", "M,N,K", "");
const THREAD_TILE: Setting = Setting::text("thread-tile", "ROWS,COLUMNS", "");
const UNROLLED: Setting = Setting::word("unrolled", || vec!["auto", "true", "false"]);

/// Swaps the last two extents if `swap` is set.
fn turned<const N: usize>(swap: bool, mut dims: [usize; N]) -> [usize; N] {
    if swap {
        dims.swap(N - 2, N - 1);
    }
    dims
}

struct AskedArrays {
    a: HostArray,
    b: HostArray,
    scalars: Option<HostArray>,
    bias: Option<HostArray>,
    c: Role,
}

impl AskedArrays {
    /// Reads the product of matrices, or of batches of them if `N` is 3, and its arrays.
    fn of<const N: usize>(asked: &mut Asked<'_>) -> Result<(Product, Self)> {
        let (op, settings) = (asked.name(), asked.settings());
        let [trans_a, trans_b, mixed] = [TRANS_A, TRANS_B, MIXED].map(|flag| settings.has(flag.name));
        let (a, dims) = asked.array("a")?;
        let of_a: [usize; N] = turned(trans_a, dims);
        // A missing B gets the shape of op(A), transposed.
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
        let (m, n, k) = (of_a[N - 2], of_b[N - 1], of_a[N - 1]);
        let of_sums = if mixed { DType::F32 } else { a.dtype() };
        let (bias, row_bias) = asked_bias(asked, m, n, of_sums)?;
        let mut shape = of_a;
        shape[N - 1] = n;
        let beta = settings.number(BETA.name)?;
        let scalars = settings.array(SCALARS.name).cloned();
        if let Some(array) = &scalars {
            asked.check(SCALARS.name, array, &[2], DType::F32)?;
        }
        let c = if asked.has_more() || scalars.is_some() {
            Role::Updated(asked.of("c", &shape, of_sums)?)
        } else if beta != 0.0 {
            return Err(err!(InvalidArgument, "{op}: --beta {beta} needs c, the third input"));
        } else {
            Role::Result(shape.to_vec())
        };
        let of = if N > 2 { Product::of_batch(of_a[0], m, n, k) } else { Product::new(m, n, k) };
        let product = Product {
            alpha: settings.number(ALPHA.name)?,
            beta,
            scalars: scalars.is_some(),
            trans_a,
            trans_b,
            activation: Activation::asked(settings)?,
            bias: bias.is_some(),
            row_bias,
            mixed,
            variant: asked.variant().to_owned(),
            ..of
        };
        Ok((product, Self { a, b, scalars, bias, c }))
    }

    fn call<T: Element>(self, op: impl Op<T> + 'static) -> OpCall {
        let mut operands = vec![Role::Given(self.a), Role::Given(self.b)];
        operands.extend(self.scalars.map(Role::Given));
        operands.extend(self.bias.map(Role::Given));
        operands.push(self.c);
        OpCall::new::<T>(op, operands)
    }
}

/// Reads the requested bias, and says if it belongs to rows.
fn asked_bias(asked: &mut Asked<'_>, m: usize, n: usize, dtype: DType) -> Result<(Option<HostArray>, bool)> {
    let given = |option: Setting, len| {
        let array = asked.settings().array(option.name);
        array.map(|array| asked.check(option.name, array, &[len], dtype).map(|()| array.clone())).transpose()
    };
    let (of_columns, of_rows) = (given(BIAS, n)?, given(ROW_BIAS, m)?);
    if of_columns.is_some() && of_rows.is_some() {
        return Err(err!(InvalidArgument, "{}: both --bias and --row-bias are given; give one of them", asked.name()));
    }
    let row_bias = of_rows.is_some();
    Ok((of_columns.or(of_rows), row_bias))
}

pub(in super::super) fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (mut product, arrays) = AskedArrays::of::<2>(asked)?;
    let settings = asked.settings();
    product.precision = Precision::asked(settings)?;
    product.unrolled = match settings.choice(UNROLLED.name)? {
        "auto" => None,
        choice => Some(choice == "true"),
    };
    product.tile = settings.given_numbers(&TILE)?.map(|[m, n, k]| ProductTile { m, n, k });
    product.thread = settings.given_numbers(&THREAD_TILE)?;
    product.slices = settings.maybe("slices")?;
    product.deterministic = settings.has("deterministic");
    by_type!(asked, arrays.a.dtype(), [f32, f16], T => Ok(arrays.call::<T>(Gemm { product })))
}

pub(in super::super) fn make_batched(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (mut product, arrays) = AskedArrays::of::<3>(asked)?;
    product.precision = Precision::asked(asked.settings())?;
    product.thread = asked.settings().given_numbers(&THREAD_TILE)?;
    product.products = asked.settings().maybe("products")?;
    by_type!(asked, arrays.a.dtype(), [f32, f16], T => Ok(arrays.call::<T>(GemmBatched { product })))
}
