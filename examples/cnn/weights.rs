//! Network parameters and the state of training as safetensors files.

use super::common::Failure;
use super::models::Progress;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use tilework::io::write_aside;
use tilework::nn::{Optimizer, Parameter, Sequential};

/// Writes all parameters, or nothing.
pub(crate) fn save(path: &Path, net: &Sequential, values: &[f32]) -> Result<(), Failure> {
    write(path, &[(&net.parameters()?, values)], None)
}

/// Reads the parameters. The file must hold exactly the tensors of the network, in their shapes.
pub(crate) fn load(path: &Path, net: &Sequential) -> Result<Vec<f32>, Failure> {
    let mut values = vec![0.0; net.parameter_len()?];
    read(path, &mut [(&net.parameters()?, &mut values)])?;
    Ok(values)
}

/// Returns the tensors of the optimizer's state by their names in a file.
fn state(net: &Sequential, optimizer: &Optimizer) -> Result<Vec<Parameter>, Failure> {
    let mut tensors = net.state(optimizer)?;
    tensors.iter_mut().for_each(|p| p.name.insert_str(0, "optimizer."));
    Ok(tensors)
}

/// Writes what training depends on, or nothing. `options` are those that must be the same to go on.
pub(crate) fn save_progress(
    path: &Path, net: &Sequential, optimizer: &Optimizer, progress: &Progress, options: &str,
) -> Result<(), Failure> {
    let (tensors, state) = (net.parameters()?, state(net, optimizer)?);
    let said = [("epochs", progress.epochs.to_string()), ("options", options.to_owned())];
    let said = said.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    write(path, &[(&tensors, &progress.parameters), (&state, &progress.state)], Some(said))
}

/// Reads what [`save_progress`] wrote with the same options.
pub(crate) fn load_progress(
    path: &Path, net: &Sequential, optimizer: &Optimizer, options: &str,
) -> Result<Progress, Failure> {
    let (tensors, named) = (net.parameters()?, state(net, optimizer)?);
    let (mut parameters, mut state) = (vec![0.0; net.parameter_len()?], vec![0.0; net.state_len(optimizer)?]);
    let bad = |text: String| Failure::bad_input(text).at(path);
    let bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
    let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|e| bad(format!("is not a safetensors file: {e}")))?;
    let said = header.metadata().clone().unwrap_or_default();
    let epochs = said.get("epochs").and_then(|text| text.parse().ok());
    let epochs = epochs.ok_or_else(|| bad("is no checkpoint: it does not say how many epochs are done".into()))?;
    match said.get("options") {
        Some(theirs) if theirs == options => {}
        theirs => {
            let theirs = theirs.map_or("unknown options", String::as_str);
            return Err(bad(format!("was written with {theirs}; these are {options}")));
        }
    }
    read(path, &mut [(&tensors, &mut parameters), (&named, &mut state)])?;
    Ok(Progress { epochs, parameters, state })
}

fn write(path: &Path, lists: &[(&[Parameter], &[f32])], said: Option<HashMap<String, String>>) -> Result<(), Failure> {
    let bad = |e: safetensors::SafeTensorError| Failure::bad_input(e.to_string()).at(path);
    let mut tensors = Vec::new();
    for (p, values) in lists.iter().flat_map(|(list, values)| list.iter().map(move |p| (p, values))) {
        let bytes: Vec<u8> = values[p.offset..p.offset + p.len()].iter().flat_map(|v| v.to_le_bytes()).collect();
        tensors.push((&p.name, p.shape.clone(), bytes));
    }
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)));
    let views = views.collect::<Result<Vec<_>, _>>().map_err(bad)?;
    let bytes = serialize(views, said).map_err(bad)?;
    Ok(write_aside(path, |file| file.write_all(&bytes))?)
}

/// Fills each list of values from the tensors of these names. The file must hold exactly those.
fn read(path: &Path, lists: &mut [(&[Parameter], &mut Vec<f32>)]) -> Result<(), Failure> {
    let bytes = fs::read(path).map_err(|e| Failure::file(path, &e))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| Failure::bad_input(format!("is not a safetensors file: {e}")).at(path))?;
    let mut known = Vec::new();
    for (list, values) in lists {
        for p in list.iter() {
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
            known.push(p.name.as_str());
        }
    }
    if let Some(name) = file.names().into_iter().find(|name| !known.contains(name)) {
        let text = format!("the tensor `{name}` belongs to no layer of the network");
        return Err(Failure::bad_input(text).at(path));
    }
    Ok(())
}
