//! Facts that the simulator counts: bytes, coalescing, reuse and divergence of any op.

use super::Report;
use crate::program::facts::fact;
use crate::program::prelude::*;
use crate::sim::{self, FindingKind, Options};

/// Programs with more operations, or more bytes to move, run a sample.
const MAX_WORK: f64 = 2e6;
/// Workgroups of each dispatch in a sample, and steps of a subgroup.
const SAMPLED: u32 = 4;
const STEPS: u64 = 1 << 15;
/// Larger operands are not copied to the simulator.
const MAX_BYTES: u64 = 64 << 20;

impl Report {
    /// Adds to the [facts](Report::facts) what the [simulator](crate::sim) counts when it runs `program` on these
    /// operands: how much of the memory that subgroups move they use, how often a word that was loaded is used from
    /// workgroup memory, and how many branches diverge. A small program runs whole; of a larger one four workgroups of
    /// each dispatch do. If the simulator cannot run it, a fact `counted` with the value 0 says why: operands above
    /// 64 MiB in all, or cooperative matrices.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let plan = Transpose::new(64, 64).variant("naive").plan::<f32>(&gpu)?;
    /// let mut report = plan.report();
    /// report.count(plan.program(), vec![vec![0; 4 * 64 * 64]; 2]);
    /// let coalescing = report.facts.iter().find(|fact| fact.name == "coalescing").unwrap();
    /// assert!(coalescing.value < 60.0); // reads are scattered, and writes are not
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn count(&mut self, program: &Program, operands: Vec<Vec<u8>>) {
        match counted(program, operands) {
            Ok(facts) => self.facts.extend(facts),
            Err(e) => self.facts.push(fact("counted", 0.0, format!("workgroups: {e}"))),
        }
    }
}

fn counted(program: &Program, mut operands: Vec<Vec<u8>>) -> Result<Vec<Fact>> {
    let bytes = operands.iter().fold(program.scratch_bytes(), |sum, o| sum.saturating_add(o.len() as u64));
    if bytes > MAX_BYTES {
        return Err(err!(
            TooLarge,
            "{}: {bytes} bytes of operands and scratch; at most {MAX_BYTES} are counted",
            program.op
        ));
    }
    let whole = program.cost.flop + program.requested().unwrap_or(program.cost.bytes) <= MAX_WORK;
    let mut options = Options::default();
    if !whole {
        (options.max_workgroups, options.step_limit) = (SAMPLED, STEPS);
    }
    let report = sim::run(program, &mut operands, &options)?;
    let (totals, lanes) = (report.totals, options.subgroup_size);
    let ended = report.of(FindingKind::StepLimit).next().is_some();
    let by = match (whole, ended) {
        (true, _) => "by all threads".to_owned(),
        (false, false) => format!("by {SAMPLED} workgroups of each dispatch"),
        (false, true) => format!("by {SAMPLED} workgroups of each dispatch, in {STEPS} steps of a subgroup"),
    };
    let percent = |part: u64, all: u64| 100.0 * part as f64 / all.max(1) as f64;
    let sectors = format!("% used of the {}-byte sectors that accesses of {lanes} threads move", options.sector_bytes);
    let mut facts = vec![
        fact("bytes", (totals.read_bytes + totals.written_bytes) as f64, format!("loaded and stored {by}")),
        fact("coalescing", 100.0 * totals.coalescing(), sectors),
    ];
    if totals.shared_reads > 0 && totals.read_bytes > 0 {
        let times = 4.0 * totals.shared_reads as f64 / totals.read_bytes as f64;
        facts.push(fact("uses", times, "reads of workgroup memory for each word loaded"));
        let conflicts = percent(totals.bank_conflicts, totals.shared_passes);
        facts.push(fact("conflicts", conflicts, "% of the passes over the banks of workgroup memory"));
    }
    let diverging = percent(totals.divergent, totals.branches);
    facts.push(fact("diverging", diverging, format!("% of the branches of {lanes} threads")));
    facts.push(fact("lanes", 100.0 * totals.occupancy_of_lanes(), "% at work in a step"));
    Ok(facts)
}

#[cfg(test)]
#[cfg(feature = "default")] // what it tests is of several features
mod tests;
