//! Shapes that break kernels, against the reference: without elements, of one, one beyond a tile, and operands that
//! just fit a binding or just do not.

#[path = "../../tests/support/by_name.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "a file of the tests, which use the rest")]
mod by_name;
#[path = "../../examples/common/random.rs"]
mod random;

use crate::Options;
use random::Random;
use std::time::{Duration, Instant};
use tilework::program::{DeviceProfile, OpCall, Operation};
use tilework::{ErrorKind, Gpu, HostArray, Result};

/// Sides of tiles and workgroups, beside those that the op offers by name.
const TILES: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, 4096];

/// Elements of a shape at most.
const MOST: usize = 1 << 17;

/// The smallest largest binding, in bytes.
const BINDING: u64 = 4 << 10;

/// Checks shapes of each op; returns how many results were wrong.
pub(crate) fn check(gpu: &Gpu, options: &Options) -> usize {
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(options.seconds));
    let mut failures = 0;
    for op in by_name::programs().filter(|op| options.wants(op.name)) {
        let name = op.name.bytes().fold(options.seed, |seed, byte| seed * 31 + u64::from(byte));
        let mut random = Random::new(name);
        let (mut right, mut refused) = (0, 0);
        for round in 0..options.check {
            if start.elapsed() > limit {
                break;
            }
            match one(gpu, op, round, &mut random) {
                Ok(true) => right += 1,
                Ok(false) => refused += 1,
                Err(why) => {
                    failures += 1;
                    println!("WRONG {why}");
                }
            }
        }
        println!("{}: {right} right, {refused} rejected", op.name);
    }
    println!("{failures} wrong");
    failures
}

/// Draws a shape and runs it. `false`: the op rejects it, or no reference covers it.
fn one(gpu: &Gpu, op: &'static Operation, round: usize, random: &mut Random) -> std::result::Result<bool, String> {
    let profile = gpu.profile();
    let mut draw = |n: usize| (random.next() >> 20) as usize % n.max(1);
    let variants = (op.variants)();
    let variant = match round % (variants.len() + 1) {
        0 => "auto",
        i => variants[i - 1].name,
    };
    let mut shape = op.example.shape.to_vec();
    let tiles: Vec<usize> = TILES.into_iter().chain(named(op, variant, profile)).collect();
    let bound = draw(3) == 0;
    for _ in 0..1 + draw(2) {
        let axis = draw(shape.len());
        let tile = tiles[draw(tiles.len())] * (1 + draw(2));
        if let Some(extent) = shape.get_mut(axis) {
            *extent = [0, 1, tile + 1, tile + 1, tile, tile - 1][draw(6)];
        }
    }
    while shape.iter().product::<usize>() > MOST {
        if let Some(longest) = shape.iter_mut().max() {
            *longest = longest.div_ceil(2);
        }
    }
    let dtype = op.types[draw(op.types.len())];
    let what = format!("{} by {variant} of {shape:?}, {dtype}", op.name);
    let Ok(call) = by_name::call(op, &shape, dtype, variant) else { return Ok(false) };
    let Ok(program) = call.lower(profile) else { return Ok(false) };
    let mut small = profile.clone();
    if bound {
        // The largest operand just fits, or is one element too long.
        let largest = program.operands.iter().map(|o| o.bytes()).max().unwrap_or(0);
        small.limits.max_storage_binding = (largest / 4 * 4).saturating_sub(4 * draw(2) as u64).max(BINDING);
    }
    let what = format!("{what}, bindings of {}", small.limits.max_storage_binding);
    let wanted = by_name::wanted(op, &call).map_err(|why| format!("{what}: {why}"))?;
    let Some(wanted) = wanted else { return Ok(false) };
    match run(gpu, call, &small) {
        Err(e) if matches!(e.kind(), ErrorKind::TooLarge | ErrorKind::Unsupported | ErrorKind::InvalidArgument) => {
            Ok(false)
        }
        results => by_name::complaint(&wanted, results).map_or(Ok(true), |why| Err(format!("{what}: {why}"))),
    }
}

/// The sides of the tiles that tuning knows by name.
fn named(op: &Operation, variant: &'static str, profile: &DeviceProfile) -> Vec<usize> {
    let rows = (op.tiles)(variant, profile);
    rows.iter().flat_map(|row| row.split(|c: char| !c.is_ascii_digit()).filter_map(|side| side.parse().ok())).collect()
}

fn run(gpu: &Gpu, call: OpCall, profile: &DeviceProfile) -> Result<Vec<HostArray>> {
    // SAFETY: an op lowered it, for limits within the device's.
    let executable = unsafe { gpu.prepare_unchecked(call.lower(profile)?)? };
    let ready = gpu.ready_as(call, executable)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    ready.results()
}
