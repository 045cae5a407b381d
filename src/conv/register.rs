//! Text of the stencil kernel whose sums stay in registers: straight lines, since no compiler here can be told to
//! unroll a loop, and sums that are indexed dynamically live in slow memory.

use super::Boundary;
use std::fmt::Write as _;

/// What the text depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Registers {
    /// Extents of the filter along z, y and x.
    pub(super) filter: [usize; 3],
    pub(super) boundary: Boundary,
    pub(super) bytes: bool,
    /// Whether rows are multiples of 4 long, so that they load by groups of four.
    pub(super) vectors: bool,
    /// Outputs of an invocation along y, and along z.
    pub(super) rows: usize,
    pub(super) planes: usize,
    /// Of a filter that is a product of lines: elements between neighbours along x. Such texts need `vectors`.
    pub(super) lines: Option<usize>,
}

const HEAD: &str = "\
// A stencil with its sums in registers: one invocation computes WIDE x ROWS x PLANES outputs. Each row of
// inputs that they need is loaded once, with its neighbours along x, and added to every sum that it is part of;
// neither workgroup memory nor barriers. Invocations of a workgroup stand along x first, so that their loads
// coalesce and their overlap is found in the cache.
#import conv/stencil_params
#import conv/conv2d_tile as tile
#import conv/stencil_floats as element
";

const HEAD_OF_LINES: &str = "\
// A filter that is a product of lines, with its sums in registers: one invocation computes 4 x ROWS x PLANES
// outputs. Each row of inputs that they need is loaded once and summed along x; that goes to every sum along y
// that it is part of, and those to the sums along z. Neither workgroup memory nor barriers.
#import conv/lines_params
#import conv/conv2d_tile as tile
#import conv/stencil_floats as element
#import conv/finish_plain as finish
";

/// Four elements beyond the end of a row of pixels of three channels: the pixel at the end, repeated.
const TURNED: &str = "
fn turned(pixel: vec3<f32>, channel: u32) -> vec4<f32> {
    return select(select(pixel.zxyz, pixel.yzxy, channel == 1u), pixel.xyzx, channel == 0u);
}
";

impl Registers {
    /// Outputs along x.
    pub(super) fn wide(&self) -> usize {
        if self.vectors || self.bytes { 4 } else { 1 }
    }

    /// Multiply-adds in the text.
    pub(super) fn terms(&self) -> usize {
        let [fz, fy, fx] = self.filter;
        if self.lines.is_none() {
            return fz * fy * fx * self.rows * self.planes;
        }
        let across = if fz > 1 { self.planes * self.rows * fz } else { 0 };
        (self.planes + fz - 1) * ((self.rows + fy - 1) * fx + self.rows * fy) + across
    }

