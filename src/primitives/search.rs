use super::DTYPES;
use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("bisection", "a thread bisects for one needle"),
    Variant::portable("tree", "first writes an index of every 8th key, every 64th, and so on"),
];

kernel_params! { struct SearchParams { n: u32, needles: u32, levels: u32, top: u32 } }

/// Maximum of keys in the highest level of a tree: what lies in workgroup memory.
const TOP: usize = 2048;
const TREE_NEEDLES: u32 = 8;

/// The variant that `auto` takes for this many elements and needles, and why. 2^26 needles in 2^26 u32 on an H100
/// (Vulkan, driver 580.159.04): random ones 1,728 us with `tree`, 154 of which write the index, and 5,111 with
/// `bisection`; ascending ones 1,149 and 981.
fn policy(n: usize, needles: usize, profile: &DeviceProfile) -> (&'static str, String) {
    if !profile.quirks.serial_workgroups && n >= 1 << 22 && needles >= n / 4 {
        ("tree", "each level of the index is one access to memory, for three steps".into())
    } else {
        ("bisection", "an index would be read too rarely".into())
    }
}

const SORTED_LENGTH: Setting = Setting::array("sorted-length", "u32 (1)");

/// What the two bounds have in common.
pub(super) const SEARCH: Operation = Operation {
    inputs: &[Input::new("sorted", "(n)"), Input::new("needles", "(m)")],
    outputs: &[("output", "(m)")],
    types: &DTYPES,
    options: &[SORTED_LENGTH, LENGTH],
    domains: &[("sorted", crate::program::Domain::Increasing)],
    variants: || VARIANTS,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

pub(super) fn lower(
    (op, file): (&'static str, &'static str), form: &SearchForm, dtype: DType, profile: &DeviceProfile,
) -> Result<Program> {
    let SearchForm { n, needles, .. } = *form;
    let (variant, decision) = choose(op, &form.variant, VARIANTS, profile, || policy(n, needles, profile))?;
    let mut program = Program::new(op, decision);
    let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
    program.operands =
        vec![operand("sorted", dtype, n, Access::Read), operand("needles", dtype, needles, Access::Read)];
    let lengths = [("sorted_length", form.sorted_counted), (LENGTH.name, form.counted)];
    let lengths = lengths.map(|(name, counted)| {
        counted.then(|| {
            program.operands.push(operand(name, DType::U32, 1, Access::Read));
            program.operands.len() - 1
        })
    });
    program.operands.push(operand("output", DType::U32, needles, Access::Write));
    profile.check_bindings(op, &program.operands, "search parts in separate calls")?;
    // Each needle reads a path of its own, at most.
    let steps = f64::from(n.checked_ilog2().map_or(0, |steps| steps + 1));
    let found = needles as f64 * (4.0 + dtype.size() as f64);
    let read = (needles as f64 * steps).min(n as f64) * dtype.size() as f64;
    program.cost = Cost { flop: needles as f64 * steps, bytes: found + read };
    if needles == 0 {
        return Ok(program);
    }
    let spec = Spec::new().slot("element", element_fragment(dtype));
    let spec = spec.flag("FLOAT", dtype.is_float()).flag("SIGNED", dtype == DType::I32);
    let mut params = SearchParams { n: n as u32, needles: needles as u32, levels: 0, top: 0 };
    let operands = [0, 1, program.operands.len() - 1];
    let mut bindings = operands.map(|i| Binding::operand(i, &program.operands)).to_vec();
    let [of_sorted, of_needles] = lengths.map(|at| at.map(|i| Binding::operand(i, &program.operands)));
    let spec = spec.flag("SORTED_COUNTED", form.sorted_counted);
    let (mut of_search, mut each) = (spec.clone(), 256);
    if variant.name == "tree" {
        let mut highest = n.div_ceil(8);
        params.levels = 1;
        while highest > TOP {
            params.top += highest as u32;
            params.levels += 1;
            highest = highest.div_ceil(8);
        }
        let keys = params.top as usize + highest;
        let tree = program.scratch(4 * keys.max(1) as u64);
        if n > 0 {
            let spec = placed(spec, form, 3);
            let kernel = program.kernel(Kernel::of_file("primitives/search_tree", spec));
            let grid = Grid::fold((keys as u64).div_ceil(256));
            program.dispatch(kernel, &params, [bindings[0], tree].into_iter().chain(of_sorted).collect(), grid);
        }
        bindings.push(tree);
        of_search = of_search.flag("TREE", true).constant("NEEDLES", TREE_NEEDLES);
        each *= u64::from(TREE_NEEDLES);
    }
    let of_search = placed(of_search, form, 1 + bindings.len() as u32);
    bindings.extend(of_sorted);
    let of_search = limited(of_search, form.counted, 1 + bindings.len() as u32);
    bindings.extend(of_needles);
    let kernel = program.kernel(Kernel::of_file(file, of_search));
    let at = program.dispatches.len();
    program.dispatch(kernel, &params, bindings, Grid::fold((needles as u64).div_ceil(each)));
    if let Some(length) = of_needles {
        let held = index_u32(op, "needles", needles)?;
        launch_for(&mut program, length, &[(at, Covered::new(0, held, each as u32))]);
    }
    Ok(program)
}

/// Tells a kernel which binding has the number of sorted elements, if the device counts them.
fn placed(spec: Spec, form: &SearchForm, at: u32) -> Spec {
    if form.sorted_counted { spec.constant("SORTED_LENGTH_BINDING", at) } else { spec }
}

/// What both ops are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchForm {
    pub(super) n: usize,
    pub(super) needles: usize,
    pub(super) sorted_counted: bool,
    /// Reads the number of needles from an operand.
    pub(super) counted: bool,
    pub(super) variant: String,
}

impl SearchForm {
    pub(super) fn new(n: usize, needles: usize) -> Self {
        Self { n, needles, sorted_counted: false, counted: false, variant: "auto".into() }
    }
}

/// The options by which both ops read lengths from the device.
macro_rules! search_lengths {
    () => {
        counted!(form.counted, "needles", "Behind as many elements, `output` may hold anything.");

        /// Reads the number of sorted elements, at most `n`, from the device: an operand `sorted_length` of one u32,
        /// which plans take by `with_sorted_length`. A number above `n` counts as `n`.
        #[must_use]
        pub fn sorted_counted(mut self) -> Self {
            self.form.sorted_counted = true;
            self
        }
    };
}
pub(super) use search_lengths;

pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(SearchForm, DType, Vec<Role>)> {
    let (sorted, [n]) = asked.array("sorted")?;
    asked.check_type(&sorted)?;
    let dtype = sorted.dtype();
    let (needles, [m]) = asked.free_of("needles", [n], dtype)?;
    let of_sorted = asked.named_of(SORTED_LENGTH.name, &[1], DType::U32)?;
    let (length, output) = asked.length(1, vec![m])?;
    let (sorted_counted, counted) = (of_sorted.is_some(), length.is_some());
    let form = SearchForm { sorted_counted, counted, variant: asked.variant().into(), ..SearchForm::new(n, m) };
    let inputs = [sorted, needles].into_iter().chain(of_sorted).map(Role::Given);
    Ok((form, dtype, inputs.chain(length).chain([output]).collect()))
}
