//! Text of the kernel that keeps tiles of x, with their halo, in workgroup memory, and sums in registers.
//!
//! An invocation computes eight outputs of a row for several channels. Of each row of cells it reads as many as the
//! window reaches over once, and shifts them from weight to weight: fewer reads of workgroup memory for each
//! multiply-add than a matrix product has, and no index is computed for a cell more than once a tile.

use super::correlate::Job;
use super::layer::{Correlation, Piece};
use crate::dense::dispatch_flop;
use crate::error::Result;
use crate::program::{DeviceProfile, Grid, Kernel, Program, Source};
use std::fmt::{self, Write as _};
use std::ops::Range;

/// Outputs of an invocation along a row.
const WIDE: usize = 8;

/// Cells of windows, over all channels that are staged at once, about.
const STAGED_CELLS: usize = 36;

/// What the text depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiled {
    kernel: [usize; 2],
    /// Channels that an invocation computes, and how many such groups a workgroup has.
    channels: usize,
    groups: usize,
    /// Invocations down and across.
    down: usize,
    across: usize,
    /// Channels of x that are staged at once.
    staged: usize,
    /// Whether workgroup memory is made of vectors, as in the register-tiled matrix product.
    vectors: bool,
    /// Whether rows of outputs are whole vectors.
    stores: bool,
}

impl Tiled {
    /// Cells of the largest window.
    pub(super) const MOST_CELLS: usize = 121;

    pub(super) fn fits(c: &Correlation) -> bool {
        let [r, s] = c.kernel;
        [c.stride, c.up, c.dilation] == [[1, 1]; 3] && r * s <= Self::MOST_CELLS && r.max(s) <= 16
    }

    /// Rounds of all loops of an invocation: for the channels that are staged at once two loops that stage and one over
    /// rows of windows. The round that ends a loop counts.
    pub(super) fn rounds(c: &Correlation, profile: &DeviceProfile) -> u64 {
        let tiled = Self::new(c, profile);
        let [r, s] = c.kernel;
        let lanes = tiled.lanes();
        let weights = tiled.staged * r * s * tiled.tile()[0];
        let each = tiled.cells().div_ceil(lanes) + weights.div_ceil(lanes) + tiled.staged * r + 4;
        (c.from.div_ceil(tiled.staged) as u64).saturating_mul(each as u64) + 1
    }

    pub(super) fn new(c: &Correlation, profile: &DeviceProfile) -> Self {
        let [p, q] = c.out;
        // Four groups of channels to a workgroup: of 7 x 7 to 16 channels 36.8 TFLOP/s by 4 x 4, 31.3 by 2 x 8 on an
        // H100; to 32 channels 39.8 by 4 x 8, 33.6 by 2 x 16.
        let (channels, lanes) = match profile.is_cpu() {
            true => (4, 16),
            false => (if c.to <= 16 { 4 } else { 8 }, 128),
        };
        let groups = c.to.div_ceil(channels).next_power_of_two().min(4);
        // As few lanes as can be that are idle, or beyond the last row and column; of equals the largest, then the widest.
        let shapes = [4, 2, 1].into_iter().flat_map(|across| {
            let most = (lanes / groups / across).max(1);
            (most.div_ceil(2)..=most).rev().map(move |down| (across, down))
        });
        let subgroup = profile.subgroup_sizes.1.max(1) as usize;
        let cost = |&(across, down): &(usize, usize)| {
            let own = groups * across * down;
            let tiles = p.div_ceil(down) * q.div_ceil(across * WIDE);
            (tiles * own.next_multiple_of(subgroup), lanes.abs_diff(own))
        };
        let (across, down) = shapes.min_by_key(cost).unwrap_or((1, 1));
        let cells = c.kernel[0] * c.kernel[1];
        let mut tiled = Self {
            kernel: c.kernel,
            channels,
            groups,
            down,
            across,
            staged: STAGED_CELLS.div_ceil(cells).min(c.from),
            vectors: profile.backend == "vulkan",
            stores: q.is_multiple_of(4),
        };
        let most = u64::from(profile.limits.max_workgroup_bytes.min(24 << 10));
        while tiled.bytes() > most && (tiled.staged > 1 || tiled.down > 1 || tiled.groups > 1) {
            let smaller = [&mut tiled.staged, &mut tiled.down, &mut tiled.groups];
            if let Some(extent) = smaller.into_iter().find(|extent| **extent > 1) {
                *extent /= 2;
            }
        }
        tiled
    }

    fn lanes(&self) -> usize {
        self.groups * self.down * self.across
    }

    /// Channels, rows and columns of outputs of a workgroup.
    fn tile(&self) -> [usize; 3] {
        [self.groups * self.channels, self.down, self.across * WIDE]
    }

