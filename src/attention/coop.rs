//! Flash attention on cooperative matrices of f16: WGSL text made for a head size and a tile.
//!
//! A workgroup takes some rows of q, of which each subgroup has 32 or 16; q and the output stay in cooperative matrices,
//! and tiles of k and v of `f16` are staged in workgroup memory for all. A cooperative matrix has no elements to reach:
//! scores go through workgroup memory, where a row belongs to an invocation (or to two), and come back as weights of f16.
//!
//! The output is scaled to a new maximum of its row only where that is more than 2^8 times what the row was scaled by, and
//! weights are then as large as that, far from what f16 holds: few tiles do so, and those alone take the output through
//! workgroup memory.

use super::attention::{Attention, KvType};
use super::layout::{Bound, Lowering};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{DeviceProfile, Kernel, Program, Source};
use std::fmt::{self, Write};

/// Rows and columns of a cooperative matrix.
const SIDE: u32 = 16;
/// Invocations of a subgroup.
const LANES: u32 = 32;
/// Elements of a load from storage.
const PIECE: u32 = 8;
/// Elements that a row of `f16` in workgroup memory is longer than the tile, to spread blocks over the banks.
const PAD: u32 = 8;
/// The same for rows of `f32`.
const PAD_SCORES: u32 = 4;
/// How much a maximum may grow, as a power of two, before the output is scaled to it.
const SLACK: u32 = 8;

/// Sides of the tiles of `coop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoopTile {
    /// Subgroups of a workgroup.
    pub teams: u32,
    /// Rows of q of a subgroup: 16 or 32.
    pub rows: u32,
    /// Keys of a tile: a multiple of 16.
    pub keys: u32,
}

const INPUTS: [Bound; 6] = [Bound::Q, Bound::K, Bound::V, Bound::Lengths, Bound::Mask, Bound::Output];

/// The tile for heads of this size. On an H100 (Vulkan, driver 580.159.04), B4 H16 T4096, TFLOP/s by subgroups x rows and
/// keys: of 64 134 by 4 x 32 and 16, 126 by 8 x 16 and 16, 121 by 4 x 16 and 32, 108 by 4 x 32 and 32, 97 by 4 x 16 and 64;
/// of 128 174 by 8 x 16 and 32, 134 by 4 x 32 and 32, 132 by 8 x 16 and 16, 124 by 4 x 32 and 16.
fn policy(head_size: usize) -> CoopTile {
    if head_size <= 64 {
        CoopTile { teams: 4, rows: 32, keys: 16 }
    } else {
        CoopTile { teams: 8, rows: 16, keys: 32 }
    }
}

/// What is wanted and is not there, in words.
pub(super) fn missing(of: &Lowering<'_>) -> Option<String> {
    let Attention { head_size, paging, .. } = *of.op;
    if of.dtype != DType::F16 || of.kv != KvType::F16 {
        return Some(format!("q of {} and keys of {}; it takes both of f16", of.dtype, of.kv.name()));
    }
    if paging.is_some() {
        return Some("a cache in pages; it takes keys that lie one after another".into());
    }
    if !head_size.is_multiple_of(SIDE as usize) || head_size > 128 {
        return Some(format!("a head size of {head_size}; it takes multiples of 16 up to 128"));
    }
    let DeviceProfile { subgroup_sizes, .. } = *of.profile;
    if subgroup_sizes != (LANES, LANES) || of.profile.cooperative_side() != Some(SIDE) {
        return Some(format!(
            "subgroups of {} to {} invocations; it is written for cooperative matrices of 16 x 16 in subgroups of 32",
            subgroup_sizes.0, subgroup_sizes.1
        ));
    }
    None
}

