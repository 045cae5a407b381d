//! Kernels on cooperative matrices: WGSL text made for a tile, with its blocks written out.
//!
//! A cooperative matrix is held by a subgroup as a whole and has no elements to reach, so a block of C is a variable of
//! its own, `c_ROW_COLUMN`, and all blocks of a subgroup are named. A workgroup stages tiles of A and B of `f16`
//! through workgroup memory, as they are stored, and each of its subgroups multiplies its blocks.
//!
//! What was measured on an H100, and is kept for that: storage is read by 16 bytes, which become halves on their way to
//! workgroup memory; rows there are 8 elements longer than the tile, which spreads blocks over the banks; the loop
//! over k has no condition inside, so that the first step takes what is left over of k, and the loads behind the
//! last step read it again.
//!
//! Tensor cores cut off what they add to a long sum instead of rounding it. With `fresh` each step of k has sums of its
//! own, which an addition of f32 adds to those of C.
//!
//! With `split` each factor comes as two matrices, the high and the low half of each scaled element, and the product is
//! that of the high halves and the two mixed ones: Ootomo and Yokota, *Recovering single precision accuracy from Tensor
//! Cores while surpassing the FP32 theoretical peak performance*, 2022.

use super::Tile;
use std::fmt::{self, Write};

/// How sums reach C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    /// Blocks are stored as they are: C is made of whole ones.
    Whole,
    /// So, but in tiles at the edges of C, which end as `Staged`.
    Direct,
    /// Through workgroup memory, where an element can be reached.
    Staged,
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) tile: Tile,
    /// Rows and columns of C that one subgroup computes.
    pub(super) part: [u32; 2],
    /// Rows and columns of a cooperative matrix: 16 or 8.
    pub(super) side: u32,
    /// Invocations of a subgroup.
    pub(super) lanes: u32,
    pub(super) trans_a: bool,
    pub(super) trans_b: bool,
    /// Whether the factors come as high and low halves.
    pub(super) split: bool,
    /// Whether each step of k has sums of its own.
    pub(super) fresh: bool,
    pub(super) end: End,
}

/// Elements of a load from storage.
pub(super) const PIECE: u32 = 8;

/// Elements that a row in workgroup memory is longer than the tile.
const PAD: u32 = 8;

/// One of the factors, as it is staged.
struct Side {
    /// `a` or `b`.
    name: char,
    /// Its role in a product of cooperative matrices.
    role: char,
    /// Rows (columns) of the tile.
    side: u32,
    tile_k: u32,
    /// Where the tile begins, and how many rows (columns) the matrix has.
    origin: &'static str,
    extent: &'static str,
    ld: &'static str,
    /// Whether the stored rows run along k.
    along_k: bool,
}

impl Side {
    /// Elements of a stored row of the tile.
    fn across(&self) -> u32 {
        if self.along_k { self.tile_k } else { self.side }
    }

    /// Elements from one row to the next in workgroup memory.
    fn pitch(&self) -> u32 {
        self.across().saturating_add(PAD)
    }

    /// Elements of the tile in workgroup memory.
    fn staged(&self) -> u32 {
        let rows = if self.along_k { self.side } else { self.tile_k };
        rows.saturating_mul(self.pitch())
    }

    /// How far `steps` of k are in the stored matrix, in loads.
    fn step(&self, steps: &str) -> String {
        if self.along_k {
            format!("{steps} / {PIECE}u")
        } else {
            format!("{steps} * ({} / {PIECE}u)", self.ld)
        }
    }
}

impl Form {
    pub(super) const ENTRY: &'static str = "gemm_coop";

    /// Name of the text, for labels and errors.
    pub(super) fn name(&self) -> String {
        let Tile { m, n, k } = self.tile;
        format!("dense/{} {m}x{n}x{k} by {}x{}", Self::ENTRY, self.part[0], self.part[1])
    }

    /// Subgroups of a workgroup along the rows and along the columns of the tile.
    fn teams(&self) -> [u32; 2] {
        [self.tile.m / self.part[0], self.tile.n / self.part[1]]
    }