    /// The kernel.
    pub(super) fn text(&self) -> String {
        let mut text = if self.lines.is_some() { HEAD_OF_LINES } else { HEAD }.to_owned();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let [fz, fy, fx] = self.filter;
        let wide = self.wide();
        writeln!(out, "\nconst WIDE: u32 = {wide}u;")?;
        writeln!(out, "const ROWS: u32 = {}u;\nconst PLANES: u32 = {}u;", self.rows, self.planes)?;
        if self.lines == Some(3) && self.boundary == Boundary::Clamp {
            out.push_str(TURNED);
        }
        out.push_str(
            "const LANES_X: u32 = 32u;\nconst LANES_Y: u32 = 8u;\nconst LANES_Z: u32 = 1u;\n\
             const WORKGROUP_SIZE: u32 = LANES_X * LANES_Y * LANES_Z;\n\n\
             @compute @workgroup_size(WORKGROUP_SIZE)\n\
             fn stencil_register(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n\
             \x20   let tile = workgroup_index(group);\n\
             \x20   if tile >= params.tiles {\n        return;\n    }\n\
             \x20   let place = vec3(lane % LANES_X, lane / LANES_X % LANES_Y, lane / (LANES_X * LANES_Y));\n\
             \x20   let p = tile_origin(tile) + place * vec3(WIDE, ROWS, PLANES);\n\
             \x20   if any(p >= extents()) {\n        return;\n    }\n",
        );
        if self.lines.is_some() {
            for tap in 0..fx + fy + fz {
                writeln!(out, "    let w{tap} = params.weights[{tap}];")?;
            }
        } else {
            for tap in 0..fz * fy * fx {
                writeln!(
                    out,
                    "    let w{tap} = params.weights[{}].{};",
                    tap / 4,
                    ["x", "y", "z", "w"][tap % 4]
                )?;
            }
        }
        for z in 0..self.planes {
            for y in 0..self.rows {
                writeln!(out, "    var s{z}_{y} = {};", if wide == 4 { "vec4<f32>()" } else { "0.0" })?;
            }
        }
        self.columns(out)?;
        for y in 0..self.rows + fy - 1 {
            let off = y as isize - (fy / 2) as isize;
            writeln!(out, "    let y{y} = fold(i32(p.y) + ({off}), params.h);")?;
            if self.boundary == Boundary::Zero {
                writeln!(out, "    let in_y{y} = counts(i32(p.y) + ({off}), params.h);")?;
            }
        }
        for z in 0..self.planes + fz - 1 {
            let off = z as isize - (fz / 2) as isize;
            writeln!(out, "    let z{z} = fold(i32(p.z) + ({off}), params.d) * params.h;")?;
            if self.boundary == Boundary::Zero {
                writeln!(out, "    let in_z{z} = counts(i32(p.z) + ({off}), params.d);")?;
            }
            if self.lines.is_some() && fz > 1 {
                for oy in 0..self.rows {
                    writeln!(out, "    var u{z}_{oy} = vec4<f32>();")?;
                }
            }
            for y in 0..self.rows + fy - 1 {
                self.row(out, z, y)?;
            }
            if self.lines.is_some() && fz > 1 {
                self.plane(out, z)?;
            }
        }
        for z in 0..self.planes {
            for y in 0..self.rows {
                writeln!(out, "    if p.y + {y}u < params.h && p.z + {z}u < params.d {{")?;
                let (at, sum) = (format!("p + vec3(0u, {y}u, {z}u)"), format!("s{z}_{y}"));
                let result = if self.lines.is_some() { format!("finish({at}, {sum})") } else { sum };
                writeln!(out, "        put_group({at}, {result});\n    }}")?;
            }
        }
        writeln!(out, "}}")
    }

    /// Loads of a row that hold what WIDE outputs read: their numbers, 0 for the outputs' own.
    fn loads(&self) -> std::ops::RangeInclusive<isize> {
        let radius = (self.filter[2] / 2 * self.lines.unwrap_or(1)) as isize;
        if self.vectors {
            -((radius + 3) / 4)..=(radius + 3) / 4
        } else {
            -radius..=self.wide() as isize - 1 + radius
        }
    }

    /// Name of a load.
    fn name(k: isize) -> String {
        if k < 0 { format!("m{}", -k) } else { format!("p{k}") }
    }

    /// Where the loads of a row lie in it, and whether they count.
    fn columns(&self, out: &mut String) -> std::fmt::Result {
        let (at, extent) = if self.vectors { ("p.x / 4u", "params.groups") } else { ("p.x", "params.w") };
        writeln!(out, "    let column = i32({at});")?;
        for k in self.loads() {
            let name = Self::name(k);
            writeln!(out, "    let x_{name} = fold(column + ({k}), {extent});")?;
            if k != 0 {
                writeln!(out, "    let in_{name} = column + ({k}) >= 0 && column + ({k}) < i32({extent});")?;
            }
            if k != 0 && self.lines == Some(3) && self.boundary == Boundary::Clamp {
                // 4 elements further is a channel further, and rows are whole pixels.
                let above_0 = k + 3 * k.abs();
                writeln!(out, "    let channel_{name} = u32(column + ({above_0})) % 3u;")?;
            }
        }
        Ok(())
    }

