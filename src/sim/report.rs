use crate::analysis::Interleaving;
use crate::shader::lexical;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// Two accesses to the same place, one of them a write and not both atomic, without a barrier between them.
    Race,
    /// A race that writes the value already there: harmless on hardware, but WGSL forbids it.
    SameValueRace,
    /// A read of workgroup or private memory before the first write.
    Uninitialized,
    /// An access outside a buffer, array or vector.
    OutOfBounds,
    /// A barrier that not all threads of the workgroup reach together.
    NonUniformBarrier,
    /// A subgroup operation that not all threads of the subgroup reach together.
    NonUniformSubgroup,
    /// `workgroupUniformLoad` of different values in different threads.
    NonUniformLoad,
    /// A thread waits for another that never runs.
    Livelock,
    /// A subgroup exceeded [`Options::step_limit`](super::Options::step_limit).
    StepLimit,
    /// Integer division by zero, or of -2147483648 by -1.
    Division,
    /// A shift by 32 bits or more.
    Shift,
    /// A NaN result of operands without NaN. Optional.
    NanBorn,
    /// Bytes of an operand that no thread read or wrote. Optional.
    Untouched,
}

impl FindingKind {
    /// Returns a name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Race => "data race",
            Self::SameValueRace => "data race of equal values",
            Self::Uninitialized => "uninitialized read",
            Self::OutOfBounds => "out of bounds",
            Self::NonUniformBarrier => "barrier in non-uniform control flow",
            Self::NonUniformSubgroup => "subgroup operation in non-uniform control flow",
            Self::NonUniformLoad => "workgroupUniformLoad of different places",
            Self::Livelock => "livelock",
            Self::StepLimit => "step limit",
            Self::Division => "integer division",
            Self::Shift => "shift",
            Self::NanBorn => "NaN",
            Self::Untouched => "untouched",
        }
    }
}

/// A line of WGSL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SourceLine {
    /// The file: `shaders/...`, or the caller's name for the text.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One thread of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// `workgroup_id`.
    pub workgroup: [u32; 3],
    /// `local_invocation_id`.
    pub local: [u32; 3],
    /// `global_invocation_id`.
    pub global: [u32; 3],
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [i, j, k]) = (self.global, self.workgroup);
        write!(f, "thread ({x}, {y}, {z}) of workgroup ({i}, {j}, {k})")
    }
}

/// One error of a kernel. Repetitions at the same lines count as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// Kernel and entry point.
    pub kernel: String,
    /// Number of the dispatch in the program.
    pub dispatch: usize,
    /// The line.
    pub at: SourceLine,
    /// The thread; the first one if the finding belongs to none.
    pub thread: Thread,
    /// The line and thread of the other access, if there are two.
    pub other: Option<(SourceLine, Thread)>,
    /// What happened, in a sentence.
    pub message: String,
    /// Number of occurrences.
    pub times: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.kind.name(), self.message)?;
        if self.kind != FindingKind::Untouched {
            write!(f, "; {}", self.thread)?;
        }
        if let Some((line, other)) = &self.other {
            write!(f, ", and {other} at {line}")?;
        }
        if self.times > 1 {
            write!(f, " ({} times)", self.times)?;
        }
        write!(f, " [{}, dispatch {}]", self.kernel, self.dispatch)
    }
}

/// Declares counts, and their sum.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of a line, or of the whole run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Adds the counts of another.
            pub fn add_all(&mut self, o: &Counts) {
                $(self.$name += o.$name;)*
            }
        }
    };
}
counts! {
    /// Steps of subgroups. A step is one instruction on all active lanes.
    steps,
    /// Active lanes, summed over the steps: the operations of threads.
    active,
    /// Lanes, summed over the steps. Some have no thread and stay idle.
    lanes,
    /// Branches of subgroups.
    branches,
    /// Branches on which the lanes of a subgroup disagreed.
    divergent,
    /// Bytes of storage buffers that threads read.
    read_bytes,
    /// Bytes of storage buffers that threads wrote.
    written_bytes,
    /// Distinct bytes that the accesses of subgroups touched, out of `moved_bytes`.
    used_bytes,
    /// Sectors that the accesses of subgroups touched.
    transactions,
    /// Bytes of those sectors.
    moved_bytes,
    /// Reads of workgroup memory by threads; each component of a vector counts.
    shared_reads,
    /// Writes to workgroup memory, counted likewise.
    shared_writes,
    /// Passes over the banks of workgroup memory.
    shared_passes,
    /// Passes caused by conflicts.
    bank_conflicts,
    /// Atomic operations of threads.
    atomics,
    /// Atomics that waited for another lane of the subgroup at the same address.
    contended,
    /// Barriers that workgroups passed.
    barriers,
    /// Integer operations, comparisons and conversions.
    integer,
    /// Float additions, subtractions, minima, maxima and roundings.
    add,
    /// Float multiplications.
    multiply,
    /// Fused multiply-adds, two floating-point operations each.
    fma,
    /// Float divisions.
    divide,
    /// Roots, exponentials, logarithms and trigonometric functions.
    special,
}

impl Counts {
    /// Returns the floating-point operations.
    pub fn flop(&self) -> u64 {
        self.add + self.multiply + 2 * self.fma + self.divide + self.special
    }

    /// Returns the used share of the moved bytes; 1 if nothing moved.
    pub fn coalescing(&self) -> f64 {
        if self.moved_bytes == 0 { 1.0 } else { self.used_bytes as f64 / self.moved_bytes as f64 }
    }