pub(super) fn lower(of: &Lowering<'_>, program: &mut Program) -> Result<()> {
    if let Some(missing) = missing(of) {
        return Err(err!(Unsupported, "{}: `coop` does not take {missing}; take `auto`", of.name));
    }
    let form = Form {
        tile: of.op.coop_tile.unwrap_or_else(|| policy(of.op.head_size)),
        dims: of.op.head_size as u32,
        bounded: of.op.causal || of.op.window.is_some(),
        masked: of.op.mask.is_some(),
    };
    let tile = form.tile;
    if !form.is_sound() {
        return Err(err!(
            InvalidArgument,
            "{}: {tile:?} is no tile of `coop`: 16 or 32 rows, up to 16 subgroups, a multiple of 16 keys up to 128",
            of.name
        ));
    }
    let (invocations, bytes) = (form.invocations(), form.workgroup_bytes());
    of.check_room(&tile, invocations, bytes)?;
    let kernel = Kernel {
        source: Source::generated(&form, form.name(), || form.text()),
        spec: of.spec(&INPUTS).flag("EIGHTS", true),
        entry: "attention_coop",
        trusted: true,
    };
    of.dispatch_rows(program, kernel, form.rows(), &INPUTS)
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Form {
    tile: CoopTile,
    dims: u32,
    /// Whether rows differ in what they see.
    bounded: bool,
    masked: bool,
}

impl Form {
    fn is_sound(&self) -> bool {
        let CoopTile { teams, rows, keys } = self.tile;
        (1..=16).contains(&teams)
            && [16, 32].contains(&rows)
            && keys.is_multiple_of(SIDE)
            && (SIDE..=128).contains(&keys)
    }

    fn name(&self) -> String {
        let CoopTile { teams, rows, keys } = self.tile;
        format!("attention/attention_coop {teams} x {rows} rows, {keys} keys, {} dims", self.dims)
    }

    fn invocations(&self) -> u32 {
        self.tile.teams * LANES
    }

    /// Rows of q of a workgroup.
    fn rows(&self) -> u32 {
        self.tile.teams * self.tile.rows
    }

    /// Invocations that share a row of scores.
    fn sharers(&self) -> u32 {
        LANES / self.tile.rows
    }

    /// From one row of weights to the next in workgroup memory, and of k or v, and of scores.
    fn pitches(&self) -> [u32; 3] {
        [self.tile.keys + PAD, self.dims + PAD, self.tile.keys + PAD_SCORES]
    }

    fn workgroup_bytes(&self) -> u32 {
        let [weights, values, scores] = self.pitches();
        2 * self.rows() * weights
            + 4 * self.tile.keys * values
            + 4 * self.rows() * scores
            + 4 * self.tile.teams
    }

    /// Blocks of a subgroup's rows, of the keys of a tile, of dimensions.
    fn blocks(&self) -> [u32; 3] {
        [self.tile.rows / SIDE, self.tile.keys / SIDE, self.dims / SIDE]
    }

    /// Loads of an invocation for a tile of k or v; the last may be beyond it.
    fn loads(&self) -> u32 {
        (self.tile.keys * self.dims / PIECE).div_ceil(self.invocations())
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let CoopTile { teams, rows, keys } = self.tile;
        let [weights, values, scores] = self.pitches();
        let (threads, all) = (self.invocations(), self.rows());
        writeln!(
            out,
            "// softmax(scale q k^T + mask) v with scores in workgroup memory alone (Dao, \"FlashAttention-2\", 2023), by
// cooperative matrices of 16 x 16. Made by src/attention/coop.rs. A subgroup of {LANES} takes {rows} rows of q, a
// workgroup of {threads} invocations {all}, and walks over the keys that they see, {keys} at a time.
// Requires f16 and cooperative matrices of f16 with sums of f32.
#import attention/attention_seen
#import attention/attention_mask
#import attention/attention_output
#import attention/q_f16 as queries
#import attention/kv_f16 as kv
enable f16;
enable wgpu_cooperative_matrix;
enable subgroups;
"
        )?;
        writeln!(
            out,
            "// Weights, and first q.
var<workgroup> wg_p: array<vec4<f16>, {}>;
var<workgroup> wg_k: array<vec4<f16>, {}>;
var<workgroup> wg_v: array<vec4<f16>, {1}>;
// Scores; and the output where its elements are reached.
var<workgroup> wg_s: array<vec4<f32>, {}>;
// Of each subgroup GROWN, if a row wants the output scaled, and SPOILED, if it found a value that is infinite or NaN.
var<workgroup> wg_flags: array<u32, {}>;
const GROWN: u32 = 1u;
const SPOILED: u32 = 2u;

// Which are infinite or NaN.
fn spoils(x: vec4<f32>) -> vec4<bool> {{
    return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) >= vec4(0x7f800000u);
}}

fn halves(words: vec2<u32>) -> vec4<f16> {{
    return vec4<f16>(vec2<f16>(unpack2x16float(words.x)), vec2<f16>(unpack2x16float(words.y)));
}}

@compute @workgroup_size({threads})
fn attention_coop(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    // As workgroup_index has it, written out: naga holds what a function returns to differ from invocation to
    // invocation, and the end of some of them to be in the way of the others' matrices.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.rows {{
        return;
    }}
    // The last tiles see most keys: they come first.
    let tile = params.parts - 1u - index % params.parts;
    let group = params.heads / params.kv_heads;
    let head = params.first_pair * group + index / params.parts;
    let pair = head / group;
    let len = length_of(pair / params.kv_heads);
    let first_query = tile * {all}u;
    let last_query = min(first_query + {all}u, params.queries) - 1u;
    let seen_by_first = seen_by(first_query, len);
    let seen_by_last = seen_by(last_query, len);
    let end_key = seen_by_last.y;
    let last_key = max(end_key, 1u) - 1u;
    let team = local / {LANES}u;
    let lane = local % {LANES}u;
    // The row of scores that is this invocation's, or its part of one.
    let row = team * {rows}u + lane % {rows}u;
    let part = lane / {rows}u;
    let query = min(first_query + row, last_query);
    let row_at = row * {}u + part * {}u;
    var infinity_bits = 0xff800000u;
    let nothing = bitcast<f32>(infinity_bits);
    let factor = params.scale * 1.4426950408889634;
    var most = nothing;
    var sum = 0.0;",
            all * weights / 4,
            keys * values / 4,
            all * scores / 4,
            teams,
            scores / 4,
            keys / 4 / self.sharers(),
        )?;
        if self.bounded {
            writeln!(out, "    let seen = seen_by(query, len);")?;
        }
        if self.masked {
            writeln!(out, "    let mask_at = mask_row(pair, head % params.heads, query);")?;
        }
        self.write_queries(out)?;
        let [row_blocks, _, dim_blocks] = self.blocks();
        for r in 0..row_blocks {
            for d in 0..dim_blocks {
                writeln!(out, "    var o_{r}_{d} = coop_mat16x16<f32, C>();")?;
            }
        }
        for j in 0..self.loads() {
            let pieces = self.dims / PIECE;
            let item = format!("min(local + {}u, {}u)", j * threads, keys * pieces - 1);
            writeln!(out, "    let line_{j} = {item} / {pieces}u;")?;
            writeln!(out, "    let piece_{j} = {item} % {pieces}u;")?;
            writeln!(out, "    let to_{j} = line_{j} * {}u + piece_{j} * 2u;", values / 4)?;
            writeln!(out, "    var k_next_{j}: vec4<u32>;\n    var v_next_{j}: vec4<u32>;")?;
        }
        self.write_fetch(out, "seen_by_first.x")?;
        self.write_store(out)?;
        writeln!(
            out,
            "    workgroupBarrier();
    for (var key = seen_by_first.x; key < end_key; key += {keys}u) {{"
        )?;
        self.write_fetch(out, &format!("key + {keys}u"))?;
        self.write_scores(out)?;
        self.write_weights(out)?;
        self.write_changes(out)?;
        self.write_values(out)?;
        writeln!(out, "    workgroupBarrier();")?;
        self.write_store(out)?;
        writeln!(out, "    workgroupBarrier();\n    }}")?;
        self.write_end(out)?;
        writeln!(out, "}}")
    }

    /// Takes q to matrices, through the place of weights.
    fn write_queries(&self, out: &mut String) -> fmt::Result {
        let [row_blocks, key_blocks, dim_blocks] = self.blocks();
        let (pitch, threads, rows) = (self.pitches()[0], self.invocations(), self.rows());
        for first in (0..dim_blocks).step_by(key_blocks as usize) {
            let blocks = key_blocks.min(dim_blocks - first);
            let fours = blocks * SIDE / 4;
            writeln!(
                out,
                "    for (var i = local; i < {}u; i += {threads}u) {{
    let source = head * params.queries + min(first_query + i / {fours}u, last_query);
    wg_p[i / {fours}u * {}u + i % {fours}u] = halves(q[source * FOURS + {}u + i % {fours}u - params.base_q]);
    }}
    workgroupBarrier();",
                rows * fours,
                pitch / 4,
                first * SIDE / 4
            )?;
            for r in 0..row_blocks {
                for b in 0..blocks {
                    writeln!(out, "    let q_{r}_{} = {};", first + b, self.load_weights(r, b))?;
                }
            }
            writeln!(out, "    workgroupBarrier();")?;
        }
        Ok(())
    }

    /// A block of weights (or of q in their place) as a left factor.
    fn load_weights(&self, row: u32, block: u32) -> String {
        let pitch = self.pitches()[0];
        format!(
            "coopLoadT<coop_mat16x16<f16, A>>(&wg_p[((team * {}u + {}u) * {pitch}u + {}u) / 4u], {}u)",
            self.tile.rows,
            row * SIDE,
            block * SIDE,
            pitch / 4
        )
    }

    /// Where a block of scores (or of the output in their place) lies.
    fn score_at(&self, row: u32, block: u32) -> String {
        let pitch = self.pitches()[2];
        format!("((team * {}u + {}u) * {pitch}u + {}u) / 4u", self.tile.rows, row * SIDE, block * SIDE)
    }

    /// Loads a tile from storage into registers; behind the last key that again.
    fn write_fetch(&self, out: &mut String, first_key: &str) -> fmt::Result {
        for x in ["k", "v"] {
            for j in 0..self.loads() {
                writeln!(
                    out,
                    "    {x}_next_{j} = {x}[row_of(pair, min({first_key} + line_{j}, last_key)) * (FOURS / 2u) + piece_{j} - params.base_kv / 2u];"
                )?;
            }
        }
        Ok(())
    }

    fn write_store(&self, out: &mut String) -> fmt::Result {
        for x in ["k", "v"] {
            for j in 0..self.loads() {
                writeln!(out, "    wg_{x}[to_{j}] = halves({x}_next_{j}.xy);")?;
                writeln!(out, "    wg_{x}[to_{j} + 1u] = halves({x}_next_{j}.zw);")?;
            }
        }
        Ok(())
    }

    /// Stores a matrix to `to`. naga wants place, stride and value bound to names.
    fn store(&self, name: &str, to: &str) -> String {
        format!(
            "    {{
    let value = {name};
    let to = {to};
    let stride = {}u;
    coopStoreT(value, &wg_s[to], stride);
    }}",
            self.pitches()[2] / 4
        )
    }

    /// The scores of a tile, q k^T, to workgroup memory.
    fn write_scores(&self, out: &mut String) -> fmt::Result {
        let [row_blocks, key_blocks, dim_blocks] = self.blocks();
        let pitch = self.pitches()[1];
        for c in 0..key_blocks {
            writeln!(out, "    {{")?;
            for r in 0..row_blocks {
                writeln!(out, "    var s_{r} = coop_mat16x16<f32, C>();")?;
            }
            for d in 0..dim_blocks {
                writeln!(
                    out,
                    "    let k_{d} = coopLoad<coop_mat16x16<f16, B>>(&wg_k[{}u], {}u);",
                    (c * SIDE * pitch + d * SIDE) / 4,
                    pitch / 4
                )?;
                for r in 0..row_blocks {
                    writeln!(out, "    s_{r} = coopMultiplyAdd(q_{r}_{d}, k_{d}, s_{r});")?;
                }
            }
            for r in 0..row_blocks {
                writeln!(out, "{}", self.store(&format!("s_{r}"), &self.score_at(r, c)))?;
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    workgroupBarrier();")
    }

    /// From scores to weights: hidden keys, the largest of each row, exponentials.
    fn write_weights(&self, out: &mut String) -> fmt::Result {
        let keys = self.tile.keys;
        let fours = keys / 4 / self.sharers();
        for j in 0..fours {
            writeln!(out, "    var s_{j} = wg_s[row_at + {j}u] * factor;")?;
        }
        writeln!(out, "    let first_at = key + part * {}u;", 4 * fours)?;
        if self.masked {
            for j in 0..fours {
                writeln!(
                    out,
                    "    {{
    let near = mask_at + min(vec4(first_at + {}u) + vec4(0u, 1u, 2u, 3u), vec4(last_key));
    s_{j} += 1.4426950408889634 * vec4(mask[near.x], mask[near.y], mask[near.z], mask[near.w]);
    }}",
                    4 * j
                )?;
            }
        }
        // Only tiles at an end of what some row sees hide anything.
        let (range, pieces) = (self.seen(), self.dims / 4);
        writeln!(
            out,
            "    var team_spoiled = false;
    if key + {keys}u > seen_by_first.y || key < seen_by_last.x {{
    var spoiled = false;
    for (var i = local; i < {}u; i += {}u) {{
    spoiled = spoiled || any(spoils(vec4<f32>(wg_v[i / {pieces}u * {}u + i % {pieces}u])));
    }}
    team_spoiled = subgroupAny(spoiled);",
            keys * pieces,
            self.invocations(),
            self.pitches()[1] / 4
        )?;
        for j in 0..fours {
            writeln!(
                out,
                "    {{
    let at = vec4(first_at + {}u) + vec4(0u, 1u, 2u, 3u);
    s_{j} = select(s_{j}, vec4(nothing), (at >= vec4({range}.y)) | (at < vec4({range}.x)));
    }}",
                4 * j
            )?;
        }
        writeln!(out, "    }}")?;
        let four = (1..fours).fold("s_0".to_owned(), |four, j| format!("max({four}, s_{j})"));
        writeln!(out, "    let tops = {four};")?;
        writeln!(out, "    var top = max(max(tops.x, tops.y), max(tops.z, tops.w));")?;
        if self.sharers() > 1 {
            writeln!(out, "    top = max(top, subgroupShuffleXor(top, {}u));", self.tile.rows)?;
        }
        writeln!(
            out,
            "    var fade = 1.0;
    var grown = false;
    if top > most + {SLACK}.0 {{
    // Nothing was added before the first.
    grown = most != nothing;
    fade = exp2(most - top);
    most = top;
    sum *= fade;
    }}
    let team_grown = subgroupAny(grown);
    if lane == 0u {{
    wg_flags[team] = select(0u, GROWN, team_grown) | select(0u, SPOILED, team_spoiled);
    }}
    // A row that has seen nothing yet has no largest: any number will do.
    let center = select(most, 0.0, most == nothing);"
        )?;
        let pitch = self.pitches()[0];
        for j in 0..fours {
            writeln!(
                out,
                "    s_{j} = exp2(s_{j} - center);
    sum += (s_{j}.x + s_{j}.y) + (s_{j}.z + s_{j}.w);
    wg_p[row * {}u + part * {fours}u + {j}u] = vec4<f16>(s_{j});",
                pitch / 4
            )?;
        }
        Ok(())
    }

    /// Takes the output through workgroup memory, by as many columns as there are keys in a tile.
    fn through_memory(
        &self,
        out: &mut String,
        between: &dyn Fn(u32, u32) -> String,
        back: bool,
    ) -> fmt::Result {
        let [row_blocks, key_blocks, dim_blocks] = self.blocks();
        for first in (0..dim_blocks).step_by(key_blocks as usize) {
            let blocks = key_blocks.min(dim_blocks - first);
            for b in 0..blocks {
                for r in 0..row_blocks {
                    writeln!(out, "{}", self.store(&format!("o_{r}_{}", first + b), &self.score_at(r, b)))?;
                }
            }
            writeln!(out, "    workgroupBarrier();\n{}", between(first, blocks))?;
            writeln!(out, "    workgroupBarrier();")?;
            if back {
                for b in 0..blocks {
                    for r in 0..row_blocks {
                        writeln!(
                            out,
                            "    o_{r}_{} = coopLoadT<coop_mat16x16<f32, C>>(&wg_s[{}], {}u);",
                            first + b,
                            self.score_at(r, b),
                            self.pitches()[2] / 4
                        )?;
                    }
                }
                writeln!(out, "    workgroupBarrier();")?;
            }
        }
        Ok(())
    }

    /// Of each of an invocation's fours of `blocks` blocks of the output in workgroup memory.
    fn each_four(&self, blocks: u32, body: &str) -> String {
        let fours = blocks * SIDE / 4;
        let pitch = self.pitches()[2] / 4;
        format!(
            "    for (var i = part; i < {fours}u; i += {}u) {{
    let at = row * {pitch}u + i;
    {body}
    }}",
            self.sharers()
        )
    }

    /// What a row sees of keys.
    fn seen(&self) -> &'static str {
        if self.bounded { "seen" } else { "seen_by_last" }
    }

    /// Scales the output where a row asks for it. A weight of 0 does not hide a value that is infinite or NaN: where a tile
    /// that hides keys has such values, rows add those that they see one by one, and the matrices find zeros in their place.
    fn write_changes(&self, out: &mut String) -> fmt::Result {
        let any: Vec<_> = (0..self.tile.teams).map(|team| format!("all_flags[{team}]")).collect();
        writeln!(
            out,
            "    let all_flags = workgroupUniformLoad(&wg_flags);\n    let flags = {};\n    if flags != 0u {{",
            any.join(" | ")
        )?;
        let (keys, range) = (self.tile.keys, self.seen());
        let [weights, values, _] = self.pitches();
        let change = |first: u32, blocks: u32| {
            let body = format!(
                "var o = wg_s[at] * fade;
    if (flags & SPOILED) != 0u {{
    for (var j = 0u; j < {keys}u; j++) {{
    let value = vec4<f32>(wg_v[j * {}u + {}u + i]);
    let product = f32(wg_p[row * {}u + j / 4u][j % 4u]) * value;
    if key + j >= {range}.x && key + j < {range}.y {{
    o += select(vec4<f32>(), product, spoils(value));
    }}
    }}
    }}
    wg_s[at] = o;",
                values / 4,
                first * SIDE / 4,
                weights / 4
            );
            self.each_four(blocks, &body)
        };
        self.through_memory(out, &change, true)?;
        let pieces = self.dims / 4;
        writeln!(
            out,
            "    if (flags & SPOILED) != 0u {{
    for (var i = local; i < {}u; i += {}u) {{
    let at = i / {pieces}u * {}u + i % {pieces}u;
    let value = wg_v[at];
    wg_v[at] = select(value, vec4<f16>(), spoils(vec4<f32>(value)));
    }}
    workgroupBarrier();
    }}
    }}",
            keys * pieces,
            self.invocations(),
            values / 4
        )
    }

    /// Adds weights times values to the output.
    fn write_values(&self, out: &mut String) -> fmt::Result {
        let [row_blocks, key_blocks, dim_blocks] = self.blocks();
        let pitch = self.pitches()[1];
        writeln!(out, "    {{")?;
        for r in 0..row_blocks {
            for c in 0..key_blocks {
                writeln!(out, "    let p_{r}_{c} = {};", self.load_weights(r, c))?;
            }
        }
        for d in 0..dim_blocks {
            for c in 0..key_blocks {
                writeln!(
                    out,
                    "    let v_{d}_{c} = coopLoadT<coop_mat16x16<f16, B>>(&wg_v[{}u], {}u);",
                    (c * SIDE * pitch + d * SIDE) / 4,
                    pitch / 4
                )?;
                for r in 0..row_blocks {
                    writeln!(out, "    o_{r}_{d} = coopMultiplyAdd(p_{r}_{c}, v_{d}_{c}, o_{r}_{d});")?;
                }
            }
        }
        writeln!(out, "    }}")
    }

    /// Divides by the sums and stores.
    fn write_end(&self, out: &mut String) -> fmt::Result {
        if self.sharers() > 1 {
            writeln!(out, "    sum += subgroupShuffleXor(sum, {}u);", self.tile.rows)?;
        }
        writeln!(out, "    let by = select(1.0 / sum, 0.0, sum == 0.0);")?;
        let store = |first: u32, blocks: u32| {
            let body = format!(
                "if first_query + row <= last_query {{
    store_four(head * params.queries + query, {}u + i, wg_s[at] * by);
    }}",
                first * SIDE / 4
            );
            self.each_four(blocks, &body)
        };
        self.through_memory(out, &store, false)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::super::OPS;
    use crate::program::DeviceProfile;
    use crate::shader::Target;

    #[test]
    fn samples_validate_and_stay_short() {
        for program in (OPS[0].samples)(&DeviceProfile::h100(), "coop").unwrap() {
            for kernel in &program.kernels {
                let text = kernel.expand(Target::Naga).unwrap();
                text.validate().unwrap();
                // The driver takes long for long ones.
                assert!(text.text().lines().count() < 1000);
            }
        }
    }
}
