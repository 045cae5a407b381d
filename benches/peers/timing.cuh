// Shared by cuda.cu and lists.cu: random numbers on the card, and times as JSON.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                             \
    do {                                                                        \
        auto status = (call);                                                   \
        if (status != 0) {                                                      \
            fprintf(stderr, "line %d: error %d\n", __LINE__, int(status));     \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

bool first = true;
std::string only;

// Median of 25 runs after half a second of the same work, as our own cases are measured.
template <class F>
void peer(const char* library, const char* op, const char* dtype, std::string size, F work) {
    if (!only.empty() && only != op) return;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    auto time = [&] {
        CHECK(cudaEventRecord(begin));
        work();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        return ms;
    };
    for (float warm = 0; warm < 500;) warm += std::max(time(), 0.01f);
    std::vector<float> ms;
    for (int i = 0; i < 25; i++) ms.push_back(time());
    CHECK(cudaGetLastError());
    std::sort(ms.begin(), ms.end());
    printf("%s{\"peer\": \"%s\", \"op\": \"%s\", \"dtype\": \"%s\", \"size\": \"%s\", \"seconds\": %.4e}",
           first ? "[\n" : ",\n", library, op, dtype, size.c_str(), ms[12] * 1e-3);
    first = false;
}

__device__ unsigned hash(unsigned x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

template <class T>
__global__ void fill(T* x, size_t n, float scale) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) x[i] = T((float(hash(unsigned(i)) >> 8) / 16777216.0f - (scale < 2 ? 0.5f : 0.0f)) * scale);
}

// Words of all 32 bits, where a float has but 24.
__global__ void fill_words(unsigned* x, size_t n) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) x[i] = hash(unsigned(i));
}

template <class T>
T* random(size_t n, float scale) {
    T* x;
    CHECK(cudaMalloc(&x, n * sizeof(T)));
    fill<<<unsigned((n + 255) / 256), 256>>>(x, n, scale);
    CHECK(cudaGetLastError());
    return x;
}

// Keys of which about one in `length` begins a run.
__global__ void in_runs(unsigned* x, size_t n, unsigned length) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < n) x[i] = unsigned(i) / length;
}
