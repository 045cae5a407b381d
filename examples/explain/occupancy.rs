//! `explain occupancy`: how many workgroups a multiprocessor holds, and which limit bounds them.

use super::common::{Args, Failure, refuse};
use super::table::table;
use std::fmt::Write;
use tilework::analysis::{Block, Multiprocessor, occupancy};

pub(crate) const USAGE: &str = "\
usage: explain occupancy --threads N [--shared BYTES] [--registers N] [--device NAME | --limits T,B,S,R]

  --threads N          threads of a workgroup
  --shared BYTES       its workgroup memory; K stands for 1024, as in 10K (0)
  --registers N        the registers of all its threads (0)
  --device NAME        an NVIDIA card, as h100 or \"rtx 4090\" (h100)
  --limits T,B,S,R     any other multiprocessor: its threads, workgroups, bytes of workgroup memory and registers
";

/// Reads the rest of the command line and answers it.
pub(crate) fn answer(args: &mut Args) -> Result<String, Failure> {
    use lexopt::prelude::*;
    let (mut block, mut device, mut limits) = (Block::default(), None, None);
    while let Some(arg) = args.next()? {
        let key = match arg {
            Short('h') | Long("help") => return Ok(USAGE.into()),
            Long(key) => key.to_owned(),
            _ => return Err(arg.unexpected().into()),
        };
        let value = args.value()?.string()?;
        let count = || counted(&key, &value);
        match key.as_str() {
            "threads" => block.threads = count()?,
            "shared" => block.shared_bytes = count()?,
            "registers" => block.registers = count()?,
            "device" => device = Some(value),
            "limits" => limits = Some(value),
            _ => return Err(refuse!("occupancy: no key --{key} (see explain occupancy --help)")),
        }
    }
    if block.threads == 0 {
        return Err(refuse!("occupancy: give --threads, at least 1"));
    }
    let (name, multiprocessor) = match (device, limits) {
        (Some(_), Some(_)) => {
            return Err(refuse!("occupancy: both --device and --limits are given; give one"));
        }
        (_, Some(limits)) => ("these limits".into(), limited(&limits)?),
        (device, None) => of_card(&device.unwrap_or_else(|| "h100".into()))?,
    };
    Ok(described(&name, &multiprocessor, &block))
}

/// A number, whose K is 1024.
fn counted(key: &str, text: &str) -> Result<u32, Failure> {
    let (digits, factor) = text.strip_suffix(['K', 'k']).map_or((text, 1), |digits| (digits, 1 << 10));
    let number = digits.parse::<u32>().ok().and_then(|n| n.checked_mul(factor));
    number.ok_or_else(|| refuse!("occupancy: --{key} {text}: must be a whole number below 2^32, or one with K"))
}

fn limited(text: &str) -> Result<Multiprocessor, Failure> {
    let numbers = text.split(',').map(|n| counted("limits", n)).collect::<Result<Vec<_>, _>>()?;
    let [threads, blocks, shared, registers] = numbers[..] else {
        return Err(refuse!("occupancy: --limits {text}: must be four numbers, as in 2048,32,228K,64K"));
    };
    Ok(Multiprocessor {
        threads: Some(threads),
        blocks: Some(blocks),
        shared_bytes: Some(shared),
        registers: Some(registers),
        shared_bytes_reserved: 0,
    })
}

fn of_card(text: &str) -> Result<(String, Multiprocessor), Failure> {
    let name = text.to_uppercase();
    let name = if name.starts_with("NVIDIA") { name } else { format!("NVIDIA {name}") };
    let found = Multiprocessor::of_adapter(&name).ok_or_else(|| {
        refuse!(
            "occupancy: no limits of `{text}` are known, only of NVIDIA's cards from the V100 to the B200; \
             give --limits THREADS,WORKGROUPS,BYTES,REGISTERS"
        )
    })?;
    Ok((name, found))
}

fn described(name: &str, multiprocessor: &Multiprocessor, block: &Block) -> String {
    let held = occupancy(multiprocessor, block);
    let text = |n: Option<u32>| n.map_or("-".to_owned(), |n| n.to_string());
    let warps = multiprocessor.threads.map(|threads| threads / 32);
    let reserved = if block.shared_bytes > 0 { multiprocessor.shared_bytes_reserved } else { 0 };
    let row = |what: &str, room, each: u64, fit| vec![what.into(), text(room), each.to_string(), text(fit)];
    let rows = [
        ["limit", "room", "a workgroup takes", "workgroups"].map(String::from).to_vec(),
        row("warps of 32 threads", warps, held.warps_per_block.into(), held.by_threads),
        row(
            "bytes of workgroup memory",
            multiprocessor.shared_bytes,
            u64::from(block.shared_bytes) + u64::from(reserved),
            held.by_shared,
        ),
        row("registers", multiprocessor.registers, block.registers.into(), held.by_registers),
        row("workgroups", multiprocessor.blocks, 1, held.by_blocks),
    ];
    let mut out = format!("a multiprocessor of {name}, workgroups of {} threads\n\n{}\n", block.threads, table(&rows));
    let (blocks, used) = (text(held.blocks), text(held.warps()));
    let percent = 100.0 * held.fraction().unwrap_or(0.0);
    let bound = held.bound().unwrap_or("nothing");
    let _ = writeln!(
        out,
        "{blocks} at a time, {used} of {} warps: occupancy {percent:.1} %, bound by {bound}",
        text(warps)
    );
    if reserved > 0 {
        let _ = writeln!(out, "{reserved} bytes of the workgroup memory are the system's");
    }
    out
}
