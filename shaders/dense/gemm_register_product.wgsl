// The statements of a register-tiled matrix product, which an entry point imports into its body. A workgroup
// computes its `part` with LANES threads, of which this one is number `local`. With SMALL a workgroup computes
// several products, here number `product` of them, and stores nothing for a `matrix` after the last.
// The loop over k has no condition inside: only the first step, which takes the remainder of k, checks. Rows and
// columns beyond C read the last ones; their results are not stored.
    let patch_index = local / (PATCH_a * PATCH_b);
    let lane = local % (PATCH_a * PATCH_b);
    // Groups of four rows and of four columns within the tile.
    let group_a = patch_index / PATCHES_ACROSS * (PATCH_a * GROUPS_a) + lane / PATCH_b;
    let group_b = patch_index % PATCHES_ACROSS * (PATCH_b * GROUPS_b) + lane % PATCH_b;
    let row = part.origin.x + 4u * group_a;
    let col = part.origin.y + 4u * group_b;
#for r in THREAD_M
#for g in GROUPS_b
    var c_{r}_{g} = begin_four(row + {r / 4 * 4 * PATCH_a + r % 4}u, col + {4 * PATCH_b * g}u);
#end
#end
    let over = (part.end_k - part.first_k) % TILE_K;
    let head = select(over, TILE_K, over == 0u);
    let head_end = part.first_k + head;

// Load number j of a thread: its place in memory, and the step of k (`_i_`) and row or column (`_line_`) of the
// tile of its elements. A load `_at_` an index advances along k by additions. In a walked factor all loads of a
// thread stand at one k, on several lines: the thread keeps the place of each line, and one walk along k.
#block places(x, axis, lines, upper)
#if ALONG_K_{x}
    let from_{x} = base_{x} / WIDTH_{x} + part.first_k / WIDTH_{x};
#else
    let from_{x} = base_{x} / WIDTH_{x} + part.first_k * (params.ld{x} / WIDTH_{x});
#endif
#for j in LOADS_{x}
    let {x}_number_{j} = local + {j * LANES}u;
#if ALONG_K_{x}
    let {x}_i_{j} = {x}_number_{j} % ACROSS_{x} * WIDTH_{x};
    let {x}_line_{j} = {x}_number_{j} / ACROSS_{x};
    let {x}_row_{j} = min(part.origin.{axis} + {x}_line_{j}, params.{lines} - 1u);
    var {x}_at_{j} = from_{x} + {x}_row_{j} * (params.ld{x} / WIDTH_{x}) + {x}_i_{j} / WIDTH_{x};
#else
    let {x}_i_{j} = {x}_number_{j} / ACROSS_{x};
    let {x}_line_{j} = {x}_number_{j} % ACROSS_{x} * WIDTH_{x};
    let {x}_step_{j} = from_{x} + {x}_i_{j} * (params.ld{x} / WIDTH_{x});
    var {x}_at_{j} = {x}_step_{j} + min(part.origin.{axis} + {x}_line_{j}, params.{lines} - WIDTH_{x}) / WIDTH_{x};
#endif
#if VEC_{upper}
    var {x}_next_{j}: vec4<T>;
#else
    var {x}_next_{j}: T;
#endif
#end
#end
#if WALKED_a
#for j in LOADS_a
    let a_number_{j} = local + {j * LANES}u;
    let a_i_{j} = local % ACROSS_a * WIDTH_a;
    let a_line_{j} = local / ACROSS_a + {j * (LANES / ACROSS_a)}u;
    let a_from_{j} = line_a(min(part.origin.x + a_line_{j}, params.m - 1u));
#if VEC_A
    var a_next_{j}: vec4<T>;
#else
    var a_next_{j}: T;
#endif
#end
    var a_walk = walk_a(part.first_k + a_i_0);
