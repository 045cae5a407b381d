mod levels;

pub(super) use levels::{Levels, rooms};

use super::compact::{VARIANTS, policy};
use super::select::Select;
use crate::program::prelude::*;

kernel_params! { struct OpenParams { children: u32, room: u32, most: u32, each: u32 } }

/// Makes the work list of the next level of a tree, a search or a refinement: `list` has the items with a nonzero flag,
/// in order, and `children` is `min(wanted, room / k) * k`, with `k` children for each of the `wanted` listed items.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // Items 11 and 13 want to split into 4 children each.
/// let gpu = Gpu::new()?;
/// let (items, flags) = (gpu.upload(&[10u32, 11, 12, 13])?, gpu.upload(&[0u32, 1, 0, 1])?);
/// let (length, list) = (gpu.upload(&[4u32])?, gpu.alloc::<u32>(4)?);
/// let (children, wanted) = (gpu.alloc::<u32>(1)?, gpu.alloc::<u32>(1)?);
/// let frontier = Frontier::new(4).children(4).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// frontier.record(&mut rec, &items, &flags, &length, &list, &children, &wanted)?;
/// // A kernel of your own follows: `kernel.record_counted(&mut rec, args, &children, 64, 16)`.
/// rec.submit()?;
/// assert_eq!((list.slice(..2)?.read()?, children.read()?), (vec![11, 13], vec![8]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// One level of a tree takes this op and one kernel, which runs over `children` by
/// [`OwnKernel::record_counted`](crate::gpu::OwnKernel::record_counted). It makes child `i` of item `list[i / k]`, and
/// flags it for the next level. All levels are recorded at once; no count returns to the host. [`Quadtree`] and
/// [`AdaptiveGrid`] are made this way.
///
/// [`Quadtree`]: crate::Quadtree
/// [`AdaptiveGrid`]: crate::AdaptiveGrid
///
/// # Shapes
/// `items`, `flags` and `list` have `n` u32 each; `length`, `children` and `wanted` have one. `length` is the number of
/// items there are; a number above `n` counts as `n`. Elements of `list` behind the first `wanted` are not written. If
/// `children` is below `wanted * k`, there was no [`room`](Frontier::room) for the rest: the items from
/// `list[children / k]` on get none. `n` may be 0.
///
/// # Precision and determinism
/// Words are moved and counted. Every variant gives the same list in every run.
///
/// # Cost
/// That of [`Select`], and one dispatch of one thread.
///
/// # Variants
/// As [`Select`].
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): 0 children, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that the device cannot run.
///
/// # Algorithm
/// Dynamic parallelism without launches from the device: a stable compaction, and a count that the next indirect
/// dispatch reads; `shaders/primitives/frontier_open.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontier {
    n: usize,
    children: u32,
    room: u32,
    variant: String,
}

impl Frontier {
    /// Lists some of `n` items, each with one child.
    pub fn new(n: usize) -> Self {
        Self { n, children: 1, room: u32::MAX, variant: "auto".into() }
    }

    /// Sets the number of children of a listed item. The default is 1.
    #[must_use]
    pub fn children(mut self, each: u32) -> Self {
        self.children = each;
        self
    }

    /// Sets how many children there is room for. The default is 2^32 - 1.
    #[must_use]
    pub fn room(mut self, children: u32) -> Self {
        self.room = children;
        self
    }

    variants!(variant);

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, children, room, .. } = *self;
        index_u32(INFO.name, "n", n)?;
        if children == 0 {
            return Err(err!(InvalidArgument, "frontier: an item has 0 children; use at least 1"));
        }
        let mut program = Program::new(INFO.name, decision(INFO.name, &self.variant, n, profile)?);
        let operand = |name, len, access| Operand { name, dtype: DType::U32, len, access };
        program.operands = vec![
            operand("items", n, Access::Read),
            operand("flags", n, Access::Read),
            operand("length", 1, Access::Read),
            operand("list", n, Access::Write),
            operand("children", 1, Access::Write),
            operand("wanted", 1, Access::Write),
        ];
        profile.check_bindings(INFO.name, &program.operands, "split the list")?;
        program.cost = Cost { flop: n as f64, bytes: 8.0 * n as f64 };
        let select = Select::new(n).counted().variant(program.variant());
        program.append(Op::<u32>::lower(&select, profile)?, &[0, 1, 2, 3, 5].map(Resource::Operand));
        let open = program.kernel(Kernel::of_file("primitives/frontier_open", Spec::new()));
        let bindings = [5, 4].map(|i| Binding::operand(i, &program.operands)).to_vec();
        program.dispatch(open, &OpenParams { children, room, most: 0, each: 0 }, bindings, Grid::fold(1));
        Ok(program)
    }
}

pub(super) fn decision(op: &'static str, asked: &str, n: usize, profile: &DeviceProfile) -> Result<Decision> {
    Ok(choose(op, asked, VARIANTS, profile, || policy(n, true, profile))?.1)
}

operands! {
    impl[] Frontier, u32 {
        fn record(items: u32, flags: u32, length: u32, list: u32, children: u32, wanted: u32);
    }
}

lowered_as!(Frontier: u32);

pub(super) const INFO: Operation = Operation {
    name: "frontier",
    about: "the items whose flag is not 0, in order, and how many children there is room for",
    inputs: &[Input::new("items", "(n)"), Input::new("flags", "u32 (n)")],
    outputs: &[("list", "u32 (count)"), ("children", "u32 (1)")],
    types: &[DType::U32],
    options: &[LENGTH, Setting::number("children", "1"), Setting::number("room", "4294967295")],
    domains: &[("items", Domain::Bits)],
    make: Some(make),
    variants: Frontier::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (items, [n]) = asked.array("items")?;
    asked.check_type(&items)?;
    let flags = asked.indices("flags", &[n], 2)?;
    let settings = asked.settings();
    let op = Frontier::new(n).variant(asked.variant());
    let op = op.children(settings.number("children")?).room(settings.number("room")?);
    let length = match asked.named_of("length", &[1], DType::U32)? {
        Some(length) => length,
        None => HostArray::new(&[1], vec![index_u32(INFO.name, "n", n)?])?,
    };
    let mut operands: Vec<_> = [items, flags, length].into_iter().map(Role::Given).collect();
    operands.extend([Role::Counted, Role::Result(vec![1]), Role::Count]);
    Ok(OpCall::new::<u32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Frontier::new(10_000).children(4).room(1000).variant(variant);
    Ok(vec![Op::<u32>::lower(&op, profile)?])
}
