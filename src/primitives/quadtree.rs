use super::compact::VARIANTS;
use super::frontier::{Levels, decision, rooms};
use super::{Partition, RadixSort};
use crate::program::prelude::*;

kernel_params! { struct PointParams { n: u32 } }
kernel_params! {
    struct RootParams { low: [f32; 2], side: f32, given: u32, capacity: u32, depth: u32 }
}
kernel_params! { struct DivideParams { capacity: u32, level: u32, depth: u32 } }

const WORDS: usize = 6;
/// The deepest level, whose nodes are single columns and rows of 2^16.
const DEEPEST: u32 = 16;
/// Threads of a workgroup of each kernel.
const WORKGROUP_SIZE: u32 = 256;

/// Builds a quadtree over `n` points: a square with more than `capacity` points is split into four, down to `depth`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let points = gpu.upload(&[0.0f32, 0.0, 1.0, 1.0, 0.6, 0.2])?; // x, y, x, y, ...
/// let tree = Quadtree::new(3).capacity(1);
/// let (nodes, count) = (gpu.alloc::<u32>(6 * tree.max_nodes())?, gpu.alloc::<u32>(1)?);
/// let plan = tree.plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &points, &nodes, &count)?;
/// rec.submit()?;
/// assert_eq!(count.read()?, [5]);
/// let none = u32::MAX;
/// let root = [1, 0, 3, 0, 0, 0]; // first child, first point, points, level, x, y
/// let lower_left = [none, 0, 1, 1, 0, 0];
/// assert_eq!(nodes.slice(..12)?.read()?, [root, lower_left].concat());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `points` has `2 n` f32: x and y of each point. `nodes` has 6 [`max_nodes`](Quadtree::max_nodes) u32, of which 6
/// `count` are written: for each node
///
/// | word | holds |
/// |---|---|
/// | 0 | the first of its four children, by number; 2^32 - 1 for a leaf |
/// | 1, 2 | its points: the first one, and their number, in the order of the tree |
/// | 3 | its level; the root has 0 |
/// | 4, 5 | column and row among the 2^level x 2^level squares of its level |
///
/// Nodes are ordered by level, and children by their parents: lower left, lower right, upper left, upper right, where
/// y grows upwards. [`with_order`](Quadtree::with_order) adds an operand `order` of `n` u32, the indices of the points
/// in the order of the tree: the points of each node are consecutive. They are sorted by the square of level `depth`
/// that holds them, and then by index.
///
/// The root is the smallest square around the points with its lower left corner at their least coordinates, or
/// that of [`square`](Quadtree::square). A point on a border belongs to the square that begins there; one outside of a
/// given square belongs to the nearest one at its border. Points with a coordinate that is NaN, or at least 2^126 in
/// size, belong to no node and come last in `order`. Equal points end in one leaf of level `depth` if they are more
/// than `capacity`. Without points the root is a leaf with 0 points.
///
/// A node without room for four children in `nodes` stays a leaf: one above level `depth` with more than `capacity`
/// points. There is always room unless [`limit`](Quadtree::limit) is set.
///
/// # Precision and determinism
/// The position of a point is one subtraction, one product and a floor. The same points give the same tree in every run
/// and by every variant; [`reference::quadtree`](crate::reference::quadtree) is equal to it in every bit.
///
/// # Cost
/// A pass over the points, a partition, a radix sort of `2 depth` bits with u32 values, and for each level a
/// [`Frontier`] and one indirect dispatch with three binary searches a node. No count returns to the host. Scratch: 24
/// bytes a point, 12 for each node of the largest level, and that of the sort.
///
/// [`Frontier`]: crate::Frontier
///
/// # Variants
/// Those of [`Frontier`], which lists the nodes that split.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a capacity or limit of 0, a depth above 16, a square whose
///   corner is not inside +-2^126 or whose side is not between 2^-100 and 2^126, or an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding; set a
///   [`limit`](Quadtree::limit) for `nodes`.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that the device cannot run.
///
/// # Algorithm
/// Points sorted along the Morton curve (G. M. Morton, 1966), so that a node is a range of them; level by level without
/// launches from the host, as dynamic parallelism does it: `shaders/primitives/quadtree_divide.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Quadtree {
    n: usize,
    capacity: u32,
    depth: u32,
    limit: Option<usize>,
    square: Option<([f32; 2], f32)>,
    order: bool,
    variant: String,
}

