//! What the ops of this family share where they are made by names.

use super::pool::PoolKind;
use super::rows::Rows;
use super::rows_backward::{Of, RowsBackward};
use super::windows::Windows;
use crate::array::{HostArray, shape_text};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Asked, Form, Op, Role, Setting, by_type};
use half::f16;

/// The types of most ops here.
pub(super) const FLOATS: [DType; 2] = [DType::F32, DType::F16];

pub(super) const LANES: Setting = Setting::number("lanes", "");
pub(super) const EPS: Setting = Setting::number("eps", "1e-5");

pub(super) const KIND: Setting = Setting::word("kind", || KINDS.map(|kind| kind.name()).to_vec());
pub(super) const WEIGHTS: Setting = Setting::array("weights", "(R, S)");
pub(super) const KERNEL: Setting = Setting::pair("kernel", "2");
/// That of the kernel by default.
pub(super) const STRIDE: Setting = Setting::pair("stride", "");
pub(super) const PAD: Setting = Setting::pair("pad", "0");
pub(super) const DILATION: Setting = Setting::pair("dilation", "1");
pub(super) const COUNT_INCLUDE_PAD: Setting = Setting::flag("count-include-pad");

/// Every kind of pooling, without its weights.
const KINDS: [PoolKind; 4] = [PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(Vec::new())];

/// The rows of `x`, the first input, with the lanes and the variant that are asked for.
fn rows(asked: &mut Asked<'_>, mut rows: Rows) -> Result<(Rows, HostArray)> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    (rows.rows, rows.n) = asked.rows("x", &x)?;
    rows.lanes = asked.settings().maybe("lanes")?;
    asked.variant().clone_into(&mut rows.variant);
    Ok((rows, x))
}

/// The form of an op that takes rows and nothing else; `op` makes it of them.
pub(super) fn of_rows<O>(asked: &mut Asked<'_>, base: Rows, op: impl FnOnce(Rows) -> O) -> Result<Form>
where
    O: Op<f32> + Op<f16> + 'static,
{
    let (rows, x) = rows(asked, base)?;
    let output = Role::Result(x.shape().to_vec());
    by_type!(asked, x.dtype(), [f32, f16], T => Ok(Form::new::<T>(op(rows), vec![Role::Given(x), output])))
}

/// The form of a norm, which `op` makes of its rows and of whether beta is given.
pub(super) fn of_norm<O>(asked: &mut Asked<'_>, base: Rows, op: impl FnOnce(Rows, bool) -> O) -> Result<Form>
where
    O: Op<f32> + Op<f16> + 'static,
{
    let (mut rows, x) = rows(asked, base)?;
    rows.eps = asked.settings().number("eps")?;
    let (dtype, output) = (x.dtype(), Role::Result(x.shape().to_vec()));
    let mut operands = vec![Role::Given(x), Role::Given(asked.like("gamma", &[rows.n])?)];
    let beta = asked.has_more();
    if beta {
        operands.push(Role::Given(asked.like("beta", &[rows.n])?));
    }
    operands.push(output);
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op(rows, beta), operands)))
}

/// The form of the gradients of what works on rows; `op` makes it of them.
pub(super) fn of_rows_backward<O>(
    asked: &mut Asked<'_>,
    mut base: RowsBackward,
    op: impl FnOnce(RowsBackward) -> O,
) -> Result<Form>
where
    O: Op<f32> + 'static,
{
    let norm = !matches!(base.of, Of::Softmax(_));
    let name = if norm { "x" } else { "y" };
    let input = asked.any(name)?;
    asked.check_type(&input)?;
    let ((rows, n), shape) = (asked.rows(name, &input)?, input.shape().to_vec());
    (base.rows, base.n) = (rows, n);
    asked.variant().clone_into(&mut base.variant);
    let (mut operands, mut results) = (vec![Role::Given(input)], vec![shape.clone()]);
    if norm {
        base.eps = asked.settings().number("eps")?;
        operands.push(Role::Given(asked.like("gamma", &[n])?));
        results.push(vec![n]);
    }
    if base.of == Of::LayerNorm {
        results.push(vec![n]);
    }
    operands.push(Role::Given(asked.like("dy", &shape)?));
    operands.extend(results.into_iter().map(Role::Result));
    Ok(Form::new::<f32>(op(base), operands))
}

/// The kind of a pooling, and its windows over planes of this shape.
pub(super) fn pooling(asked: &Asked<'_>, shape: [usize; 4]) -> Result<(PoolKind, Windows)> {
    let settings = asked.settings();
    let (kind, kernel) = kind_and_kernel(asked)?;
    let [h, w] = settings.pair("pad")?;
    let windows = Windows {
        stride: settings.pair_or("stride", kernel)?,
        pads: [h, w, h, w],
        dilation: settings.pair("dilation")?,
        padding_counts: settings.has("count-include-pad"),
        ..Windows::new(asked.name(), shape, kernel)
    };
    Ok((kind, windows))
}

/// The kind of a pooling, and the extents of its windows, which are those of the weights if it has any.
fn kind_and_kernel(asked: &Asked<'_>) -> Result<(PoolKind, [usize; 2])> {
    let (op, settings) = (asked.name(), asked.settings());
    let (name, kernel) = (settings.choice("kind")?, settings.pair("kernel")?);
    let kind = KINDS.into_iter().find(|kind| kind.name() == name).unwrap_or(PoolKind::Max);
    match (kind, settings.array("weights")) {
        (PoolKind::Weighted(_), Some(weights)) => {
            let extents = asked.dims("weights", weights)?;
            if settings.has("kernel") && extents != kernel {
                let kernel = shape_text(&kernel);
                return Err(err!(
                    Shape,
                    "{op}: weights are {weights}, --kernel says {kernel}; they must agree"
                ));
            }
            Ok((PoolKind::Weighted(weights.data().to_f32().into_owned()), extents))
        }
        (PoolKind::Weighted(_), None) => {
            Err(err!(InvalidArgument, "{op}: --kind weighted needs --weights FILE"))
        }
        (_, Some(_)) => Err(err!(InvalidArgument, "{op}: --weights belongs to --kind weighted")),
        (kind, None) => Ok((kind, kernel)),
    }
}
