//! One kernel with scores that are never in memory: WGSL text made for a tile, as a register-tiled product is.
//!
//! A workgroup takes some rows of q and walks over the keys that they see, a tile at a time. Lanes of invocations share
//! a row: each computes a block of scores of `thread_rows` rows by fours of keys, then of as many rows of the output
//! by fours of columns, so that the statistics of a row, and the output, stay in the registers of its lanes. Tiles of
//! q and k are staged in workgroup memory some dimensions at a time, then, in the same place, the weights and tiles
//! of v. Fours are swizzled within a row, so that lanes which read the same column of several rows find them in
//! different banks.

use super::layout::{Bound, Lowering};
use crate::error::{Result, err};
use crate::program::{DeviceProfile, Kernel, Program, Source};
use std::fmt::{self, Write};

/// Sides of the tiles of `flash`, and how they are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlashTile {
    /// Rows of q of a workgroup.
    pub rows: u32,
    /// Keys of a tile: a multiple of 4 `lanes`.
    pub keys: u32,
    /// Invocations that share a row: a power of two.
    pub lanes: u32,
    /// Rows of an invocation. `rows` over it is a power of two.
    pub thread_rows: u32,
    /// Dimensions of q and k that are staged at once: 4 times a power of two.
    pub dims: u32,
    /// Keys whose weights are staged at once: 4 times a power of two, a multiple of 4 `lanes`, part of `keys`.
    pub weights: u32,
    /// Keys whose values are staged at once: a multiple of 4, part of `weights`.
    pub values: u32,
    /// Whether the next loads are on their way, to registers, while what was loaded before is used.
    pub ahead: bool,
}

impl FlashTile {
    const fn new([rows, keys, lanes, thread_rows]: [u32; 4], [dims, weights, values]: [u32; 3]) -> Self {
        Self { rows, keys, lanes, thread_rows, dims, weights, values, ahead: false }
    }

    /// Rows of invocations.
    const fn groups(self) -> u32 {
        self.rows / self.thread_rows
    }

    const fn invocations(self) -> u32 {
        self.groups() * self.lanes
    }

    /// Fours in workgroup memory for vectors of `fours`.
    fn staged(self, fours: u32) -> u32 {
        let scores = (self.rows + self.keys) * self.dims / 4;
        let values = self.rows * self.weights / 4 + self.values * fours;
        scores.max(values)
    }

    fn workgroup_bytes(self, fours: u32, subgroups: bool) -> u32 {
        16 * self.staged(fours) + if subgroups { 0 } else { 4 * self.invocations() * self.thread_rows }
    }

    fn is_sound(self) -> bool {
        let Self { rows, keys, lanes, thread_rows, dims, weights, values, ahead: _ } = self;
        let all = [rows, keys, lanes, thread_rows, dims, weights, values];
        all.iter().all(|&x| (1..=1024).contains(&x))
            && lanes.is_power_of_two()
            && rows.is_multiple_of(thread_rows)
            && self.groups().is_power_of_two()
            && dims.is_multiple_of(4)
            && dims.is_power_of_two()
            && weights.is_power_of_two()
            && weights.is_multiple_of(4 * lanes)
            && keys.is_multiple_of(weights)
            && values.is_multiple_of(4)
            && weights.is_multiple_of(values)
    }
}

/// The tile for vectors of so many fours.
pub(super) fn policy(profile: &DeviceProfile, fours: u32) -> FlashTile {
    let limits = &profile.limits;
    if profile.is_cpu() {
        return FlashTile::new([16, 32, 8, 2], [16, 32, 8]);
    }
    if limits.max_workgroup_bytes < 32 << 10 {
        // WebGPU's 16 KiB.
        return match fours {
            0..=16 => FlashTile::new([64, 32, 8, 8], [32, 32, 16]),
            17..=32 => FlashTile::new([64, 32, 8, 4], [32, 32, 8]),
            _ => FlashTile::new([32, 32, 8, 4], [32, 32, 8]),
        };
    }
    // TFLOP/s on an H100 (Vulkan, driver 580.159.04) of f32, B4 H16 T4096: D64 36.0, 34.5 with loads ahead, 32.8 with 256
    // rows, 31.1 with 64, 29.6 and 30.7 with 64 and 16 dimensions at once; D128 34.4, 31.7 without loads ahead, 32.8 with 64
    // rows and keys, 29.7 with 8 lanes.
    let large = limits.max_workgroup_bytes >= 48 << 10;
    match fours {
        0..=16 => FlashTile::new([128, 64, 8, 8], [32, 32, 32]),
        17..=32 if large => FlashTile { ahead: true, ..FlashTile::new([128, 128, 16, 8], [32, 64, 16]) },
        17..=32 => FlashTile::new([64, 64, 16, 8], [32, 64, 16]),
        _ if large => FlashTile::new([64, 64, 16, 4], [32, 64, 16]),
        _ => FlashTile::new([32, 32, 8, 4], [32, 32, 8]),
    }
}

