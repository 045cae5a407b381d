// The statements of a matrix product with sums in registers and both factors straight from storage, which an entry
// point imports into its body. A workgroup computes its `part` with LANES threads, of which this one is number
// `local`. A walked factor `x` has the functions of the register-tiled product; `step_x` advances by one. BYTES: as
// there.

// {x}{g}_0 to {x}{g}_3: group `g` of four rows of A or columns of B at steps i to i + 3.
#block steps(x, g, along)
#if WALKED_{x}
#for j in 4
        let {x}{g}_{j} = vec4<F>(vec4(
#for c in 4
            load_{x}({x}_from_{4 * g + c}, {x}_walk_{j}),
#end
        ));
#end
#else
#if {along}
#for j in 4
        let {x}{g}_along_{j} = four_{x}(min({x}_first + {4 * g + j}u, {x}_last), i, ld{x}, k_last);
#end
#for j in 4
        let {x}{g}_{j} = vec4({x}{g}_along_0[{j}], {x}{g}_along_1[{j}], {x}{g}_along_2[{j}], {x}{g}_along_3[{j}]);
#end
#else
#for j in 4
        let {x}{g}_{j} = four_{x}(i + {j}u, {x}_first + {4 * g}u, ld{x}, {x}_last);
#end
#endif
#endif
#end

// {x}{g}_0 alone, of a factor that is read element by element along k.
#block step(x, g, along)
#if WALKED_{x}
        let {x}{g}_0 = vec4<F>(vec4(
#for c in 4
            load_{x}({x}_from_{4 * g + c}, {x}_walk),
#end
        ));
#else
#if {along}
        let {x}{g}_0 = vec4(
#for j in 4
            four_{x}(min({x}_first + {4 * g + j}u, {x}_last), i, ld{x}, i).x,
#end
        );
#else
        let {x}{g}_0 = four_{x}(i, {x}_first + {4 * g}u, ld{x}, {x}_last);
#endif
#endif
#end

#block multiply(count)
#for j in {count}
#for r in THREAD_M
#for g in THREAD_N / 4
#if BYTES
        c_{r}_{g} += vec4(
#for x in x, y, z, w
            dot4I8Packed(a{r / 4}_{j}[{r % 4}], b{g}_{j}.{x}),
#end
        );
#else
        c_{r}_{g} = fma(vec4(a{r / 4}_{j}[{r % 4}]), b{g}_{j}, c_{r}_{g});
#endif
#end
#end
#end
#end

    let a_first = part.origin.x + local / ACROSS * THREAD_M;
    let b_first = part.origin.y + local % ACROSS * THREAD_N;
    let a_last = params.m - 1u;
    let b_last = params.n - 1u;
    if a_first > a_last || b_first > b_last { return; }
    let k_last = params.k - 1u;
    let lda = params.lda;
    let ldb = params.ldb;
#for r in THREAD_M
#for g in THREAD_N / 4
    var c_{r}_{g} = begin_four(a_first + {r}u, b_first + {4 * g}u);
#end
#end
#for x in a, b
#if WALKED_{x}
#for c in SIDE_{x}
    let {x}_from_{c} = line_{x}(min({x}_first + {c}u, {x}_last));
#end
    var {x}_walk = walk_{x}(part.first_k);
#endif
#end
    var i = part.first_k;
    for (; i + 3u < part.end_k; i += 4u) {
#for x in a, b
#if WALKED_{x}
        let {x}_walk_0 = {x}_walk;
#for j in 1..4
        let {x}_walk_{j} = step_{x}({x}_walk_{j - 1});
#end
        {x}_walk = step_{x}({x}_walk_3);
#endif
#end
#for g in THREAD_M / 4
#put steps(a, {g}, !TRANS_A)
#end
#for g in THREAD_N / 4
#put steps(b, {g}, TRANS_B)
#end
#put multiply(4)
    }
    // With rows of vec4 along k there is no rest.
#if !(VEC_A && !TRANS_A || VEC_B && TRANS_B)
    for (; i < part.end_k; i++) {
#for g in THREAD_M / 4
#put step(a, {g}, !TRANS_A)
#end
#for g in THREAD_N / 4
#put step(b, {g}, TRANS_B)
#end
#for x in a, b
#if WALKED_{x}
        {x}_walk = step_{x}({x}_walk);
#endif
#end
#put multiply(1)
    }
#endif
#for r in THREAD_M
#for g in THREAD_N / 4
    end_four(part.slice, a_first + {r}u, b_first + {4 * g}u, c_{r}_{g});
#end
#end