    /// Returns the active share of the lanes.
    pub fn occupancy_of_lanes(&self) -> f64 {
        if self.lanes == 0 { 1.0 } else { self.active as f64 / self.lanes as f64 }
    }
}

/// The findings and counts of a run: [`run`](super::run) and [`run_wgsl`](super::run_wgsl) return it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The errors found, each once.
    pub findings: Vec<Finding>,
    /// Counts of each line that ran.
    pub lines: BTreeMap<SourceLine, Counts>,
    /// Total counts.
    pub totals: Counts,
    /// What did not run: workgroups outside the sample, dispatches after a failure.
    pub notes: Vec<String>,
    /// Lanes per subgroup.
    pub subgroup_size: u32,
    /// Bytes per sector.
    pub sector_bytes: u32,
    /// The layout of DRAM, if it was given.
    pub interleaving: Option<Interleaving>,
    /// Bursts per channel and bank, for those that move any. Each access of a subgroup counts its distinct bursts.
    pub bursts: BTreeMap<(u64, u64), u64>,
    pub(super) sources: BTreeMap<String, String>,
}

impl Report {
    /// Returns whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the findings of a kind.
    pub fn of(&self, kind: FindingKind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.kind == kind)
    }

    /// Returns the counts of a line.
    pub fn line(&self, file: &str, line: u32) -> Counts {
        self.lines.get(&SourceLine { file: file.to_owned(), line }).copied().unwrap_or_default()
    }

    /// Formats the sources with counts in the margin: first the `worst` most wasteful lines, then each file.
    pub fn annotated(&self, worst: usize) -> String {
        let mut out = String::new();
        let mut lines: Vec<_> = self.lines.iter().collect();
        let waste = |c: &Counts| {
            (c.moved_bytes - c.used_bytes.min(c.moved_bytes)) / u64::from(self.sector_bytes.max(1))
                + c.bank_conflicts
                + c.contended
                + (c.lanes - c.active.min(c.lanes)) / u64::from(self.subgroup_size.max(1))
        };
        lines.sort_by_key(|(_, c)| std::cmp::Reverse((waste(c), c.steps)));
        let _ = writeln!(out, "worst lines");
        let _ = writeln!(out, "{HEAD}");
        for (place, counts) in lines.iter().take(worst) {
            let _ = writeln!(out, "{} {place}: {}", margin(counts), self.source(place).trim());
        }
        for (file, text) in &self.sources {
            if !self.lines.keys().any(|l| &l.file == file) {
                continue;
            }
            let _ = writeln!(out, "\n{file}\n{HEAD}");
            for (i, line) in lexical::lines(text).enumerate() {
                let place = SourceLine { file: file.clone(), line: i as u32 + 1 };
                let left = self.lines.get(&place).map_or_else(|| " ".repeat(HEAD.len()), margin);
                let _ = writeln!(out, "{left} {:4} {line}", i + 1);
            }
        }
        out
    }

    fn source(&self, place: &SourceLine) -> &str {
        let text = self.sources.get(&place.file).map_or("", String::as_str);
        lexical::lines(text).nth((place.line as usize).saturating_sub(1)).unwrap_or("")
    }
}

const HEAD: &str = "    steps lanes% diverge  sectors  used%  shared conflict  atomics contend      flop";

fn margin(c: &Counts) -> String {
    let or_blank = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    let share = |x: f64, of: u64| if of == 0 { String::new() } else { format!("{:.0}", 100.0 * x) };
    format!(
        "{:>9} {:>6} {:>7} {:>8} {:>6} {:>7} {:>8} {:>8} {:>7} {:>9}",
        c.steps,
        share(c.occupancy_of_lanes(), c.lanes),
        or_blank(c.divergent),
        or_blank(c.transactions),
        share(c.coalescing(), c.moved_bytes),
        or_blank(c.shared_passes),
        or_blank(c.bank_conflicts),
        or_blank(c.atomics),
        or_blank(c.contended),
        or_blank(c.flop()),
    )
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        let c = &self.totals;
        writeln!(
            f,
            "{} steps of subgroups of {}, {} operations of threads ({:.1} % of the lanes active)",
            c.steps,
            self.subgroup_size,
            c.active,
            100.0 * c.occupancy_of_lanes()
        )?;
        writeln!(f, "branches: {}, {} divergent", c.branches, c.divergent)?;
        writeln!(
            f,
            "storage: {} bytes read, {} written, in {} sectors of {} bytes ({:.1} % of the moved bytes used)",
            c.read_bytes,
            c.written_bytes,
            c.transactions,
            self.sector_bytes,
            100.0 * c.coalescing()
        )?;
        writeln!(
            f,
            "workgroup memory: {} reads, {} writes, {} passes, {} of them bank conflicts",
            c.shared_reads, c.shared_writes, c.shared_passes, c.bank_conflicts
        )?;
        writeln!(f, "atomics: {}, {} contended; barriers: {}", c.atomics, c.contended, c.barriers)?;
        writeln!(
            f,
            "flop: {} ({} add, {} multiply, {} fma, {} divide, {} special); integer operations: {}",
            c.flop(),
            c.add,
            c.multiply,
            c.fma,
            c.divide,
            c.special,
            c.integer
        )?;
        if let Some(memory) = &self.interleaving {
            write!(f, "bursts of {} bytes by channel and bank:", memory.burst)?;
            for ((channel, bank), n) in &self.bursts {
                write!(f, " {channel}.{bank}: {n}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
