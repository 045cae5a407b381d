//! Compiled kernels: flat instructions on registers; masks of lanes for control flow.

use super::memory::RECORD_BYTES;
use super::scalar::{Guard, Kind, Row1, Row2, Row3};
use naga::{AtomicFunction, Barrier, BuiltIn, CollectiveOperation, GatherMode, ScalarKind, SubgroupOperation};

/// A 32-bit register, one copy per lane.
pub(super) type Slot = u32;

/// No register.
pub(super) const NONE: Slot = u32::MAX;
/// An out-of-bounds address: loads give 0, stores do nothing, and both are reported.
pub(super) const INVALID: u32 = u32::MAX;

/// The size and type of a component in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Bool,
    Half,
    Word,
}

impl Width {
    pub(super) fn bytes(self) -> u32 {
        match self {
            Width::Bool => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// The number of elements an index may select from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    Fixed(u32),
    // The bound bytes after `offset`, in elements of `stride` bytes.
    Bound { memory: u16, offset: u32, stride: u32 },
}

/// Where components lie: at byte `offset` of a variable plus the bytes in register `at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) memory: u16,
    pub(super) at: Slot,
    pub(super) offset: u32,
}

/// A matrix held by a whole subgroup: element e is in register `e / lanes` of lane `e % lanes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatrixTile {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) width: Width,
    pub(super) row_major: bool,
    /// Components per element of the pointed-to vector; the stride counts elements.
    pub(super) vector: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum LaneSource {
    BroadcastFirst,
    // From the lane that a register names.
    From,
    Down,
    Up,
    Xor,
    // From this lane of the quad.
    Quad,
    // From the lane of the quad whose number differs in these bits.
    Swap(u32),
}

impl LaneSource {
    pub(super) fn of(mode: &GatherMode) -> Self {
        match mode {
            GatherMode::BroadcastFirst => LaneSource::BroadcastFirst,
            GatherMode::Broadcast(_) | GatherMode::Shuffle(_) => LaneSource::From,
            GatherMode::ShuffleDown(_) => LaneSource::Down,
            GatherMode::ShuffleUp(_) => LaneSource::Up,
            GatherMode::ShuffleXor(_) => LaneSource::Xor,
            GatherMode::QuadBroadcast(_) => LaneSource::Quad,
            GatherMode::QuadSwap(direction) => LaneSource::Swap(*direction as u32 + 1),
        }
    }
}

/// `n` consecutive components in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Components {
    pub(super) at: Address,
    pub(super) n: u32,
    pub(super) width: Width,
    pub(super) atomic: bool,
}

