// Measures the rate of f32 fused multiply-adds: independent chains in each thread.
// Requires: CHAINS, LINKS; 256 threads.

extern "C" __global__ void __launch_bounds__(256) probe_fma(float* output, float a, float b) {
    const unsigned thread = blockIdx.x * 256 + threadIdx.x;
    float x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; c++) x[c] = float(thread + c);
    for (int link = 0; link < LINKS; link++) {
#pragma unroll
        for (int c = 0; c < CHAINS; c++) x[c] = fmaf(x[c], a, b);
    }
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < CHAINS; c++) sum += x[c];
    output[thread] = sum;
}
