// The linear index of a workgroup whose dispatch was folded over x, y and z.
// The fold width is a constant (FOLD in src/program/mod.rs): num_workgroups is 0 under indirect
// dispatch on one backend.
const FOLD: u32 = 32768u;

fn workgroup_index(id: vec3<u32>) -> u32 { return id.x + FOLD * (id.y + FOLD * id.z); }
