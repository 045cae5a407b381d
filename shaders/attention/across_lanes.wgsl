// Reduces `name`_r of each row r of a thread over the LANES lanes that share the row, at most 1024: the maximum, or the
// sum. With SUBGROUPS they lie in one subgroup, and lanes LANES / 2, LANES / 4, ..., 1 apart exchange values; otherwise
// all threads of the workgroup call it. The importer declares THREAD_ROWS, LANES, `wg_rows` and, in the entry point,
// `lane` and `group_row`.
#block across(name, is_largest)
#if SUBGROUPS
#for step in 1..11
#if LANES >> step > 0
#for r in THREAD_ROWS
#if is_largest
        {name}_{r} = max({name}_{r}, subgroupShuffleXor({name}_{r}, LANES >> {step}u));
#else
        {name}_{r} = {name}_{r} + subgroupShuffleXor({name}_{r}, LANES >> {step}u);
#endif
#end
#endif
#end
#else
        workgroupBarrier();
#for r in THREAD_ROWS
        wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + lane] = {name}_{r};
#end
        workgroupBarrier();
#for r in THREAD_ROWS
        {name}_{r} = wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES];
#for l in 1..LANES
#if is_largest
        {name}_{r} = max({name}_{r}, wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + {l}u]);
#else
        {name}_{r} = {name}_{r} + wg_rows[(group_row * THREAD_ROWS + {r}u) * LANES + {l}u];
#endif
#end
#end
#endif
#end
