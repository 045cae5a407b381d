//! Ops of the catalogue built by name, with odd shapes, types and options: for a fuzzer and for a seeded test.

use tilework::program::{Ask, DeviceProfile, Operation, Program, Settings, Supply, Takes};
use tilework::sparse::{Described, Format, MatrixLayout};
use tilework::{DType, HostArray, HostData};

/// The source of randomness.
pub(crate) trait Source {
    /// The next byte; zeros at the end.
    fn byte(&mut self) -> u8;

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    /// True once in `n`.
    fn rarely(&mut self, one_in: u8) -> bool {
        self.byte() % one_in == one_in - 1
    }

    /// Mostly small; around a power of two, or an extreme.
    fn extent(&mut self) -> usize {
        match self.byte() % 16 {
            0..=12 => self.below(70),
            13 => (1usize << self.below(64)).wrapping_add(self.below(4)).wrapping_sub(2),
            14 => self.below(3),
            _ => usize::MAX - self.below(3),
        }
    }

    /// One of a list, if it is not empty.
    fn one<'l, T>(&mut self, list: &'l [T]) -> Option<&'l T> {
        list.get(self.below(list.len()))
    }
}

const NUMBERS: [&str; 16] =
    ["1", "0", "2", "-1", "0.5", "NaN", "inf", "1e300", "1e-300", "4", "64", "4294967295", "x", "", "1,1", "3"];

/// A number as text, mostly valid for an option.
fn number(source: &mut impl Source) -> String {
    match source.byte() % 4 {
        0 => source.extent().to_string(),
        1 => (1u32 << source.below(10)).to_string(),
        _ => source.one(&NUMBERS).map_or(String::new(), |text| (*text).to_owned()),
    }
}

/// Odd inputs: mostly as the op expects, sometimes others.
struct Odd<'s, S> {
    source: &'s mut S,
    op: &'static Operation,
}

impl<S: Source> Odd<'_, S> {
    fn array(&mut self, shape: &[usize], dtype: DType) -> tilework::Result<HostArray> {
        let n = shape.iter().try_fold(1usize, |n, extent| n.checked_mul(*extent));
        // Contents that planning reads are small.
        match (n, dtype) {
            (Some(n @ ..=200), DType::F32) => {
                let odd = [f32::NAN, f32::INFINITY, 1e-40, f32::MAX];
                let all_odd = self.source.rarely(6);
                let value = |_| {
                    let odd = self.source.one(&odd).filter(|_| all_odd && self.source.rarely(3));
                    odd.copied().unwrap_or(f32::from(self.source.byte()) / 64.0)
                };
                HostArray::new(shape, (0..n).map(value).collect::<Vec<f32>>())
            }
            _ => HostArray::unseen(shape, dtype),
        }
    }
}

impl<S: Source> Supply for Odd<'_, S> {
    fn supply(
        &mut self, _: &str, shape: Option<&[usize]>, dtype: Option<DType>, _: Option<usize>,
    ) -> Result<HostArray, String> {
        let small = self.op.example.shape;
        let shape = shape.or(self.source.rarely(4).then_some(small));
        let rank = if self.source.rarely(12) { self.source.below(6) } else { small.len() };
        let drawn: Vec<_> = (0..rank).map(|_| self.source.extent()).collect();
        let shape = shape.filter(|_| !self.source.rarely(12)).map_or(drawn, <[usize]>::to_vec);
        let any = if self.source.rarely(8) { &HostData::TYPES[..] } else { self.op.types };
        let own = self.source.one(any).copied().unwrap_or(DType::F32);
        let dtype = dtype.filter(|_| !self.source.rarely(16)).unwrap_or(own);
        self.array(&shape, dtype).map_err(|e| e.to_string())
    }

    fn has_more(&self) -> bool {
        // The type of the op's first input.
        self.op.inputs.iter().any(|input| input.optional)
    }
}

/// Options with valid and invalid values.
fn settings(source: &mut impl Source, op: &'static Operation) -> Settings {
    let mut settings = Settings::new(op);
    for option in op.options {
        let wanted = op.example.options.iter().find(|(name, _)| *name == option.name);
        if wanted.is_none() && !source.rarely(4) {
            continue;
        }
        // A rejected option is skipped.
        let _ = match (option.takes, wanted) {
            (_, Some((name, value))) if !source.rarely(4) => settings.text(name, *value),
            (Takes::Nothing, _) => settings.flag(option.name),
            (Takes::Word(words), _) => {
                let words = words();
                let word = source.one(&words).filter(|_| !source.rarely(16)).copied();
                settings.text(option.name, word.unwrap_or("no such word"))
            }
            (Takes::Text(form), _) => {
                let parts: Vec<_> = form.split(',').map(|_| number(source)).collect();
                settings.text(option.name, parts.join(","))
            }
            (Takes::Array(_), _) => {
                let shape: Vec<_> = (0..source.below(3)).map(|_| source.extent()).collect();
                let made = Odd { source, op }.array(&shape, DType::F32);
                made.and_then(|array| settings.with_array(option.name, array))
            }
        };
    }
    settings
}

fn layout(source: &mut impl Source) -> MatrixLayout {
    let format = match source.below(7) {
        0 => Format::Coo { sorted: source.rarely(2) },
        1 => Format::Csr,
        2 => Format::Csc,
        3 => Format::Ell { width: source.extent() },
        4 => Format::Hybrid { width: source.extent(), list: source.extent(), sorted: source.rarely(2) },
        5 => Format::Jds,
        _ => Format::Sell { slice: source.extent(), places: source.extent() },
    };
    let types = [DType::F32, DType::F16, DType::U8];
    let values = source.one(&types).copied().unwrap_or(DType::F32);
    let [rows, cols, entries, longest] = [0; 4].map(|_| source.extent());
    MatrixLayout { rows, cols, entries, longest, format, values }
}

/// Mostly `auto`, otherwise a variant of the op or an unknown name.
pub(crate) fn variant(source: &mut impl Source, op: &Operation) -> &'static str {
    if source.rarely(2) {
        return "auto";
    }
    source.one((op.variants)()).filter(|_| !source.rarely(16)).map_or("no such variant", |v| v.name)
}

/// One op, lowered: a program or an error.
pub(crate) fn lowered(
    source: &mut impl Source, op: &'static Operation, profile: &DeviceProfile,
) -> tilework::Result<Program> {
    let settings = settings(source, op);
    let variant = variant(source, op);
    let (from, to) = (layout(source), layout(source));
    let described = Described { layout: from, statistics: None, to: (!source.rarely(4)).then_some(to) };
    let mut odd = Odd { source, op };
    let mut ask = Ask::new(&settings).variant(variant).supplied_by(&mut odd);
    if op.matrix {
        ask = ask.matrix(Vec::new(), &described);
    }
    op.build(ask)?.lower(profile)
}
