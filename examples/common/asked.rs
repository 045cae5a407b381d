//! An op of the catalogue, built from a command line.

use super::matrix_file::read_sparse;
use super::{Args, Failure, npy, refuse, room_for};
use std::path::{Path, PathBuf};
use tilework::io::matrix_market::Triplets;
use tilework::program::{Ask, DeviceProfile, OpCall, Operation, Settings, Takes};
use tilework::sparse::{Csr, Duplicates};
use tilework::{HostArray, MatrixJob};

/// Finds an op by name.
pub(crate) fn find(name: &str) -> Result<&'static Operation, Failure> {
    let mut all = tilework::operations();
    all.find(|op| op.name == name || op.aliases.contains(&name)).ok_or_else(|| {
        let names: Vec<_> = tilework::operations().map(|op| op.name).collect();
        refuse!("no op `{name}`; there are: {}", names.join(", "))
    })
}

/// Sets an option of the op from the command line.
pub(crate) fn take(settings: &mut Settings, name: &str, args: &mut Args) -> Result<(), Failure> {
    use lexopt::ValueExt;
    let op = settings.op();
    let Some(option) = op.option(name) else {
        let names: Vec<_> = op.options.iter().map(|s| format!("--{}", s.name)).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(refuse!("{} has no key --{name}; it has {names} (see --help)", op.name));
    };
    if settings.has(name) {
        return Err(refuse!("--{name} is given twice"));
    }
    match option.takes {
        Takes::Nothing => {
            args.no_value()?;
            settings.flag(name)?;
        }
        Takes::Array(_) => settings.with_array(name, npy::read(Path::new(&args.value()?))?)?,
        // A text too long for a command line.
        Takes::Text("FILE") => {
            let path = PathBuf::from(args.value()?);
            let read = std::fs::read_to_string(&path);
            settings.text(name, read.map_err(|e| refuse!("{}: {e}", tilework::io::shown(&path)))?)?;
        }
        Takes::Text(_) | Takes::Word(_) => settings.text(name, args.value()?.string()?)?,
    }
    Ok(())
}

/// The inputs of an op.
pub(crate) struct Inputs {
    /// The matrix, if the op takes one.
    pub(crate) matrix: Option<Csr>,
    pub(crate) arrays: Vec<HostArray>,
}

impl Inputs {
    /// Reads the files.
    pub(crate) fn read(op: &Operation, paths: &[PathBuf]) -> Result<Self, Failure> {
        check_count(op, paths.len())?;
        let (matrices, arrays) = paths.split_at(usize::from(op.matrix));
        let matrix = matrices.first().map(|path| read_matrix(path)).transpose()?;
        let arrays = arrays.iter().map(|path| npy::read(path)).collect::<Result<_, _>>()?;
        Ok(Self { matrix, arrays })
    }

    /// Forms the op on these inputs.
    pub(crate) fn build(self, settings: &Settings, variant: &str, profile: &DeviceProfile) -> Result<OpCall, Failure> {
        Ok(match &self.matrix {
            Some(matrix) => MatrixJob { matrix, inputs: self.arrays, settings, variant, profile }.build(None)?,
            None => settings.op().build(Ask::new(settings).variant(variant).inputs(self.arrays))?,
        })
    }
}

/// Rejects a wrong number of files before reading any.
fn check_count(op: &Operation, given: usize) -> Result<(), Failure> {
    let of_matrix = usize::from(op.matrix);
    let most = op.inputs.len() + of_matrix;
    let least = op.inputs.iter().filter(|input| !input.optional).count() + of_matrix;
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Err(refuse!("{}: {given} input files given, {wanted} wanted (see --list)", op.name))
}

/// Reads a sparse matrix from a Matrix Market file. Duplicate entries are summed.
pub(crate) fn read_matrix(path: &Path) -> Result<Csr, Failure> {
    let triplets = read_sparse(path)?;
    let Triplets { rows, cols, values, .. } = &triplets;
    let words = rows.saturating_add(*cols).saturating_add(2 * values.len());
    // The matrix in two formats, and the lists of both.
    room_for(&format!("a matrix of {rows} x {cols}"), words, 4 * 4).map_err(|e| e.at(path))?;
    Csr::from_triplets(&triplets, Duplicates::Sum).map_err(|e| Failure::from(e).at(path))
}

/// Describes the op's inputs and options for `--list`.
pub(crate) fn described(op: &Operation) -> String {
    let matrix = op.matrix.then(|| "A.mtx".to_owned());
    let inputs: Vec<_> = matrix.into_iter().chain(op.inputs.iter().map(|i| i.to_string())).collect();
    let types: Vec<_> = op.types.iter().map(|t| t.name()).collect();
    let options: Vec<_> = op.options.iter().map(|o| o.to_string()).collect();
    let text = |list: Vec<String>| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    format!(
        "{}: {}\n  inputs    {}; {}\n  outputs   {}\n  keys      {}\n",
        op.name,
        op.about,
        text(inputs),
        types.join("/"),
        text(op.outputs.iter().map(|(name, shape)| format!("{name} {shape}")).collect()),
        text(options)
    )
}