    /// Rows of x of a tile, and cells from one to the next in workgroup memory: an odd number of vectors, which
    /// spreads a column over the banks.
    fn rows(&self) -> usize {
        self.down + self.kernel[0] - 1
    }

    fn pitch(&self) -> usize {
        let vectors = (self.across * WIDE + self.kernel[1] - 1).div_ceil(4);
        4 * (vectors | 1)
    }

    /// Weights of a cell of the window in workgroup memory: four more than channels, to spread them over the banks.
    fn pitch_w(&self) -> usize {
        self.tile()[0] + 4
    }

    fn cells(&self) -> usize {
        self.staged * self.rows() * self.pitch()
    }

    fn weights(&self) -> usize {
        self.staged * self.kernel[0] * self.kernel[1] * self.pitch_w()
    }

    fn bytes(&self) -> u64 {
        4 * (self.cells() + self.weights()) as u64
    }

    pub(super) fn lower(mut self, job: &Job<'_>, program: &mut Program, pieces: &[Piece]) -> Result<()> {
        let c = &job.c;
        self.stores &= pieces.iter().all(|piece| piece.y_at.is_multiple_of(4));
        let [m, down, across] = self.tile();
        let tiles = c.to.div_ceil(m) * c.out[0].div_ceil(down) * c.out[1].div_ceil(across) * c.groups;
        let [r, s] = c.kernel;
        let name = format!("conv/conv_tiled {r}x{s} {m}x{down}x{across}");
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        let source = Source::Text { name: name.into(), text: text.into() };
        let spec = job.spread(job.weigh(job.end(3, "OUTPUT_BINDING")));
        let kernel = program.kernel(Kernel { source, spec, entry: "conv_tiled", trusted: true });
        program.decision.because(format_args!("tile of {m} channels x {down} x {across}"));
        let flop = 2 * (m * down * across * c.terms()) as u64;
        let band = (dispatch_flop(job.profile.class) / flop).clamp(1, 1 << 31);
        for piece in pieces {
            let all = (piece.images * tiles) as u64;
            for Range { start, end } in program.bands(all, band)? {
                let mut params = c.params(piece, end as usize);
                params.first = start as u32;
                let bindings = [vec![piece.x, job.weights], job.ends(piece.y)].concat();
                program.dispatch(kernel, &params, bindings, Grid::fold(end - start));
            }
        }
        Ok(())
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let [r, s] = self.kernel;
        let [tile_m, down, wide] = self.tile();
        let (lanes, rows, pitch, pitch_w) = (self.lanes(), self.rows(), self.pitch(), self.pitch_w());
        let memory = |elements: usize| match self.vectors {
            true => format!("array<vec4<f32>, {}>", elements / 4),
            false => format!("array<f32, {elements}>"),
        };
        let put = if self.vectors { "[to / 4u][to % 4u]" } else { "[to]" };
        let output = if self.stores { "array<vec4<f32>>" } else { "array<f32>" };
        let taps = r * s;
        let (cells, weights) = (memory(self.cells()), memory(self.weights()));
        writeln!(
            out,
            "// A convolution layer with tiles of x and of the weights in workgroup memory; made by src/conv/tiled.rs.
// One invocation computes {WIDE} outputs of a row for {channels} channels, a workgroup of {lanes} {tile_m} channels of {down} x {wide}.
#import conv/conv_input
#import conv/conv_weight as weight
#import conv/conv_end

const OUTPUT_BINDING: u32 = 3u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: {output};

var<workgroup> wg_x: {cells};
var<workgroup> wg_w: {weights};

@compute @workgroup_size({lanes})
fn conv_tiled(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let index = params.first + workgroup_index(workgroup);
    if index >= params.count {{
        return;
    }}
    let tiles_m = (params.channels_out + {tile_m}u - 1u) / {tile_m}u;
    let across = (params.q + {wide}u - 1u) / {wide}u;
    let down = (params.p + {down}u - 1u) / {down}u;
    let m0 = index % tiles_m * {tile_m}u;
    let q0 = index / tiles_m % across * {wide}u;
    let p0 = index / tiles_m / across % down * {down}u;
    let matrix = index / tiles_m / across / down;
    let group = matrix % params.groups;
    let size = params.h * params.w;
    let planes = params.x_at + matrix * params.channels_in * size;
    let y0 = p0 - params.pad_h;
    let x0 = q0 - params.pad_w;
    let lane_q = lane % {la}u;
    let lane_p = lane / {la}u % {down}u;
    let lane_m = lane / {space}u;",
            channels = self.channels,
            la = self.across,
            space = self.across * down,
        )?;
        for m in 0..self.channels {
            writeln!(out, "    var c{m}_0 = vec4<f32>();\n    var c{m}_1 = vec4<f32>();")?;
        }
        writeln!(
            out,
            "    for (var first = 0u; first < params.channels_in; first += {staged}u) {{
    // The tiles before may still be read.
    workgroupBarrier();
    for (var to = lane; to < {all}u; to += {lanes}u) {{
        let channel = first + to / {plane}u;
        var value = 0.0;
        if channel < params.channels_in {{
            value = cell(planes + channel * size, y0 + to / {pitch}u % {rows}u, x0 + to % {pitch}u);
        }}
        wg_x{put} = value;
    }}
    for (var i = lane; i < {all_w}u; i += {lanes}u) {{
        let tap = i % {taps}u;
        let m = i / {taps}u % {tile_m}u;
        let channel = first + i / {of_channel}u;
        var value = 0.0;
        if channel < params.channels_in && m0 + m < params.channels_out {{
            value = weight(group, m0 + m, channel, tap);
        }}
        let to = (i / {of_channel}u * {taps}u + tap) * {pitch_w}u + m;
        wg_w{put} = value;
    }}
    workgroupBarrier();
    for (var row = 0u; row < {all_rows}u; row++) {{
        let x_at = ((row / {r}u * {rows}u + row % {r}u + lane_p) * {pitch}u + lane_q * {WIDE}u) / 4u;
        let w_at = (row * {of_row}u + lane_m * {channels}u) / 4u;",
            staged = self.staged,
            all = self.cells(),
            plane = rows * pitch,
            all_w = self.staged * taps * tile_m,
            of_channel = taps * tile_m,
            all_rows = self.staged * r,
            of_row = s * pitch_w,
            channels = self.channels,
        )?;
        let read = |memory: &str, at: String| match self.vectors {
            true => format!("{memory}[{at}]"),
            false => {
                let part = |i: usize| format!("{memory}[4u * ({at}) + {i}u]");
                format!("vec4({}, {}, {}, {})", part(0), part(1), part(2), part(3))
            }
        };
        for i in 0..(WIDE + s - 1).div_ceil(4) {
            writeln!(out, "        let v{i} = {};", read("wg_x", format!("x_at + {i}u")))?;
        }
        let element = |i: usize| format!("v{}.{}", i / 4, ["x", "y", "z", "w"][i % 4]);
        for tap in 0..s {
            writeln!(out, "        {{")?;
            for half in 0..2 {
                let four: Vec<_> = (0..4).map(|i| element(4 * half + i + tap)).collect();
                writeln!(out, "        let x{half} = vec4({});", four.join(", "))?;
            }
            for m in (0..self.channels).step_by(4) {
                let at = format!("w_at + {}u", tap * pitch_w / 4 + m / 4);
                writeln!(out, "        let w{m} = {};", read("wg_w", at))?;
                for (i, part) in ["x", "y", "z", "w"].iter().enumerate() {
                    for half in 0..2 {
                        let sum = format!("c{}_{half}", m + i);
                        writeln!(out, "        {sum} = fma(vec4(w{m}.{part}), x{half}, {sum});")?;
                    }
                }
            }
            writeln!(out, "        }}")?;
        }
        writeln!(out, "    }}\n    }}")?;
        self.write_end(out)
    }

    /// Stores the outputs of an invocation that there are.
    fn write_end(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "    let p = p0 + lane_p;
    let q = q0 + lane_q * {WIDE}u;
    if p >= params.p || q >= params.q {{
        return;
    }}
    let m = m0 + lane_m * {}u;
    let channel = group * params.channels_out + m;
    let to = params.y_at + ((matrix * params.channels_out + m) * params.p + p) * params.q + q;
    let plane = params.p * params.q;",
            self.channels
        )?;
        for m in 0..self.channels {
            writeln!(out, "    if m + {m}u < params.channels_out {{")?;
            for half in 0..2 {
                let done = |part: &str| format!("finished(c{m}_{half}.{part}, channel + {m}u)");
                let at = format!("to + {m}u * plane + {}u", 4 * half);
                if self.stores {
                    let four: Vec<_> = ["x", "y", "z", "w"].into_iter().map(done).collect();
                    writeln!(out, "        if q + {}u < params.q {{", 4 * half)?;
                    writeln!(
                        out,
                        "            output[({at}) / 4u] = vec4({});\n        }}",
                        four.join(", ")
                    )?;
                    continue;
                }
                for (i, part) in ["x", "y", "z", "w"].into_iter().enumerate() {
                    writeln!(out, "        if q + {}u < params.q {{", 4 * half + i)?;
                    writeln!(out, "            output[{at} + {i}u] = {};\n        }}", done(part))?;
                }
            }
            writeln!(out, "    }}")?;
        }
        writeln!(out, "}}")
    }
}
