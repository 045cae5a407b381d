//! Text of the kernel of depthwise layers: several outputs an invocation, their sums in registers, each row of cells
//! loaded once by vectors; straight lines, as in [`register`](super::register).

use super::correlate::Job;
use super::layer::{Correlation, Piece};
use crate::program::{DeviceProfile, Grid, Kernel, Program, Source};
use std::fmt::{self, Write as _};

/// What the text depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depthwise {
    c: Correlation,
    /// Outputs of an invocation, one above the other; WIDE beside each other.
    rows: usize,
    /// Whether rows of x, and those of outputs, are whole vectors.
    loads: bool,
    stores: bool,
}

/// Outputs of an invocation along a row.
const WIDE: usize = 4;

/// Multiply-adds in the text, at the most.
const TERMS: usize = 800;

impl Depthwise {
    /// Cells of the largest window.
    pub(super) const MOST_CELLS: usize = 49;

    /// Whether each group has one channel in, and no gradient of strides is asked for.
    pub(super) fn fits(c: &Correlation) -> bool {
        let reach =
            |axis: usize| c.kernel[axis].saturating_mul(c.dilation[axis]) <= 64 && c.stride[axis] <= 4;
        let pads = c.pad.iter().all(|pad| pad.unsigned_abs() <= 1 << 20);
        c.from == 1 && c.terms() <= Self::MOST_CELLS && c.up == [1, 1] && reach(0) && reach(1) && pads
    }

    pub(super) fn new(c: &Correlation, profile: &DeviceProfile) -> Self {
        // 32 x 512 channels of 56 x 56 under 3 x 3 on an H100: 1 row 2642, 2 2847, 4 2841, 8 2657 GB/s.
        let most = if profile.is_cpu() { 2 } else { 4 };
        let rows = (TERMS / WIDE / c.terms()).clamp(1, most).min(c.out[0]);
        Self { c: *c, rows, loads: c.size[1].is_multiple_of(4), stores: c.out[1].is_multiple_of(4) }
    }

    pub(super) fn lower(mut self, job: &Job<'_>, program: &mut Program, pieces: &[Piece]) {
        let c = self.c;
        self.loads &= pieces.iter().all(|piece| piece.x_at.is_multiple_of(4));
        self.stores &= pieces.iter().all(|piece| piece.y_at.is_multiple_of(4));
        let [p, q] = c.out;
        let per_plane = p.div_ceil(self.rows) * q.div_ceil(WIDE);
        let source = Source::Text { name: self.name().into(), text: self.text().into() };
        let spec = job.weigh(job.end(3, "OUTPUT_BINDING"));
        let kernel = program.kernel(Kernel { source, spec, entry: "conv_depthwise", trusted: true });
        program.decision.because(format_args!("{} x {WIDE} outputs an invocation", self.rows));
        for piece in pieces {
            let count = piece.images * c.groups * c.to * per_plane;
            let bindings = [vec![piece.x, job.weights], job.ends(piece.y)].concat();
            let grid = Grid::fold((count as u64).div_ceil(256));
            program.dispatch(kernel, &c.params(piece, count), bindings, grid);
        }
    }

