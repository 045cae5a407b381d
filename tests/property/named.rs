//! Cases built by name: options, shapes and contents as the declaration allows, compared with the op's reference.

use super::draw::Draw;
use super::guarded::Case;
use crate::support::Sample;
use half::f16;
use tilework::program::{Ask, DeviceProfile, Domain, OpCall, Operation, Settings, Supply, Takes};
use tilework::{DType, HostArray, HostData, reference};

/// How often a drawn request may be rejected before the op's example takes its place.
const TRIES: usize = 40;

/// The longest array of one axis.
const LONGEST: usize = 40_000;

/// Makes the inputs of a request. The first has a given shape.
struct Inputs<'d> {
    draw: &'d mut Draw,
    op: &'static Operation,
    /// The word of the option `op`.
    operator: String,
    first: Option<Vec<usize>>,
    dtype: DType,
    more: bool,
    /// Whether extents are those that fit, as in the op's example.
    fitting: bool,
}

/// Elements of a type that its domain allows.
fn elements<T: Sample>(draw: &mut Draw, domain: Domain, operator: &str, shape: &[usize]) -> Vec<T> {
    let n = shape.iter().product();
    let by =
        |draw: &mut Draw, f: fn(f64) -> f64| draw.numbers::<T>(n).iter().map(|x| T::from_f64(f(x.to_f64()))).collect();
    match domain {
        Domain::Combined if T::DTYPE.is_float() && ["prod", "affine", "recurrence"].contains(&operator) => {
            by(draw, |x| 1.0 + 0.01 * x)
        }
        Domain::Combined
            if !T::DTYPE.is_float() || !["sum", "meanvar", "samplevar", "logsumexp"].contains(&operator) =>
        {
            draw.any(n)
        }
        Domain::Bits | Domain::BelowLengthOf(_) => draw.any(n),
        Domain::Runs => draw.runs(n),
        Domain::Finite => draw.numbers(n),
        Domain::NotNegative => draw.special::<T>(n).iter().map(|x| T::from_f64(x.to_f64().abs())).collect(),
        Domain::Shares => by(draw, |x| 0.5 + 0.4 * x),
        Domain::Eighths => draw.eighths(shape).into_iter().map(T::from_f64).collect(),
        Domain::Increasing => (0..n).map(|i| T::from_f64(0.3 * (i * i) as f64 - 1.0)).collect(),
        Domain::Any | Domain::Combined | Domain::Meaningful => draw.special(n),
    }
}

impl Inputs<'_> {
    fn array(&mut self, name: &str, shape: &[usize], dtype: DType) -> HostArray {
        let (draw, domain, operator) = (&mut *self.draw, self.op.domain(name), &self.operator);
        let data: HostData = match dtype {
            DType::F32 => elements::<f32>(draw, domain, operator, shape).into(),
            DType::F16 => elements::<f16>(draw, domain, operator, shape).into(),
            DType::I32 => elements::<i32>(draw, domain, operator, shape).into(),
            DType::U32 => elements::<u32>(draw, domain, operator, shape).into(),
            DType::U8 => elements::<u8>(draw, domain, operator, shape).into(),
            _ => elements::<i8>(draw, domain, operator, shape).into(),
        };
        HostArray::new(shape, data).expect("as many elements as the shape has")
    }
}

impl Supply for Inputs<'_> {
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray, String> {
        let first = self.first.take();
        let shape = first.or(shape.map(<[usize]>::to_vec)).ok_or(format!("{name} has no shape"))?;
        let (n, dtype) = (shape.iter().product(), dtype.unwrap_or(self.dtype));
        match below {
            Some(2) => HostArray::new(&shape, self.draw.flags(n)).map_err(|e| e.to_string()),
            Some(below) => HostArray::new(&shape, self.draw.indices(n, below)).map_err(|e| e.to_string()),
            None => Ok(self.array(name, &shape, dtype)),
        }
    }

    fn has_more(&self) -> bool {
        self.more
    }

    fn extents(&mut self, _: &str, usual: &[usize]) -> Vec<usize> {
        if self.fitting {
            return usual.to_vec();
        }
        usual.iter().map(|&extent| self.draw.option(&[extent, extent, 1, 3, 5, 8])).collect()
    }

    fn option(&mut self, name: &str, shape: &[usize], dtype: DType) -> Option<HostArray> {
        let counts = dtype == DType::U32 && shape == [1];
        self.draw.option(&[false, true]).then(|| match counts {
            true => HostArray::new(shape, vec![self.draw.length(0, LONGEST + 2) as u32]).expect("one count"),
            false => self.array(name, shape, dtype),
        })
    }
}

