//! Sorts of keys of 8 and 16 bits: by words that hold a key and its number.

use super::{KeyBits, RadixSort};
use crate::program::prelude::*;

kernel_params! { struct SortNarrowParams { n: u32 } }

/// Returns true for the keys that are sorted this way.
pub(super) fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8 | DType::F16)
}

/// How keys become numbers.
fn spec(dtype: DType, keys_as: Option<KeyBits>, descending: bool) -> Result<Spec> {
    let own = match dtype {
        DType::F16 => KeyBits::Float,
        DType::I8 => KeyBits::Signed,
        _ => KeyBits::Unsigned,
    };
    let (number, bits) = (keys_as.unwrap_or(own), 8 * dtype.size() as u32);
    if number == KeyBits::Float && bits < 16 {
        return Err(err!(Unsupported, "sort: keys of {dtype} that are {number:?}"));
    }
    let all = if descending { (1 << bits) - 1 } else { 0 };
    let flip = if number == KeyBits::Signed { all ^ (1 << (bits - 1)) } else { all };
    Ok(Spec::new().constant("PACK", 32 / bits).constant("FLIP", flip).flag("FLOAT", number == KeyBits::Float))
}

impl RadixSort {
    pub(super) fn lower_narrow(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (form, op) = (self.form, self.form.op());
        let width = 8 * dtype.size() as u32;
        let bits = self.bits.clone().unwrap_or(0..width);
        super::check_bits(op, dtype, &bits)?;
        if let Some(function) = &self.function {
            function.check_fused(op, dtype)?;
        }
        let sort = Self { descending: false, bits: Some(bits), function: None, keys_as: None, ..self.clone() };
        let sort = sort.lower_as(DType::U32, profile)?;
        let mut program = Program::new(op, sort.decision.clone());
        let narrow = |operand: &Operand| match operand.name {
            "keys" | "keys_out" => Operand { dtype, ..operand.clone() },
            _ => operand.clone(),
        };
        program.operands = sort.operands.iter().map(narrow).collect();
        profile.check_bindings(op, &program.operands, "sort chunks and merge them")?;
        program.cost = Cost::of(sort.cost.flop, &program.operands);
        let n = index_u32(op, "n", self.n)?;
        if n == 0 {
            return Ok(program);
        }
        let what = format_args!("{n} keys as words");
        profile.check_scratch(op, what, 4 * u64::from(n), "sort chunks and merge them")?;
        let words = program.scratch(4 * u64::from(n));
        let find = |name| sort.operands.iter().position(|operand| operand.name == name);
        let (keys_out, length) = (find("keys_out"), find("length"));
        let sorted = if keys_out.is_some() { program.scratch(4 * u64::from(n)) } else { words };
        let per_word = u64::from(32 / width);
        let (params, grid) = (SortNarrowParams { n }, Grid::fold(u64::from(n).div_ceil(per_word).div_ceil(256)));
        let spec = spec(dtype, self.keys_as, self.descending)?;
        let of = |index, operands: &[Operand]| Binding::operand(index, operands);

        let file = "primitives/sort_narrow";
        let mut first = spec.clone();
        if let Some(function) = &self.function {
            first = function.specialise(first.flag("MAPPED", true));
        }
        let widen = program.kernel(Kernel::library(file, "sort_narrow_widen", first));
        program.dispatch(widen, &params, vec![of(0, &program.operands), words], grid);
        let resources: Vec<_> = (0..sort.operands.len())
            .map(|i| match i {
                0 => words.resource,
                _ if Some(i) == keys_out => sorted.resource,
                _ => Resource::Operand(i),
            })
            .collect();
        program.append(sort, &resources);
        if !form.positions {
            let spec = limited(spec, length.is_some(), 3);
            let pack = program.kernel(Kernel::library(file, "sort_narrow_pack", spec));
            let to = of(keys_out.unwrap_or(0), &program.operands);
            let length = length.map(|index| of(index, &program.operands));
            let bindings = [sorted, to].into_iter().chain(length).collect();
            program.dispatch(pack, &params, bindings, grid);
        }
        Ok(program)
    }
}
