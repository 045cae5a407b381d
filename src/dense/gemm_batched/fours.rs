//! Register-tiled kernels of the batched product: WGSL text made for a tile, with loads and steps of k written out.
//!
//! A workgroup copies a tile of A and one of B to workgroup memory as they are stored, four elements of a stored
//! row at a time, all loads before the first store. Where stored rows run along k, each group of four rows is
//! followed by one vector that is not used: groups then begin in different banks. One invocation computes groups
//! of 4 x 4 elements of C in variables; an array that is indexed would live in memory. What is beyond the
//! matrices is zero in the tiles.

use std::fmt::{self, Write};

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Rows and columns of C and steps of k of a tile, multiples of 4.
    pub(super) tile: [u32; 3],
    /// Groups of four rows and of four columns that one invocation computes.
    pub(super) groups: [u32; 2],
    /// Matrices of a workgroup, where a tile holds a whole one; none where C has several tiles.
    pub(super) products: Option<u32>,
    /// Whether m, n and k are whole numbers of tiles.
    pub(super) exact: [bool; 3],
    pub(super) trans_a: bool,
    pub(super) trans_b: bool,
}

/// One of the factors, as it is staged.
struct Side {
    /// `a` or `b`.
    name: char,
    /// Rows (columns) and groups of them of an invocation.
    side: u32,
    groups: u32,
    /// Steps of k.
    tile_k: u32,
    /// Where the tile begins, and how many rows (columns) the matrix has.
    origin: &'static str,
    extent: &'static str,
    /// Whether rows (columns) and steps of k are whole numbers of tiles.
    exact: [bool; 2],
    /// Whether the stored rows run along k.
    along_k: bool,
}

impl Side {
    /// Vectors of a stored row.
    fn pitch(&self) -> u32 {
        (if self.along_k { self.tile_k } else { self.side }) / 4
    }

    /// Vectors of the tile.
    fn vectors(&self) -> u32 {
        self.side * self.tile_k / 4
    }

    /// Vectors of the tile in workgroup memory.
    fn size(&self) -> u32 {
        self.vectors() + if self.along_k { self.side / 4 } else { 0 }
    }

    /// Vectors from one group of four rows (columns) to the next in workgroup memory.
    fn group_pitch(&self) -> u32 {
        if self.along_k { 4 * self.pitch() + 1 } else { 1 }
    }

    /// Invocations across the tile.
    fn across(&self) -> u32 {
        self.side / 4 / self.groups
    }
}