const INPUTS: [Bound; 8] =
    [Bound::Q, Bound::K, Bound::V, Bound::Scales, Bound::Table, Bound::Lengths, Bound::Mask, Bound::Output];

/// Keys that `flash` can walk through before the driver ends the loops of an invocation.
fn most_keys(profile: &DeviceProfile, tile: FlashTile, fours: u32) -> u64 {
    let threads = tile.invocations();
    let loads = |count: u32| count.div_ceil(threads) + 1;
    let chunk = loads(tile.rows * tile.dims / 4) + loads(tile.keys * tile.dims / 4) + tile.dims / 4 + 1;
    let values = loads(tile.values * fours) + tile.values / 4 + 1;
    let rounds = fours.div_ceil(tile.dims / 4) * chunk + tile.keys / tile.values * values + 1;
    // Tiles at either end of what rows see: their values are looked at, and may be taken one key at a time.
    let edges = 2 * (tile.rows / tile.keys + 2);
    let spoiled = loads(tile.keys * fours) + threads.ilog2() + 2 + tile.keys + tile.keys / tile.weights;
    let room = profile.max_rounds().saturating_sub(u64::from(edges * spoiled));
    (room / u64::from(rounds)).saturating_mul(tile.keys.into())
}

/// Whether `flash` can take an attention on this device.
pub(super) fn fits(of: &Lowering<'_>) -> bool {
    let tile = policy(of.profile, of.fours());
    of.op.keys as u64 <= most_keys(of.profile, tile, of.fours())
}

pub(super) fn lower(of: &Lowering<'_>, program: &mut Program) -> Result<()> {
    let (profile, fours) = (of.profile, of.fours());
    let tile = of.op.tile.unwrap_or_else(|| policy(profile, fours));
    let lanes_fit = profile.features.subgroups && profile.subgroup_sizes.0 >= tile.lanes;
    let hides = if of.op.causal || of.op.window.is_some() {
        Hides::Some
    } else if of.op.lengths || of.op.paging.is_some() || !of.op.keys.is_multiple_of(tile.keys.max(1) as usize)
    {
        Hides::Ends
    } else {
        Hides::Nothing
    };
    let form = Form {
        tile,
        fours,
        hides,
        subgroups: lanes_fit,
        causal: of.op.causal,
        windowed: of.op.window.is_some(),
        masked: of.op.mask.is_some(),
        paged: of.op.paging.is_some(),
        careful: profile.is_cpu(),
    };
    if !tile.is_sound() {
        return Err(err!(
            InvalidArgument,
            "{}: {tile:?} is no tile of `flash`: see the rules at its fields",
            of.name
        ));
    }
    let (invocations, bytes) = (tile.invocations(), tile.workgroup_bytes(fours, lanes_fit));
    of.check_room(&tile, invocations, bytes)?;
    let most = most_keys(profile, tile, fours);
    if of.op.keys as u64 > most {
        return Err(err!(
            TooLarge,
            "{}: `flash` takes up to {most} keys on {}, which ends longer loops; take `auto`",
            of.name,
            profile.name
        ));
    }
    let kernel = Kernel {
        source: Source::generated(&form, form.name(), || form.text()),
        spec: of.spec(&INPUTS),
        entry: "attention_flash",
        trusted: true,
    };
    of.dispatch_rows(program, kernel, tile.rows, &INPUTS)
}

/// Which keys of a tile there are that some rows do not see. A value that is infinite or NaN times their weight of 0 would
/// be NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Hides {
    Nothing,
    /// Keys that no row sees: those behind the last, and of missing pages. Their values are staged as 0.
    Ends,
    /// Also keys that other rows see: tiles that hide some look at their values.
    Some,
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Form {
    tile: FlashTile,
    fours: u32,
    hides: Hides,
    /// Whether the lanes of a row are of one subgroup.
    subgroups: bool,
    causal: bool,
    windowed: bool,
    masked: bool,
    paged: bool,
    /// Whether exponentials may drop NaN.
    careful: bool,
}

/// Fours that a workgroup stages together.
struct Load {
    name: &'static str,
    count: u32,
    /// What gives `x`, number `i` of them.
    fetch: String,
    /// Where it goes.
    place: String,
}

