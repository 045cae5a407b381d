//! A function of two elements, element by element.

use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::elementwise::{Zip, ZipFn};
use crate::program::prelude::*;

const VARIANTS: &[CudaVariant] =
    &[CudaVariant { name: "vec4", about: "a thread computes four neighbouring elements", arch: Arch::Sm75 }];

impl Zip {
    /// Lists the CUDA variants.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

impl<T: Element> CudaOp<T> for Zip {
    fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
        let (function, n, variant) = self.parts();
        if self.is_counted() {
            return Err(err!(Unsupported, "zip: CUDA's kernel takes no length from the device; plan it on a Gpu"));
        }
        let (_, decision) = choose("zip", variant, VARIANTS, profile, || ("vec4", "the only variant".into()))?;
        let mut program = CudaProgram::new("zip", decision);
        let operand = |name, access| Operand { name, dtype: T::DTYPE, len: n, access };
        program.operands = vec![operand("x", Access::Read), operand("y", Access::Read), operand("z", Access::Write)];
        program.cost = Cost { flop: n as f64, bytes: (3 * T::DTYPE.size()) as f64 * n as f64 };
        elements("zip", "z", &[n, T::DTYPE.size()])?;
        let kernel = kernel(function, T::DTYPE)?;
        if n > 0 {
            let kernel = program.kernel(kernel);
            let blocks = u32::try_from(n.div_ceil(1024)).unwrap_or(u32::MAX);
            let args = vec![Arg::Operand(0), Arg::Operand(1), Arg::Operand(2), Arg::U64(n as u64)];
            program.launches.push(Launch::new(kernel, [blocks, 1, 1], 256, args));
        }
        Ok(program)
    }
}

fn kernel(function: &ZipFn, dtype: DType) -> Result<CudaKernel> {
    let refused = || {
        Err(err!(
            Unsupported,
            "zip: no CUDA kernel for {function} of {dtype}; CUDA has add, sub, mul, div, min and max of f32, i32 and u32; \
             plan others on a Gpu"
        ))
    };
    let (number, wraps) = match function {
        ZipFn::Add => (0, true),
        ZipFn::Mul => (1, true),
        ZipFn::Min => (2, false),
        ZipFn::Max => (3, false),
        ZipFn::Sub => (4, true),
        ZipFn::Div => (5, false),
        ZipFn::Custom(_) => return refused(),
    };
    let ty = match dtype {
        DType::F32 => "float",
        // Signed overflow is undefined in C++; unsigned arithmetic gives the same bits.
        DType::I32 if wraps => "unsigned",
        DType::I32 => "int",
        DType::U32 => "unsigned",
        _ => return refused(),
    };
    Ok(CudaKernel::new("elementwise/zip", "zip", Arch::Sm75).define("ELEMENT", ty).define("FUNCTION", number))
}

/// Returns programs that together use every kernel of the device, in every form.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let mut programs = Vec::new();
    for function in [ZipFn::Add, ZipFn::Max] {
        programs.push(CudaOp::<f32>::lower(&Zip::new(function, 1001), profile)?);
    }
    programs.push(CudaOp::<i32>::lower(&Zip::new(ZipFn::Div, 1001), profile)?);
    programs.push(CudaOp::<u32>::lower(&Zip::new(ZipFn::Sub, 1001), profile)?);
    Ok(programs)
}

#[cfg(test)]
mod tests;
