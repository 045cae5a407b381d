// Attention of each head on the matrix instructions of sm_80, with an online softmax (Dao, "FlashAttention-2", 2023).
// A block has four warps of 16 queries each. Tiles of keys and values are copied asynchronously into two stages of
// shared memory while the previous tiles are multiplied. Scores, weights and sums stay in registers. HEAD, 64, 128 or
// 256, is the largest head size.
#define MMA 1
#define TRANS_A 0
#define TRANS_B 1
#define THREADS 128
#define QUERIES 64
#include "cuda/factors.cuh"
#include "cuda/copy.cuh"

#define PITCH (HEAD + 8) // avoids bank conflicts
#define TILE_BYTES (KEYS * PITCH * 2)
#define SHARERS THREADS
#include "cuda/values.cuh"

// A compile-time boolean.
template <bool X> struct Truth {
    static constexpr bool value = X;
};

// Loads a block of values, transposed.
__device__ __forceinline__ void fetch_values(Block &block, unsigned from, int pitch) {
    const int lane = threadIdx.x % 32;
    const int line = lane / 8 % 2 * 8 + lane % 8, column = lane / 16 * 8;
    LDMATRIX(".trans");
}

// Copies rows of a head to shared memory, padded with zeros to ROWS x HEAD.
template <int ROWS>
__device__ __forceinline__ void copy_rows(unsigned to, const Factor *from, int rows, int length) {
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * HEAD / 8; i += THREADS) {
        const int row = i / (HEAD / 8), col = i % (HEAD / 8) * 8;
        const bool there = row < rows && col < length;
        copy_async<16>(to + (row * PITCH + col) * 2, there ? from + (size_t)row * length + col : from, there ? 16 : 0);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_mma(const Factor *q, const Factor *k, const Factor *v, Factor *output, int heads, int kv_heads, int queries, int keys,
              int head_size, int window, float scale) {
    extern __shared__ __align__(16) unsigned char shared[];
    const unsigned q_tile = (unsigned)__cvta_generic_to_shared(shared), k_tiles = q_tile + QUERIES * PITCH * 2,
                   v_tiles = k_tiles + 2 * TILE_BYTES;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // With causal, the last queries see the most keys, so they run first.
    const int query = (CAUSAL ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * QUERIES;
    const int head = blockIdx.y, kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
    const Range range = visible(query, queries, keys, window);
    const int row = query + warp * 16 + lane / 4; // and the row eight below
    const float in_twos = scale * 1.4426950408889634f;
    q += ((size_t)head * queries + query) * head_size;
    k += (size_t)kv * keys * head_size;
    v += (size_t)kv * keys * head_size;

    const auto begin = [&](int tile) {
        const size_t from = (size_t)tile * KEYS * head_size;
        const int at = (tile - range.first) % 2 * TILE_BYTES, rows = keys - tile * KEYS;
        copy_rows<KEYS>(k_tiles + at, k + from, rows, head_size);
        copy_rows<KEYS>(v_tiles + at, v + from, rows, head_size);
    };
    union {
        Sums blocks[HEAD / 16];
        float flat[HEAD / 2];
    } sums = {};
    Softmax softmax;
    copy_rows<QUERIES>(q_tile, q, queries - query, head_size);
    if (range.first < range.end) begin(range.first);
    copy_commit();
    // Tiles that all rows see entirely have their own code, without masking.
    const auto multiply_tile = [&](int tile, auto whole) {
        constexpr bool WHOLE = decltype(whole)::value;
        const unsigned at = (tile - range.first) % 2 * TILE_BYTES;
        union {
            Sums blocks[KEYS / 16];
            float flat[KEYS / 2];
        } scores = {};
#pragma unroll
        for (int i = 0; i < HEAD / 16; i++) {
            Block a, b;
            fetch_a(a, q_tile + (warp * 16 * PITCH + i * 16) * 2, PITCH);
#pragma unroll
            for (int j = 0; j < KEYS / 16; j++) {
                fetch_b(b, k_tiles + at + (j * 16 * PITCH + i * 16) * 2, PITCH);
                multiply(scores.blocks[j], a, b);
            }
        }
        const int beside = row + keys - queries;
        float rescale[2];
        softmax.weigh(scores.flat, in_twos, WHOLE, tile * KEYS, keys, beside, window, rescale);
#pragma unroll
        for (int i = 0; i < HEAD / 2; i++) sums.flat[i] *= rescale[i / 2 % 2];
        unsigned char *const values = shared + (v_tiles - q_tile) + at;
        const auto piece = [&](int i) { return values + (i / (HEAD / 8) * PITCH + i % (HEAD / 8) * 8) * 2; };
        if (!WHOLE && __syncthreads_or(not_finite<Factor>(threadIdx.x, THREADS, piece))) {
            const auto pair = [&](int key, int i) { return values + (key * PITCH + i * 8 + lane % 4 * 2) * 2; };
            unsigned weights[KEYS / 4];
#pragma unroll
            for (int i = 0; i < KEYS / 4; i++) weights[i] = two_from_floats(scores.flat[2 * i], scores.flat[2 * i + 1], Factor());
            take_out<Factor>(sums.flat, weights, tile * KEYS, keys, beside, window, piece, pair, [] { __syncthreads(); });
        }
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            Block weights, b;
#pragma unroll
            for (int e = 0; e < 4; e++)
                weights.x[e] = two_from_floats(scores.flat[8 * j + 2 * e], scores.flat[8 * j + 2 * e + 1], Factor());
#pragma unroll
            for (int i = 0; i < HEAD / 16; i++) {
                fetch_values(b, v_tiles + at + (j * 16 * PITCH + i * 16) * 2, PITCH);
                multiply(sums.blocks[i], weights, b);
            }
        }
    };
    for (int tile = range.first; tile < range.end; tile++) {
        if (tile + 1 < range.end) begin(tile + 1);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        if (tile >= range.inner && tile < range.ragged) {
            multiply_tile(tile, Truth<true>());
        } else {
            multiply_tile(tile, Truth<false>());
        }
        __syncthreads();
    }

    const float share[2] = {softmax.share(0), softmax.share(1)};
    output += (size_t)head * queries * head_size;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = row + 8 * half;
#pragma unroll
        for (int i = 0; i < HEAD / 8; i++) {
            const int col = 8 * i + lane % 4 * 2;
            const float *pair = sums.flat + 4 * i + 2 * half;
            if (r < queries && col < head_size)
                *reinterpret_cast<unsigned *>(output + (size_t)r * head_size + col) =
                    two_from_floats(pair[0] * share[half], pair[1] * share[half], Factor());
        }
    }
}