#else
#put places(a, x, m, A)
#endif
#if WALKED_b
#for j in LOADS_b
    let b_number_{j} = local + {j * LANES}u;
    let b_i_{j} = local / (LANES / TILE_K);
    let b_line_{j} = local % (LANES / TILE_K) + {j * (LANES / TILE_K)}u;
    let b_from_{j} = line_b(min(part.origin.y + b_line_{j}, params.n - 1u));
    var b_next_{j}: T;
#end
    var b_walk = walk_b(part.first_k + b_i_0);
#else
#put places(b, y, n, B)
#endif

// A round loads a tile of each factor into registers, multiplies the tiles in a buffer of workgroup memory, and
// stores its loads to a buffer. The rounds are:
//
//     round    load         multiply        store to
//     0        the first    -               FIRST_BUFFER    always
//     1        -            buffer 0        -               in a loop of one buffer, or once before one of two
//     2        the next     -               buffer 0        the same
//     3        the next     FIRST_BUFFER    the other       in a loop of two buffers
//     4        the next     the other       FIRST_BUFFER    the same
//     5        -            buffer 1        -               after a loop of two buffers
//
// With one buffer all threads are done with it before it is filled again. With two the loads of the next tile are
// in flight while this one is multiplied. The buffers have names, and the loop takes two steps: an index
// that changes is slower. One product, of buffer 1, follows the loop, instead of one of either buffer. So the loop ends
// in the middle of an even number of steps; with ODD_STEPS it begins there. With ANY_STEPS the number differs from
// workgroup to workgroup, and rounds 1 and 2 may take a step before, rolled up; that too costs.
#for round in 6
#if round == 0 || round < 3 && (BUFFERS == 1 || ANY_STEPS) || round >= 3 && BUFFERS == 2
#if round == 1 && BUFFERS == 1
    loop {
#endif
#if round == 1 && BUFFERS == 2
    if (part.end_k - i) / TILE_K % 2u == 0u {
#endif
#if round == 2 && BUFFERS == 1
    if i >= part.end_k { break; }
    workgroupBarrier();
#endif
#if round == 2 && BUFFERS == 2
    if i < part.end_k {
#endif
#if round == 3
#if ODD_STEPS || ANY_STEPS
    if head_end < part.end_k {
#endif
    loop {
#endif
#if round == 5
    }
#if ODD_STEPS
    }
#endif
#endif

#if round != 1 && round != 5
#for x in a, b
#for j in LOADS_{x}
#if round == 0 && j < WHOLE_{x}
    if {x}_i_{j} < head {
#endif
#if round == 0 && j == WHOLE_{x}
    if {x}_number_{j} < PIECES_{x} && {x}_i_{j} < head {
#endif
#if round > 0 && j == WHOLE_{x}
    if {x}_number_{j} < PIECES_{x} {
#endif
#if WALKED_{x}
        {x}_next_{j} = load_{x}({x}_from_{j}, {x}_walk);
#else
        {x}_next_{j} = {x}[{x}_at_{j}];
#endif
#if round == 0 || j == WHOLE_{x}
    }
#endif
#end
#if round > 0 && WALKED_{x}
    {x}_walk = step_{x}({x}_walk);
#endif
#if round > 0 && !WALKED_{x}
#for j in LOADS_{x}
    {x}_at_{j} += step_{x};
#end
#endif
#end
#endif
#if round == 0
#for x in a, b
#if WALKED_{x}
    {x}_walk = walk_{x}(head_end + {x}_i_0);
#else
#for j in LOADS_{x}
#if ALONG_K_{x}
    {x}_at_{j} += head / WIDTH_{x};
#else
    {x}_at_{j} += head * (params.ld{x} / WIDTH_{x});
#endif
#end
#if ALONG_K_{x}
    let step_{x} = TILE_K / WIDTH_{x};
#else
    let step_{x} = TILE_K * (params.ld{x} / WIDTH_{x});
#endif
#endif
#end
#endif
#if round == 2 && BUFFERS == 2
    workgroupBarrier();
#endif

#for buffer in BUFFERS
#if round != 0 && round != 2 && buffer == select((round + 1 + FIRST_BUFFER) % 2, 1, round == 5)
    {
#for x in a, b
#if SMALL
    let {x}_in = group_{x} + product * (STAGED_{x} / 4u);
#else
    let {x}_in = group_{x};
#endif
#end
#for step in select(WRITTEN, 1, round == 1 && BUFFERS == 2)
#if ROLLED || round == 1 && BUFFERS == 2
    for (var q = 0u; q < TILE_K; q++) {
    {
#else
    {
        const q: u32 = {step}u;
#endif
#for x in a, b
#for g in GROUPS_{x}
#if VECTORS
        let {x}{g} = wg_{x}{buffer}[{x}_in + q * (PITCH_{x} / 4u) + {g}u * PATCH_{x}];
#else
        let {x}{g}_at = 4u * ({x}_in + q * (PITCH_{x} / 4u) + {g}u * PATCH_{x});
        let {x}{g} = vec4(
            wg_{x}{buffer}[{x}{g}_at],
            wg_{x}{buffer}[{x}{g}_at + 1u],
            wg_{x}{buffer}[{x}{g}_at + 2u],
            wg_{x}{buffer}[{x}{g}_at + 3u],
        );
#endif
#end
#end
#if BYTES
#for r in THREAD_M
#for g in GROUPS_b
        c_{r}_{g} += vec4(
#for c in x, y, z, w
            dot4I8Packed(a{r / 4}[{r % 4}u], b{g}.{c}),
#end
        );
#end
#end
#else
#for r in THREAD_M
#for g in GROUPS_b
        c_{r}_{g} = fma(vec4(a{r / 4}[{r % 4}u]), b{g}, c_{r}_{g});
#end
#end
#endif
    }
#if ROLLED || round == 1 && BUFFERS == 2
    }
#endif
#end
    }
#endif
#end
#if round != 1 && round != 5
#for x in a, b
#for j in LOADS_{x}
#if j == WHOLE_{x}
    if {x}_number_{j} < PIECES_{x} {
#else
    {
#endif
#if SMALL
        let to = {x}_i_{j} * (PITCH_{x} / UNIT) + {x}_line_{j} / UNIT + product * (STAGED_{x} / UNIT);
#else
        let to = {x}_i_{j} * (PITCH_{x} / UNIT) + {x}_line_{j} / UNIT;
#endif
#if WIDTH_{x} == 1 && VECTORS
        wg_{x}{(round + FIRST_BUFFER) % 2}[to][{x}_line_{j} % 4u] = F({x}_next_{j});
#endif
#if WIDTH_{x} == 1 && !VECTORS
        wg_{x}{(round + FIRST_BUFFER) % 2}[to] = F({x}_next_{j});
#endif
#if WIDTH_{x} == 4 && VECTORS && !ALONG_K_{x}
        wg_{x}{(round + FIRST_BUFFER) % 2}[to] = Staged({x}_next_{j});
#endif
#if WIDTH_{x} == 4 && (!VECTORS || ALONG_K_{x})
        let four = vec4<F>({x}_next_{j});
#for c in 4
#if VECTORS
        wg_{x}{(round + FIRST_BUFFER) % 2}[to + {c}u * NEXT_{x}][{x}_line_{j} % 4u] = four[{c}u];
#else
        wg_{x}{(round + FIRST_BUFFER) % 2}[to + {c}u * NEXT_{x}] = four[{c}u];
#endif
#end
#endif
    }
#end
#end
    workgroupBarrier();
#if round == 0
    var i = head_end;
#else
    i += TILE_K;
#endif
#endif

#if round == 2
    }
#if BUFFERS == 2
    }
#endif
#endif
#if round == 3 + FIRST_BUFFER
    if i >= part.end_k { break; }
#endif
#if round == 5 && ANY_STEPS
    }
#endif
#endif
#end
#if SMALL
    if matrix >= params.batch { return; }
#endif
#for r in THREAD_M
#for g in GROUPS_b
    end_four(part.slice, row + {r / 4 * 4 * PATCH_a + r % 4}u, col + {4 * PATCH_b * g}u, c_{r}_{g});
#end
#end
