//! Few rows of q against many keys: keys split over workgroups, partial results merged by their largest scores and sums.
//!
//! A workgroup reads a range of the keys and values of one head, once, for some rows of all heads that share it. Teams of
//! lanes take four keys at a time, each lane eight elements of a vector; a score is summed over the lanes of a team.

use super::layout::{Bound, Lowering};
use crate::error::{Result, err};
use crate::program::{DeviceProfile, Grid, Kernel, Program, Source};
use std::fmt::{self, Write};

/// Constants that depend on the device.
struct Policy {
    invocations: u32,
    /// Most rows of q that share a read of keys.
    rows: u32,
    /// Times four keys that a team has in flight.
    blocks: u32,
    /// Workgroups that fill the device.
    workgroups: u64,
    /// Whether lanes of a team are of one subgroup.
    subgroups: bool,
}

fn policy(profile: &DeviceProfile, lanes: u32) -> Policy {
    let subgroups = profile.features.subgroups && profile.subgroup_sizes.0 >= lanes;
    if profile.is_cpu() {
        Policy { invocations: 64, rows: 2, blocks: 1, workgroups: 16, subgroups }
    } else if subgroups {
        // Sixteen workgroups a multiprocessor of an H100. GB/s of keys and values there (Vulkan, driver 580.159.04) at
        // B16 S8192 and B1 S131072, H32 G8 D128 of f16: 2646 and 2612; of 256 invocations 1981 and 1980, of 64 2365 and
        // 2630; with eight keys in flight 2076 and 2059; of twice as many workgroups 2522 and 2444.
        Policy { invocations: 128, rows: 4, blocks: 1, workgroups: 2112, subgroups }
    } else {
        Policy { invocations: 64, rows: 4, blocks: 1, workgroups: 2112, subgroups }
    }
}

const INPUTS: [Bound; 7] =
    [Bound::Q, Bound::K, Bound::V, Bound::Scales, Bound::Table, Bound::Lengths, Bound::Mask];

/// Invocations of the workgroup that merges a row.
const MERGE_SIZE: u32 = 256;

/// Keys that one part may have where the driver ends long loops.
const MOST_OF_PART: u64 = 1 << 16;

