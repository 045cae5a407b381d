//! Register-tiled kernels: WGSL text made for a tile, with the inner loops written out.
//!
//! One invocation computes a thread tile of C in registers, as variables `c_ROW_GROUP` of four columns each:
//! an array that is indexed would live in memory. A workgroup stages tiles of A and B in workgroup memory,
//! both with the elements of one step of k side by side, so that four at a time go to registers. Invocations
//! are laid out in patches of up to 8 x 4 within which those reads spread over the banks or are one
//! address, and a thread tile is made of 4 x 4 blocks a patch apart.
//!
//! The loop over k has no condition inside: the first step takes what is left over of k and is the only
//! one that checks; rows and columns beyond C read the last ones, and what comes of them is not stored.
//!
//! Of a batch of products a workgroup computes a tile of one, or several whole ones side by side, each with its part
//! of the invocations and of workgroup memory.

use super::Tile;
use std::fmt::{self, Write};

/// What is known of the number of steps of k when a kernel is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Steps {
    Even,
    Odd,
    /// Neither: it differs from workgroup to workgroup.
    Any,
}

impl Steps {
    /// Those that a sum over `k` takes.
    pub(crate) fn of(k: usize, tile: Tile) -> Self {
        if k.div_ceil(tile.k as usize).is_multiple_of(2) { Self::Even } else { Self::Odd }
    }
}

/// What a kernel is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) tile: Tile,
    /// Rows and columns of C that one invocation computes.
    pub(crate) thread: [u32; 2],
    /// Two tiles in workgroup memory, one filled while the other is used; or one.
    pub(crate) double: bool,
    /// Whether the steps of k in a tile are written out.
    pub(crate) unrolled: bool,
    /// Whether workgroup memory is made of vectors, whose components are stored one by one. WGSL lets such a
    /// store touch the whole vector, which others store to at the same time; where it does not, a read of
    /// four is one instruction for sure.
    pub(crate) vectors: bool,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
    /// Whether A and B are bound as vectors of four.
    pub(crate) vec_a: bool,
    pub(crate) vec_b: bool,
    /// What is known of the number of steps of k.
    pub(crate) steps: Steps,
    /// How many products of a batch a workgroup computes, whose C is no larger than the tile; none where a product may
    /// have several tiles.
    pub(crate) products: Option<u32>,
    /// Whether an element of a factor is a word of four signed bytes along k, and sums are of i32.
    pub(crate) bytes: bool,
    /// Factors that are no matrices in memory, if any.
    pub(crate) walked: Option<Walked>,
}

/// A product of which a factor is no matrix in memory: an imported fragment says where its elements are. Of a factor
/// `x` it has `line_x(row or column)` and `walk_x(k)`, `step_x(walk)`, which goes on by TILE_K, and
/// `load_x(line, walk)`; an invocation loads along one walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Walked {
    /// The entry point, and name of the text.
    pub(crate) entry: &'static str,
    /// What the kernel computes, for its first line.
    pub(crate) about: &'static str,
    /// In place of the fragments of the matrix product.
    pub(crate) import: &'static str,
    /// Whether A and B are such.
    pub(crate) a: bool,
    pub(crate) b: bool,
}

/// The fragments of a product of matrices in memory.
const MATRICES: &str =
    "#import dense/gemm_factors\n#import dense/gemm_order\n#import dense/gemm_end_c as end";

/// One of the factors, as it is staged.
struct Side {
    /// `a` or `b`.
    name: char,
    /// Rows (columns) of the tile.
    side: u32,
    /// Where the tile begins, and how many rows (columns) the matrix has.
    origin: &'static str,
    extent: &'static str,
    ld: &'static str,
    /// Whether the stored rows run along k.
    along_k: bool,
    vec: bool,
    walked: bool,
}

