//! Cases of ops without their own: formed by name, with random options, shapes and contents, and compared with
//! the op's reference.

use super::draw::Draw;
use super::guarded::Case;
use half::f16;
use tilework::program::{Ask, DeviceProfile, Form, Operation, Settings, Supply, Takes};
use tilework::{DType, HostArray, HostData, reference};

/// Inputs with the shape of the first one.
struct Inputs<'d> {
    draw: &'d mut Draw,
    first: Option<Vec<usize>>,
    dtype: DType,
}

impl Supply for Inputs<'_> {
    fn supply(
        &mut self,
        name: &str,
        shape: Option<&[usize]>,
        dtype: Option<DType>,
        below: Option<usize>,
    ) -> Result<HostArray, String> {
        let first = self.first.take();
        let shape = first.or(shape.map(<[usize]>::to_vec)).ok_or(format!("{name} has no shape"))?;
        let n = shape.iter().product();
        let data: HostData = match (dtype.unwrap_or(self.dtype), below) {
            (DType::U32, Some(2)) => self.draw.flags(n).into(),
            (DType::U32, Some(below)) => self.draw.indices(n, below).into(),
            (DType::F32, _) => self.draw.special::<f32>(n).into(),
            (DType::F16, _) => self.draw.special::<f16>(n).into(),
            (DType::I32, _) => self.draw.special::<i32>(n).into(),
            (DType::U32, _) => self.draw.special::<u32>(n).into(),
            (DType::U8, _) => self.draw.special::<u8>(n).into(),
            _ => self.draw.special::<i8>(n).into(),
        };
        HostArray::new(&shape, data).map_err(|e| e.to_string())
    }
}

/// Words, flags and a few numbers, and the options that the example requires.
fn settings(draw: &mut Draw, op: &'static Operation) -> Settings {
    let mut settings = Settings::new(op);
    for option in op.options {
        let wanted = op.example.options.iter().find(|(name, _)| *name == option.name);
        // Option names belong to the op and do not repeat.
        match (option.takes, wanted) {
            (_, Some((name, value))) => settings.text(name, *value).unwrap(),
            (Takes::Nothing, None) if draw.option(&[false, true]) => settings.flag(option.name).unwrap(),
            (Takes::Word(words), None) => settings.text(option.name, draw.option(&words())).unwrap(),
            (Takes::Text("N"), None) if !option.default.is_empty() => {
                settings.text(option.name, draw.option(&[option.default, "1", "3", "5"])).unwrap();
            }
            _ => {}
        }
    }
    settings
}

/// The op on these inputs, if it and its reference accept them.
fn form(
    draw: &mut Draw,
    settings: &Settings,
    (shape, dtype): (&[usize], DType),
    variant: &str,
) -> Option<Case> {
    let op = settings.op();
    let mut inputs = Inputs { draw, first: Some(shape.to_vec()), dtype };
    let form: Form = op.form(Ask::new(settings).variant(variant).supplied_by(&mut inputs)).ok()?;
    form.lower(&DeviceProfile::h100()).ok()?;
    let wanted = reference::wanted(op, &form).ok()??;
    Some(Case::formed(format!("{dtype} {shape:?} by {variant}, {settings:?}"), form, wanted))
}

/// A case of the op, or its example if the drawn options are inconsistent.
pub(super) fn case(draw: &mut Draw, op: &'static Operation) -> Case {
    let settings = settings(draw, op);
    let dtype = draw.option(op.types);
    let variant = draw.variant((op.variants)());
    let shape: Vec<_> = op.example.shape.iter().map(|extent| draw.length(1, 3 * extent)).collect();
    let drawn = form(draw, &settings, (&shape, dtype), variant);
    drawn.unwrap_or_else(|| {
        let mut plain = Settings::new(op);
        for (name, value) in op.example.options {
            plain.text(name, *value).unwrap();
        }
        form(draw, &plain, (op.example.shape, op.types[0]), variant).expect("an example is a case")
    })
}