    /// Invocations of a workgroup.
    pub(super) fn invocations(&self) -> u64 {
        self.teams().into_iter().map(u64::from).product::<u64>() * u64::from(self.lanes)
    }

    /// Bytes of workgroup memory.
    pub(super) fn workgroup_bytes(&self) -> u64 {
        let staged: u64 = self.sides().iter().map(|side| u64::from(side.staged())).sum();
        let halves = if self.split { 2 } else { 1 };
        let end = if self.end == End::Whole { 0 } else { self.invocations() / u64::from(self.lanes) };
        2 * halves * staged + 4 * end * u64::from(self.side * self.side)
    }

    /// What is wrong with the sides, in words.
    pub(super) fn wrong(&self) -> Option<String> {
        let Self { tile: Tile { m, n, k }, part: [rows, columns], side, .. } = *self;
        let whole = |x: u32, of: u32| x > 0 && x.is_multiple_of(of);
        if !whole(rows, side) || !whole(columns, side) || !whole(k, side) {
            return Some(format!(
                "the sides of a subgroup's part, {rows} x {columns}, and the step of k, {k}, must be multiples of {side}, \
                 the side of a cooperative matrix"
            ));
        }
        if rows.saturating_mul(columns) > 128 * 128 || k > 128 {
            return Some("a subgroup's part has at most 16384 elements, a step of k at most 128".into());
        }
        if !whole(m, rows) || !whole(n, columns) {
            return Some(format!("the tile must be made of whole parts of {rows} x {columns}"));
        }
        let invocations = self.invocations();
        let pieces = |x: u32| u64::from(x) * u64::from(k / PIECE);
        if !pieces(m).is_multiple_of(invocations) || !pieces(n).is_multiple_of(invocations) {
            return Some(format!(
                "{invocations} invocations cannot share the loads of {m} x {k} and {k} x {n} elements evenly"
            ));
        }
        None
    }

    fn sides(&self) -> [Side; 2] {
        let a = Side {
            name: 'a',
            role: 'A',
            side: self.tile.m,
            tile_k: self.tile.k,
            origin: "part.origin.x",
            extent: "params.m",
            ld: "params.lda",
            along_k: !self.trans_a,
        };
        let b = Side {
            name: 'b',
            role: 'B',
            side: self.tile.n,
            tile_k: self.tile.k,
            origin: "part.origin.y",
            extent: "params.n",
            ld: "params.ldb",
            along_k: self.trans_b,
        };
        [a, b]
    }