impl Quadtree {
    /// Builds a tree over `n` points, with at most 16 points in a leaf above level 16.
    pub fn new(n: usize) -> Self {
        let variant = "auto".into();
        Self { n, capacity: 16, depth: DEEPEST, limit: None, square: None, order: false, variant }
    }

    /// Sets how many points a leaf above the deepest level may have. The default is 16.
    #[must_use]
    pub fn capacity(mut self, points: u32) -> Self {
        self.capacity = points;
        self
    }

    /// Sets the deepest level, at most 16, the default. The root has level 0.
    #[must_use]
    pub fn depth(mut self, level: u32) -> Self {
        self.depth = level;
        self
    }

    /// Sets the maximum number of nodes. The default is enough for any points.
    #[must_use]
    pub fn limit(mut self, nodes: usize) -> Self {
        self.limit = Some(nodes);
        self
    }

    /// Sets the square of the root: its lower left corner and its side. The default is computed from the points.
    #[must_use]
    pub fn square(mut self, low: [f32; 2], side: f32) -> Self {
        self.square = Some((low, side));
        self
    }

    /// Adds the order of the points: an operand `order` of `n` u32, which plans take by `with_order`.
    #[must_use]
    pub fn with_order(mut self) -> Self {
        self.order = true;
        self
    }

    variants!(variant);

    /// Returns the number of nodes that the operand `nodes` has room for.
    ///
    /// ```
    /// use tilework::Quadtree;
    /// // At most 58 nodes of a level split, and level 0 and 1 have 1 and 4 nodes.
    /// assert_eq!(Quadtree::new(1000).capacity(16).depth(3).max_nodes(), 1 + 4 + 16 + 64);
    /// ```
    pub fn max_nodes(&self) -> usize {
        let all = self.rooms().iter().fold(0, |sum: u64, room| sum.saturating_add(*room));
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        self.limit.map_or(all, |limit| all.min(limit))
    }

    /// Maximum nodes of each level. A node that splits has more than `capacity` points, and nodes of a level share
    /// none.
    fn rooms(&self) -> Vec<u64> {
        rooms(1, self.depth.min(DEEPEST), self.n as u64 / (u64::from(self.capacity) + 1))
    }

    fn check(&self) -> Result<()> {
        let Self { n, capacity, depth, limit, .. } = *self;
        let wrong = |what| Err(err!(InvalidArgument, "quadtree of {n} points: {what}"));
        if capacity == 0 {
            return wrong("the capacity is 0; use at least 1".to_owned());
        }
        if depth > DEEPEST {
            return wrong(format!("the depth is {depth}; use at most {DEEPEST}"));
        }
        if limit == Some(0) {
            return wrong("the limit is 0 nodes; the root takes one".to_owned());
        }
        let Some((low, side)) = self.square else { return Ok(()) };
        let (smallest, largest) = (2f32.powi(-100), 2f32.powi(126));
        // False for NaN.
        if low.iter().all(|x| x.abs() < largest) && (smallest..=largest).contains(&side) {
            return Ok(());
        }
        wrong(format!(
            "the square at {low:?} with side {side:?}; coordinates must be inside +-2^126, and the side from 2^-100 to \
             2^126"
        ))
    }

