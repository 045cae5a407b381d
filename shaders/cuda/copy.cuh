// Copies tiles of a matrix to shared memory in their stored order: LINES lines of LENGTH elements, PITCH elements apart
// in shared memory, in chunks of UNIT bytes. Chunks of at least 4 bytes are copied asynchronously from sm_80 on; all
// others go through registers. Elements out of bounds become 0; with PARTIAL a chunk may be partly out of bounds. Needs
// THREADS, and the element type Factor.
#pragma once

#if __CUDA_ARCH__ >= 800
#define HAS_ASYNC 1
#else
#define HAS_ASYNC 0
#endif

// Copies UNIT bytes, or zeroes them if they are out of bounds.
template <int UNIT> __device__ __forceinline__ void copy_async(unsigned to, const void *from, bool there) {
#if HAS_ASYNC
    if (UNIT == 16) {
        asm volatile("{ .reg .pred outside; setp.eq.u32 outside, %2, 0;"
                     " cp.async.cg.shared.global.L2::128B [%0], [%1], 16, outside; }" ::"r"(to), "l"(from), "r"((unsigned)there)
                     : "memory");
    } else {
        asm volatile("{ .reg .pred outside; setp.eq.u32 outside, %2, 0;"
                     " cp.async.ca.shared.global [%0], [%1], %3, outside; }" ::"r"(to), "l"(from), "r"((unsigned)there),
                     "n"(UNIT < 4 ? 4 : UNIT)
                     : "memory");
    }
#endif
}

// Copies `bytes` of UNIT bytes and zeroes the rest, with several more instructions.
template <int UNIT> __device__ __forceinline__ void copy_part_async(unsigned to, const void *from, int bytes) {
#if HAS_ASYNC
    if (UNIT == 16) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(UNIT < 4 ? 4 : UNIT), "r"(bytes)
                     : "memory");
    }
#endif
}

__device__ __forceinline__ void copy_commit() {
#if HAS_ASYNC
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING groups are in flight.
template <int PENDING> __device__ __forceinline__ void copy_wait() {
#if HAS_ASYNC
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

__device__ __forceinline__ void store_shared(unsigned to, uint4 x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

// 16 bytes of elements, of which the first `count` are in bounds.
template <int UNIT> __device__ __forceinline__ uint4 gather(const Factor *from, int count) {
    constexpr int ELEMENTS = 16 / sizeof(Factor);
    if (UNIT == 16 && count >= ELEMENTS) {
        return *reinterpret_cast<const uint4 *>(from);
    }
    union {
        uint4 all;
        Factor each[ELEMENTS];
    } piece;
    piece.all = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < ELEMENTS; i++) {
        if (i < count) {
            piece.each[i] = from[i];
        }
    }
    return piece.all;
}

template <int LINES, int LENGTH, int PITCH, int UNIT, bool PARTIAL> struct Copy {
    static constexpr bool ASYNC = HAS_ASYNC && UNIT >= 4;
    static constexpr int ELEMENTS = (ASYNC ? UNIT : 16) / sizeof(Factor);
    static constexpr int PIECES = LENGTH / ELEMENTS;
    static constexpr int STEP = THREADS / PIECES;
    static constexpr int ROUNDS = (LINES + STEP - 1) / STEP;
    static_assert(LENGTH % ELEMENTS == 0 && THREADS % PIECES == 0, "threads share the pieces of a line evenly");

    const Factor *from;
    size_t ld;
    int line;
    int column;
    uint4 held[ASYNC ? 1 : ROUNDS];

    // `origin` is the first element of the first tile.
    __device__ __forceinline__ Copy(const Factor *origin, size_t ld) : ld(ld) {
        line = threadIdx.x / PIECES;
        column = threadIdx.x % PIECES * ELEMENTS;
        from = origin + line * ld + column;
    }

    __device__ __forceinline__ void advance(size_t elements) {
        from += elements;
    }

    // Starts to copy a tile with `lines` lines of `length` elements in bounds.
    __device__ __forceinline__ void begin(unsigned to, int lines, int length) {
        const int count = min(max(length - column, 0), ELEMENTS);
        const Factor *next = from;
        const unsigned at = to + (line * PITCH + column) * (int)sizeof(Factor);
        // No branch, so that copies interleave with earlier products.
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            const unsigned place = at + i * STEP * PITCH * (int)sizeof(Factor);
            const bool there = line + i * STEP < lines;
            if (LINES % STEP == 0 || line + i * STEP < LINES) {
                if (!ASYNC) {
                    held[i] = gather<UNIT>(next, there ? count : 0);
                } else if (PARTIAL) {
                    copy_part_async<UNIT>(place, next, there ? count * (int)sizeof(Factor) : 0);
                } else {
                    copy_async<UNIT>(place, next, there && length > column);
                }
            }
            next += STEP * ld;
        }
    }

    // Stores the copies that went through registers.
    __device__ __forceinline__ void end(unsigned to) {
        if (!ASYNC) {
            const unsigned at = to + (line * PITCH + column) * sizeof(Factor);
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) {
                if (LINES % STEP == 0 || line + i * STEP < LINES) {
                    store_shared(at + i * STEP * PITCH * (int)sizeof(Factor), held[i]);
                }
            }
        }
    }
};