impl Form {
    pub(super) fn entry(&self) -> &'static str {
        if self.products.is_some() { "gemm_batched_small" } else { "gemm_batched_register" }
    }

    /// Name of the text, for labels and errors.
    pub(super) fn name(&self) -> String {
        let [m, n, k] = self.tile;
        let [rows, columns] = self.groups.map(|g| 4 * g);
        format!("dense/{} {m}x{n}x{k} by {rows}x{columns}", self.entry())
    }

    /// Invocations that share a tile.
    pub(super) fn lanes(&self) -> u32 {
        self.side_a().across() * self.side_b().across()
    }

    /// Invocations of a workgroup.
    pub(super) fn invocations(&self) -> u64 {
        u64::from(self.lanes()) * u64::from(self.products.unwrap_or(1))
    }

    /// Bytes of workgroup memory.
    pub(super) fn workgroup_bytes(&self) -> u64 {
        16 * u64::from(self.side_a().size() + self.side_b().size()) * u64::from(self.products.unwrap_or(1))
    }

    fn side_a(&self) -> Side {
        let [side, _, tile_k] = self.tile;
        let exact = [self.exact[0], self.exact[2]];
        let [groups, _] = self.groups;
        let along_k = !self.trans_a;
        Side { name: 'a', side, groups, tile_k, origin: "origin.x", extent: "params.m", exact, along_k }
    }

    fn side_b(&self) -> Side {
        let [_, side, tile_k] = self.tile;
        let exact = [self.exact[1], self.exact[2]];
        let [_, groups] = self.groups;
        let along_k = self.trans_b;
        Side { name: 'b', side, groups, tile_k, origin: "origin.y", extent: "params.n", exact, along_k }
    }

    /// The WGSL text.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let (a, b) = (self.side_a(), self.side_b());
        let [m, n, k] = self.tile;
        let [rows, columns] = self.groups.map(|g| 4 * g);
        let lanes = self.lanes();
        let products = self.products.unwrap_or(1);
        writeln!(
            out,
            "// C[b] = alpha * op(A[b]) op(B[b]) + beta * C[b], register-tiled, through workgroup memory.
// Made by src/dense/gemm_batched/fours.rs. One invocation computes {rows} x {columns} elements of C, a workgroup a
// tile of {m} x {n}, {k} steps of k at a time, of {products} matrices. Requires f16 where T is f16.
#import dense/gemm_batched_fours

const TILE_K: u32 = {k}u;

var<workgroup> wg_a: array<vec4<f32>, {}>;
var<workgroup> wg_b: array<vec4<f32>, {}>;

@compute @workgroup_size({})
fn {}(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
    let index = workgroup_index(workgroup);
    if index >= params.workgroups {{
        return;
    }}
    let place = params.first + index;",
            a.size() * products,
            b.size() * products,
            self.invocations(),
            self.entry(),
        )?;
        if self.products.is_some() {
            writeln!(
                out,
                "    let product = local / {lanes}u;
    let lane = local % {lanes}u;
    let mine = place * {products}u + product;
    // Those behind the last matrix work on it too, and store nothing.
    let matrix = min(mine, params.batch - 1u);
    let origin = vec2(0u);"
            )?;
        } else {
            writeln!(
                out,
                "    let product = 0u;
    let lane = local;
    let matrix = place / params.tiles;
    let tile = place % params.tiles;
    let origin = vec2(tile / params.tiles_n * {m}u, tile % params.tiles_n * {n}u);"
            )?;
        }
        writeln!(
            out,
            "    let group_m = lane / {across}u;
    let group_n = lane % {across}u;
    let base_a = matrix * params.stride_a;
    let base_b = matrix * params.stride_b;
    let base_c = matrix * params.stride_c;
    let a_in = product * {}u + group_m * {}u;
    let b_in = product * {}u + group_n * {}u;",
            a.size(),
            a.group_pitch(),
            b.size(),
            b.group_pitch(),
            across = b.across(),
        )?;
        self.each_sum(|c, _, _| writeln!(out, "    var {c} = vec4<f32>();"))?;
        writeln!(
            out,
            "    for (var first_k = 0u; first_k < params.k; first_k += TILE_K) {{
    if first_k > 0u {{
        workgroupBarrier();
    }}"
        )?;
        for side in [&a, &b] {
            self.write_loads(out, side)?;
        }
        for side in [&a, &b] {
            self.write_stores(out, side)?;
        }
        writeln!(out, "    workgroupBarrier();")?;
        for four in 0..k / 4 {
            self.write_steps(out, four)?;
        }
        writeln!(out, "    }}")?;
        if self.products.is_some() {
            writeln!(out, "    if mine >= params.batch {{\n        return;\n    }}")?;
        }
        self.each_sum(|c, row, col| {
            writeln!(
                out,
                "    end_four(base_c, origin.x + 4u * group_m + {row}u, origin.y + 4u * group_n + {col}u, {c});"
            )
        })?;
        writeln!(out, "}}")
    }

    /// Each variable of sums: its name, first row and first column from those of the invocation on.
    fn each_sum(&self, mut each: impl FnMut(String, u32, u32) -> fmt::Result) -> fmt::Result {
        let (a, b) = (self.side_a(), self.side_b());
        for row in 0..4 * a.groups {
            for g in 0..b.groups {
                each(format!("c_{row}_{g}"), row / 4 * 4 * a.across() + row % 4, 4 * g * b.across())?;
            }
        }
        Ok(())
    }

    /// The condition under which an invocation takes part in load `j`, where not all do.
    fn part(&self, side: &Side, j: u32) -> Option<String> {
        let whole = (j + 1) * self.lanes() <= side.vectors();
        (!whole).then(|| format!("{}_number_{j} < {}u", side.name, side.vectors()))
    }

    /// Loads from storage into registers.
    fn write_loads(&self, out: &mut String, side: &Side) -> fmt::Result {
        let &Side { name: x, origin, extent, exact: [exact, exact_k], along_k, .. } = side;
        let (line_from, line_end, row_from, row_end) = if along_k {
            (origin, extent, "first_k", "params.k")
        } else {
            ("first_k", "params.k", origin, extent)
        };
        let (exact_line, exact_row) = if along_k { (exact, exact_k) } else { (exact_k, exact) };
        let pitch = side.pitch();
        for j in 0..side.vectors().div_ceil(self.lanes()) {
            writeln!(
                out,
                "    let {x}_number_{j} = lane + {}u;
    let {x}_line_{j} = {line_from} + {x}_number_{j} / {pitch}u;
    let {x}_at_{j} = {row_from} + {x}_number_{j} % {pitch}u * 4u;",
                j * self.lanes()
            )?;
            let left = match exact_row {
                true => "4u".to_owned(),
                false => format!("select(0u, {row_end} - {x}_at_{j}, {x}_at_{j} < {row_end})"),
            };
            let inside = (!exact_line).then(|| format!("{x}_line_{j} < {line_end}"));
            let conditions: Vec<_> = self.part(side, j).into_iter().chain(inside).collect();
            let load = format!("four_{x}(base_{x} + {x}_line_{j} * {row_end} + {x}_at_{j}, {left})");
            if conditions.is_empty() {
                writeln!(out, "    let {x}_four_{j} = {load};")?;
            } else {
                let all = conditions.join(" && ");
                writeln!(out, "    var {x}_four_{j} = vec4<f32>();")?;
                writeln!(out, "    if {all} {{\n        {x}_four_{j} = {load};\n    }}")?;
            }
        }
        Ok(())
    }

    /// Stores of what was loaded to workgroup memory.
    fn write_stores(&self, out: &mut String, side: &Side) -> fmt::Result {
        let x = side.name;
        let gap =
            if side.along_k { format!(" + {x}_number_J / {}u", 4 * side.pitch()) } else { String::new() };
        for j in 0..side.vectors().div_ceil(self.lanes()) {
            let gap = gap.replace('J', &j.to_string());
            let store = format!("wg_{x}[product * {}u + {x}_number_{j}{gap}] = {x}_four_{j};", side.size());
            match self.part(side, j) {
                None => writeln!(out, "    {store}")?,
                Some(part) => writeln!(out, "    if {part} {{\n        {store}\n    }}")?,
            }
        }
        Ok(())
    }

    /// Four steps of k: `x_I_G` are four vectors of group G, either the steps or the rows (columns).
    fn write_steps(&self, out: &mut String, four: u32) -> fmt::Result {
        let (a, b) = (self.side_a(), self.side_b());
        writeln!(out, "    {{")?;
        for side in [&a, &b] {
            let x = side.name;
            for g in 0..side.groups {
                let group = g * side.across() * side.group_pitch();
                for i in 0..4 {
                    let at = match side.along_k {
                        true => i * side.pitch() + four,
                        false => (4 * four + i) * side.pitch(),
                    };
                    writeln!(out, "    let {x}_{i}_{g} = wg_{x}[{x}_in + {}u];", group + at)?;
                }
            }
        }
        for (step, component) in "xyzw".chars().enumerate() {
            for g in 0..b.groups {
                if b.along_k {
                    let columns: Vec<_> = (0..4).map(|i| format!("b_{i}_{g}.{component}")).collect();
                    writeln!(out, "    let t_{step}_{g} = vec4({});", columns.join(", "))?;
                }
            }
            for row in 0..4 * a.groups {
                let (inside, group) = (row % 4, row / 4);
                let factor = match a.along_k {
                    true => format!("a_{inside}_{group}.{component}"),
                    false => format!("a_{step}_{group}.{}", ["x", "y", "z", "w"][inside as usize]),
                };
                for g in 0..b.groups {
                    let columns = if b.along_k { 't' } else { 'b' };
                    writeln!(
                        out,
                        "    c_{row}_{g} = fma(vec4({factor}), {columns}_{step}_{g}, c_{row}_{g});"
                    )?;
                }
            }
        }
        writeln!(out, "    }}")
    }
}
