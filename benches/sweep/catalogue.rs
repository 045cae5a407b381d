//! Shapes of the ops without a list of their own: the extents of the op's example are drawn, and so are its options.

use super::shapes::{Drawn, Kind, Random};
use tilework::program::{Ask, DeviceProfile, Domain, OpCall, Operation, Settings, Supply, Takes};
use tilework::{DType, HostArray, HostData, Result};

/// Elements of the first input at least and at most, on a card.
const ELEMENTS: [usize; 2] = [1 << 8, 1 << 25];

/// Bytes of all operands and operations of a shape at most, on a card.
const BYTES: f64 = 1e9;
const FLOP: f64 = 2e11;

/// How often a shape that the op rejects is drawn anew.
const TRIES: usize = 30;

/// Arrays of at most this many elements have contents, since planning reads filters.
const SEEN: usize = 1 << 10;

/// All ops that have a choice of variants on this device with each of their types but those of `listed`.
pub(crate) fn kinds(profile: &DeviceProfile, listed: &[Kind]) -> Vec<Kind> {
    let offered = |op: &&Operation| {
        let runs = (op.variants)().iter().filter(|v| v.requires.missing(profile).is_none());
        !op.solver && !op.matrix && !op.inputs.is_empty() && runs.count() > 1
    };
    let with_types =
        tilework::operations().filter(offered).flat_map(|op| op.types.iter().map(move |dtype| (op.name, dtype.name())));
    let unlisted = with_types.filter(|of| listed.iter().all(|kind| (kind.op, kind.dtype) != *of));
    unlisted.map(|(op, dtype)| Kind { op, dtype, draw: None }).collect()
}

/// Draws a shape of any op.
pub(crate) fn draw(kind: &Kind, random: &mut Random, part: f64, profile: &DeviceProfile) -> Option<Drawn> {
    let op = tilework::operations().find(|op| op.name == kind.op)?;
    (0..TRIES).find_map(|_| {
        let most = (ELEMENTS[1] as f64 * part) as usize;
        let shape = shape(random, op, most.max(ELEMENTS[0]));
        let mut drawn = Drawn::supplied(&shape, kind.dtype);
        drawn.options = options(random, op);
        let call = build(op, &settings(op, &drawn).ok()?, &drawn, "auto").ok()?;
        let program = call.lower(profile).ok()?;
        let bytes: u64 = program.operands.iter().map(|o| o.bytes()).sum();
        drawn.work = program.operands.iter().map(|o| o.len as f64).sum();
        (bytes as f64 <= BYTES * part.max(1e-2) && program.cost.flop <= FLOP * part).then_some(drawn)
    })
}

/// The axes of the example share a number of elements that is drawn. Short axes, such as channels, stay.
fn shape(random: &mut Random, op: &Operation, most: usize) -> Vec<usize> {
    let n = random.size(ELEMENTS[0], most) as f64;
    let example = op.example.shape;
    let open = |extent: &&usize| **extent > 4;
    let kept: usize = example.iter().filter(|extent| !open(extent)).product();
    let weights: Vec<f64> = example.iter().map(|_| 0.1 + random.unit()).collect();
    let sum: f64 = example.iter().zip(&weights).filter(|(e, _)| open(e)).map(|(_, w)| w).sum();
    let extent = |(extent, weight): (&usize, &f64)| {
        if !open(&extent) {
            return *extent;
        }
        let near = (n / kept.max(1) as f64).max(1.0).powf(weight / sum) as usize;
        random.size((near / 2).max(1), near.max(1))
    };
    example.iter().zip(&weights).map(extent).collect()
}

/// The options of the example; in one shape of three, other words and flags.
fn options(random: &mut Random, op: &Operation) -> std::collections::BTreeMap<String, String> {
    let example = op.example.options.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let mut options: std::collections::BTreeMap<_, _> = example.collect();
    if random.of(&[true, false, false]) {
        for option in op.options.iter().filter(|_| random.flip()).collect::<Vec<_>>() {
            match option.takes {
                Takes::Nothing => _ = options.insert(option.name.into(), "true".into()),
                Takes::Word(words) => _ = options.insert(option.name.into(), random.of(&words()).into()),
                Takes::Text(_) | Takes::Array(_) => {}
            }
        }
    }
    options
}

/// The options of a shape.
pub(crate) fn settings(op: &'static Operation, drawn: &Drawn) -> Result<Settings> {
    let mut settings = Settings::new(op);
    for (name, value) in &drawn.options {
        match value.as_str() {
            "true" => settings.flag(name)?,
            value => settings.text(name, value)?,
        }
    }
    Ok(settings)
}

/// The op on its first input and others that follow from it.
pub(crate) fn build(op: &'static Operation, settings: &Settings, drawn: &Drawn, variant: &str) -> Result<OpCall> {
    let first = drawn.inputs.first();
    let dtype = first.map_or(DType::F32, |(_, dtype)| super::shapes::dtype_of(dtype));
    let mut inputs = Inputs { op, dtype, first: first.map(|(shape, _)| shape.clone()) };
    op.build(Ask::new(settings).variant(variant).supplied_by(&mut inputs))
}

/// Makes the inputs. Those that a kernel may follow, such as indices, have contents; others get theirs on the device.
struct Inputs {
    op: &'static Operation,
    dtype: DType,
    first: Option<Vec<usize>>,
}

impl Supply for Inputs {
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> std::result::Result<HostArray, String> {
        let shape = self.first.take().or(shape.map(<[usize]>::to_vec)).ok_or(format!("{name} has no shape"))?;
        let n: usize = shape.iter().product();
        let dtype = dtype.unwrap_or(self.dtype);
        let domain = self.op.domain(name);
        let scattered = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) ^ (i as u32 >> 7);
        let array = match (below, domain) {
            (Some(below), _) if name.ends_with("offsets") => {
                let last = n.saturating_sub(1).max(1);
                HostArray::new(&shape, (0..n).map(|i| (i * (below - 1) / last) as u32).collect::<Vec<_>>())
            }
            (Some(below), _) => {
                let index = |i| ((u64::from(scattered(i)) * below as u64) >> 32) as u32;
                HostArray::new(&shape, (0..n).map(index).collect::<Vec<_>>())
            }
            (None, Domain::Meaningful) => return Err(format!("{name} has contents of its own")),
            (None, Domain::Increasing) => HostArray::new(&shape, numbers(dtype, n, |i| i as f32 / 3.0)),
            _ if n <= SEEN => HostArray::new(&shape, numbers(dtype, n, |i| (scattered(i) >> 26) as f32 / 64.0)),
            _ => HostArray::unseen(&shape, dtype),
        };
        array.map_err(|e| e.to_string())
    }
}

fn numbers(dtype: DType, n: usize, number: impl Fn(usize) -> f32) -> HostData {
    let all = (0..n).map(number);
    match dtype {
        DType::F16 => all.map(half::f16::from_f32).collect::<Vec<_>>().into(),
        DType::I32 => all.map(|x| x as i32).collect::<Vec<_>>().into(),
        DType::U32 => all.map(|x| x as u32).collect::<Vec<_>>().into(),
        DType::U8 => all.map(|x| x as u8).collect::<Vec<_>>().into(),
        DType::I8 => all.map(|x| x as i8).collect::<Vec<_>>().into(),
        _ => all.collect::<Vec<_>>().into(),
    }
}
