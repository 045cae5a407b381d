//! What a kernel is compiled to: flat instructions on registers, with structured masks for control flow.

use super::memory::RECORD_BYTES;
use super::scalar::{Guard, Kind, Row1, Row2, Row3};
use naga::{
    AtomicFunction, Barrier, BuiltIn, CollectiveOperation, GatherMode, ScalarKind, SubgroupOperation,
};

/// A register of every lane.
pub(super) type Slot = u32;

/// No register.
pub(super) const NONE: Slot = u32::MAX;
/// The address of what lies outside: loads give 0, stores do nothing, both are found.
pub(super) const INVALID: u32 = u32::MAX;

/// Bytes and meaning of a component in memory.
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

/// How many elements an index may choose from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Length {
    Fixed(u32),
    /// What is bound behind byte `offset`, in elements of `stride` bytes.
    Bound {
        memory: u16,
        offset: u32,
        stride: u32,
    },
}

/// Where components lie: behind byte `offset` of a variable, and the bytes that a register says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) memory: u16,
    pub(super) at: Slot,
    pub(super) offset: u32,
}

/// A matrix that a subgroup holds together: element e lies in register `e / lanes` of lane `e % lanes`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatrixTile {
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) width: Width,
    pub(super) row_major: bool,
    /// Components of the vectors that the pointer is to, in which the stride counts.
    pub(super) vector: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Gather {
    BroadcastFirst,
    /// Lane of a register.
    From,
    Down,
    Up,
    Xor,
    /// Lane of a quad.
    Quad,
    /// The other lane of a quad.
    Swap(u32),
}

