//! Programs as text, for executors in other languages.

use super::{Access, Grid, Program, Resource};
use crate::error::Result;
use crate::shader::{BindingKind, Target};
use std::fmt::Write as _;

/// A [`Program`] as JSON, and its kernels as WGSL: see [`Program::emit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The program, in the format that [`Program::emit`] describes.
    pub json: String,
    /// File name and text of each kernel, in the order of [`Program::kernels`].
    pub shaders: Vec<(String, String)>,
}

const FORMAT: u32 = 1;

pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    });
    quoted(&digits)
}

/// Returns a resource as a JSON member.
fn resource(resource: Resource) -> String {
    let (kind, index) = match resource {
        Resource::Operand(i) => ("operand", i),
        Resource::Scratch(i) => ("scratch", i),
        Resource::Constant(i) => ("constant", i),
    };
    format!(r#""{kind}":{index}"#)
}

impl Program {
    /// Writes the program as JSON, and its kernels as WGSL for Tint, the compiler of browsers: for executors of other
    /// languages. `examples/web/executor.ts` runs it in JavaScript, on a device and buffers of the caller.
    ///
    /// ```
    /// use tilework::program::{DeviceProfile, Op};
    /// use tilework::{Reduce, Sum};
    ///
    /// let program = Op::<f32>::lower(&Reduce::new(Sum, 1 << 20), &DeviceProfile::webgpu_defaults())?;
    /// let emitted = program.emit()?;
    /// assert!(emitted.json.contains(r#""op":"reduce""#));
    /// assert_eq!(emitted.shaders.len(), program.kernels.len());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Format
    /// An object with these members:
    ///
    /// | member | content |
    /// |---|---|
    /// | `format` | 1 |
    /// | `op`, `variant`, `why` | the op, the variant, and why it was chosen |
    /// | `features` | WebGPU's features that the kernels need |
    /// | `operands` | in the order of the call: `name`, `type`, `length` in elements, `access`: `read`, `write` or `read-write` |
    /// | `scratch` | bytes of each scratch area; contents at the start do not matter |
    /// | `constants` | bytes of each constant, in hexadecimal |
    /// | `kernels` | `file`, `entry`, and `bindings` of group 0: `binding`, `type` as in WebGPU, `size`: its minimum in bytes |
    /// | `dispatches` | in order, each after the writes of those before it |
    ///
    /// A dispatch has `kernel`; `params`, bytes in hexadecimal that a uniform at binding 0 holds; `bindings` 1 and up,
    /// each with one of `operand`, `scratch` and `constant`, an index, and `offset` and `size` in bytes; and
    /// `workgroups`: three numbers, or a resource and the `offset` of three u32 that an earlier dispatch wrote. Binding
    /// sizes are to be rounded up to a multiple of 4, those of uniforms to 16.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) if a kernel does not validate.
    pub fn emit(&self) -> Result<Emitted> {
        let (mut shaders, mut kernels) = (Vec::new(), Vec::new());
        let mut features = Vec::new();
        for (i, kernel) in self.kernels.iter().enumerate() {
            let interface = kernel.facts()?.interface;
            let text = kernel.expand(Target::Tint)?.text().to_owned();
            for (enable, feature) in [("enable f16;", "shader-f16"), ("enable subgroups;", "subgroups")] {
                if text.lines().any(|line| line.trim() == enable) && !features.contains(&feature) {
                    features.push(feature);
                }
            }
            let bindings = interface.bindings.iter().map(|b| {
                let kind = match b.kind {
                    BindingKind::Uniform => "uniform",
                    BindingKind::Read => "read-only-storage",
                    BindingKind::ReadWrite => "storage",
                };
                format!(r#"{{"binding":{},"type":"{kind}","size":{}}}"#, b.index, b.min_size)
            });
            let file = format!("{i}_{}.wgsl", kernel.entry);
            let (name, entry) = (quoted(&file), quoted(kernel.entry));
            kernels.push(format!(r#"{{"file":{name},"entry":{entry},"bindings":{}}}"#, list(bindings)));
            shaders.push((file, text));
        }
        let operands = self.operands.iter().map(|o| {
            let access = match o.access {
                Access::Read => "read",
                Access::Write => "write",
                Access::ReadWrite => "read-write",
            };
            let name = quoted(o.name);
            format!(r#"{{"name":{name},"type":"{}","length":{},"access":"{access}"}}"#, o.dtype, o.len)
        });
        let dispatches = self.dispatches.iter().map(|d| {
            let bindings = d
                .bindings
                .iter()
                .map(|b| format!(r#"{{{},"offset":{},"size":{}}}"#, resource(b.resource), b.offset, b.size));
            let workgroups = match d.grid {
                Grid::Direct([x, y, z]) => format!("[{x},{y},{z}]"),
                Grid::Indirect { resource: of, offset } => {
                    format!(r#"{{{},"offset":{offset}}}"#, resource(of))
                }
            };
            format!(
                "{{\"kernel\":{},\"params\":{},\"bindings\":{},\"workgroups\":{workgroups}}}",
                d.kernel,
                hex(&d.params),
                list(bindings)
            )
        });
        let json = format!(
            "{{\"format\":{FORMAT},\"op\":{},\"variant\":{},\"why\":{},\n\"features\":{},\n\"operands\":{},\n\
             \"scratch\":{},\n\"constants\":{},\n\"kernels\":{},\n\"dispatches\":{}}}\n",
            quoted(self.op),
            quoted(self.decision.variant),
            quoted(&self.decision.why),
            list(features.iter().map(|feature| quoted(feature))),
            list(operands),
            list(self.scratch.iter().map(u64::to_string)),
            list(self.constants.iter().map(|bytes| hex(bytes))),
            list(kernels.into_iter()),
            list(dispatches),
        );
        Ok(Emitted { json, shaders })
    }
}

#[cfg(test)]
#[cfg(feature = "primitives")]
mod tests;