    /// Loads row (z, y) of the inputs and adds it to the sums that it is part of.
    fn row(&self, out: &mut String, z: usize, y: usize) -> std::fmt::Result {
        let [fz, fy, fx] = self.filter;
        let pitch = if self.vectors { "params.groups" } else { "params.w" };
        writeln!(out, "    let r{z}_{y} = (z{z} + y{y}) * {pitch};")?;
        if self.boundary == Boundary::Zero {
            writeln!(out, "    let ok{z}_{y} = in_z{z} && in_y{y};")?;
        }
        let load = if self.bytes && self.vectors { "load_group" } else { "load" };
        let zero = if self.vectors { "vec4<f32>()" } else { "0.0" };
        for k in self.loads() {
            let name = Self::name(k);
            let value = format!("{load}(r{z}_{y} + x_{name})");
            let var = format!("v{z}_{y}_{name}");
            match self.boundary {
                Boundary::Zero if k == 0 => {
                    writeln!(out, "    let {var} = select({zero}, {value}, ok{z}_{y});")?;
                }
                Boundary::Zero => {
                    writeln!(out, "    let {var} = select({zero}, {value}, ok{z}_{y} && in_{name});")?;
                }
                // Beyond the end stands the end's own vec4, of which the last element (or pixel) is repeated.
                Boundary::Clamp if self.vectors && k != 0 && self.lines != Some(4) => {
                    let edge = match self.lines {
                        Some(2) => format!("{var}_.{}", if k < 0 { "xyxy" } else { "zwzw" }),
                        Some(3) => {
                            format!("turned({var}_.{}, channel_{name})", if k < 0 { "xyz" } else { "yzw" })
                        }
                        _ => format!("vec4({var}_.{})", if k < 0 { "x" } else { "w" }),
                    };
                    writeln!(out, "    let {var}_ = {value};")?;
                    writeln!(out, "    let {var} = select({edge}, {var}_, in_{name});")?;
                }
                _ => writeln!(out, "    let {var} = {value};")?,
            }
        }
        for x in 0..fx {
            writeln!(out, "    let a{z}_{y}_{x} = {};", self.shifted(z, y, x))?;
        }
        if self.lines.is_some() {
            return self.row_of_lines(out, z, y);
        }
        for oz in 0..self.planes {
            for oy in 0..self.rows {
                let (Some(tz), Some(ty)) = (z.checked_sub(oz), y.checked_sub(oy)) else { continue };
                if tz >= fz || ty >= fy {
                    continue;
                }
                for x in 0..fx {
                    let (tap, sum) = ((tz * fy + ty) * fx + x, format!("s{oz}_{oy}"));
                    let weight = if self.wide() == 4 { format!("vec4(w{tap})") } else { format!("w{tap}") };
                    writeln!(out, "    {sum} = fma({weight}, a{z}_{y}_{x}, {sum});")?;
                }
            }
        }
        Ok(())
    }

    /// Sums row (z, y) along x, and adds that to the sums along y that it is part of.
    fn row_of_lines(&self, out: &mut String, z: usize, y: usize) -> std::fmt::Result {
        let [fz, fy, fx] = self.filter;
        writeln!(out, "    var h{z}_{y} = w0 * a{z}_{y}_0;")?;
        for x in 1..fx {
            writeln!(out, "    h{z}_{y} = fma(w{x}, a{z}_{y}_{x}, h{z}_{y});")?;
        }
        for oy in 0..self.rows {
            if let Some(ty) = y.checked_sub(oy).filter(|ty| *ty < fy) {
                // Of a single plane they are the results.
                let sum = if fz > 1 { format!("u{z}_{oy}") } else { format!("s{z}_{oy}") };
                writeln!(out, "    {sum} = fma(w{}, h{z}_{y}, {sum});", fx + ty)?;
            }
        }
        Ok(())
    }

    /// Adds plane `z` to the sums along z that it is part of.
    fn plane(&self, out: &mut String, z: usize) -> std::fmt::Result {
        let [fz, fy, fx] = self.filter;
        for oz in 0..self.planes {
            if let Some(tz) = z.checked_sub(oz).filter(|tz| *tz < fz) {
                for oy in 0..self.rows {
                    let sum = format!("s{oz}_{oy}");
                    writeln!(out, "    {sum} = fma(w{}, u{z}_{oy}, {sum});", fx + fy + tz)?;
                }
            }
        }
        Ok(())
    }

    /// The inputs under tap `x` of the outputs' row.
    fn shifted(&self, z: usize, y: usize, x: usize) -> String {
        let off = (x as isize - (self.filter[2] / 2) as isize) * self.lines.unwrap_or(1) as isize;
        let element = |i: isize| {
            if self.vectors {
                let (k, part) = (i.div_euclid(4), i.rem_euclid(4) as usize);
                format!("v{z}_{y}_{}.{}", Self::name(k), ["x", "y", "z", "w"][part])
            } else {
                format!("v{z}_{y}_{}", Self::name(i))
            }
        };
        if self.wide() == 1 {
            return element(off);
        }
        let elements: Vec<_> = (0..4).map(|i| element(off + i)).collect();
        format!("vec4({})", elements.join(", "))
    }
}
