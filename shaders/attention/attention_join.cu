// Joins the parts of each row that attention_decode.cu wrote: rescales them to the largest score, adds them, and
// divides. A block takes a row; each of COLUMNS threads takes four elements, and teams of them every so many parts.
#define THREADS 128
#include "cuda/numbers.cuh"

#if FACTOR_BF16
typedef Bf16 Factor;
#else
typedef F16 Factor;
#endif
#define MINUS_INFINITY (-__int_as_float(0x7f800000))
#define TEAMS (THREADS / COLUMNS)

extern "C" __global__ void __launch_bounds__(THREADS)
attention_join(const float *partials, const float2 *statistics, Factor *output, int head_size, int parts) {
    __shared__ float weights[MAX_PARTS];
    __shared__ float2 of_threads[THREADS];
    __shared__ float4 of_teams[THREADS];
    const size_t row = blockIdx.x;
    float top = MINUS_INFINITY;
    for (int part = threadIdx.x; part < parts; part += THREADS) top = fmaxf(top, statistics[row * parts + part].x);
    of_threads[threadIdx.x].x = top;
    __syncthreads();
    for (int i = 0; i < min(parts, THREADS); i++) top = fmaxf(top, of_threads[i].x);
    const float center = top == MINUS_INFINITY ? 0.0f : top;
    float total = 0.0f;
    for (int part = threadIdx.x; part < parts; part += THREADS) {
        const float2 of = statistics[row * parts + part];
        weights[part] = exp2f(of.x - center);
        total += weights[part] * of.y;
    }
    of_threads[threadIdx.x].y = total;
    __syncthreads();
    total = 0.0f;
    for (int i = 0; i < min(parts, THREADS); i++) total += of_threads[i].y;

    const int column = threadIdx.x % COLUMNS, team = threadIdx.x / COLUMNS;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (column * 4 < head_size) {
#pragma unroll 4
        for (int part = team; part < parts; part += TEAMS) {
            const float4 x = *reinterpret_cast<const float4 *>(partials + (row * parts + part) * head_size + column * 4);
            sum.x += weights[part] * x.x;
            sum.y += weights[part] * x.y;
            sum.z += weights[part] * x.z;
            sum.w += weights[part] * x.w;
        }
    }
    of_teams[threadIdx.x] = sum;
    __syncthreads();
    if (team > 0 || column * 4 >= head_size) return;
    for (int i = 1; i < TEAMS; i++) {
        const float4 x = of_teams[i * COLUMNS + column];
        sum.x += x.x;
        sum.y += x.y;
        sum.z += x.z;
        sum.w += x.w;
    }
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
    *reinterpret_cast<uint2 *>(output + row * head_size + column * 4) =
        make_uint2(two_from_floats(sum.x * factor, sum.y * factor, Factor()), two_from_floats(sum.z * factor, sum.w * factor, Factor()));
}