impl Form {
    pub(crate) fn entry(&self) -> &'static str {
        if let Some(walked) = self.walked {
            return walked.entry;
        }
        match (self.products, self.double) {
            (Some(_), _) => "gemm_small",
            (None, true) => "gemm_double",
            (None, false) => "gemm_register",
        }
    }

    /// Name of the text, for labels and errors.
    pub(crate) fn name(&self) -> String {
        let Tile { m, n, k } = self.tile;
        let family = match self.walked {
            Some(_) => "conv",
            None if self.bytes => "quantize",
            None => "dense",
        };
        format!("{family}/{} {m}x{n}x{k} by {}x{}", self.entry(), self.thread[0], self.thread[1])
    }

    /// Invocations that share a tile.
    pub(crate) fn lanes(&self) -> u32 {
        (self.tile.m / self.thread[0]).saturating_mul(self.tile.n / self.thread[1])
    }

    /// Invocations of a workgroup.
    pub(crate) fn invocations(&self) -> u32 {
        self.lanes().saturating_mul(self.products.unwrap_or(1))
    }

    /// Bytes of workgroup memory.
    pub(crate) fn workgroup_bytes(&self) -> u64 {
        let buffers = u64::from(self.products.unwrap_or(1)) * u64::from(self.buffers());
        let staged = self.staged(&self.side_a()).saturating_add(self.staged(&self.side_b()));
        staged.saturating_mul(4).saturating_mul(buffers)
    }

    /// Whether an m x n result is made of whole tiles.
    pub(crate) fn divides(&self, m: usize, n: usize) -> bool {
        m.is_multiple_of(self.tile.m as usize) && n.is_multiple_of(self.tile.n as usize)
    }

    /// What elements of the factors are in workgroup memory.
    fn staged_type(&self) -> &'static str {
        if self.bytes { "u32" } else { "f32" }
    }

    fn buffers(&self) -> u32 {
        if self.double { 2 } else { 1 }
    }

    /// Elements of a factor in a buffer, of one product.
    fn staged(&self, side: &Side) -> u64 {
        u64::from(side.pitch()) * u64::from(self.tile.k)
    }

    /// Where those of an invocation's product begin, `per` elements counted as one: an addend.
    fn staged_from(&self, side: &Side, per: u64) -> String {
        match self.products {
            Some(_) => format!(" + product * {}u", self.staged(side) / per),
            None => String::new(),
        }
    }

    fn side_a(&self) -> Side {
        Side {
            name: 'a',
            side: self.tile.m,
            origin: "part.origin.x",
            extent: "params.m",
            ld: "params.lda",
            along_k: !self.trans_a,
            vec: self.vec_a,
            walked: self.walked.is_some_and(|w| w.a),
        }
    }

    fn side_b(&self) -> Side {
        Side {
            name: 'b',
            side: self.tile.n,
            origin: "part.origin.y",
            extent: "params.n",
            ld: "params.ldb",
            along_k: self.trans_b,
            vec: self.vec_b,
            walked: self.walked.is_some_and(|w| w.b),
        }
    }

    /// Rows and columns of invocations in a patch.
    fn patch(&self) -> [u32; 2] {
        let most =
            |most: u32, all: u32| (0..=most.ilog2()).rev().map(|x| 1 << x).find(|x| all.is_multiple_of(*x));
        let [rows, columns] = [self.tile.m / self.thread[0], self.tile.n / self.thread[1]];
        [most(8, rows).unwrap_or(1), most(4, columns).unwrap_or(1)]
    }

    /// The WGSL text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let (a, b) = (self.side_a(), self.side_b());
        let Tile { m, n, k } = self.tile;
        let [tm, tn] = self.thread;
        let threads = self.invocations();
        let lanes = self.lanes();
        let staging =
            if self.double { "two tiles of each in workgroup memory" } else { "through workgroup memory" };
        let (about, needs, imports) = match self.walked {
            Some(Walked { about, import, .. }) => (about, "", format!("#import {import}")),
            None if self.bytes => ("C = A B of words of four signed bytes", "", MATRICES.into()),
            None => (
                "C = activate(alpha * op(A) op(B) + beta * C + bias)",
                " Requires f16 where T is f16.",
                MATRICES.into(),
            ),
        };
        writeln!(
            out,
            "// {about}, register-tiled, {staging}.
// Made by src/dense/gemm/register.rs. One invocation computes {tm} x {tn} elements of C, a workgroup of
// {threads} computes {m} x {n}, {k} steps of k at a time.{needs}
{imports}

const TILE_K: u32 = {k}u;
"
        )?;
        let staged = self.staged_type();
        for side in [&a, &b] {
            let elements = self.staged(side) * u64::from(self.products.unwrap_or(1));
            for buffer in 0..self.buffers() {
                let name = format!("wg_{}{buffer}", side.name);
                if self.vectors {
                    writeln!(out, "var<workgroup> {name}: array<vec4<{staged}>, {}>;", elements / 4)?;
                } else {
                    writeln!(out, "var<workgroup> {name}: array<{staged}, {elements}>;")?;
                }
            }
        }
        let [patch_m, patch_n] = self.patch();
        let patches_n = n / tn / patch_n;
        writeln!(
            out,
            "
@compute @workgroup_size({threads})
fn {}(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) invocation: u32) {{
    let index = workgroup_index(workgroup);
    if index >= params.tiles {{
        return;
    }}",
            self.entry(),
        )?;
        match self.products {
            None => writeln!(out, "    let local = invocation;\n    let part = part_of(index);")?,
            Some(products) => writeln!(
                out,
                "    let local = invocation % {lanes}u;
    let product = invocation / {lanes}u;
    let matrix = (params.first_tile + index) * {products}u + product;
    // Those behind the last product compute it too, and store nothing.
    begin_matrix(min(matrix, params.batch - 1u));
    let part = Part(vec2(0u), 0u, params.k, 0u);"
            )?,
        }
        writeln!(
            out,
            "    let patch_index = local / {patch}u;
    let lane = local % {patch}u;
    // Groups of four rows and of four columns within the tile.
    let group_m = patch_index / {patches_n}u * {}u + lane / {patch_n}u;
    let group_n = patch_index % {patches_n}u * {}u + lane % {patch_n}u;
    let row = part.origin.x + 4u * group_m;
    let col = part.origin.y + 4u * group_n;",
            patch_m * tm / 4,
            patch_n * tn / 4,
            patch = patch_m * patch_n,
        )?;
        self.each_sum(|c, r, g| writeln!(out, "    var {c} = begin_four(row + {r}u, col + {g}u);"))?;
        writeln!(out, "    let over = (part.end_k - part.first_k) % TILE_K;")?;
        writeln!(out, "    let head = select(over, TILE_K, over == 0u);")?;
        writeln!(out, "    let head_end = part.first_k + head;")?;
        for side in [&a, &b] {
            self.write_places(out, side)?;
        }
        writeln!(out, "    // The first step: as many of k as leave whole ones.")?;
        self.write_fetch(out, &a, true)?;
        self.write_fetch(out, &b, true)?;
        for side in [&a, &b] {
            let x = side.name;
            if side.walked {
                writeln!(out, "    {x}_walk = walk_{x}(head_end + {x}_i_0);")?;
                continue;
            }
            self.write_advance(out, side, &side.step("head"))?;
            writeln!(out, "    let step_{x} = {};", side.step("TILE_K"))?;
        }
        self.write_stores(out, self.first_buffer())?;
        writeln!(out, "    workgroupBarrier();")?;
        if self.double {
            self.write_double(out)?;
        } else {
            self.write_single(out)?;
        }
        if self.products.is_some() {
            writeln!(out, "    if matrix >= params.batch {{\n        return;\n    }}")?;
        }
        self.each_sum(|c, r, g| writeln!(out, "    end_four(part.slice, row + {r}u, col + {g}u, {c});"))?;
        writeln!(out, "}}")
    }

    /// One buffer: all are done with it before it is filled again.
    fn write_single(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "    var i = head_end;\n    loop {{")?;
        self.write_product(out, 0, self.unrolled)?;
        writeln!(out, "    if i >= part.end_k {{\n        break;\n    }}\n    workgroupBarrier();")?;
        self.write_next(out)?;
        self.write_stores(out, 0)?;
        writeln!(out, "    workgroupBarrier();\n    i += TILE_K;\n    }}")
    }

    /// Two buffers: the loads of the next tile are on their way while this one is multiplied. The buffers have
    /// names, and the loop takes two steps: 39 TFLOP/s on an H100 with an index that changes became 45. One product
    /// follows the loop, of the second buffer, and not one of two (47.6): of an even number of steps the loop ends in
    /// the middle, of an odd one it begins there. Where the number is not known a step may be taken before, rolled up;
    /// that too costs (45.1, and 48.0 without).
    fn write_double(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "    var i = head_end;")?;
        if self.steps == Steps::Any {
            writeln!(out, "    if (part.end_k - i) / TILE_K % 2u == 0u {{")?;
            self.write_product(out, 0, false)?;
            writeln!(out, "    if i < part.end_k {{")?;
            self.write_next(out)?;
            writeln!(out, "    workgroupBarrier();")?;
            self.write_stores(out, 0)?;
            writeln!(out, "    workgroupBarrier();\n    i += TILE_K;\n    }}\n    }}")?;
        }
        if self.steps != Steps::Even {
            writeln!(out, "    if head_end < part.end_k {{")?;
        }
        writeln!(out, "    loop {{")?;
        let begin = self.first_buffer();
        self.write_overlapped(out, begin)?;
        if begin == 0 {
            writeln!(out, "    if i >= part.end_k {{\n        break;\n    }}")?;
        }
        self.write_overlapped(out, 1 - begin)?;
        if begin == 1 {
            writeln!(out, "    if i >= part.end_k {{\n        break;\n    }}")?;
        }
        writeln!(out, "    }}")?;
        if self.steps == Steps::Odd {
            writeln!(out, "    }}")?;
        }
        self.write_product(out, 1, self.unrolled)?;
        if self.steps == Steps::Any {
            writeln!(out, "    }}")?;
        }
        Ok(())
    }

    /// The buffer that the first tile goes to.
    fn first_buffer(&self) -> u32 {
        u32::from(self.double && self.steps == Steps::Odd)
    }

    /// Loads the next tile, multiplies that in `buffer`, and stores the next to the other.
    fn write_overlapped(&self, out: &mut String, buffer: u32) -> fmt::Result {
        self.write_next(out)?;
        self.write_product(out, buffer, self.unrolled)?;
        self.write_stores(out, 1 - buffer)?;
        writeln!(out, "    workgroupBarrier();\n    i += TILE_K;")
    }

    fn write_stores(&self, out: &mut String, buffer: u32) -> fmt::Result {
        self.write_store(out, &self.side_a(), buffer)?;
        self.write_store(out, &self.side_b(), buffer)
    }

    fn write_next(&self, out: &mut String) -> fmt::Result {
        for side in [self.side_a(), self.side_b()] {
            self.write_fetch(out, &side, false)?;
            self.write_advance(out, &side, &format!("step_{}", side.name))?;
        }
        Ok(())
    }

    fn write_advance(&self, out: &mut String, side: &Side, by: &str) -> fmt::Result {
        let x = side.name;
        if side.walked {
            return writeln!(out, "    {x}_walk = step_{x}({x}_walk);");
        }
        (0..self.loads(side).0).try_for_each(|j| writeln!(out, "    {x}_at_{j} += {by};"))
    }

    /// Each variable of sums: its name, first row and first column from those of the invocation on.
    fn each_sum(&self, mut each: impl FnMut(String, u32, u32) -> fmt::Result) -> fmt::Result {
        let [patch_m, patch_n] = self.patch();
        for r in 0..self.thread[0] {
            for g in 0..self.thread[1] / 4 {
                each(format!("c_{r}_{g}"), r / 4 * 4 * patch_m + r % 4, 4 * patch_n * g)?;
            }
        }
        Ok(())
    }

    /// Loads of an invocation for a tile, and whether all that share it take part in the last.
    fn loads(&self, side: &Side) -> (u32, bool) {
        let (all, lanes) = (side.side * self.tile.k / side.width(), self.lanes());
        (all.div_ceil(lanes), all % lanes == 0)
    }

    /// Where an invocation loads from and stores to, which does not change along k.
    fn write_places(&self, out: &mut String, side: &Side) -> fmt::Result {
        if side.walked {
            return self.write_lines(out, side);
        }
        let &Side { name: x, origin, extent, ld, .. } = side;
        let width = side.width();
        let ld = if side.vec { format!("({ld} / 4u)") } else { ld.to_owned() };
        let element = if side.vec { "vec4<T>" } else { "T" };
        let by = if side.vec { " / 4u" } else { "" };
        writeln!(out, "    let from_{x} = base_{x}{by} + {};", side.step("part.first_k"))?;
        for j in 0..self.loads(side).0 {
            writeln!(out, "    let {x}_number_{j} = local + {}u;", j * self.lanes())?;
            if side.along_k {
                let across = self.tile.k / width;
                writeln!(out, "    let {x}_i_{j} = {x}_number_{j} % {across}u * {width}u;")?;
                writeln!(out, "    let {x}_line_{j} = {x}_number_{j} / {across}u;")?;
                writeln!(
                    out,
                    "    var {x}_at_{j} = from_{x} + min({origin} + {x}_line_{j}, {extent} - 1u) * {ld} + {x}_i_{j} / {width}u;"
                )?;
            } else {
                let across = side.side / width;
                writeln!(out, "    let {x}_i_{j} = {x}_number_{j} / {across}u;")?;
                writeln!(out, "    let {x}_line_{j} = {x}_number_{j} % {across}u * {width}u;")?;
                writeln!(
                    out,
                    "    var {x}_at_{j} = from_{x} + {x}_i_{j} * {ld} + min({origin} + {x}_line_{j}, {extent} - {width}u) / {width}u;"
                )?;
            }
            writeln!(out, "    var {x}_next_{j}: {element};")?;
        }
        Ok(())
    }

    /// As [`write_places`](Self::write_places) where all loads of an invocation stand at one k, on several lines.
    fn write_lines(&self, out: &mut String, side: &Side) -> fmt::Result {
        let &Side { name: x, origin, extent, .. } = side;
        let (lanes, width) = (self.lanes(), side.width());
        let (i, line, apart) = if side.along_k {
            let across = self.tile.k / width;
            (format!("local % {across}u * {width}u"), format!("local / {across}u"), lanes / across)
        } else {
            let across = lanes / self.tile.k;
            (format!("local / {across}u"), format!("local % {across}u"), across)
        };
        for j in 0..self.loads(side).0 {
            writeln!(out, "    let {x}_number_{j} = local + {}u;", j * lanes)?;
            writeln!(out, "    let {x}_i_{j} = {i};\n    let {x}_line_{j} = {line} + {}u;", j * apart)?;
            writeln!(out, "    let {x}_from_{j} = line_{x}(min({origin} + {x}_line_{j}, {extent} - 1u));")?;
            writeln!(out, "    var {x}_next_{j}: {};", if side.vec { "vec4<f32>" } else { "f32" })?;
        }
        writeln!(out, "    var {x}_walk = walk_{x}(part.first_k + {x}_i_0);")
    }

    /// Whether all loads of an invocation can stand at one k, in walked factors.
    pub(crate) fn walks(&self) -> bool {
        let (lanes, k) = (self.lanes(), self.tile.k);
        [self.side_a(), self.side_b()].iter().filter(|side| side.walked).all(|side| match side.along_k {
            true => lanes.is_multiple_of(k / side.width()),
            false => lanes.is_multiple_of(k) && (side.side * k).is_multiple_of(lanes),
        })
    }

    /// Loads from storage into registers: `checked` for the first tile, which k need not fill.
    fn write_fetch(&self, out: &mut String, side: &Side, checked: bool) -> fmt::Result {
        let x = side.name;
        let (loads, whole) = self.loads(side);
        for j in 0..loads {
            let mut conditions = Vec::new();
            if !whole && j + 1 == loads {
                conditions.push(format!("{x}_number_{j} < {}u", side.side * self.tile.k / side.width()));
            }
            if checked {
                conditions.push(format!("{x}_i_{j} < head"));
            }
            let load = if side.walked {
                format!("{x}_next_{j} = load_{x}({x}_from_{j}, {x}_walk);")
            } else {
                format!("{x}_next_{j} = {x}[{x}_at_{j}];")
            };
            match conditions.as_slice() {
                [] => writeln!(out, "    {load}")?,
                all => writeln!(out, "    if {} {{\n        {load}\n    }}", all.join(" && "))?,
            }
        }
        Ok(())
    }

    /// Stores what was loaded to the tile in workgroup memory number `buffer`.
    fn write_store(&self, out: &mut String, side: &Side, buffer: u32) -> fmt::Result {
        let x = side.name;
        let (pitch, staged) = (side.pitch(), self.staged_type());
        let (loads, whole) = self.loads(side);
        for j in 0..loads {
            let guarded = !whole && j + 1 == loads;
            if guarded {
                writeln!(out, "    if {x}_number_{j} < {}u {{", side.side * self.tile.k / side.width())?;
            } else {
                writeln!(out, "    {{")?;
            }
            // By vectors the place is one sum, whose component never changes: fewer registers.
            let per = if self.vectors { 4 } else { 1 };
            let from = self.staged_from(side, per.into());
            let pitch = pitch / per;
            writeln!(out, "        let to = {x}_i_{j} * {pitch}u + {x}_line_{j} / {per}u{from};")?;
            let put = |at: u32, value: String| {
                let component = if self.vectors { format!("[{x}_line_{j} % 4u]") } else { String::new() };
                format!("        wg_{x}{buffer}[to + {at}u]{component} = {value};")
            };
            if !side.vec {
                writeln!(out, "{}", put(0, format!("{staged}({x}_next_{j})")))?;
            } else if self.vectors && !side.along_k {
                writeln!(out, "        wg_{x}{buffer}[to] = vec4<{staged}>({x}_next_{j});")?;
            } else {
                writeln!(out, "        let four = vec4<{staged}>({x}_next_{j});")?;
                let step = if side.along_k { pitch } else { 1 };
                for (c, component) in "xyzw".chars().enumerate() {
                    writeln!(out, "{}", put(c as u32 * step, format!("four.{component}")))?;
                }
            }
            writeln!(out, "    }}")?;
        }
        Ok(())
    }

    /// Adds the product of the tiles in workgroup memory number `buffer` to the sums.
    fn write_product(&self, out: &mut String, buffer: u32, unrolled: bool) -> fmt::Result {
        let (a, b) = (self.side_a(), self.side_b());
        writeln!(out, "    {{")?;
        for (side, group) in [(&a, "group_m"), (&b, "group_n")] {
            // In vectors.
            let from = self.staged_from(side, 4);
            writeln!(out, "    let {}_in = {group}{from};", side.name)?;
        }
        if unrolled {
            for i in 0..self.tile.k {
                let [at_a, at_b] = [&a, &b].map(|side| format!("{}u", i * (side.pitch() / 4)));
                self.write_step(out, buffer, &at_a, &at_b)?;
            }
        } else {
            writeln!(out, "    for (var q = 0u; q < TILE_K; q++) {{")?;
            let [at_a, at_b] = [&a, &b].map(|side| format!("q * {}u", side.pitch() / 4));
            self.write_step(out, buffer, &at_a, &at_b)?;
            writeln!(out, "    }}")?;
        }
        writeln!(out, "    }}")
    }

    /// One step of k: the outer product of a column of the thread tile of A and a row of that of B.
    fn write_step(&self, out: &mut String, buffer: u32, at_a: &str, at_b: &str) -> fmt::Result {
        let [patch_m, patch_n] = self.patch();
        writeln!(out, "    {{")?;
        for (x, at, groups, apart) in
            [('a', at_a, self.thread[0] / 4, patch_m), ('b', at_b, self.thread[1] / 4, patch_n)]
        {
            for g in 0..groups {
                let at = format!("{x}_in + {at} + {}u", g * apart);
                if self.vectors {
                    writeln!(out, "    let {x}{g} = wg_{x}{buffer}[{at}];")?;
                } else {
                    let wg = format!("wg_{x}{buffer}");
                    writeln!(
                        out,
                        "    let {x}{g}_at = 4u * ({at});
    let {x}{g} = vec4({wg}[{x}{g}_at], {wg}[{x}{g}_at + 1u], {wg}[{x}{g}_at + 2u], {wg}[{x}{g}_at + 3u]);"
                    )?;
                }
            }
        }
        for r in 0..self.thread[0] {
            let component = ["x", "y", "z", "w"][r as usize % 4];
            for g in 0..self.thread[1] / 4 {
                let a = format!("a{}.{component}", r / 4);
                if self.bytes {
                    let four = ["x", "y", "z", "w"].map(|b| format!("dot4I8Packed({a}, b{g}.{b})"));
                    writeln!(out, "    c_{r}_{g} += vec4({});", four.join(", "))?;
                } else {
                    writeln!(out, "    c_{r}_{g} = fma(vec4({a}), b{g}, c_{r}_{g});")?;
                }
            }
        }
        writeln!(out, "    }}")
    }
}

impl Side {
    /// Elements of a load.
    fn width(&self) -> u32 {
        if self.vec { 4 } else { 1 }
    }

    /// Elements from one step of k to the next in workgroup memory. What is stored along k is turned on the
    /// way: four more spread it over the banks.
    fn pitch(&self) -> u32 {
        if self.along_k { self.side.saturating_add(4) } else { self.side }
    }

    /// How far `steps` of k are in the stored matrix, in loads.
    fn step(&self, steps: &str) -> String {
        let by = if self.vec { " / 4u" } else { "" };
        if self.along_k { format!("{steps}{by}") } else { format!("{steps} * ({}{by})", self.ld) }
    }
}