    fn lower_as(&self, _: DType, profile: &DeviceProfile) -> Result<Program> {
        self.check()?;
        let Self { n, capacity, depth, .. } = *self;
        let n32 = index_u32(INFO.name, "n", n)?;
        let (rooms, most) = (self.rooms(), self.max_nodes());
        let largest = rooms.iter().copied().max().unwrap_or(1).min(most as u64);
        let decision = decision(INFO.name, &self.variant, largest as usize, profile)?;
        let mut program = Program::new(INFO.name, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![
            operand("points", DType::F32, n.saturating_mul(2), Access::Read),
            operand("nodes", DType::U32, most.saturating_mul(WORDS), Access::Write),
        ];
        if self.order {
            program.operands.push(operand("order", DType::U32, n, Access::Write));
        }
        program.operands.push(operand("count", DType::U32, 1, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "set a limit of nodes, or split the points")?;
        program.cost = Cost { flop: 2.0 * n as f64, bytes: (if self.order { 12.0 } else { 8.0 }) * n as f64 };
        let bound = |i| Binding::operand(i, &program.operands);
        let (points, nodes, count) = (bound(0), bound(1), bound(program.operands.len() - 1));
        let order = self.order.then(|| bound(2));

        let words = 4 * u64::from(n32);
        let [flags, numbers, list, codes, sorted] = [(); 5].map(|()| program.scratch(words));
        let order = order.unwrap_or_else(|| program.scratch(words));
        let [bounds, square] = [(); 2].map(|()| program.scratch(16));
        let inside = program.scratch(4);
        let each_point = Grid::fold(u64::from(n32).div_ceil(WORKGROUP_SIZE.into()));
        // Least x, largest x, least y, largest y.
        program.append(fill(4, [u32::MAX, 0], profile)?, &[bounds.resource]);
        if n > 0 {
            let bound = program.kernel(Kernel::of_file("primitives/quadtree_bound", Spec::new()));
            let params = PointParams { n: n32 };
            program.dispatch(bound, &params, vec![points, flags, numbers, bounds], each_point);
        }
        let partition = Op::<u32>::lower(&Partition::new(n), profile)?;
        program.append(partition, &[numbers, flags, list, inside].map(|binding| binding.resource));
        let mut levels = Levels::new(program, count, &rooms, most as u32);
        let root = levels.program.kernel(Kernel::of_file("primitives/quadtree_root", Spec::new()));
        let given = u32::from(self.square.is_some());
        let (low, side) = self.square.unwrap_or(([0.0; 2], 1.0));
        let params = RootParams { low, side, given, capacity, depth };
        let bindings = vec![bounds, inside, square, nodes, levels.flags, levels.numbers, levels.length, count];
        levels.program.dispatch(root, &params, bindings, Grid::fold(1));
        if n > 0 {
            let encode = levels.program.kernel(Kernel::of_file("primitives/quadtree_encode", Spec::new()));
            let bindings = vec![points, list, inside, square, codes];
            levels.program.dispatch(encode, &PointParams { n: n32 }, bindings, each_point);
        }
        let sort = RadixSort::new(n).bits(32 - 2 * depth..32).with_values();
        let sort = Op::<u32>::lower(&sort, profile)?;
        levels.program.append(sort, &[codes, list, sorted, order].map(|binding| binding.resource));
        let divide = Kernel::of_file("primitives/quadtree_divide", Spec::new());
        let bindings = [sorted, nodes, levels.flags, levels.numbers];
        let params = |level| DivideParams { capacity, level, depth };
        levels.grow(divide, WORKGROUP_SIZE, params, &bindings, profile)
    }
}

operands! {
    impl[] Quadtree, f32 {
        fn record(points: f32, nodes: u32, count: u32);
        /// Takes the order of the points.
        optional with_order(order: u32);
    }
}

lowered_as!(Quadtree: f32);

pub(super) const INFO: Operation = Operation {
    name: "quadtree",
    about: "a square with more than `capacity` points is split into four, level by level on the device",
    inputs: &[Input::new("points", "(n, 2)")],
    outputs: &[("nodes", "u32 (count, 6)"), ("[order]", "u32 (n)")],
    types: &[DType::F32],
    options: &[
        Setting::number("capacity", "16"),
        Setting::number("depth", "16"),
        Setting::number("limit", ""),
        Setting::text("square", "X,Y,SIDE", ""),
        Setting::flag("order"),
    ],
    make: Some(make),
    variants: Quadtree::variants,
    samples,
    example: Example { shape: &[100, 2], options: &[("capacity", "3")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (points, [n, axes]) = asked.array("points")?;
    asked.check_type(&points)?;
    if axes != 2 {
        return Err(err!(Shape, "quadtree: points is {points}; it must have two columns, x and y"));
    }
    let settings = asked.settings();
    let mut op = Quadtree::new(n).variant(asked.variant()).when(settings.has("order"), |op| op.with_order());
    op = op.capacity(settings.number("capacity")?).depth(settings.number("depth")?);
    if let Some(limit) = settings.maybe("limit")? {
        op = op.limit(limit);
    }
    if settings.has("square") {
        let [x, y, side] = settings.numbers("square", "X,Y,SIDE")?;
        op = op.square([x, y], side);
    }
    let order = settings.has("order").then(|| Role::Result(vec![n]));
    let operands = [Role::Given(points), Role::CountedRows(WORDS)].into_iter().chain(order);
    Ok(OpCall::new::<f32>(op, operands.chain([Role::Count]).collect()))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Quadtree::new(300).capacity(4).depth(3).variant(variant);
    Ok(vec![Op::<f32>::lower(&op, profile)?, Op::<f32>::lower(&op.square([0.0; 2], 1.0).with_order(), profile)?])
}
