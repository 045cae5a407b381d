//! Writes the JavaScript of a wasm module: bindgen MODULE.wasm FOLDER

use std::env::args_os;
use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<_> = args_os().skip(1).collect();
    let [module, folder] = args.as_slice() else {
        eprintln!("usage: bindgen MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(false).remove_name_section(true).remove_producers_section(true);
    match bindgen.web(true).and_then(|bindgen| bindgen.generate(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bindgen: {e:#}");
            ExitCode::FAILURE
        }
    }
}
