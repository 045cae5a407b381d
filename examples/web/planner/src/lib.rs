//! Plans ops for JavaScript: a request by names becomes a program, which `executor.ts` runs. It opens no device.

use serde_json::{Map, Value, json};
use tilework::program::{Ask, DeviceClass, DeviceProfile, Emitted, Quirks, Settings};
use tilework::{DType, HostArray, operations};
use wasm_bindgen::prelude::wasm_bindgen;

/// Plans an op. The request is JSON:
///
/// ```json
/// { "op": "sort", "inputs": [{ "shape": [1000], "type": "u32" }], "options": { "values": true }, "variant": "auto",
///   "limits": { "maxStorageBufferBindingSize": 134217728 }, "features": ["subgroups"], "subgroupSizes": [4, 64],
///   "fallback": false }
/// ```
///
/// Options are those of the example `op`; `true` gives a flag. Limits that are not given are WebGPU's defaults.
/// `fallback` says that the adapter is a processor, for which other variants and tiles are faster. The
/// answer is `{"program": PROGRAM, "files": {NAME: TEXT}}`, as `Program::emit` writes them.
///
/// # Errors
/// Text: the library's error, or what is wrong with the request.
#[wasm_bindgen]
pub fn plan(request: &str) -> Result<String, String> {
    let request: Value = serde_json::from_str(request).map_err(|e| format!("the request is no JSON: {e}"))?;
    let Emitted { json, shaders } = emitted(&request)?;
    let files: Map<_, _> = shaders.into_iter().map(|(name, text)| (name, text.into())).collect();
    Ok(format!("{{\"program\":{json},\"files\":{}}}", Value::from(files)))
}

/// The names of all ops that can be planned.
#[wasm_bindgen]
pub fn ops() -> Vec<String> {
    operations().filter(|op| !op.solver && !op.matrix).map(|op| op.name.to_owned()).collect()
}

fn emitted(request: &Value) -> Result<Emitted, String> {
    let name = request["op"].as_str().ok_or("the request names no op")?;
    let op = operations().find(|op| op.name == name).ok_or_else(|| format!("there is no op {name}"))?;
    let wrong = |what: String| format!("{name}: {what}");
    let mut settings = Settings::new(op);
    for (key, value) in request["options"].as_object().into_iter().flatten() {
        match value {
            Value::Bool(true) => settings.flag(key),
            Value::Bool(false) | Value::Null => Ok(()),
            Value::String(text) => settings.text(key, text.as_str()),
            other => settings.text(key, other.to_string()),
        }
        .map_err(|e| e.to_string())?;
    }
    let mut ask = Ask::new(&settings).variant(request["variant"].as_str().unwrap_or("auto"));
    for input in request["inputs"].as_array().into_iter().flatten() {
        let extents = input["shape"].as_array().into_iter().flatten().map(|n| n.as_u64().map(|n| n as usize));
        let shape: Option<Vec<usize>> = extents.collect();
        let shape =
            shape.ok_or_else(|| wrong(format!("the shape {} is no list of numbers", input["shape"])))?;
        let dtype =
            dtype(&input["type"]).ok_or_else(|| wrong(format!("there is no type {}", input["type"])))?;
        ask = ask.input(HostArray::unseen(&shape, dtype).map_err(|e| e.to_string())?);
    }
    let program = op.build(ask).and_then(|call| call.lower(&profile(request)));
    program.and_then(|program| program.emit()).map_err(|e| e.to_string())
}

fn dtype(name: &Value) -> Option<DType> {
    let types = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];
    types.into_iter().find(|dtype| Some(dtype.to_string().as_str()) == name.as_str())
}

/// The device of a request.
fn profile(request: &Value) -> DeviceProfile {
    let mut profile = DeviceProfile { name: "the page's device".into(), ..DeviceProfile::webgpu_defaults() };
    if request["fallback"] == true {
        (profile.class, profile.quirks) = (DeviceClass::Cpu, Quirks::of(DeviceClass::Cpu, "webgpu"));
    }
    let has = |name: &str| request["features"].as_array().is_some_and(|all| all.contains(&json!(name)));
    (profile.features.f16, profile.features.subgroups) = (has("shader-f16"), has("subgroups"));
    let size = |i: usize| request["subgroupSizes"][i].as_u64().map(|size| size as u32);
    if let (Some(least), Some(most)) = (size(0), size(1)) {
        profile.subgroup_sizes = (least, most);
    }
    let limit = |name: &str| request["limits"][name].as_u64();
    let limits = &mut profile.limits;
    let words = [
        (&mut limits.max_storage_buffers, "maxStorageBuffersPerShaderStage"),
        (&mut limits.max_workgroup_bytes, "maxComputeWorkgroupStorageSize"),
        (&mut limits.max_invocations, "maxComputeInvocationsPerWorkgroup"),
        (&mut limits.max_workgroups_per_dimension, "maxComputeWorkgroupsPerDimension"),
    ];
    for (own, name) in words {
        *own = limit(name).map_or(*own, |n| n as u32);
    }
    for (own, name) in limits.max_workgroup_size.iter_mut().zip(["X", "Y", "Z"]) {
        *own = limit(&format!("maxComputeWorkgroupSize{name}")).map_or(*own, |n| n as u32);
    }
    let bytes = [
        (&mut limits.max_buffer_size, "maxBufferSize"),
        (&mut limits.max_storage_binding, "maxStorageBufferBindingSize"),
        (&mut limits.max_uniform_binding, "maxUniformBufferBindingSize"),
    ];
    for (own, name) in bytes {
        *own = limit(name).unwrap_or(*own);
    }
    profile
}
