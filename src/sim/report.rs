//! What a run found and counted.

use crate::analysis::Interleaving;
use crate::shader::lexical;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// What is wrong, as a class to match on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingKind {
    /// Two accesses to one place, one of them a write and not both atomic, that no barrier orders.
    Race,
    /// A race whose later write leaves what is there: hardware does not mind, and the language forbids it all the same.
    SameValueRace,
    /// A read of workgroup or private memory that nothing wrote.
    Uninitialized,
    /// An access outside of a buffer, array or vector.
    OutOfBounds,
    /// A barrier that not all threads of the workgroup reach together.
    NonUniformBarrier,
    /// A subgroup operation that not all threads of the subgroup reach together.
    NonUniformSubgroup,
    /// `workgroupUniformLoad` of a place that differs between invocations.
    NonUniformLoad,
    /// A thread waits for one that does not run.
    Livelock,
    /// The kernel took more steps than it was allowed.
    StepLimit,
    /// Integer division by zero, or of the least number by -1.
    Division,
    /// A shift by as many bits as there are, or more.
    Shift,
    /// A NaN from operands without one. Optional.
    NanBorn,
    /// Bytes of a caller's buffer that no thread read or wrote. Optional.
    Untouched,
}

impl FindingKind {
    /// In words.
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

/// A line of WGSL, as a person would say it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SourceLine {
    /// The file: `shaders/...`, or the name that the caller gave.
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
pub struct Invocation {
    /// `workgroup_id`.
    pub workgroup: [u32; 3],
    /// `local_invocation_id`.
    pub local: [u32; 3],
    /// `global_invocation_id`.
    pub global: [u32; 3],
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [i, j, k]) = (self.global, self.workgroup);
        write!(f, "invocation ({x}, {y}, {z}) of workgroup ({i}, {j}, {k})")
    }
}

/// One thing that is wrong. The same at the same lines is one finding, however often it happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The class.
    pub kind: FindingKind,
    /// Kernel and entry point.
    pub kernel: String,
    /// Number of the dispatch in the program.
    pub dispatch: usize,
    /// Where.
    pub at: SourceLine,
    /// Who; the first thread where it is nobody.
    pub invocation: Invocation,
    /// The other access or thread, if there are two.
    pub other: Option<(SourceLine, Invocation)>,
    /// What happened, in a sentence.
    pub message: String,
    /// How often.
    pub times: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.kind.name(), self.message)?;
        if self.kind != FindingKind::Untouched {
            write!(f, "; {}", self.invocation)?;
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

/// What was counted, on a line or in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Steps of subgroups: one instruction for all lanes that are active.
    pub steps: u64,
    /// Lanes that were active, summed over the steps: the operations of threads.
    pub active: u64,
    /// Lanes of the subgroups, summed over the steps; those that no thread has are idle.
    pub lanes: u64,
    /// Branches of subgroups.
    pub branches: u64,
    /// Those on which its lanes disagreed.
    pub divergent: u64,
    /// Bytes of storage buffers that threads read.
    pub read_bytes: u64,
    /// Bytes of storage buffers that threads wrote.
    pub written_bytes: u64,
    /// Different bytes that subgroups' accesses wanted, of what was moved.
    pub used_bytes: u64,
    /// Sectors that subgroups' accesses to storage buffers touched.
    pub transactions: u64,
    /// Bytes of these sectors.
    pub moved_bytes: u64,
    /// Reads of workgroup memory by threads; a vector counts each of its components.
    pub shared_reads: u64,
    /// Writes to workgroup memory, counted likewise.
    pub shared_writes: u64,
    /// Passes that the banks of workgroup memory needed.
    pub shared_passes: u64,
    /// Those that there would not have been without conflicts.
    pub bank_conflicts: u64,
    /// Atomic operations of threads.
    pub atomics: u64,
    /// Those that had to wait for another of the same subgroup at the same place.
    pub contended: u64,
    /// Barriers that workgroups passed.
    pub barriers: u64,
    /// Operations on integers, comparisons and conversions.
    pub integer: u64,
    /// Additions, subtractions, minima, maxima and roundings of floats.
    pub add: u64,
    /// Multiplications of floats.
    pub multiply: u64,
    /// Fused multiply-adds, each two operations.
    pub fma: u64,
    /// Divisions of floats.
    pub divide: u64,
    /// Roots, exponentials, logarithms and functions of angles.
    pub special: u64,
}