    fn name(&self) -> String {
        let [r, s] = self.c.kernel;
        format!("conv/conv_depthwise {r}x{s} by {}x{WIDE}", self.rows)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    /// Cells of a row that the outputs of an invocation need, counted from its first output's place in x.
    fn cells(&self) -> Vec<isize> {
        let c = &self.c;
        let mut cells: Vec<isize> = (0..WIDE)
            .flat_map(|t| {
                (0..c.kernel[1]).map(move |b| (t * c.stride[1] + b * c.dilation[1]) as isize - c.pad[1])
            })
            .collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let c = &self.c;
        let [r, s] = c.kernel;
        let (x, y) = (array(self.loads), array(self.stores));
        writeln!(
            out,
            "// A depthwise layer with its sums in registers, made by src/conv/depthwise.rs.
// One invocation computes {WIDE} x {} outputs of a channel; each row of cells that they need is loaded once and added to
// every sum that it is part of. Neighbours in a row are neighbours in the workgroup, so that loads coalesce.
#import conv/conv_params
#import conv/conv_weight as weight
#import conv/conv_end

const OUTPUT_BINDING: u32 = 3u;
@group(0) @binding(1) var<storage, read> x: {x};
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: {y};

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_depthwise(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count {{
        return;
    }}
    let across = (params.q + {}u) / {WIDE}u;
    let down = (params.p + {}u) / {}u;
    let q0 = at % across * {WIDE}u;
    let p0 = at / across % down * {}u;
    let plane = at / across / down;
    let channels = params.groups * params.channels_out;
    let channel = plane % channels;
    let group = channel / params.channels_out;
    let cells = params.x_at + (plane / channels * params.groups + group) * params.h * params.w;
    let x0 = q0 * {}u;
    let y0 = p0 * {}u - params.pad_h;",
            self.rows,
            WIDE - 1,
            self.rows - 1,
            self.rows,
            self.rows,
            c.stride[1],
            c.stride[0],
        )?;
        for tap in 0..r * s {
            writeln!(out, "    let w{tap} = weight(group, channel % params.channels_out, 0u, {tap}u);")?;
        }
        for row in 0..self.rows {
            writeln!(out, "    var sum{row} = vec4<f32>();")?;
        }
        self.columns(out)?;
        for y in 0..(self.rows - 1) * c.stride[0] + (r - 1) * c.dilation[0] + 1 {
            self.row(out, y)?;
        }
        for row in 0..self.rows {
            writeln!(out, "    if p0 + {row}u < params.p {{")?;
            writeln!(
                out,
                "        let to = params.y_at + (plane * params.p + p0 + {row}u) * params.q + q0;"
            )?;
            let done: Vec<_> =
                ["x", "y", "z", "w"].iter().map(|i| format!("finished(sum{row}.{i}, channel)")).collect();
            if self.stores {
                writeln!(out, "        output[to / 4u] = vec4({});", done.join(", "))?;
            } else {
                writeln!(out, "        output[to] = {};", done[0])?;
                for (i, done) in done.iter().enumerate().skip(1) {
                    writeln!(out, "        if q0 + {i}u < params.q {{ output[to + {i}u] = {done}; }}")?;
                }
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "}}")
    }

    /// What is loaded of a row: places of vectors, or of cells.
    fn places(&self) -> Vec<isize> {
        let mut places: Vec<_> =
            self.cells().into_iter().map(|cell| if self.loads { cell.div_euclid(4) } else { cell }).collect();
        places.dedup();
        places
    }

    fn columns(&self, out: &mut String) -> fmt::Result {
        let (unit, extent) = if self.loads { ("x0 / 4u", "params.w / 4u") } else { ("x0", "params.w") };
        for (i, place) in self.places().into_iter().enumerate() {
            writeln!(out, "    let x_{i} = {unit} + {}u;", place as u32)?;
            writeln!(out, "    let in{i} = x_{i} < {extent};")?;
        }
        Ok(())
    }

    /// Loads row `y` of the cells and adds it to the sums that it is part of.
    fn row(&self, out: &mut String, y: usize) -> fmt::Result {
        let c = &self.c;
        let uses: Vec<(usize, usize)> = (0..self.rows)
            .flat_map(|row| (0..c.kernel[0]).map(move |a| (row, a)))
            .filter(|(row, a)| row * c.stride[0] + a * c.dilation[0] == y)
            .collect();
        if uses.is_empty() {
            return Ok(());
        }
        let places = self.places();
        let (zero, begin) = if self.loads {
            ("vec4<f32>()", "(cells + y * params.w) / 4u")
        } else {
            ("0.0", "cells + y * params.w")
        };
        writeln!(
            out,
            "    {{\n    let y = y0 + {y}u;\n    let inside = y < params.h;\n    let begin = {begin};"
        )?;
        for i in 0..places.len() {
            writeln!(out, "    var v{i} = {zero};")?;
            writeln!(out, "    if inside && in{i} {{ v{i} = x[begin + x_{i}]; }}")?;
        }
        let cell = |cell: isize| {
            let place = if self.loads { cell.div_euclid(4) } else { cell };
            let i = places.iter().position(|p| *p == place).unwrap_or(0);
            match self.loads {
                true => format!("v{i}.{}", ["x", "y", "z", "w"][cell.rem_euclid(4) as usize]),
                false => format!("v{i}"),
            }
        };
        for b in 0..c.kernel[1] {
            let first = (b * c.dilation[1]) as isize - c.pad[1];
            let four: Vec<_> = (0..WIDE).map(|t| cell(first + (t * c.stride[1]) as isize)).collect();
            writeln!(out, "    let c{b} = vec4({});", four.join(", "))?;
            for (row, a) in &uses {
                writeln!(out, "    sum{row} = fma(vec4(w{}), c{b}, sum{row});", a * c.kernel[1] + b)?;
            }
        }
        writeln!(out, "    }}")
    }
}

fn array(vectors: bool) -> &'static str {
    if vectors { "array<vec4<f32>>" } else { "array<f32>" }
}
