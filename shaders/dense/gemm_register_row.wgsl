// The statements of a product whose threads compute a row of TILE_N elements of C each, which an entry point imports
// into its body. A workgroup computes TILE_M such rows, with a tile of TILE_K x TILE_N of op(B) in workgroup memory;
// with STAGED (gemm_register_staged) also one of TILE_M x TILE_K of op(A). With UNROLLED the steps of a whole tile are
// written out.
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let origin = tile_origin(index);
    let row = origin.x + local_index;
#if !STAGED
    // A row beyond the last reads the last; its results are not stored.
    let row_of_a = min(row, params.m - 1u);
#endif
    var sums_0 = begin_four(row, origin.y);
#for g in 1..TILE_N / 4
    var sums_{g} = begin_four(row, origin.y + {4 * g}u);
#end
#block multiply(i)
#if STAGED
            let x = wg_a[local_index * PITCH_A + {i}];
#else
            let x = load_a(row_of_a, first_i + {i});
#endif
#for g in TILE_N / 4
            sums_{g} += x * columns_of_b({i}, {g}u);
#end
#end
    for (var first_i = params.first_k; first_i < params.end_k; first_i += TILE_K) {
        let steps = min(TILE_K, params.end_k - first_i);
#if STAGED
        for (var x = local_index; x < TILE_M * TILE_K; x += TILE_M) {
#if TRANS_A
            let i = x / TILE_M;
            let line = x % TILE_M;
#else
            let i = x % TILE_K;
            let line = x / TILE_K;
#endif
            if i < steps {
                wg_a[line * PITCH_A + i] = load_a(min(origin.x + line, params.m - 1u), first_i + i);
            }
        }
#endif
        for (var x = local_index; x < TILE_K * TILE_N; x += TILE_M) {
#if TRANS_B
            let i = x % TILE_K;
            let column = x / TILE_K;
#else
            let i = x / TILE_N;
            let column = x % TILE_N;
#endif
            if i < steps {
                wg_b[i * TILE_N + column] = load_b(first_i + i, min(origin.y + column, params.n - 1u));
            }
        }
        workgroupBarrier();
#if UNROLLED
        if steps == TILE_K {
#for step in TILE_K
            {
                const i: u32 = {step}u;
#put multiply(i)
            }
#end
        } else {
            for (var i = 0u; i < steps; i++) {
#put multiply(i)
            }
        }
#else
        for (var i = 0u; i < steps; i++) {
#put multiply(i)
        }
#endif
        workgroupBarrier();
    }
    end_four(0u, row, origin.y, sums_0);
#for g in 1..TILE_N / 4
    end_four(0u, row, origin.y + {4 * g}u, sums_{g});
#end