/// Words, flags, numbers and small arrays, and the options that the example requires.
fn settings(draw: &mut Draw, op: &'static Operation) -> Option<Settings> {
    const NUMBERS: [&str; 9] = ["1", "3", "2", "5", "64", "0", "0.5", "-2.5", "-2"];
    let mut settings = Settings::new(op);
    for option in op.options {
        let wanted = op.example.options.iter().find(|(name, _)| *name == option.name);
        let rarely = draw.option(&[false, false, false, true]);
        let given = match (option.takes, wanted) {
            (_, Some((name, value))) if !rarely => settings.text(name, *value),
            (_, Some(_)) if draw.option(&[true, false]) => Ok(()),
            (Takes::Nothing, _) if draw.option(&[false, true]) => settings.flag(option.name),
            (Takes::Word(words), _) => settings.text(option.name, draw.option(&words())),
            (Takes::Text("N"), _) if wanted.is_some() || !option.default.is_empty() || rarely => {
                let usual = if option.default.is_empty() { NUMBERS[0] } else { option.default };
                let other = draw.option(&NUMBERS);
                settings.text(option.name, draw.option(&[usual, other]))
            }
            (Takes::Text("N|H,W"), _) => settings.text(option.name, draw.option(&["1", "2", "1,2", "0", "3"])),
            // References know no functions in WGSL.
            (Takes::Text("FILE"), _) => Ok(()),
            (Takes::Text(form), _) if rarely => {
                let parts: Vec<_> = form.split(',').map(|_| draw.option(&["0", "1", "4", "20", "32"])).collect();
                settings.text(option.name, parts.join(","))
            }
            // Arrays of other shapes are supplied when the op asks for them.
            (Takes::Array(shape), _) if rarely && !shape.contains("u32") => {
                let axes = shape.split(',').count();
                let extents: Vec<_> = (0..axes).map(|_| draw.option(&[2, 3, 9, 1])).collect();
                let values = elements::<f32>(draw, op.domain(option.name), "", &extents);
                settings.with_array(option.name, HostArray::new(&extents, values).ok()?)
            }
            _ => Ok(()),
        };
        given.ok()?;
    }
    Some(settings)
}

/// A shape of the first input: one of those that it declares, with more elements on fewer axes.
fn shape(draw: &mut Draw, op: &'static Operation) -> Vec<usize> {
    let Some(first) = op.inputs.first() else { return Vec::new() };
    let formula = first.shape;
    let all: Vec<_> = formula.split("; ").flat_map(|case| case.split(" or ")).collect();
    let all: Vec<_> = all.iter().filter_map(|s| s.split('(').nth(1)?.split(')').next()).collect();
    let names: Vec<&str> = if all.is_empty() { vec!["..."] } else { draw.option(&all).split(", ").collect() };
    let free = draw.option(&[1, 0, 2]).max(usize::from(names.len() == 1));
    let names = names.into_iter().flat_map(|name| vec![name; if name == "..." { free } else { 1 }]);
    let names: Vec<_> = names.collect();
    let squares = op.outputs.iter().any(|(_, shape)| shape.starts_with("(n, n)"));
    let most: &[usize] = match names.len() {
        0 | 1 if squares => &[300],
        0 | 1 => &[LONGEST],
        2 => &[70, 300],
        3 => &[9, 60, 90],
        _ => &[3, 5, 20, 24],
    };
    let extent = |(name, most): (&&str, &usize)| match *name {
        "c" => draw.option(&[1, 3, 4, 2]),
        name => name.parse().unwrap_or_else(|_| draw.length(0, *most)),
    };
    names.iter().zip(most).map(extent).collect()
}

/// The request as a case, if the op and its reference accept it.
fn built(
    draw: &mut Draw, settings: &Settings, (shape, dtype): (&[usize], DType), (variant, fitting): (&str, bool),
) -> Option<Case> {
    let op = settings.op();
    let (operator, more) = (settings.word("op").unwrap_or_default().to_owned(), draw.option(&[false, true]));
    let mut inputs = Inputs { draw, op, operator, first: Some(shape.to_vec()), dtype, more, fitting };
    let call: OpCall = op.build(Ask::new(settings).variant(variant).supplied_by(&mut inputs)).ok()?;
    call.lower(&DeviceProfile::h100()).ok()?;
    let wanted = reference::wanted(op, &call).ok()??;
    Some(Case::built(format!("{dtype} {shape:?} by {variant}, {settings:?}"), call, wanted))
}

/// A case of the op, or its example if nothing that was drawn is accepted.
pub(super) fn case(draw: &mut Draw, op: &'static Operation) -> Case {
    let dtype = draw.option(op.types);
    let variant = draw.variant((op.variants)());
    let first = shape(draw, op);
    for attempt in 0..TRIES {
        let again = if attempt < TRIES / 4 { first.clone() } else { shape(draw, op) };
        let drawn = settings(draw, op).and_then(|s| built(draw, &s, (&again, dtype), (variant, false)));
        if let Some(case) = drawn {
            return case;
        }
    }
    let mut plain = Settings::new(op);
    for (name, value) in op.example.options {
        plain.text(name, *value).unwrap();
    }
    let example = (op.example.shape, op.types[0]);
    let named = [variant, "auto"].iter().find_map(|variant| built(draw, &plain, example, (variant, true)));
    named.expect("an example is a case")
}