/// Where a four of a row lies: `(row >> shift) & mask` is what its column is combined with.
#[derive(Debug, Clone, Copy)]
struct Swizzle {
    shift: u32,
    mask: u32,
}

impl Swizzle {
    /// Of rows of `fours`, a power of two, of which an invocation reads some that are a multiple of `apart` apart: what they
    /// are combined with is then the same for all.
    fn new(fours: u32, apart: u32) -> Self {
        let banks = apart.min(8);
        Self { shift: (banks / fours).max(1).ilog2(), mask: fours.min(banks) - 1 }
    }

    fn of(self, row: &str) -> String {
        format!("((({row}) >> {}u) & {}u)", self.shift, self.mask)
    }
}

impl Form {
    fn name(&self) -> String {
        let FlashTile { rows, keys, lanes, thread_rows, .. } = self.tile;
        format!("attention/attention_flash {rows}x{keys} by {thread_rows} rows, {lanes} lanes")
    }

    /// Fours of keys of an invocation.
    fn key_blocks(&self) -> u32 {
        self.tile.keys / (4 * self.tile.lanes)
    }

    /// Fours of columns of an invocation.
    fn column_blocks(&self) -> u32 {
        self.fours.div_ceil(self.tile.lanes)
    }

    /// Fours of a row of q and k that are staged at once.
    fn chunk(&self) -> u32 {
        self.tile.dims / 4
    }

    fn swizzle_q(&self) -> Swizzle {
        Swizzle::new(self.chunk(), self.tile.groups())
    }

    /// By fours of keys.
    fn swizzle_k(&self) -> Swizzle {
        Swizzle::new(self.chunk(), self.tile.lanes)
    }

    fn swizzle_p(&self) -> Swizzle {
        Swizzle::new(self.tile.weights / 4, self.tile.groups())
    }

    fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn rows(&self) -> std::ops::Range<u32> {
        0..self.tile.thread_rows
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let FlashTile { rows, keys, lanes, thread_rows, .. } = self.tile;
        let threads = self.tile.invocations();
        writeln!(
            out,
            "// softmax(scale q k^T + mask) v with scores in registers alone (Dao, \"FlashAttention-2\", 2023).
// Made by src/attention/flash.rs. {lanes} invocations share {thread_rows} rows of q, a workgroup of {threads}
// takes {rows} and walks over the keys that they see, {keys} at a time.
#import attention/attention_seen
#import attention/attention_mask
#import attention/attention_output
#import attention/q_f32 as queries
#import attention/kv_f32 as kv
#import activation/is_nan
"
        )?;
        if self.subgroups {
            writeln!(out, "enable subgroups;")?;
        } else {
            writeln!(out, "var<workgroup> wg_rows: array<f32, {}>;", threads * thread_rows)?;
        }
        writeln!(
            out,
            "var<workgroup> wg_fours: array<vec4<f32>, {}>;

@compute @workgroup_size({threads})
fn attention_flash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    let index = workgroup_index(id);
    if index >= params.rows {{
        return;
    }}
    // The last tiles see most keys: they come first.
    let tile = params.parts - 1u - index % params.parts;
    let group = params.heads / params.kv_heads;
    let head = params.first_pair * group + index / params.parts;
    let pair = head / group;
    let len = length_of(pair / params.kv_heads);
    let first_query = tile * {rows}u;
    let last_query = min(first_query + {rows}u, params.queries) - 1u;
    let seen_by_first = seen_by(first_query, len);
    let seen_by_last = seen_by(last_query, len);
    let end_key = seen_by_last.y;
    let lane = local % {lanes}u;
    let group_row = local / {lanes}u;
    var infinity_bits = 0xff800000u;
    let nothing = bitcast<f32>(infinity_bits);",
            self.tile.staged(self.fours)
        )?;
        for i in self.rows() {
            let row = format!("group_row + {}u", i * self.tile.groups());
            writeln!(out, "    let query_{i} = min(first_query + {row}, last_query);")?;
            if self.causal || self.windowed {
                writeln!(out, "    let seen_{i} = seen_by(query_{i}, len);")?;
            }
            if self.masked {
                writeln!(out, "    let mask_{i} = mask_row(pair, head % params.heads, query_{i});")?;
            }
            writeln!(out, "    var most_{i} = nothing;\n    var sum_{i} = 0.0;")?;
            for m in 0..self.column_blocks() {
                writeln!(out, "    var o_{i}_{m} = vec4<f32>();")?;
            }
        }
        writeln!(
            out,
            "    let factor = params.scale * 1.4426950408889634;
    let swizzle_q = {};
    let swizzle_k = {};
    let swizzle_p = {};",
            self.swizzle_q().of("group_row"),
            self.swizzle_k().of("lane"),
            self.swizzle_p().of("group_row"),
        )?;
        if self.ahead() {
            let loads = self.scores_loads("0u", "seen_by_first.x");
            for load in [&loads[0], &loads[1], &self.values_load(0)] {
                self.write_registers(out, load)?;
            }
            writeln!(out, "    if seen_by_first.x < end_key {{")?;
            for load in &loads {
                self.write_fetch(out, load)?;
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    for (var key = seen_by_first.x; key < end_key; key += {keys}u) {{")?;
        // Only tiles at an end of what some row sees hide anything from one.
        let mut edge = format!("key + {keys}u > seen_by_first.y || key < seen_by_last.x");
        if self.hides == Hides::Some {
            writeln!(out, "    let edge = {edge};")?;
            edge = "edge".into();
        }
        self.write_scores(out)?;
        self.write_weights(out, &edge)?;
        if self.hides == Hides::Some {
            self.write_vote(out)?;
        }
        self.write_values(out)?;
        writeln!(out, "    }}")?;
        self.write_end(out)?;
        writeln!(out, "}}")
    }

    /// Whether loads are ahead of their use: each invocation then has whole ones.
    fn ahead(&self) -> bool {
        let FlashTile { rows, keys, values, ahead, .. } = self.tile;
        let counts = [rows * self.chunk(), keys * self.chunk(), values * self.fours];
        ahead && counts.iter().all(|count| count.is_multiple_of(self.tile.invocations()))
    }

    /// Registers for what is loaded ahead.
    fn write_registers(&self, out: &mut String, load: &Load) -> fmt::Result {
        for n in 0..load.count / self.tile.invocations() {
            writeln!(out, "    var {}_ahead_{n} = vec4<f32>();", load.name)?;
        }
        Ok(())
    }

    /// Loads ahead, to registers.
    fn write_fetch(&self, out: &mut String, load: &Load) -> fmt::Result {
        let threads = self.tile.invocations();
        for n in 0..load.count / threads {
            writeln!(
                out,
                "    {{\n    let i = local + {}u;\n{}    {}_ahead_{n} = x;\n    }}",
                n * threads,
                load.fetch,
                load.name
            )?;
        }
        Ok(())
    }

    /// Fills workgroup memory: with what was loaded ahead, or now.
    fn write_fill(&self, out: &mut String, load: &Load) -> fmt::Result {
        let threads = self.tile.invocations();
        let Load { name, count, fetch, place } = load;
        let whole = count.is_multiple_of(threads);
        for n in (0..count / threads).filter(|_| whole) {
            // Written out, so that all loads are on their way together.
            let x = if self.ahead() { format!("    let x = {name}_ahead_{n};\n") } else { fetch.clone() };
            writeln!(
                out,
                "    {{\n    let i = local + {}u;\n{x}    wg_fours[{place}] = x;\n    }}",
                n * threads
            )?;
        }
        if !whole {
            writeln!(
                out,
                "    for (var i = local; i < {count}u; i += {threads}u) {{\n{fetch}    wg_fours[{place}] = x;\n    }}"
            )?;
        }
        Ok(())
    }

    /// What is staged of q and of k, from the four `begin` and the key `key` on.
    fn scores_loads(&self, begin: &str, key: &str) -> [Load; 2] {
        let (rows, chunk) = (self.tile.rows, self.chunk());
        let load = |function: &str| {
            let load = format!("x = {function}(at, {begin} + i % {chunk}u);");
            if self.fours.is_multiple_of(chunk) {
                format!("    {load}\n")
            } else {
                format!("    if {begin} + i % {chunk}u < {}u {{\n    {load}\n    }}\n", self.fours)
            }
        };
        let place = |base: u32, swizzle: String| {
            format!("{base}u + i / {chunk}u * {chunk}u + ((i % {chunk}u) ^ {swizzle})")
        };
        let row = format!("i / {chunk}u");
        let q = Load {
            name: "q",
            count: rows * chunk,
            fetch: format!(
                "    let at = head * params.queries + min(first_query + {row}, last_query);
    var x = vec4<f32>();\n{}",
                load("query_four")
            ),
            place: place(0, self.swizzle_q().of(&row)),
        };
        let k = Load {
            name: "k",
            count: self.tile.keys * chunk,
            fetch: format!(
                "    let at = row_of(pair, min({key} + {row}, end_key - 1u));
    var x = vec4<f32>();\n{}",
                self.present(&load("key_four"))
            ),
            place: place(rows * chunk, self.swizzle_k().of(&format!("({row}) >> 2u"))),
        };
        [q, k]
    }

    /// What is staged of v: `values` keys from `first` of the tile on.
    fn values_load(&self, first: u32) -> Load {
        let (FlashTile { rows, weights, values, .. }, fours) = (self.tile, self.fours);
        let key = format!("key + {first}u + i / {fours}u");
        let load = format!("    x = value_four(at, i % {fours}u);\n");
        let load = match self.hides {
            Hides::Ends => format!("    if {key} < end_key {{\n{load}    }}\n"),
            Hides::Nothing | Hides::Some => load,
        };
        Load {
            name: "v",
            count: values * fours,
            fetch: format!(
                "    let at = row_of(pair, min({key}, end_key - 1u));\n    var x = vec4<f32>();\n{}",
                self.present(&load)
            ),
            place: format!("{}u + i", rows * weights / 4),
        }
    }

    /// A load of a row that a missing page may not have.
    fn present(&self, load: &str) -> String {
        if self.paged { format!("    if at != NO_ROW {{\n{load}    }}\n") } else { load.to_owned() }
    }

    /// The scores of a tile: q k^T.
    fn write_scores(&self, out: &mut String) -> fmt::Result {
        let (chunk, lanes) = (self.chunk(), self.tile.lanes);
        let k_from = self.tile.rows * chunk;
        for i in self.rows() {
            for m in 0..self.key_blocks() {
                writeln!(out, "    var s_{i}_{m} = vec4<f32>();")?;
            }
        }
        writeln!(out, "    for (var begin = 0u; begin < {}u; begin += {chunk}u) {{", self.fours)?;
        // All are done with what the tile before left there.
        writeln!(out, "    workgroupBarrier();")?;
        for load in self.scores_loads("begin", "key") {
            self.write_fill(out, &load)?;
        }
        writeln!(out, "    workgroupBarrier();")?;
        if self.ahead() && self.fours > chunk {
            writeln!(out, "    if begin + {chunk}u < {}u {{", self.fours)?;
            for load in self.scores_loads(&format!("begin + {chunk}u"), "key") {
                self.write_fetch(out, &load)?;
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    for (var four = 0u; four < {chunk}u; four++) {{")?;
        writeln!(out, "    let q_at = group_row * {chunk}u + (four ^ swizzle_q);")?;
        writeln!(out, "    let k_at = {k_from}u + lane * {}u + (four ^ swizzle_k);", 4 * chunk)?;
        for i in self.rows() {
            writeln!(out, "    let q_{i} = wg_fours[q_at + {}u];", i * self.tile.groups() * chunk)?;
        }
        for m in 0..self.key_blocks() {
            for x in 0..4 {
                writeln!(out, "    let k_{m}_{x} = wg_fours[k_at + {}u];", (m * lanes * 4 + x) * chunk)?;
            }
            for c in ["x", "y", "z", "w"] {
                writeln!(
                    out,
                    "    let k_{m}{c} = vec4(k_{m}_0.{c}, k_{m}_1.{c}, k_{m}_2.{c}, k_{m}_3.{c});"
                )?;
                for i in self.rows() {
                    writeln!(out, "    s_{i}_{m} += q_{i}.{c} * k_{m}{c};")?;
                }
            }
        }
        writeln!(out, "    }}\n    }}")?;
        if self.ahead() {
            self.write_fetch(out, &self.values_load(0))?;
        }
        Ok(())
    }

    /// From scores to weights: hidden keys, the largest of each row, exponentials.
    fn write_weights(&self, out: &mut String, edge: &str) -> fmt::Result {
        let lanes = self.tile.lanes;
        let blocks = self.key_blocks();
        for i in self.rows() {
            for m in 0..blocks {
                writeln!(out, "    s_{i}_{m} *= factor;")?;
            }
        }
        if self.masked {
            for m in 0..blocks {
                writeln!(
                    out,
                    "    {{\n    let at = key + 4u * lane + vec4(0u, 1u, 2u, 3u) + vec4({}u);",
                    m * 4 * lanes
                )?;
                writeln!(out, "    let near = min(at, vec4(end_key - 1u));")?;
                for i in self.rows() {
                    let one = |c: &str| format!("mask[mask_{i} + near.{c}]");
                    writeln!(
                        out,
                        "    s_{i}_{m} += 1.4426950408889634 * vec4({}, {}, {}, {});",
                        one("x"),
                        one("y"),
                        one("z"),
                        one("w")
                    )?;
                }
                writeln!(out, "    }}")?;
            }
        }
        // Pages may be missing anywhere.
        if self.paged {
            writeln!(out, "    {{")?;
        } else {
            writeln!(out, "    if {edge} {{")?;
        }
        for m in 0..blocks {
            writeln!(out, "    let at_{m} = key + 4u * lane + {}u + vec4(0u, 1u, 2u, 3u);", m * 4 * lanes)?;
            let mut hidden = format!("at_{m} >= vec4(end_key)");
            if self.paged {
                let one = |c: &str| format!("row_of(pair, min(at_{m}.{c}, end_key - 1u)) == NO_ROW");
                writeln!(
                    out,
                    "    let missing_{m} = vec4({}, {}, {}, {});",
                    one("x"),
                    one("y"),
                    one("z"),
                    one("w")
                )?;
                hidden = format!("({hidden}) | missing_{m}");
            }
            for i in self.rows() {
                let mut hidden = hidden.clone();
                if self.causal || self.windowed {
                    hidden = format!("({hidden}) | (at_{m} >= vec4(seen_{i}.y))");
                }
                if self.windowed {
                    hidden = format!("({hidden}) | (at_{m} < vec4(seen_{i}.x))");
                }
                writeln!(out, "    s_{i}_{m} = select(s_{i}_{m}, vec4(nothing), {hidden});")?;
            }
        }
        writeln!(out, "    }}")?;
        for i in self.rows() {
            let mut four = format!("s_{i}_0");
            for m in 1..blocks {
                four = format!("max({four}, s_{i}_{m})");
            }
            writeln!(out, "    let four_{i} = {four};")?;
            writeln!(
                out,
                "    var top_{i} = max(max(four_{i}.x, four_{i}.y), max(four_{i}.z, four_{i}.w));"
            )?;
        }
        self.write_across(out, "top", true)?;
        for i in self.rows() {
            writeln!(
                out,
                "    let now_{i} = max(most_{i}, top_{i});
    // A row that has seen nothing yet has no largest: any number will do.
    let center_{i} = select(now_{i}, 0.0, now_{i} == nothing);
    let fade_{i} = exp2(most_{i} - center_{i});
    most_{i} = now_{i};
    sum_{i} *= fade_{i};"
            )?;
            for m in 0..blocks {
                if self.careful {
                    writeln!(
                        out,
                        "    {{\n    let x = s_{i}_{m} - center_{i};
    s_{i}_{m} = select(exp2(x), x, vec4(is_nan(x.x), is_nan(x.y), is_nan(x.z), is_nan(x.w)));\n    }}"
                    )?;
                } else {
                    writeln!(out, "    s_{i}_{m} = exp2(s_{i}_{m} - center_{i});")?;
                }
                writeln!(out, "    sum_{i} += s_{i}_{m}.x + s_{i}_{m}.y + s_{i}_{m}.z + s_{i}_{m}.w;")?;
            }
            for m in 0..self.column_blocks() {
                writeln!(out, "    o_{i}_{m} *= fade_{i};")?;
            }
        }
        Ok(())
    }

    /// The largest, or the sum, of `name_ROW` over the lanes of a row.
    fn write_across(&self, out: &mut String, name: &str, largest: bool) -> fmt::Result {
        let (lanes, thread_rows) = (self.tile.lanes, self.tile.thread_rows);
        let join =
            |a: String, b: String| if largest { format!("max({a}, {b})") } else { format!("{a} + {b}") };
        if self.subgroups {
            let mut mask = lanes / 2;
            while mask > 0 {
                for i in self.rows() {
                    let x = format!("{name}_{i}");
                    writeln!(
                        out,
                        "    {x} = {};",
                        join(x.clone(), format!("subgroupShuffleXor({x}, {mask}u)"))
                    )?;
                }
                mask /= 2;
            }
            return Ok(());
        }
        writeln!(out, "    workgroupBarrier();")?;
        for i in self.rows() {
            writeln!(
                out,
                "    wg_rows[(group_row * {thread_rows}u + {i}u) * {lanes}u + lane] = {name}_{i};"
            )?;
        }
        writeln!(out, "    workgroupBarrier();")?;
        for i in self.rows() {
            let from = format!("(group_row * {thread_rows}u + {i}u) * {lanes}u");
            writeln!(out, "    {name}_{i} = wg_rows[{from}];")?;
            for lane in 1..lanes {
                let next = join(format!("{name}_{i}"), format!("wg_rows[{from} + {lane}u]"));
                writeln!(out, "    {name}_{i} = {next};")?;
            }
        }
        Ok(())
    }

    /// Whether a tile is spoiled: it hides keys from some rows, and holds a value that is infinite or NaN, whose product
    /// with a weight of 0 is NaN. Only tiles at an edge look at their values.
    fn write_vote(&self, out: &mut String) -> fmt::Result {
        let (threads, fours, keys) = (self.tile.invocations(), self.fours, self.tile.keys);
        let load = self.present(&format!(
            "    largest = max(largest, bitcast<vec4<u32>>(value_four(at, i % {fours}u)) & vec4(0x7fffffffu));\n"
        ));
        writeln!(
            out,
            "    var spoiled = false;
    if edge {{
    // Bits without their signs.
    var largest = vec4<u32>();
    for (var i = local; i < {}u; i += {threads}u) {{
    let at = row_of(pair, min(key + i / {fours}u, end_key - 1u));
{load}    }}
    // All are done with what is there.
    workgroupBarrier();
    wg_fours[local] = vec4(select(0.0, 1.0, any(largest >= vec4(0x7f800000u))));
    for (var stride = {}u; stride > 0u; stride /= 2u) {{
    workgroupBarrier();
    if local < stride {{
    wg_fours[local] += wg_fours[local + stride];
    }}
    }}
    spoiled = workgroupUniformLoad(&wg_fours[0]).x > 0.0;
    }}",
            keys * fours,
            threads / 2
        )
    }

    /// The keys of a part of a spoiled tile, one after another: a row adds what it sees.
    fn write_spoiled(&self, out: &mut String, part: u32) -> fmt::Result {
        let FlashTile { weights, .. } = self.tile;
        writeln!(
            out,
            "    workgroupBarrier();
    for (var j = 0u; j < {weights}u; j++) {{
    let at_key = key + {}u + j;
    let at = row_of(pair, min(at_key, end_key - 1u));",
            part * weights
        )?;
        let there = if self.paged { "at_key < end_key && at != NO_ROW" } else { "at_key < end_key" };
        writeln!(out, "    if {there} {{")?;
        for m in 0..self.column_blocks() {
            writeln!(out, "    let v_{m} = value_four(at, {});", self.column(m))?;
        }
        for i in self.rows() {
            writeln!(
                out,
                "    if at_key >= seen_{i}.x && at_key < seen_{i}.y {{
    let four = wg_fours[(group_row + {}u) * {}u + ((j / 4u) ^ swizzle_p)];
    let p = select(select(four.x, four.y, j % 4u == 1u), select(four.z, four.w, j % 4u == 3u), j % 4u >= 2u);",
                i * self.tile.groups(),
                weights / 4
            )?;
            for m in 0..self.column_blocks() {
                writeln!(out, "    o_{i}_{m} += p * v_{m};")?;
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    }}\n    }}")
    }

    /// Loads ahead what comes after the values before `next` of a tile: the values there, or the next tile.
    fn write_ahead(&self, out: &mut String, next: u32) -> fmt::Result {
        let keys = self.tile.keys;
        if !self.ahead() {
            return Ok(());
        }
        if next < keys {
            return self.write_fetch(out, &self.values_load(next));
        }
        for load in self.scores_loads("0u", &format!("key + {keys}u")) {
            self.write_fetch(out, &load)?;
        }
        Ok(())
    }

    /// The output: weights times values.
    fn write_values(&self, out: &mut String) -> fmt::Result {
        let FlashTile { rows, keys, lanes, weights, values, .. } = self.tile;
        let (fours, groups) = (self.fours, self.tile.groups());
        let v_from = rows * weights / 4;
        for part in 0..keys / weights {
            // All are done with what is there.
            writeln!(out, "    workgroupBarrier();")?;
            let blocks = weights / (4 * lanes);
            for m in 0..blocks {
                for i in self.rows() {
                    writeln!(
                        out,
                        "    wg_fours[(group_row + {}u) * {}u + ((lane + {}u) ^ swizzle_p)] = s_{i}_{};",
                        i * groups,
                        weights / 4,
                        m * lanes,
                        part * blocks + m
                    )?;
                }
            }
            if self.hides == Hides::Some {
                writeln!(out, "    if spoiled {{")?;
                self.write_spoiled(out, part)?;
                self.write_ahead(out, (part + 1) * weights)?;
                writeln!(out, "    }} else {{")?;
            }
            for step in 0..weights / values {
                if step > 0 {
                    writeln!(out, "    workgroupBarrier();")?;
                }
                let first = part * weights + step * values;
                self.write_fill(out, &self.values_load(first))?;
                writeln!(out, "    workgroupBarrier();")?;
                self.write_ahead(out, first + values)?;
                writeln!(out, "    for (var j = 0u; j < {}u; j++) {{", values / 4)?;
                writeln!(
                    out,
                    "    let p_at = group_row * {}u + (({}u + j) ^ swizzle_p);",
                    weights / 4,
                    step * values / 4
                )?;
                writeln!(out, "    let v_at = {v_from}u + j * {}u;", 4 * fours)?;
                for i in self.rows() {
                    writeln!(out, "    let p_{i} = wg_fours[p_at + {}u];", i * groups * weights / 4)?;
                }
                for (x, c) in ["x", "y", "z", "w"].into_iter().enumerate() {
                    for m in 0..self.column_blocks() {
                        let column = self.column(m);
                        writeln!(
                            out,
                            "    let v_{m}{c} = wg_fours[v_at + {}u + {column}];",
                            x as u32 * fours
                        )?;
                        for i in self.rows() {
                            writeln!(out, "    o_{i}_{m} += p_{i}.{c} * v_{m}{c};")?;
                        }
                    }
                }
                writeln!(out, "    }}")?;
            }
            if self.hides == Hides::Some {
                writeln!(out, "    }}")?;
            }
        }
        Ok(())
    }

    /// The four of columns of block `m`; one that does not exist reads the last.
    fn column(&self, m: u32) -> String {
        let lanes = self.tile.lanes;
        if (m + 1) * lanes > self.fours {
            format!("min(lane + {}u, {}u)", m * lanes, self.fours - 1)
        } else {
            format!("lane + {}u", m * lanes)
        }
    }

    /// Joins the sums of lanes, divides, stores.
    fn write_end(&self, out: &mut String) -> fmt::Result {
        let (groups, lanes) = (self.tile.groups(), self.tile.lanes);
        self.write_across(out, "sum", false)?;
        for i in self.rows() {
            writeln!(out, "    if first_query + group_row + {}u <= last_query {{", i * groups)?;
            writeln!(out, "    let by = select(1.0 / sum_{i}, 0.0, sum_{i} == 0.0);")?;
            for m in 0..self.column_blocks() {
                let store = format!(
                    "store_four(head * params.queries + query_{i}, lane + {}u, o_{i}_{m} * by);",
                    m * lanes
                );
                if (m + 1) * lanes > self.fours {
                    writeln!(out, "    if lane + {}u < {}u {{\n    {store}\n    }}", m * lanes, self.fours)?;
                } else {
                    writeln!(out, "    {store}")?;
                }
            }
            writeln!(out, "    }}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_every_head_size_fit_every_device() {
        let mut of_32_kib = DeviceProfile::webgpu_defaults();
        of_32_kib.limits.max_workgroup_bytes = 32 << 10;
        let profiles = [
            DeviceProfile::webgpu_defaults(),
            DeviceProfile::swiftshader(),
            DeviceProfile::mesa(),
            DeviceProfile::h100(),
            of_32_kib,
        ];
        for profile in profiles {
            for fours in (2..=64).step_by(2) {
                let tile = policy(&profile, fours);
                let subgroups = profile.features.subgroups && profile.subgroup_sizes.0 >= tile.lanes;
                let limits = &profile.limits;
                assert!(tile.is_sound(), "{tile:?}");
                assert!(tile.invocations() <= limits.max_invocations, "{tile:?}");
                assert!(tile.workgroup_bytes(fours, subgroups) <= limits.max_workgroup_bytes, "{tile:?}");
            }
        }
    }

    #[test]
    fn swizzles_are_the_same_for_all_rows_of_an_invocation_and_spread_neighbours() {
        for (fours, apart) in [(4, 8), (8, 8), (8, 16), (16, 8), (2, 8), (4, 4), (8, 2), (16, 1)] {
            let Swizzle { shift, mask } = Swizzle::new(fours, apart);
            let of = |row: u32| row >> shift & mask;
            assert!((0..64).all(|row| of(row) == of(row + apart) && of(row) < fours), "{fours} {apart}");
            // Eight fours of 16 bytes are as wide as the banks.
            let banks: std::collections::BTreeSet<_> =
                (0..apart.min(8)).map(|row| (row * fours + of(row)) % 8).collect();
            assert_eq!(banks.len() as u32, apart.min(8), "{fours} {apart}");
        }
    }
}
