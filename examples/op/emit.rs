//! `op --emit`: writes the program of an op as JSON and WGSL.

use crate::Request;
use crate::common::asked::Inputs;
use crate::common::{Failure, profile_of, refuse};
use std::fs;
use std::path::Path;
use tilework::Gpu;
use tilework::io::WholeFile;
use tilework::program::DeviceProfile;

/// Writes `program.json` and a file for each kernel into `folder`, which is made if it is missing.
pub(crate) fn write(request: &Request, inputs: Inputs, folder: &Path, for_adapter: bool) -> Result<(), Failure> {
    let op = request.settings.op();
    if request.cuda.is_some() || Gpu::drives(op) {
        return Err(refuse!("{}: --emit writes single programs of WebGPU; this is none", op.name));
    }
    if let Some(path) = request.outputs.first() {
        return Err(refuse!("-o {}: --emit runs nothing; leave it out", path.display()));
    }
    let mut profile = if for_adapter { profile_of(&request.adapter) } else { DeviceProfile::webgpu_defaults() };
    // WebGPU has neither.
    (profile.features.int64, profile.features.cooperative_matrix) = (false, false);
    let form = inputs.build(&request.settings, &request.variant, &profile)?;
    let emitted = form.lower(&profile)?.emit()?;
    fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
    let shaders = emitted.shaders.iter().map(|(name, text)| (name.as_str(), text));
    let files = shaders.chain([("program.json", &emitted.json)]).map(|(name, text)| {
        let path = folder.join(name);
        let mut file = WholeFile::create(&path)?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|e| Failure::file(&path, &e))?;
        Ok(file)
    });
    Ok(WholeFile::finish_all(files.collect::<Result<Vec<_>, Failure>>()?)?)
}