pub(super) fn lower(of: &Lowering<'_>, program: &mut Program) -> Result<()> {
    let (profile, op) = (of.profile, of.op);
    let lanes = (of.fours() / 2).next_power_of_two();
    let policy = policy(profile, lanes);
    let rows_of_pair = of.rows_of_pair();
    let form = Form {
        lanes,
        teams: policy.invocations / lanes,
        rows: policy.rows.min((rows_of_pair as u32).next_power_of_two()),
        blocks: policy.blocks,
        eights: of.fours() / 2,
        subgroups: policy.subgroups,
        single: op.queries == 1,
        masked: op.mask.is_some(),
        paged: op.paging.is_some(),
        careful: profile.is_cpu(),
    };
    let pieces = of.pieces()?;
    let row_tiles = rows_of_pair.div_ceil(form.rows as usize) as u64;
    // Keys that the queries of a head see together.
    let keys = op.window.map_or(op.keys, |w| {
        let sides = if op.causal { w } else { w.saturating_mul(2) };
        op.keys.min(sides.saturating_add(op.queries))
    }) as u64;
    let step = u64::from(form.teams * 4 * form.blocks);
    let most_pairs = pieces.iter().map(|p| p.pairs).max().unwrap_or(1) as u64;
    let each = 16 * u64::from(of.fours() + 1);
    let limit = profile.limits.max_storage_binding;
    let rows = most_pairs * rows_of_pair as u64;
    let room = limit / each / rows;
    if room == 0 {
        return Err(err!(
            TooLarge,
            "{}: partial results of {rows} rows have {} bytes; the largest binding of {} has {limit}; take `flash` or `auto`",
            of.name,
            each * rows,
            profile.name
        ));
    }
    let wanted = policy.workgroups.div_ceil(most_pairs * row_tiles).min(room);
    let mut part_keys = keys.div_ceil(wanted).next_multiple_of(step);
    // A step is a round, and without subgroups a loop over the lanes of a team.
    let rounds = if form.subgroups { 1 } else { u64::from(lanes) + 2 };
    if !profile.runs_rounds(rounds.saturating_mul(keys)) {
        part_keys = part_keys.min(MOST_OF_PART.min(step * profile.loop_steps(rounds, MOST_OF_PART)));
    }
    let parts = keys.div_ceil(part_keys);
    if parts > room {
        return Err(err!(
            TooLarge,
            "{}: {keys} keys in {parts} parts do not fit on {}; take fewer rows at a time",
            of.name,
            profile.name
        ));
    }
    let partials = program.scratch(each * rows * parts);
    let behind = of.count(&INPUTS) as u32 + 1;
    let spec = of.spec(&INPUTS).flag("EIGHTS", true).constant("PARTIALS_BINDING", behind);
    let split = program.kernel(Kernel {
        source: Source::generated(&form, form.name(), || form.text()),
        spec,
        entry: "attention_split",
        trusted: true,
    });
    let spec = of
        .spec(&[Bound::Output])
        .constant("WORKGROUP_SIZE", MERGE_SIZE)
        .constant("LANES", MERGE_SIZE)
        .constant("COLUMNS", of.fours().next_power_of_two())
        .constant("PARTIALS_BINDING", 2);
    let merge = program.kernel(Kernel::library("attention/attention_merge", "attention_merge", spec));
    for piece in pieces {
        let mut params = of.params(&piece);
        params.parts = parts as u32;
        params.part_keys = part_keys as u32;
        params.row_tiles = row_tiles as u32;
        params.first_row = (piece.first * rows_of_pair) as u32;
        let workgroups = piece.pairs as u64 * row_tiles * parts;
        params.rows = workgroups as u32;
        let mut bindings = of.bindings(program, &piece, &INPUTS);
        bindings.push(partials);
        program.dispatch(split, &params, bindings, Grid::fold(workgroups));
        let rows = (piece.pairs * rows_of_pair) as u64;
        params.rows = rows as u32;
        let mut bindings = of.bindings(program, &piece, &[Bound::Output]);
        bindings.push(partials);
        program.dispatch(merge, &params, bindings, Grid::fold(rows));
    }
    Ok(())
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Form {
    /// Invocations of a team: a power of two.
    lanes: u32,
    teams: u32,
    rows: u32,
    blocks: u32,
    /// Eights of elements of a vector.
    eights: u32,
    subgroups: bool,
    /// Whether there is one query.
    single: bool,
    masked: bool,
    paged: bool,
    /// Whether exponentials may drop NaN.
    careful: bool,
}

const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

impl Form {
    fn name(&self) -> String {
        format!("attention/attention_split {} rows, {} teams of {}", self.rows, self.teams, self.lanes)
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let Self { lanes, teams, rows, blocks, eights, .. } = *self;
        let threads = lanes * teams;
        let keys = 4 * blocks;
        writeln!(
            out,
            "// A part of softmax(scale q k^T + mask) v: the largest score, the sum of weights, the weighted sum of values of
// a range of keys (Dao et al., \"Flash-Decoding\", 2023). Made by src/attention/split.rs. A workgroup of {threads}
// takes {rows} rows of q; {lanes} lanes take {keys} keys at a time.
#import attention/attention_seen
#import attention/attention_mask
#import attention/q_f32 as queries
#import attention/kv_f32 as kv
#import activation/is_nan

const PARTIALS_BINDING: u32 = 4u;
@group(0) @binding(PARTIALS_BINDING) var<storage, read_write> partials: array<vec4<f32>>;

var<workgroup> wg_sums: array<vec4<f32>, {}>;
var<workgroup> wg_largest: array<vec2<f32>, {teams}>;
",
            2 * threads
        )?;
        if self.subgroups {
            writeln!(out, "enable subgroups;")?;
        } else {
            writeln!(out, "var<workgroup> wg_scores: array<vec4<f32>, {}>;", threads * rows * blocks)?;
        }
        writeln!(
            out,
            "
@compute @workgroup_size({threads})
fn attention_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    let index = workgroup_index(id);
    if index >= params.rows {{
        return;
    }}
    // Those that read the same keys follow each other.
    let row_tile = index % params.row_tiles;
    let part = index / params.row_tiles % params.parts;
    let pair = params.first_pair + index / params.row_tiles / params.parts;
    let rows_of_pair = params.heads / params.kv_heads * params.queries;
    let len = length_of(pair / params.kv_heads);
    let begin = seen_by(0u, len).x + part * params.part_keys;
    let end = min(begin + params.part_keys, seen_by(params.queries - 1u, len).y);
    let lane = local % {lanes}u;
    let team = local / {lanes}u;
    let eight = min(lane, {}u);
    let factor = params.scale * 1.4426950408889634;
    var infinity_bits = 0xff800000u;
    let nothing = bitcast<f32>(infinity_bits);",
            eights - 1
        )?;
        for i in 0..rows {
            writeln!(
                out,
                "    let row_{i} = min(row_tile * {rows}u + {i}u, rows_of_pair - 1u);
    let at_{i} = pair * rows_of_pair + row_{i};
    let query_{i} = row_{i} % params.queries;"
            )?;
            writeln!(
                out,
                "    let qa_{i} = query_four(at_{i}, 2u * eight) * factor;
    let qb_{i} = query_four(at_{i}, 2u * eight + 1u) * factor;"
            )?;
            if !self.single {
                writeln!(out, "    let seen_{i} = seen_by(query_{i}, len);")?;
            }
            if self.masked {
                writeln!(
                    out,
                    "    let mask_{i} = mask_row(pair, at_{i} / params.queries % params.heads, query_{i});"
                )?;
            }
            writeln!(
                out,
                "    var most_{i} = nothing;
    var sum_{i} = 0.0;
    var oa_{i} = vec4<f32>();
    var ob_{i} = vec4<f32>();"
            )?;
        }
        writeln!(out, "    for (var first = begin; first < end; first += {}u) {{", teams * keys)?;
        for x in 0..keys {
            writeln!(
                out,
                "    let key_{x} = first + team * {keys}u + {x}u;
    let found_{x} = row_of(pair, min(key_{x}, end - 1u));"
            )?;
            let row = if self.paged {
                format!("select(found_{x}, 0u, found_{x} == NO_ROW)")
            } else {
                format!("found_{x}")
            };
            writeln!(
                out,
                "    let k_{x} = key_eight({row}, eight);
    let v_{x} = value_eight({row}, eight);"
            )?;
        }
        for i in 0..rows {
            for m in 0..blocks {
                let one = |x: u32| {
                    let x = 4 * m + x;
                    format!("dot(qa_{i}, k_{x}.a) + dot(qb_{i}, k_{x}.b)")
                };
                let four = format!("vec4({}, {}, {}, {})", one(0), one(1), one(2), one(3));
                // Lanes behind the last hold it once more.
                let four = match lanes == eights {
                    true => four,
                    false => format!("select(vec4<f32>(), {four}, lane < {eights}u)"),
                };
                writeln!(out, "    var s_{i}_{m} = {four};")?;
            }
        }
        self.write_across(out)?;
        self.write_softmax(out)?;
        writeln!(out, "    }}")?;
        self.write_end(out)?;
        writeln!(out, "}}")
    }

    /// Sums scores over the lanes of a team.
    fn write_across(&self, out: &mut String) -> fmt::Result {
        let Self { lanes, rows, blocks, .. } = *self;
        if self.subgroups {
            let mut mask = lanes / 2;
            while mask > 0 {
                for i in 0..rows {
                    for m in 0..blocks {
                        writeln!(out, "    s_{i}_{m} += subgroupShuffleXor(s_{i}_{m}, {mask}u);")?;
                    }
                }
                mask /= 2;
            }
            return Ok(());
        }
        let each = rows * blocks;
        writeln!(out, "    workgroupBarrier();")?;
        for i in 0..rows {
            for m in 0..blocks {
                writeln!(out, "    wg_scores[local * {each}u + {}u] = s_{i}_{m};", i * blocks + m)?;
                writeln!(out, "    s_{i}_{m} = vec4<f32>();")?;
            }
        }
        writeln!(out, "    workgroupBarrier();\n    for (var l = 0u; l < {lanes}u; l++) {{")?;
        for i in 0..rows {
            for m in 0..blocks {
                let at = format!("(team * {lanes}u + l) * {each}u + {}u", i * blocks + m);
                writeln!(out, "    s_{i}_{m} += wg_scores[{at}];")?;
            }
        }
        writeln!(out, "    }}")
    }

    /// Hidden keys, weights, and the sums that they go to.
    fn write_softmax(&self, out: &mut String) -> fmt::Result {
        let Self { rows, blocks, .. } = *self;
        for m in 0..blocks {
            let k = |x: u32| 4 * m + x;
            writeln!(out, "    let at_{m} = vec4(key_{}, key_{}, key_{}, key_{});", k(0), k(1), k(2), k(3))?;
            let mut hidden = format!("(at_{m} >= vec4(end))");
            if self.paged {
                let one = |x: u32| format!("found_{} == NO_ROW", k(x));
                hidden = format!("({hidden} | vec4({}, {}, {}, {}))", one(0), one(1), one(2), one(3));
            }
            writeln!(out, "    let hidden_{m} = {hidden};")?;
            if self.masked {
                writeln!(out, "    let near_{m} = min(at_{m}, vec4(end - 1u));")?;
            }
        }
        for i in 0..rows {
            for m in 0..blocks {
                if self.masked {
                    let [x, y, z, w] = COMPONENTS.map(|c| format!("mask[mask_{i} + near_{m}.{c}]"));
                    writeln!(out, "    s_{i}_{m} += 1.4426950408889634 * vec4({x}, {y}, {z}, {w});")?;
                }
                let hidden = if self.single {
                    format!("hidden_{m}")
                } else {
                    format!("hidden_{m} | (at_{m} >= vec4(seen_{i}.y)) | (at_{m} < vec4(seen_{i}.x))")
                };
                writeln!(out, "    let hidden_{i}_{m} = {hidden};")?;
                writeln!(out, "    s_{i}_{m} = select(s_{i}_{m}, vec4(nothing), hidden_{i}_{m});")?;
            }
            let mut four = format!("s_{i}_0");
            for m in 1..blocks {
                four = format!("max({four}, s_{i}_{m})");
            }
            writeln!(
                out,
                "    let four_{i} = {four};
    let now_{i} = max(most_{i}, max(max(four_{i}.x, four_{i}.y), max(four_{i}.z, four_{i}.w)));
    // A row that has seen nothing yet has no largest: any number will do.
    let center_{i} = select(now_{i}, 0.0, now_{i} == nothing);
    let fade_{i} = exp2(most_{i} - center_{i});
    most_{i} = now_{i};
    sum_{i} *= fade_{i};
    oa_{i} *= fade_{i};
    ob_{i} *= fade_{i};"
            )?;
            for m in 0..blocks {
                let exponent = format!("s_{i}_{m} - center_{i}");
                writeln!(out, "    let d_{i}_{m} = {exponent};")?;
                let d = format!("d_{i}_{m}");
                let weights = if self.careful {
                    let [x, y, z, w] = COMPONENTS.map(|c| format!("is_nan({d}.{c})"));
                    format!("select(exp2({d}), {d}, vec4({x}, {y}, {z}, {w}))")
                } else {
                    format!("exp2({d})")
                };
                writeln!(out, "    let p_{i}_{m} = {weights};")?;
                writeln!(out, "    sum_{i} += p_{i}_{m}.x + p_{i}_{m}.y + p_{i}_{m}.z + p_{i}_{m}.w;")?;
                // A weight of 0 does not hide a value that is infinite or NaN.
                writeln!(out, "    if any(hidden_{i}_{m}) {{")?;
                for (x, c) in COMPONENTS.into_iter().enumerate() {
                    let x = 4 * m + x as u32;
                    for half in ["a", "b"] {
                        let product = format!("p_{i}_{m}.{c} * v_{x}.{half}");
                        writeln!(
                            out,
                            "    o{half}_{i} += select({product}, vec4<f32>(), hidden_{i}_{m}.{c});"
                        )?;
                    }
                }
                writeln!(out, "    }} else {{")?;
                for (x, c) in COMPONENTS.into_iter().enumerate() {
                    let x = 4 * m + x as u32;
                    for half in ["a", "b"] {
                        writeln!(out, "    o{half}_{i} += p_{i}_{m}.{c} * v_{x}.{half};")?;
                    }
                }
                writeln!(out, "    }}")?;
            }
        }
        Ok(())
    }

    /// Joins the teams, a row at a time.
    fn write_end(&self, out: &mut String) -> fmt::Result {
        let Self { lanes, teams, rows, .. } = *self;
        writeln!(
            out,
            "    let slot = (part + params.parts * (pair - params.first_pair) * rows_of_pair) * (FOURS + 1u);"
        )?;
        for i in 0..rows {
            writeln!(
                out,
                "    workgroupBarrier();
    wg_sums[2u * local] = oa_{i};
    wg_sums[2u * local + 1u] = ob_{i};
    if lane == 0u {{
        wg_largest[team] = vec2(most_{i}, sum_{i});
    }}
    workgroupBarrier();
    if row_tile * {rows}u + {i}u < rows_of_pair {{
    var largest = nothing;
    for (var t = 0u; t < {teams}u; t++) {{
        largest = max(largest, wg_largest[t].x);
    }}
    let center = select(largest, 0.0, largest == nothing);
    let base = slot + row_{i} * params.parts * (FOURS + 1u);
    for (var four = local; four <= FOURS; four += {}u) {{
        var total = 0.0;
        var sum = vec4<f32>();
        for (var t = 0u; t < {teams}u; t++) {{
            let weight = exp2(wg_largest[t].x - center);
            total += weight * wg_largest[t].y;
            sum += weight * wg_sums[2u * t * {lanes}u + min(four, FOURS - 1u)];
        }}
        partials[base + four] = select(sum, vec4(largest, total, 0.0, 0.0), four == FOURS);
    }}
    }}",
                lanes * teams
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use crate::attention::Attention;
    use crate::program::{DeviceProfile, Op};
    use half::f16;

    #[test]
    fn parts_are_short_enough_for_drivers_that_end_loops() {
        let mut mesa = DeviceProfile::mesa();
        mesa.features.subgroups = false;
        for d in [8, 128, 256] {
            let op = Attention::new(16, 1, 1, 1, 1 << 17, d).variant("split-kv");
            let part = Op::<f16>::lower(&op, &mesa).unwrap().param(0, "part_keys");
            // Of 64 invocations a team has a lane for eight elements, and takes four keys at a time.
            let lanes = (d as u64 / 8).next_power_of_two();
            let rounds = part / (4 * 64 / lanes) * (lanes + 2);
            assert!(rounds <= 65535, "{rounds} rounds for {part} keys of {d}");
        }
    }
}
