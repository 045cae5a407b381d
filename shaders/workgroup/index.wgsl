// The linear index of a workgroup whose dispatch was folded over x, y and z.
// The fold width is a constant (FOLD in src/program/mod.rs): num_workgroups is 0 under indirect
// dispatch on one backend.
const FOLD: u32 = 32768u;

fn workgroup_index(id: vec3<u32>) -> u32 { return id.x + FOLD * (id.y + FOLD * id.z); }

// Parameters of an entry point: the place of a thread in its subgroup; its workgroup and place there and, where the
// flag or constant `on` is on, also that.
#block subgroup_builtins()
    @builtin(subgroup_invocation_id) sub_lane: u32, @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32, @builtin(num_subgroups) sub_count: u32,
#end

#block thread_builtins(index, on)
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) {index}: u32,
#if {on}
#put subgroup_builtins()
#endif
#end
