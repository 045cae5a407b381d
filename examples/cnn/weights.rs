//! Network parameters as a safetensors file.

use super::common::Failure;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::fs;
use std::io::Write;
use std::path::Path;
use tilework::io::write_aside;
use tilework::nn::Sequential;

/// Writes all parameters, or nothing.
pub(crate) fn save(path: &Path, net: &Sequential, values: &[f32]) -> Result<(), Failure> {
    let bad = |e: safetensors::SafeTensorError| Failure::bad_input(e.to_string()).at(path);
    let mut tensors = Vec::new();
    for p in net.parameters()? {
        let bytes: Vec<u8> =
            values[p.offset..p.offset + p.len()].iter().flat_map(|v| v.to_le_bytes()).collect();
        tensors.push((p.name, p.shape, bytes));
    }
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)));
    let views = views.collect::<Result<Vec<_>, _>>().map_err(bad)?;
    let bytes = serialize(views, None).map_err(bad)?;
    Ok(write_aside(path, |file| file.write_all(&bytes))?)
}

/// Reads the parameters. The file must hold exactly the tensors of the network, in their shapes.
pub(crate) fn load(path: &Path, net: &Sequential) -> Result<Vec<f32>, Failure> {
    let bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| Failure::bad_input(format!("is not a safetensors file: {e}")).at(path))?;
    let parameters = net.parameters()?;
    let mut values = vec![0.0; net.parameter_len()?];
    for p in &parameters {
        let Ok(tensor) = file.tensor(&p.name) else {
            let names = file.names().join(", ");
            let text = format!("has no tensor `{}` of shape {:?}; it has: {names}", p.name, p.shape);
            return Err(Failure::bad_input(text).at(path));
        };
        if tensor.shape() != p.shape || tensor.dtype() != Dtype::F32 {
            let (shape, dtype) = (tensor.shape(), tensor.dtype());
            let text = format!(
                "the tensor `{}` is {shape:?} of {dtype:?}; the network needs {:?} of F32",
                p.name, p.shape
            );
            return Err(Failure::bad_input(text).at(path));
        }
        let numbers = tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        values[p.offset..].iter_mut().zip(numbers).for_each(|(value, number)| *value = number);
    }
    if let Some(name) = file.names().into_iter().find(|name| parameters.iter().all(|p| p.name != **name)) {
        let text = format!("the tensor `{name}` belongs to no layer of the network");
        return Err(Failure::bad_input(text).at(path));
    }
    Ok(values)
}
