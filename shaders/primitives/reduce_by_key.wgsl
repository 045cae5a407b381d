// Finds runs of equal neighbours among the keys, for runs_tiles. The key of a run is that of its first element.
// The importer declares CARRY_BINDING.
#import primitives/differs

#if !TOTALS
@group(0) @binding(CARRY_BINDING - 1u) var<storage, read_write> keys_out: array<u32>;

fn emit_label(run: u32, label: u32) { keys_out[run] = label; }
#endif

// Of the elements of a vec4 behind a `before`: bit i is set where element i begins a run.
fn head_bits(keys: vec4<u32>, before: u32) -> u32 {
    return u32(differs(keys.x, before)) | (u32(differs(keys.y, keys.x)) << 1u) | (u32(differs(keys.z, keys.y)) << 2u)
        | (u32(differs(keys.w, keys.z)) << 3u);
}