impl Gather {
    pub(super) fn of(mode: &GatherMode) -> Self {
        match mode {
            GatherMode::BroadcastFirst => Gather::BroadcastFirst,
            GatherMode::Broadcast(_) | GatherMode::Shuffle(_) => Gather::From,
            GatherMode::ShuffleDown(_) => Gather::Down,
            GatherMode::ShuffleUp(_) => Gather::Up,
            GatherMode::ShuffleXor(_) => Gather::Xor,
            GatherMode::QuadBroadcast(_) => Gather::Quad,
            GatherMode::QuadSwap(direction) => Gather::Swap(*direction as u32 + 1),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    Row1 {
        f: Row1,
        d: Slot,
        a: Slot,
    },
    Row2 {
        f: Row2,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Row3 {
        f: Row3,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// A division or shift, whose operands are checked.
    Guarded {
        f: Row2,
        guard: Guard,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Zeroes `n` variables at the beginning of a function, which counts as written or not.
    Fresh {
        d: Slot,
        n: u32,
        written: bool,
    },
    /// To active lanes only.
    Assign {
        d: Slot,
        a: Slot,
    },
    /// Finds variables that nothing has written.
    CheckWritten {
        d: Slot,
        n: u32,
    },
    /// A component of a variable whose register is computed.
    LoadVar {
        d: Slot,
        at: Slot,
        offset: u32,
        tracked: bool,
    },
    StoreVar {
        at: Slot,
        offset: u32,
        a: Slot,
    },
    /// Address of an element: `base + index * stride`.
    Index {
        d: Slot,
        base: Slot,
        index: Slot,
        stride: u32,
        length: Length,
    },
    /// Component of an element of a value: register `tables[table + index]`.
    Pick {
        d: Slot,
        index: Slot,
        table: u32,
        n: u32,
    },
    /// `n` components side by side.
    Load {
        d: Slot,
        n: u32,
        from: Address,
        width: Width,
        atomic: bool,
        uniform: bool,
    },
    Store {
        a: [Slot; 4],
        n: u32,
        to: Address,
        width: Width,
        atomic: bool,
    },
    Atomic {
        fun: AtomicFunction,
        signed: bool,
        float: bool,
        d: Slot,
        to: Address,
        a: Slot,
        compare: Slot,
        exchanged: Slot,
    },
    ArrayLength {
        d: Slot,
        length: Length,
    },
    Barrier(Barrier),
    Ballot {
        d: Slot,
        a: Slot,
    },
    Gather {
        mode: Gather,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Collective {
        op: SubgroupOperation,
        scan: CollectiveOperation,
        kind: ScalarKind,
        half: bool,
        d: Slot,
        a: Slot,
    },
    LoadTile {
        d: Slot,
        from: Address,
        stride: Slot,
        tile: MatrixTile,
    },
    StoreTile {
        a: Slot,
        to: Address,
        stride: Slot,
        tile: MatrixTile,
    },
    /// `d = a b + c`, `inner` columns of a.
    MultiplyTiles {
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
        rows: u32,
        columns: u32,
        inner: u32,
        half: bool,
    },
    If {
        condition: Slot,
        or_else: u32,
    },
    Else {
        end: u32,
    },
    /// Where nothing is active, what follows is left out: the next joining point is at `skip`.
    EndIf {
        skip: u32,
    },
    Switch,
    /// The lanes whose selector is in the list, or for the default none of it.
    Case {
        selector: Slot,
        table: u32,
        n: u32,
        default: bool,
        next: u32,
    },
    EndSwitch {
        skip: u32,
    },
    Loop,
    Continuing {
        end: u32,
    },
    BreakIf {
        condition: Slot,
    },
    Repeat {
        begin: u32,
    },
    EndLoop {
        skip: u32,
    },
    /// Leaves `depth` frames.
    Break {
        depth: u32,
        skip: u32,
    },
    Continue {
        depth: u32,
        skip: u32,
    },
    Return {
        depth: u32,
        skip: u32,
    },
    Call {
        function: u32,
    },
    EndFunction,
}

/// Where an instruction comes from, and what it counts as.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// Index into [`Code::lines`].
    pub(super) line: u32,
    pub(super) kind: Kind,
}

/// What a variable outside of registers is.
#[derive(Debug, Clone)]
pub(super) enum DeclaredMemory {
    Binding {
        group: u32,
        index: u32,
        name: String,
        writable: bool,
        uniform: bool,
        min_size: u32,
        /// Bytes that one race record covers.
        granule: u32,
        /// Where it is declared: index into [`Code::lines`].
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
    /// First instruction of the entry point.
    pub(super) entry: u32,
    pub(super) slots: u32,
    /// Registers that hold the same in all lanes, from register 0 on.
    pub(super) constants: Vec<u32>,
    pub(super) builtins: Vec<(BuiltIn, Slot)>,
    pub(super) memories: Vec<DeclaredMemory>,
    pub(super) workgroup_bytes: u32,
    /// Bytes that one race record of workgroup memory covers.
    pub(super) workgroup_granule: u32,
    pub(super) workgroup_size: [u32; 3],
    /// Private variables: first register and number; those with a value at the beginning, with its register.
    pub(super) privates: (Slot, u32),
    pub(super) private_values: Vec<(Slot, Slot)>,
    /// File and line.
    pub(super) lines: Vec<(String, u32)>,
    /// Names of variables in registers, by first register.
    pub(super) names: Vec<(Slot, u32, String)>,
    pub(super) label: String,
}

impl SimCode {
    /// About what a workgroup on its way takes.
    pub(super) fn group_bytes(&self, lanes: u32) -> u64 {
        let subgroups = self.workgroup_size.iter().product::<u32>().div_ceil(lanes);
        // Registers, and which of them are written.
        let registers = u64::from(self.slots) * (4 * u64::from(lanes) + 8) * u64::from(subgroups);
        let places = self.workgroup_bytes.div_ceil(self.workgroup_granule.max(1));
        registers + u64::from(self.workgroup_bytes) + RECORD_BYTES as u64 * u64::from(places)
    }

    pub(super) fn place(&self, pc: u32) -> (&str, u32) {
        let line = self.marks.get(pc as usize).map_or(0, |m| m.line) as usize;
        self.lines.get(line).map_or(("?", 0), |(file, line)| (file.as_str(), *line))
    }

    /// Local and global number of the `index`-th invocation of a workgroup.
    pub(super) fn ids(&self, workgroup: [u32; 3], index: u32) -> ([u32; 3], [u32; 3]) {
        let [x, y, _] = self.workgroup_size;
        let local = [index % x, index / x % y, index / (x * y)];
        let global =
            std::array::from_fn(|i| workgroup[i].wrapping_mul(self.workgroup_size[i]).wrapping_add(local[i]));
        (local, global)
    }

    /// The variable that a register belongs to.
    pub(super) fn name_of(&self, slot: Slot) -> &str {
        let named = self.names.iter().find(|(first, n, _)| (*first..first + n).contains(&slot));
        named.map_or("a variable", |(.., name)| name)
    }
}
