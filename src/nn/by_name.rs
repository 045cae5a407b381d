use super::pool::PoolKind;
use super::rows::Rows;
use super::rows_backward::{RowsBackward, RowsGradient};
use super::windows::Windows;
use crate::program::prelude::*;

/// The element types of most ops here.
pub(super) const FLOATS: [DType; 2] = [DType::F32, DType::F16];

pub(super) const LANES: Setting = Setting::number("lanes", "");
pub(super) const EPS: Setting = Setting::number("eps", "1e-5");

pub(super) const KIND: Setting = Setting::word("kind", || KINDS.map(|kind| kind.name()).to_vec());
pub(super) const WEIGHTS: Setting = Setting::array("weights", "(R, S)");
pub(super) const KERNEL: Setting = Setting::pair("kernel", "2");
pub(super) const STRIDE: Setting = Setting::pair("stride", "");
pub(super) const PAD: Setting = Setting::pair("pad", "0");
pub(super) const DILATION: Setting = Setting::pair("dilation", "1");
pub(super) const COUNT_INCLUDE_PAD: Setting = Setting::flag("count-include-pad");

const KINDS: [PoolKind; 4] = [PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(Vec::new())];

/// Reads `x`, the first input, as rows, with the lanes and variant from the options.
fn rows(asked: &mut Asked<'_>, mut rows: Rows) -> Result<(Rows, HostArray)> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    (rows.rows, rows.n) = asked.rows("x", &x)?;
    rows.lanes = asked.settings().maybe("lanes")?;
    asked.variant().clone_into(&mut rows.variant);
    Ok((rows, x))
}

/// Forms an op whose only input is rows.
pub(super) fn of_rows<O>(asked: &mut Asked<'_>, base: Rows, op: impl FnOnce(Rows) -> O) -> Result<OpCall>
where
    O: Op<f32> + Op<f16> + 'static,
{
    let (rows, x) = rows(asked, base)?;
    let output = Role::Result(x.shape().to_vec());
    by_type!(asked, x.dtype(), [f32, f16], T => Ok(OpCall::new::<T>(op(rows), vec![Role::Given(x), output])))
}

/// Forms a norm; `op` takes its rows and whether `beta` is given.
pub(super) fn of_norm<O>(asked: &mut Asked<'_>, base: Rows, op: impl FnOnce(Rows, bool) -> O) -> Result<OpCall>
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
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op(rows, beta), operands)))
}

pub(super) fn of_rows_backward<O>(
    asked: &mut Asked<'_>, mut base: RowsBackward, op: impl FnOnce(RowsBackward) -> O,
) -> Result<OpCall>
where
    O: Op<f32> + 'static,
{
    let norm = !matches!(base.of, RowsGradient::Softmax(_));
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
    if base.of == RowsGradient::LayerNorm {
        results.push(vec![n]);
    }
    operands.push(Role::Given(asked.like("dy", &shape)?));
    operands.extend(results.into_iter().map(Role::Result));
    Ok(OpCall::new::<f32>(op(base), operands))
}

pub(super) fn pooling(asked: &Asked<'_>, shape: [usize; 4]) -> Result<(PoolKind, Windows)> {
    let settings = asked.settings();
    let (kind, kernel) = kind_and_kernel(asked)?;
    let padding_counts = settings.has("count-include-pad");
    Ok((kind, Windows { padding_counts, ..windows(asked, shape, kernel)? }))
}

/// Reads the options of windows of `kernel` over planes of `shape`.
pub(super) fn windows(asked: &Asked<'_>, shape: [usize; 4], kernel: [usize; 2]) -> Result<Windows> {
    let settings = asked.settings();
    let [h, w] = settings.pair("pad")?;
    Ok(Windows {
        stride: settings.pair_or("stride", kernel)?,
        pads: [h, w, h, w],
        dilation: settings.pair("dilation")?,
        ..Windows::new(asked.name(), shape, kernel)
    })
}

/// Reads the kind of pooling and the extents of its windows; weights determine the extents.
fn kind_and_kernel(asked: &Asked<'_>) -> Result<(PoolKind, [usize; 2])> {
    let (op, settings) = (asked.name(), asked.settings());
    let (name, kernel) = (settings.choice("kind")?, settings.pair("kernel")?);
    let kind = KINDS.into_iter().find(|kind| kind.name() == name).unwrap_or(PoolKind::Max);
    match (kind, settings.array("weights")) {
        (PoolKind::Weighted(_), Some(weights)) => {
            let extents = asked.dims("weights", weights)?;
            if settings.has("kernel") && extents != kernel {
                let kernel = shape_text(&kernel);
                return Err(err!(Shape, "{op}: weights are {weights} and --kernel is {kernel}; they must agree"));
            }
            Ok((PoolKind::Weighted(weights.data().to_f32().into_owned()), extents))
        }
        (PoolKind::Weighted(_), None) => Err(err!(InvalidArgument, "{op}: --kind weighted needs --weights FILE")),
        (_, Some(_)) => Err(err!(InvalidArgument, "{op}: --weights needs --kind weighted")),
        (kind, None) => Ok((kind, kernel)),
    }
}