impl Components {
    pub(super) fn bytes(&self) -> u32 {
        self.n * self.width.bytes()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    Row1 { f: Row1, d: Slot, a: Slot },
    Row2 { f: Row2, d: Slot, a: Slot, b: Slot },
    Row3 { f: Row3, d: Slot, a: Slot, b: Slot, c: Slot },
    // A division or shift with checked operands.
    Guarded { f: Row2, guard: Guard, d: Slot, a: Slot, b: Slot },
    // Zeroes `n` variables when a function begins, and marks them as written or not.
    Fresh { d: Slot, n: u32, written: bool },
    // Writes active lanes only.
    Assign { d: Slot, a: Slot },
    // Reports variables that were not written.
    CheckWritten { d: Slot, n: u32 },
    // Reads a variable's component whose register is computed.
    LoadVar { d: Slot, at: Slot, offset: u32, tracked: bool },
    StoreVar { at: Slot, offset: u32, a: Slot },
    // Computes the address of an element: `base + index * stride`.
    Index { d: Slot, base: Slot, index: Slot, stride: u32, length: Length },
    // Selects a component of an element of a value: register `tables[table + index]`.
    Pick { d: Slot, index: Slot, table: u32, n: u32 },
    Load { d: Slot, from: Components, uniform: bool },
    Store { a: [Slot; 4], to: Components },
    // `swap` is the value to compare with, and whether it was equal.
    Atomic { fun: AtomicFunction, signed: bool, float: bool, d: Slot, to: Address, a: Slot, swap: [Slot; 2] },
    ArrayLength { d: Slot, length: Length },
    Barrier(Barrier),
    Ballot { d: Slot, a: Slot },
    Gather { mode: LaneSource, d: Slot, a: Slot, b: Slot },
    // `ty` is the kind, and whether it is f16.
    Collective { op: SubgroupOperation, scan: CollectiveOperation, ty: (ScalarKind, bool), d: Slot, a: Slot },
    LoadTile { d: Slot, from: Address, stride: Slot, tile: MatrixTile },
    StoreTile { a: Slot, to: Address, stride: Slot, tile: MatrixTile },
    // Computes `d = a b + c`; a has `inner` columns.
    MultiplyTiles { d: Slot, a: Slot, b: Slot, c: Slot, rows: u32, columns: u32, inner: u32, half: bool },
    If { condition: Slot, or_else: u32 },
    Else { end: u32 },
    // Ends a branch. If no lane is active then, goes to the next join at `skip`.
    EndIf { skip: u32 },
    Switch,
    // Selects the lanes whose selector is in the list; the default takes the other lanes.
    Case { selector: Slot, table: u32, n: u32, default: bool, next: u32 },
    EndSwitch { skip: u32 },
    Loop,
    Continuing { end: u32 },
    BreakIf { condition: Slot },
    Repeat { begin: u32 },
    EndLoop { skip: u32 },
    // Leaves `depth` frames.
    Break { depth: u32, skip: u32 },
    Continue { depth: u32, skip: u32 },
    Return { depth: u32, skip: u32 },
    Call { function: u32 },
    EndFunction,
}

/// An instruction's source line, and the kind it is counted as.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// Index into [`SimCode::lines`].
    pub(super) line: u32,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum DeclaredMemory {
    Binding {
        group: u32,
        index: u32,
        name: String,
        writable: bool,
        uniform: bool,
        min_size: u32,
        // Bytes per race record.
        granule: u32,
        // Line of the declaration: index into [`SimCode::lines`].
        line: u32,
    },
    Workgroup {
        name: String,
        base: u32,
        bytes: u32,
    },
    Immediates {
        bytes: u32,
    },
}

impl DeclaredMemory {
    pub(super) fn name(&self) -> &str {
        match self {
            DeclaredMemory::Binding { name, .. } | DeclaredMemory::Workgroup { name, .. } => name,
            DeclaredMemory::Immediates { .. } => "immediates",
        }
    }
}

/// A compiled entry point.
#[derive(Debug, Clone)]
pub(super) struct SimCode {
    pub(super) ops: Vec<Instruction>,
    pub(super) marks: Vec<Mark>,
    pub(super) tables: Vec<u32>,
    /// Index of the entry point's first instruction.
    pub(super) entry: u32,
    pub(super) slots: u32,
    /// Registers with the same value in all lanes, from register 0 on.
    pub(super) constants: Vec<u32>,
    pub(super) builtins: Vec<(BuiltIn, Slot)>,
    pub(super) memories: Vec<DeclaredMemory>,
    pub(super) workgroup_bytes: u32,
    /// Bytes per race record of workgroup memory.
    pub(super) workgroup_granule: u32,
    pub(super) workgroup_size: [u32; 3],
    /// Private variables: first register and number. Those with an initial value: variable and value.
    pub(super) privates: (Slot, u32),
    pub(super) private_values: Vec<(Slot, Slot)>,
    pub(super) lines: Vec<(String, u32)>,
    /// Variables in registers: first register, number of registers, name.
    pub(super) names: Vec<(Slot, u32, String)>,
    pub(super) label: String,
}

impl SimCode {
    /// Approximate bytes that a running workgroup takes.
    pub(super) fn group_bytes(&self, lanes: u32) -> u64 {
        let subgroups = self.workgroup_size.iter().product::<u32>().div_ceil(lanes);
        // Values, and which lanes wrote them.
        let registers = u64::from(self.slots) * (4 * u64::from(lanes) + 8) * u64::from(subgroups);
        let places = self.workgroup_bytes.div_ceil(self.workgroup_granule.max(1));
        registers + u64::from(self.workgroup_bytes) + RECORD_BYTES as u64 * u64::from(places)
    }

    pub(super) fn place(&self, pc: u32) -> (&str, u32) {
        let line = self.marks.get(pc as usize).map_or(0, |m| m.line) as usize;
        self.lines.get(line).map_or(("?", 0), |(file, line)| (file.as_str(), *line))
    }

    /// Returns the local and the global id of thread `index` of a workgroup.
    pub(super) fn ids(&self, workgroup: [u32; 3], index: u32) -> ([u32; 3], [u32; 3]) {
        let [x, y, _] = self.workgroup_size;
        let local = [index % x, index / x % y, index / (x * y)];
        let global = std::array::from_fn(|i| workgroup[i].wrapping_mul(self.workgroup_size[i]).wrapping_add(local[i]));
        (local, global)
    }

    pub(super) fn name_of(&self, slot: Slot) -> &str {
        let named = self.names.iter().find(|(first, n, _)| (*first..first + n).contains(&slot));
        named.map_or("a variable", |(.., name)| name)
    }
}