    /// The matrices that a factor comes as: suffixes of its names.
    fn halves(&self) -> &'static [&'static str] {
        if self.split { &["", "_low"] } else { &[""] }
    }

    /// Blocks of a subgroup along the rows and along the columns.
    fn blocks(&self) -> [u32; 2] {
        self.part.map(|x| x / self.side)
    }

    /// Whether workgroup memory is made of vectors: Metal, where a side is 8, loads no matrix from them.
    fn vectors(&self) -> bool {
        self.side == 16
    }

    /// The type of a matrix of `role`.
    fn matrix(&self, role: char) -> String {
        let element = if role == 'C' { "f32" } else { "f16" };
        format!("coop_mat{0}x{0}<{element}, {role}>", self.side)
    }

    /// The WGSL text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let Tile { m, n, k } = self.tile;
        let [rows, columns] = self.part;
        let [_, teams_n] = self.teams();
        let (invocations, side) = (self.invocations(), self.side);
        writeln!(
            out,
            "// C = activate(alpha * op(A) op(B) + beta * C + bias) by cooperative matrices of {side} x {side}.
// Made by src/dense/gemm/coop.rs. A subgroup of {lanes} computes {rows} x {columns} elements of C, a workgroup of
// {invocations} invocations {m} x {n}, {k} steps of k at a time, staged through workgroup memory.
// Requires f16 and cooperative matrices of f16 with sums of f32.
#import dense/gemm_order
#import dense/gemm_end_c",
            lanes = self.lanes,
        )?;
        if self.split {
            writeln!(out, "#import dense/gemm_power")?;
        }
        writeln!(out, "enable f16;\nenable wgpu_cooperative_matrix;\n\nconst TILE_K: u32 = {k}u;\n")?;
        for (i, half) in self.halves().iter().enumerate() {
            for (j, x) in ['a', 'b'].into_iter().enumerate() {
                let binding = 1 + 2 * i + j;
                writeln!(
                    out,
                    "@group(0) @binding({binding}) var<storage, read> {x}{half}: array<vec4<u32>>;"
                )?;
            }
        }
        if self.split {
            // Of the rows of A, then of the columns of B.
            writeln!(out, "@group(0) @binding(5) var<storage, read> magnitudes: array<u32>;")?;
        }
        writeln!(out)?;
        for half in self.halves() {
            for s in self.sides() {
                let (x, elements) = (s.name, s.staged());
                if self.vectors() {
                    writeln!(out, "var<workgroup> wg_{x}{half}: array<vec4<f16>, {}>;", elements / 4)?;
                } else {
                    writeln!(out, "var<workgroup> wg_{x}{half}: array<f16, {elements}>;")?;
                }
            }
        }
        writeln!(
            out,
            "
// The driver makes nothing of the way through f32; there is no cast that does without it.
fn halves(words: vec2<u32>) -> vec4<f16> {{
    return vec4<f16>(vec2<f16>(unpack2x16float(words.x)), vec2<f16>(unpack2x16float(words.y)));
}}"
        )?;
        if self.end != End::Whole {
            self.write_end_block(out)?;
        }
        writeln!(
            out,
            "
@compute @workgroup_size({invocations})
fn {}(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    // As workgroup_index has it, written out: naga holds what a function returns to differ from invocation to
    // invocation, and the end of some of them to be in the way of the others' matrices.
    let index = workgroup.x + FOLD * (workgroup.y + FOLD * workgroup.z);
    if index >= params.tiles {{
        return;
    }}
    let part = part_of(index);
    let team = local / {}u;
    let team_row = team / {teams_n}u * {rows}u;
    let team_col = team % {teams_n}u * {columns}u;",
            Self::ENTRY,
            self.lanes,
        )?;
        self.each_block(|i, j| writeln!(out, "    var c_{i}_{j} = {}();", self.matrix('C')))?;
        writeln!(out, "    let over = (part.end_k - part.first_k) % TILE_K;")?;
        writeln!(out, "    let head = select(over, TILE_K, over == 0u);")?;
        for side in self.sides() {
            self.write_places(out, &side)?;
        }
        writeln!(out, "    // The first step: as many of k as leave whole ones, and zeros.")?;
        self.write_fetch(out, true)?;
        for s in self.sides() {
            let x = s.name;
            writeln!(out, "    from_{x} = min(from_{x} + {}, last_{x});", s.step("head"))?;
        }
        self.write_store(out)?;
        writeln!(out, "    workgroupBarrier();")?;
        writeln!(out, "    for (var i = part.first_k; i < part.end_k; i += TILE_K) {{")?;
        self.write_fetch(out, false)?;
        for s in self.sides() {
            let x = s.name;
            writeln!(out, "    from_{x} = min(from_{x} + step_{x}, last_{x});")?;
        }
        if self.fresh || self.split {
            self.write_fresh_product(out)?;
        } else {
            self.write_product(out)?;
        }
        writeln!(out, "    workgroupBarrier();")?;
        self.write_store(out)?;
        writeln!(out, "    workgroupBarrier();\n    }}")?;
        self.write_end(out)?;
        writeln!(out, "}}")
    }

    fn each_block(&self, mut each: impl FnMut(u32, u32) -> fmt::Result) -> fmt::Result {
        let [rows, columns] = self.blocks();
        for i in 0..rows {
            for j in 0..columns {
                each(i, j)?;
            }
        }
        Ok(())
    }

    /// Loads of an invocation for a tile.
    fn loads(&self, side: &Side) -> u32 {
        (u64::from(side.side * (self.tile.k / PIECE)) / self.invocations()) as u32
    }

    /// Where an invocation loads from and stores to, which does not change along k.
    fn write_places(&self, out: &mut String, side: &Side) -> fmt::Result {
        let &Side { name: x, origin, extent, ld, along_k, .. } = side;
        let (across, pitch) = (side.across() / PIECE, side.pitch());
        for j in 0..self.loads(side) {
            let number = u64::from(j) * self.invocations();
            writeln!(out, "    let {x}_line_{j} = (local + {number}u) / {across}u;")?;
            writeln!(out, "    let {x}_at_{j} = (local + {number}u) % {across}u * {PIECE}u;")?;
            // Rows and columns beyond the matrix read its last ones, and what comes of them is not stored.
            if along_k {
                writeln!(out, "    let {x}_i_{j} = {x}_at_{j};")?;
                writeln!(
                    out,
                    "    let {x}_place_{j} = min({origin} + {x}_line_{j}, {extent} - 1u) * ({ld} / {PIECE}u) + {x}_at_{j} / {PIECE}u;"
                )?;
            } else {
                writeln!(out, "    let {x}_i_{j} = {x}_line_{j};")?;
                writeln!(
                    out,
                    "    let {x}_place_{j} = {x}_line_{j} * ({ld} / {PIECE}u) + min(({origin} + {x}_at_{j}) / {PIECE}u, ({extent} - 1u) / {PIECE}u);"
                )?;
            }
            let by = if self.vectors() { " / 4u" } else { "" };
            writeln!(out, "    let {x}_to_{j} = ({x}_line_{j} * {pitch}u + {x}_at_{j}){by};")?;
            for half in self.halves() {
                writeln!(out, "    var {x}{half}_next_{j}: vec4<u32>;")?;
            }
        }
        writeln!(out, "    var from_{x} = {};", side.step("part.first_k"))?;
        writeln!(out, "    let step_{x} = {};", side.step("TILE_K"))?;
        writeln!(out, "    let last_{x} = {};", side.step("(part.end_k - TILE_K)"))
    }

    /// Loads from storage into registers; in the `first` step zeros, in both factors, for what is not of it: 0 times
    /// infinity is no number.
    fn write_fetch(&self, out: &mut String, first: bool) -> fmt::Result {
        for s in self.sides() {
            let x = s.name;
            for half in self.halves() {
                for j in 0..self.loads(&s) {
                    let load = format!("{x}{half}[from_{x} + {x}_place_{j}]");
                    if first {
                        writeln!(
                            out,
                            "    {x}{half}_next_{j} = select({load}, vec4<u32>(), {x}_i_{j} >= head);"
                        )?;
                    } else {
                        writeln!(out, "    {x}{half}_next_{j} = {load};")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores what was loaded to workgroup memory: B, which is more, first (3 % on an H100).
    fn write_store(&self, out: &mut String) -> fmt::Result {
        for s in self.sides().into_iter().rev() {
            let x = s.name;
            for half in self.halves() {
                for j in 0..self.loads(&s) {
                    for (four, words) in ["xy", "zw"].into_iter().enumerate() {
                        let value = format!("halves({x}{half}_next_{j}.{words})");
                        if self.vectors() {
                            writeln!(out, "    wg_{x}{half}[{x}_to_{j} + {four}u] = {value};")?;
                            continue;
                        }
                        writeln!(out, "    {{\n    let four = {value};")?;
                        for (e, component) in "xyzw".chars().enumerate() {
                            let at = 4 * four + e;
                            writeln!(out, "    wg_{x}{half}[{x}_to_{j} + {at}u] = four.{component};")?;
                        }
                        writeln!(out, "    }}")?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The matrix of block `block` of a subgroup's rows (columns), at step `i` of k in the tile.
    fn load(&self, side: &Side, half: &str, block: u32, i: u32) -> String {
        let x = side.name;
        let pitch = side.pitch();
        let (team, first) = (if x == 'a' { "team_row" } else { "team_col" }, block * self.side);
        let at = if side.along_k {
            format!("({team} + {first}u) * {pitch}u + {i}u")
        } else {
            format!("{}u + {team} + {first}u", i * pitch)
        };
        // A row of the tile is one of op(A) where it runs along k, and a column of op(B); or the other way round.
        let load = if side.along_k == (x == 'a') { "coopLoadT" } else { "coopLoad" };
        let matrix = self.matrix(side.role);
        if self.vectors() {
            format!("{load}<{matrix}>(&wg_{x}{half}[({at}) / 4u], {}u)", pitch / 4)
        } else {
            format!("{load}<{matrix}>(&wg_{x}{half}[{at}], {pitch}u)")
        }
    }

    /// Adds the product of the tiles in workgroup memory to the sums.
    fn write_product(&self, out: &mut String) -> fmt::Result {
        let [a, b] = self.sides();
        let [rows, columns] = self.blocks();
        for i in (0..self.tile.k).step_by(self.side as usize) {
            writeln!(out, "    {{")?;
            for r in 0..rows {
                writeln!(out, "    let a_{r} = {};", self.load(&a, "", r, i))?;
            }
            for q in 0..columns {
                writeln!(out, "    let b_{q} = {};", self.load(&b, "", q, i))?;
                for r in 0..rows {
                    writeln!(out, "    c_{r}_{q} = coopMultiplyAdd(a_{r}, b_{q}, c_{r}_{q});")?;
                }
            }
            writeln!(out, "    }}")?;
        }
        Ok(())
    }

    /// The same with sums of this step alone, a column of blocks at a time: blocks of A stay in registers for all.
    fn write_fresh_product(&self, out: &mut String) -> fmt::Result {
        let [a, b] = self.sides();
        let [rows, columns] = self.blocks();
        let steps = || (0..self.tile.k).step_by(self.side as usize);
        writeln!(out, "    {{")?;
        for i in steps() {
            for r in 0..rows {
                for half in self.halves() {
                    writeln!(out, "    let a{half}_{r}_{i} = {};", self.load(&a, half, r, i))?;
                }
            }
        }
        for q in 0..columns {
            writeln!(out, "    {{")?;
            for r in 0..rows {
                writeln!(out, "    var p_{r} = {}();", self.matrix('C'))?;
            }
            for i in steps() {
                for half in self.halves() {
                    writeln!(out, "    let b{half}_{i} = {};", self.load(&b, half, q, i))?;
                }
                // Small ones first.
                let products: &[_] =
                    if self.split { &[("_low", ""), ("", "_low"), ("", "")] } else { &[("", "")] };
                for (half_a, half_b) in products {
                    for r in 0..rows {
                        writeln!(
                            out,
                            "    p_{r} = coopMultiplyAdd(a{half_a}_{r}_{i}, b{half_b}_{i}, p_{r});"
                        )?;
                    }
                }
            }
            for r in 0..rows {
                writeln!(out, "    c_{r}_{q} = c_{r}_{q} + p_{r};")?;
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    }}")
    }

    /// The function that takes a block from workgroup memory to C.
    fn write_end_block(&self, out: &mut String) -> fmt::Result {
        let Self { side, lanes, .. } = *self;
        let teams: u32 = self.teams().into_iter().product();
        let fours = side / 4;
        writeln!(
            out,
            "
var<workgroup> wg_end: array<f32, {}>;

// The block of C at `row` and `col`, whose sums lie from `begin` on.
fn end_block(row: u32, col: u32, begin: u32, lane: u32) {{
    for (var x = lane; x < {}u; x += {lanes}u) {{
        let to = vec2(row + x / {fours}u, col + x % {fours}u * 4u);
        let at = begin + 4u * x;
        let sums = vec4(wg_end[at], wg_end[at + 1u], wg_end[at + 2u], wg_end[at + 3u]);",
            teams * side * side,
            side * fours,
        )?;
        let sums = if self.split { "restored(to.x, to.y, sums)" } else { "sums" };
        writeln!(
            out,
            "        end_four(0u, to.x, to.y, begin_four(to.x, to.y) + {sums});
    }}
}}"
        )?;
        if self.split {
            writeln!(
                out,
                "
// Four sums of a row without the powers of two that its factors were scaled by.
fn restored(row: u32, col: u32, sums: vec4<f32>) -> vec4<f32> {{
    let power = power_of(magnitudes[min(row, params.m - 1u)]);
    let cols = params.m + min(vec4(col) + vec4(0u, 1u, 2u, 3u), vec4(params.n - 1u));
    return vec4(
        times_power(sums.x, -power - power_of(magnitudes[cols.x])),
        times_power(sums.y, -power - power_of(magnitudes[cols.y])),
        times_power(sums.z, -power - power_of(magnitudes[cols.z])),
        times_power(sums.w, -power - power_of(magnitudes[cols.w])),
    );
}}"
            )?;
        }
        Ok(())
    }

    fn write_end(&self, out: &mut String) -> fmt::Result {
        let side = self.side;
        let row = |i: u32| format!("part.origin.x + team_row + {}u", i * side);
        let col = |j: u32| format!("part.origin.y + team_col + {}u", j * side);
        match self.end {
            End::Whole => self.each_block(|i, j| {
                writeln!(
                    out,
                    "    if {} < params.m && {} < params.n {{\n{}    }}",
                    row(i),
                    col(j),
                    Self::direct_store(i, j, &row(i), &col(j))
                )
            }),
            End::Direct => {
                let Tile { m, n, .. } = self.tile;
                writeln!(
                    out,
                    "    if part.origin.x + {m}u <= params.m && part.origin.y + {n}u <= params.n {{"
                )?;
                self.each_block(|i, j| {
                    writeln!(out, "    {{\n{}    }}", Self::direct_store(i, j, &row(i), &col(j)))
                })?;
                writeln!(out, "    }} else {{")?;
                self.write_staged(out)?;
                writeln!(out, "    }}")
            }
            End::Staged => self.write_staged(out),
        }
    }

    /// Stores a block to C. naga wants index, stride and value bound to names.
    fn direct_store(i: u32, j: u32, row: &str, col: &str) -> String {
        format!(
            "    let value = c_{i}_{j};
    let to = base_c + ({row}) * params.ldc + {col};
    let stride = params.ldc;
    coopStoreT(value, &c[to], stride);
"
        )
    }

    /// Takes the blocks to C one after the other, through a block of workgroup memory for each subgroup. Barriers are
    /// those of the workgroup: those of a subgroup are a feature of their own. The loop's end is one that a compiler
    /// cannot see: unrolled, the end of an element is compiled for each block, which takes a card's driver a second.
    fn write_staged(&self, out: &mut String) -> fmt::Result {
        let (side, lanes) = (self.side, self.lanes);
        let [rows, columns] = self.blocks();
        writeln!(
            out,
            "    let begin = team * {0}u;
    let lane = local % {lanes}u;
    let stride = {side}u;
    let blocks = min({1}u, params.tiles * {1}u);
    for (var block = 0u; block < blocks; block++) {{
    if block > 0u {{
        workgroupBarrier();
    }}
    switch block {{",
            side * side,
            rows * columns
        )?;
        self.each_block(|i, j| {
            let block = i * columns + j;
            let case = if block + 1 == rows * columns { "default".into() } else { format!("case {block}u") };
            writeln!(
                out,
                "    {case}: {{
    let value = c_{i}_{j};
    coopStoreT(value, &wg_end[begin], stride);
    }}"
            )
        })?;
        writeln!(
            out,
            "    }}
    workgroupBarrier();
    let row = part.origin.x + team_row + block / {columns}u * {side}u;
    let col = part.origin.y + team_col + block % {columns}u * {side}u;
    end_block(row, col, begin, lane);
    }}"
        )
    }
}