impl Counts {
    /// Floating-point operations.
    pub fn flop(&self) -> u64 {
        self.add + self.multiply + 2 * self.fma + self.divide + self.special
    }

    /// Share of the bytes moved that was wanted; 1 where nothing moved.
    pub fn coalescing(&self) -> f64 {
        if self.moved_bytes == 0 { 1.0 } else { self.used_bytes as f64 / self.moved_bytes as f64 }
    }

    /// Share of the lanes that were active.
    pub fn occupancy_of_lanes(&self) -> f64 {
        if self.lanes == 0 { 1.0 } else { self.active as f64 / self.lanes as f64 }
    }

    /// Adds what another counted.
    pub fn add_all(&mut self, o: &Counts) {
        let pairs = [
            (&mut self.steps, o.steps),
            (&mut self.active, o.active),
            (&mut self.lanes, o.lanes),
            (&mut self.branches, o.branches),
            (&mut self.divergent, o.divergent),
            (&mut self.read_bytes, o.read_bytes),
            (&mut self.written_bytes, o.written_bytes),
            (&mut self.used_bytes, o.used_bytes),
            (&mut self.transactions, o.transactions),
            (&mut self.moved_bytes, o.moved_bytes),
            (&mut self.shared_reads, o.shared_reads),
            (&mut self.shared_writes, o.shared_writes),
            (&mut self.shared_passes, o.shared_passes),
            (&mut self.bank_conflicts, o.bank_conflicts),
            (&mut self.atomics, o.atomics),
            (&mut self.contended, o.contended),
            (&mut self.barriers, o.barriers),
            (&mut self.integer, o.integer),
            (&mut self.add, o.add),
            (&mut self.multiply, o.multiply),
            (&mut self.fma, o.fma),
            (&mut self.divide, o.divide),
            (&mut self.special, o.special),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
    }
}

/// What a run found and counted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// What is wrong, each once. Empty is good.
    pub findings: Vec<Finding>,
    /// Counts of each line that did something.
    pub lines: BTreeMap<SourceLine, Counts>,
    /// Counts in all.
    pub totals: Counts,
    /// What was left out: workgroups of huge grids, a run that was ended.
    pub notes: Vec<String>,
    /// Lanes of a subgroup.
    pub subgroup_size: u32,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// How buffers are spread over DRAM, and how many bursts each channel and bank moves (no pair for those that move
    /// none): of each access of a subgroup the different ones.
    pub interleaving: Option<Interleaving>,
    /// See [`interleaving`](Self::interleaving).
    pub bursts: BTreeMap<(u64, u64), u64>,
    pub(super) sources: BTreeMap<String, String>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The findings of a class.
    pub fn of(&self, kind: FindingKind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.kind == kind)
    }

    /// Counts of a line.
    pub fn line(&self, file: &str, line: u32) -> Counts {
        self.lines.get(&SourceLine { file: file.to_owned(), line }).copied().unwrap_or_default()
    }

    /// The source with counts in the margin, for people: the lines that cost most first, then each file.
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
            "{} steps of subgroups of {}, {} operations of invocations ({:.1} % of the lanes active)",
            c.steps,
            self.subgroup_size,
            c.active,
            100.0 * c.occupancy_of_lanes()
        )?;
        writeln!(f, "branches: {}, of which {} diverge", c.branches, c.divergent)?;
        writeln!(
            f,
            "storage: {} bytes read, {} written, in {} sectors of {} bytes ({:.1} % of what moves is used)",
            c.read_bytes,
            c.written_bytes,
            c.transactions,
            self.sector_bytes,
            100.0 * c.coalescing()
        )?;
        writeln!(
            f,
            "workgroup memory: {} reads, {} writes, {} passes, of which {} for bank conflicts",
            c.shared_reads, c.shared_writes, c.shared_passes, c.bank_conflicts
        )?;
        writeln!(
            f,
            "atomics: {}, of which {} wait for another; barriers: {}",
            c.atomics, c.contended, c.barriers
        )?;
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
