// Conjugate gradients on shards, the steps of a rank on a stream (A. T. Chronopoulos and C. W. Gear, 1989).
// Rows are in slices of 32, an entry of each after the other; a warp multiplies a slice, a thread a row. Blocks stride
// over slices and post their partial sums of r r and w r, in f64.
// Requires: 256 threads, cg_stream_total 1024 and cg_stream_step 1.

typedef unsigned long long u64;

constexpr unsigned PADDING = 0xffffffffu;
constexpr unsigned AHEAD = 8; // entries of a row under way
constexpr unsigned HISTORY = 48;

enum Status : u64 { GOING, CONVERGED, LIMIT, NOT_FINITE, NOT_POSITIVE };

struct State {
    u64 status;
    u64 count; // sums r r so far
    u64 left;  // steps that may follow
    double alpha, beta;
    double old; // r r of the step before
    double threshold; // of r r, at which to stop
    double curvature;
    double padding[8];
    double history[HISTORY]; // the last sums r r, in turn
};

// Adds the pairs of all threads of a block; thread 0 has the sum.
template <unsigned THREADS> __device__ double2 block_sum(double2 sum) {
    __shared__ double2 warps[THREADS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        sum.x += __shfl_down_sync(0xffffffffu, sum.x, step);
        sum.y += __shfl_down_sync(0xffffffffu, sum.y, step);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned i = 1; i < THREADS / 32; i++) {
            sum.x += warps[i].x;
            sum.y += warps[i].y;
        }
    }
    return sum;
}

// w = A r for `rows` rows from `first` on, and the partial sums from `part` on.
extern "C" __global__ void __launch_bounds__(256) cg_stream_product(
    const unsigned* slices, const unsigned* columns, const float* values, const float* r, float* w, double2* partials,
    unsigned rows, unsigned first, unsigned part) {
    const unsigned lane = threadIdx.x % 32;
    double2 sums = make_double2(0.0, 0.0);
    for (unsigned slice = (blockIdx.x * 256 + threadIdx.x) / 32; slice < (rows + 31) / 32; slice += gridDim.x * 8) {
        const u64 end = slices[slice + 1];
        float sum = 0.0f;
        for (u64 at = slices[slice]; at < end; at += 32 * AHEAD) {
            unsigned column[AHEAD];
            float value[AHEAD], x[AHEAD];
#pragma unroll
            for (unsigned k = 0; k < AHEAD; k++) {
                const u64 place = at + 32 * k;
                column[k] = place < end ? __ldcs(columns + place + lane) : PADDING;
                value[k] = place < end ? __ldcs(values + place + lane) : 0.0f;
            }
#pragma unroll
            for (unsigned k = 0; k < AHEAD; k++) x[k] = column[k] != PADDING ? r[column[k]] : 0.0f;
#pragma unroll
            for (unsigned k = 0; k < AHEAD; k++) sum = fmaf(value[k], x[k], sum);
        }
        const unsigned row = slice * 32 + lane;
        if (row < rows) {
            const double own = r[first + row];
            w[first + row] = sum;
            sums.x += own * own;
            sums.y += own * sum;
        }
    }
    sums = block_sum<256>(sums);
    if (threadIdx.x == 0) partials[part + blockIdx.x] = sums;
}

// The elements that other ranks need.
extern "C" __global__ void __launch_bounds__(256) cg_stream_gather(
    const float* r, const unsigned* indices, float* sent, unsigned n) {
    const unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) sent[i] = r[indices[i]];
}

// r = b - w, p = s = 0, and partial sums of r r.
extern "C" __global__ void __launch_bounds__(256) cg_stream_start(
    const float* b, const float* w, float* r, float* p, float* s, double2* partials, unsigned n) {
    double2 sums = make_double2(0.0, 0.0);
    for (u64 i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        const float residual = b[i] - w[i];
        r[i] = residual;
        p[i] = 0.0f;
        s[i] = 0.0f;
        sums.x += double(residual) * residual;
    }
    sums = block_sum<256>(sums);
    if (threadIdx.x == 0) partials[blockIdx.x] = sums;
}

// Adds up the partial sums of the rank.
extern "C" __global__ void __launch_bounds__(1024) cg_stream_total(const double2* partials, double2* total, unsigned parts) {
    double2 sums = make_double2(0.0, 0.0);
    for (unsigned i = threadIdx.x; i < parts; i += 1024) {
        sums.x += partials[i].x;
        sums.y += partials[i].y;
    }
    sums = block_sum<1024>(sums);
    if (threadIdx.x == 0) *total = sums;
}

// Finds the lengths of the next step from the sums of all ranks, or ends the solve.
extern "C" __global__ void cg_stream_step(const double2* total, State* state) {
    if (state->status != GOING) return;
    const double square = total->x;
    const u64 count = state->count;
    state->history[count % HISTORY] = square;
    state->count = count + 1;
    if (!isfinite(square)) {
        state->status = NOT_FINITE;
        return;
    }
    if (square <= state->threshold) {
        state->status = CONVERGED;
        return;
    }
    if (state->left == 0) {
        state->status = LIMIT;
        return;
    }
    double beta = 0.0;
    double curvature = total->y;
    if (count > 0) {
        beta = square / state->old;
        curvature -= beta * (square / state->alpha);
    }
    state->curvature = curvature;
    if (!isfinite(curvature) || curvature <= 0.0) {
        state->status = isfinite(curvature) ? NOT_POSITIVE : NOT_FINITE;
        return;
    }
    state->alpha = float(square / curvature);
    state->beta = beta;
    state->old = square;
    state->left -= 1;
}

__device__ void advance(float w, float& p, float& s, float& x, float& r, float alpha, float beta) {
    p = r + beta * p;
    s = w + beta * s;
    x += alpha * p;
    r -= alpha * s;
}

// A step along p: p = r + beta p, s = w + beta s = A p, x += alpha p, r -= alpha s. A thread takes four elements.
extern "C" __global__ void __launch_bounds__(256) cg_stream_update(
    const State* state, const float* w, float* p, float* s, float* x, float* r, unsigned n) {
    if (state->status != GOING) return;
    const float alpha = state->alpha, beta = state->beta;
    const u64 at = (blockIdx.x * u64(256) + threadIdx.x) * 4;
    if (at + 4 <= n) {
        const float4 along = *reinterpret_cast<const float4*>(w + at);
        float4 ps = *reinterpret_cast<float4*>(p + at), ss = *reinterpret_cast<float4*>(s + at);
        float4 xs = *reinterpret_cast<float4*>(x + at), rs = *reinterpret_cast<float4*>(r + at);
        advance(along.x, ps.x, ss.x, xs.x, rs.x, alpha, beta);
        advance(along.y, ps.y, ss.y, xs.y, rs.y, alpha, beta);
        advance(along.z, ps.z, ss.z, xs.z, rs.z, alpha, beta);
        advance(along.w, ps.w, ss.w, xs.w, rs.w, alpha, beta);
        *reinterpret_cast<float4*>(p + at) = ps;
        *reinterpret_cast<float4*>(s + at) = ss;
        *reinterpret_cast<float4*>(x + at) = xs;
        *reinterpret_cast<float4*>(r + at) = rs;
    } else {
        for (u64 i = at; i < n; i++) advance(w[i], p[i], s[i], x[i], r[i], alpha, beta);
    }
}
