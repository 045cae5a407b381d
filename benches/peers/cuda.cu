// What CUDA's libraries need for the cases of our benchmarks, on the same card, as JSON on standard output:
//   nvcc -O3 -std=c++17 --extended-lambda -arch=native benches/peers/cuda.cu -lcublas -o peers && ./peers > peers.json
// With the name of an op as argument, what that needs alone.
//   TILEWORK_PEERS=peers.json TILEWORK_RESULTS=results.json cargo bench
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "timing.cuh"

// Extents of a product.
struct Shape {
    int m, n, k;
};

// Extents as our cases write them.
std::string by(std::initializer_list<int> extents) {
    std::string text;
    for (int extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text;
}

struct Row {
    int length;
    __host__ __device__ int operator()(int row) const { return row * length; }
};

struct Widen {
    __host__ __device__ float operator()(__half x) const { return __half2float(x); }
};

struct Bytes {
    __host__ __device__ unsigned operator()(uint8_t x) const { return x; }
};

struct Add {
    __host__ __device__ float operator()(float a, float b) const { return a + b; }
};

struct Odd {
    __host__ __device__ bool operator()(unsigned x) const { return x & 1; }
};

// An affine map of two words, and the one that applies x first.
struct Map {
    float a, b;
};

struct Compose {
    __host__ __device__ Map operator()(Map x, Map y) const { return {y.a * x.a, y.a * x.b + y.b}; }
};

int main(int count, char** arguments) {
    if (count > 1) only = arguments[1];
    const size_t largest = size_t(1) << 28;
    float *x = random<float>(largest, 1), *y = random<float>(largest, 1);
    void *scratch, *out;
    size_t bytes = size_t(1) << 28, limit = bytes;
    CHECK(cudaMalloc(&scratch, bytes));
    CHECK(cudaMalloc(&out, size_t(64) << 20));

    for (size_t n : {1 << 16, 1 << 20, 1 << 24, 1 << 28})
        peer("CUB", "reduce", "f32", "sum " + std::to_string(n),
             [&] { bytes = limit; CHECK(cub::DeviceReduce::Sum(scratch, bytes, x, (float*)out, int(n))); });
    for (auto [rows, n] : {std::pair{1 << 4, 1 << 24}, {1 << 10, 1 << 18}, {1 << 14, 1 << 14}, {1 << 18, 1 << 10},
                           {1 << 20, 1 << 8}, {1 << 22, 1 << 6}, {268000, 1001}}) {
        auto offsets = thrust::make_transform_iterator(thrust::make_counting_iterator(0), Row{n});
        peer("CUB", "reduce", "f32", "sum " + std::to_string(rows) + "x" + std::to_string(n), [&, rows = rows] {
            bytes = limit;
            CHECK(cub::DeviceSegmentedReduce::Sum(scratch, bytes, x, (float*)out, rows, offsets, offsets + 1));
        });
    }
    const int all = int(largest);
    std::string last = std::to_string(largest);
    peer("CUB", "reduce", "f32", "min " + last,
         [&] { bytes = limit; CHECK(cub::DeviceReduce::Min(scratch, bytes, x, (float*)out, all)); });
    peer("CUB", "reduce", "f32", "argmax " + last, [&] {
        bytes = limit;
        CHECK(cub::DeviceReduce::ArgMax(scratch, bytes, x, (float*)out, (int64_t*)out + 1, int64_t(all)));
    });
    for (size_t n : {1 << 16, 1 << 20, 1 << 28})
        peer("cudaMemcpy", "map", "f32", std::to_string(n),
             [&] { CHECK(cudaMemcpyAsync(y, x, n * 4, cudaMemcpyDeviceToDevice)); });
    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    float alpha = 1e-3f, one = 1, zero = 0;
    for (size_t n : {1 << 16, 1 << 20, 1 << 28})
        peer("cuBLAS", "axpy", "f32", std::to_string(n), [&] { CHECK(cublasSaxpy(blas, int(n), &alpha, x, 1, y, 1)); });
    // Matrices are row-major, which cuBLAS takes for the transposed ones: C' = B' A'. Factors in x and y, C behind y's.
    float* result = y + (size_t(1) << 27);
    CHECK(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH)); // no TF32
    for (auto [m, n, k] : {Shape{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048},
                           {4096, 4096, 4096}, {8192, 8192, 8192}, {4095, 4097, 4093}, {128, 8192, 8192},
                           {8192, 128, 8192}, {512, 512, 32768}})
        peer("cuBLAS", "gemm", "f32", by({m, n, k}), [&, m = m, n = n, k = k] {
            CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, y, n, x, k, &zero, result, n));
        });
    for (auto [batch, side] : {std::pair{10000, 32}, {1 << 20, 4}, {1 << 18, 8}, {1 << 16, 16}, {4096, 48}, {4096, 64},
                               {1024, 128}, {64, 512}})
        peer("cuBLAS", "gemm-batched", "f32", by({batch, side, side, side}), [&, batch = batch, side = side] {
            long long size = (long long)side * side;
            CHECK(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, y, side, size, x,
                                            side, size, &zero, result, side, size, batch));
        });
    const int side = 1 << 14; // as many elements as x has
    peer("cuBLAS", "gemv", "f32", by({side, side}),
         [&] { CHECK(cublasSgemv(blas, CUBLAS_OP_T, side, side, &one, x, side, y, 1, &zero, result, 1)); });
    peer("cuBLAS", "gemv", "f32", by({side, side}) + " transposed",
         [&] { CHECK(cublasSgemv(blas, CUBLAS_OP_N, side, side, &one, x, side, y, 1, &zero, result, 1)); });
    peer("cuBLAS", "transpose", "f32", by({side, side}), [&] {
        CHECK(cublasSgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, side, side, &one, x, side, &zero, y, side, y, side));
    });
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    __half* half = random<__half>(largest, 1);
    auto halves = thrust::make_transform_iterator(half, Widen());
    peer("CUB", "reduce", "f16", "sum " + last,
         [&] { bytes = limit; CHECK(cub::DeviceReduce::Sum(scratch, bytes, halves, (float*)out, all)); });
    // Factors of f16, sums in f32, C of either; it just fits out.
    for (auto [m, n, k] : {Shape{4096, 4096, 4096}, {4095, 4097, 4093}})
        for (auto [dtype, type] : {std::pair{"f16-f32", CUDA_R_32F}, {"f16", CUDA_R_16F}})
            peer("cuBLAS", "gemm", dtype, by({m, n, k}), [&, m = m, n = n, k = k, type = type] {
                CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, half + largest / 2, CUDA_R_16F, n,
                                   half, CUDA_R_16F, k, &zero, out, type, n, CUBLAS_COMPUTE_32F,
                                   CUBLAS_GEMM_DEFAULT));
            });
    CHECK(cudaFree(half));
    // Squares, and of f16 other shapes, on tensor cores, C of the type of the factors, a third of the memory each.
    const size_t third = size_t(1) << 26;
    auto squares = [&](auto* from, const char* dtype, cudaDataType type, cublasComputeType_t compute) {
        std::vector<Shape> shapes;
        for (int side : {1024, 2048, 4096, 8192}) shapes.push_back({side, side, side});
        if (type == CUDA_R_16F)
            for (Shape shape : {Shape{3000, 3000, 3000}, {777, 1999, 333}, {1500, 1500, 1500}, {4095, 4097, 4093},
                                {100, 11008, 4096}, {4104, 4104, 4104}, {2560, 10240, 1280}, {8192, 4096, 768},
                                {5120, 5120, 5120}, {4096, 11008, 4096}})
                shapes.push_back(shape);
        for (auto [m, n, k] : shapes)
            peer("cuBLAS", "gemm", dtype, by({m, n, k}), [&, m = m, n = n, k = k] {
                CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, from, type, n, from + third, type, k,
                                   &zero, from + 2 * third, type, n, compute, CUBLAS_GEMM_DEFAULT));
            });
        CHECK(cudaFree(from));
    };
    squares(random<__half>(3 * third, 1), "f16", CUDA_R_16F, CUBLAS_COMPUTE_32F);
    squares(random<__nv_bfloat16>(3 * third, 1), "bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F);
    squares(random<float>(3 * third, 1), "f32 tensor", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
    uint8_t* byte = random<uint8_t>(largest, 256);
    auto words = thrust::make_transform_iterator(byte, Bytes());
    peer("CUB", "reduce", "u8", "sum " + last,
         [&] { bytes = limit; CHECK(cub::DeviceReduce::Sum(scratch, bytes, words, (unsigned*)out, all)); });
    const int bytes_in = int(largest);
    int* counts = (int*)out;
    uint8_t* equal;
    CHECK(cudaMalloc(&equal, largest));
    CHECK(cudaMemset(equal, 76, largest));
    for (int n : {1 << 16, 1 << 20, bytes_in})
        for (auto [kind, data] : {std::pair{"random", byte}, {"equal", equal}})
            peer("CUB", "histogram", "u8", std::string("256 bins ") + kind + " " + std::to_string(n), [&, data = data] {
                bytes = limit;
                CHECK(cub::DeviceHistogram::HistogramEven(scratch, bytes, data, counts, 257, 0, 256, n));
            });
    CHECK(cudaFree(byte));
    CHECK(cudaFree(equal));
    unsigned* word = random<unsigned>(largest, 4294967296.0f);
    for (int n : {1 << 16, 1 << 20, bytes_in})
        peer("CUB", "histogram", "u32", "1024 bins random " + std::to_string(n), [&] {
            bytes = limit;
            CHECK(cub::DeviceHistogram::HistogramEven(scratch, bytes, word, counts, 1025, 0u, 4294967295u, n));
        });
    // u32 words, and what goes with them: values, flags that keep half, keys in runs.
    CHECK(cudaFree(scratch));
    limit = size_t(5) << 30;
    CHECK(cudaMalloc(&scratch, limit));
    unsigned *to = random<unsigned>(largest, 2), *kept = random<unsigned>(largest, 2);
    unsigned *values = random<unsigned>(largest, 4294967296.0f), *values_to = random<unsigned>(largest, 2);
    unsigned* total = (unsigned*)out;
    fill_words<<<unsigned(largest / 256), 256>>>(word, largest);
    peer("CUB", "scan", "f32", "affine " + std::to_string(all / 2), [&] {
        bytes = limit;
        CHECK(cub::DeviceScan::InclusiveScan(scratch, bytes, (Map*)kept, (Map*)to, Compose(), all / 2));
    });
    for (int n : {1 << 16, 1 << 20, 1 << 24, bytes_in}) {
        std::string size = std::to_string(n);
        peer("CUB", "scan", "u32", size,
             [&] { bytes = limit; CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, word, to, n)); });
        peer("CUB", "scan", "f32", size,
             [&] { bytes = limit; CHECK(cub::DeviceScan::ExclusiveSum(scratch, bytes, (float*)kept, (float*)to, n)); });
        peer("CUB", "sort", "u32", "keys " + size + " random",
             [&] { bytes = limit; CHECK(cub::DeviceRadixSort::SortKeys(scratch, bytes, word, to, n)); });
        peer("CUB", "sort", "u32", "pairs " + size + " random", [&] {
            bytes = limit;
            CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, word, to, values, values_to, n));
        });
        peer("CUB", "select", "u32", size,
             [&] { bytes = limit; CHECK(cub::DeviceSelect::Flagged(scratch, bytes, word, kept, to, total, n)); });
        peer("CUB", "select-if", "u32", size,
             [&] { bytes = limit; CHECK(cub::DeviceSelect::If(scratch, bytes, word, to, total, n, Odd())); });
        peer("CUB", "partition", "u32", size,
             [&] { bytes = limit; CHECK(cub::DevicePartition::Flagged(scratch, bytes, word, kept, to, total, n)); });
        unsigned* runs = values;
        in_runs<<<unsigned((n + 255) / 256), 256>>>(runs, n, 8);
        peer("CUB", "reduce-by-key", "f32", size + " runs of 8", [&] {
            bytes = limit;
            CHECK(cub::DeviceReduce::ReduceByKey(scratch, bytes, runs, values_to, (float*)kept, (float*)to, total,
                                                 Add(), n));
        });
        fill<<<unsigned((n + 255) / 256), 256>>>(values, n, 4294967296.0f);
        fill<<<unsigned((n + 255) / 256), 256>>>(kept, n, 2.0f);
    }
    const int few = 1 << 26;
    unsigned* of_four = random<unsigned>(few, 4);
    peer("CUB", "unique", "u32", std::to_string(few),
         [&] { bytes = limit; CHECK(cub::DeviceSelect::Unique(scratch, bytes, of_four, to, total, few)); });
    peer("CUB", "run-length", "u32", std::to_string(few), [&] {
        bytes = limit;
        CHECK(cub::DeviceRunLengthEncode::Encode(scratch, bytes, of_four, to, values_to, total, few));
    });
    printf("\n]\n");
}
