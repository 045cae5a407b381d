// Declares keys and values. The importer has the block `rows_of` for its type.
#if EIGHTS
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}
#endif
#if KEYS
#put rows_of(key, k, K, 2, DIMS, VEC4S, base_kv, row)
#endif
#if VALUES
#if GENERAL
#put rows_of(value, v, V, 3, VALUE_DIMS, VALUE_VEC4S, base_v, params.kv_rows + row)
#else
#put rows_of(value, v, V, 3, VALUE_DIMS, VALUE_VEC4S, base_kv, params.kv_rows + row)
#endif
#endif
