// Times of CUB, Thrust, cuBLAS and cuRAND for ordered lists, segments, triangular matrices and random numbers, as JSON
// on standard output:
//   nvcc -O3 -std=c++17 --extended-lambda -arch=native benches/peers/lists.cu -lcublas -lcurand -o lists && ./lists
// With the name of an op as argument, only that op.
#include <cub/cub.cuh>
#include <cublas_v2.h>
#include <curand.h>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/reverse.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>

#include <cstdint>
#include <utility>

#include "timing.cuh"

struct Less {
    __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};

// Gives Thrust the same memory in each call, so that no allocation is timed.
struct Memory {
    using value_type = char;
    char* base;
    size_t used = 0;
    char* allocate(std::ptrdiff_t size) {
        char* at = base + used;
        used += (size_t(size) + 255) / 256 * 256;
        return at;
    }
    void deallocate(char*, size_t) { used = 0; }
};

// Two sorted lists that share about half of their elements.
__global__ void sorted_lists(unsigned* a, unsigned* b, unsigned* spread, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    a[i] = i << 1;
    b[i] = i << 1 | (i >> 3 & 1);
    spread[i] = i << 4;
}

// Offsets of segments of `length` elements, or of Zipf's lengths if it is 0.
std::vector<int> offsets_of(int n, int length) {
    std::vector<int> offsets{0};
    while (offsets.back() < n) {
        int s = int(offsets.size());
        int step = length > 0 ? length : std::max(n / (20 * s), 1);
        offsets.push_back(std::min(offsets.back() + step, n));
    }
    return offsets;
}

int* upload(const std::vector<int>& host) {
    int* device;
    CHECK(cudaMalloc(&device, host.size() * sizeof(int)));
    CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(int), cudaMemcpyHostToDevice));
    return device;
}

const int n = 1 << 26, largest = 1 << 28;
void* scratch;
size_t bytes;
const size_t limit = size_t(5) << 30;

void lists() {
    unsigned *a, *b, *spread, *to, *values_to;
    for (unsigned** x : {&a, &b, &spread}) CHECK(cudaMalloc(x, size_t(n) * 4));
    for (unsigned** x : {&to, &values_to}) CHECK(cudaMalloc(x, size_t(n) * 8));
    unsigned *shuffled = random<unsigned>(n, 2), *total = random<unsigned>(64, 2);
    sorted_lists<<<n / 256, 256>>>(a, b, spread, n);
    fill_words<<<n / 256, 256>>>(shuffled, n);
    std::string size = std::to_string(n), both = size + " and " + size;
    peer("CUB", "merge", "u32", both,
         [&] { bytes = limit; CHECK(cub::DeviceMerge::MergeKeys(scratch, bytes, a, n, b, n, to, Less())); });
    peer("CUB", "merge", "u32", both + ", values", [&] {
        bytes = limit;
        CHECK(cub::DeviceMerge::MergePairs(scratch, bytes, a, a, n, b, b, n, to, values_to, Less()));
    });
    Memory memory{(char*)scratch};
    auto policy = thrust::cuda::par_nosync(memory);
    peer("Thrust", "set-union", "u32", both, [&] { thrust::set_union(policy, a, a + n, b, b + n, to); });
    peer("Thrust", "set-intersection", "u32", both, [&] { thrust::set_intersection(policy, a, a + n, b, b + n, to); });
    peer("Thrust", "set-difference", "u32", both, [&] { thrust::set_difference(policy, a, a + n, b, b + n, to); });
    std::string of = " in " + size;
    peer("Thrust", "lower-bound", "u32", size + " sorted" + of,
         [&] { thrust::lower_bound(policy, spread, spread + n, spread, spread + n, to); });
    peer("Thrust", "lower-bound", "u32", size + " random" + of,
         [&] { thrust::lower_bound(policy, spread, spread + n, shuffled, shuffled + n, to); });
    peer("Thrust", "upper-bound", "u32", size + " random" + of,
         [&] { thrust::upper_bound(policy, spread, spread + n, shuffled, shuffled + n, to); });
    for (const char* name : {"", " by less"}) {
        peer("CUB", "merge-sort", "u32", size + name, [&] {
            bytes = limit;
            CHECK(cub::DeviceMergeSort::SortKeysCopy(scratch, bytes, shuffled, to, n, Less()));
        });
        peer("CUB", "merge-sort", "u32", size + name + ", values", [&] {
            bytes = limit;
            CHECK(cub::DeviceMergeSort::SortPairsCopy(scratch, bytes, shuffled, a, to, values_to, n, Less()));
        });
    }
    peer("CUB", "argsort", "u32", size, [&] {
        bytes = limit;
        thrust::sequence(policy, values_to, values_to + n);
        CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, shuffled, to, values_to, values_to + n, n));
    });
    unsigned* runs = b;
    in_runs<<<n / 256, 256>>>(runs, n, 4);
    peer("CUB", "unique-by-key", "u32", size, [&] {
        bytes = limit;
        CHECK(cub::DeviceSelect::UniqueByKey(scratch, bytes, runs, a, to, values_to, total, n));
    });
    for (int length : {10, 100, 1000, 1000000, 0}) {
        std::vector<int> host = offsets_of(n, length);
        int segments = int(host.size()) - 1, *offsets = upload(host);
        std::string name = length > 0 ? " of " + std::to_string(length) : " zipf";
        peer("CUB", "segmented-sort", "u32", size + name, [&] {
            bytes = limit;
            CHECK(cub::DeviceSegmentedSort::StableSortKeys(scratch, bytes, shuffled, to, n, segments, offsets,
                                                           offsets + 1));
        });
        peer("CUB", "segmented-sort", "u32", size + " pairs" + name, [&] {
            bytes = limit;
            CHECK(cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, shuffled, to, a, values_to, n, segments,
                                                            offsets, offsets + 1));
        });
        CHECK(cudaFree(offsets));
    }
    for (unsigned* x : {a, b, spread, to, values_to, shuffled, total}) CHECK(cudaFree(x));
}

void segments() {
    float *x = random<float>(largest, 1), *to = random<float>(largest, 1);
    for (int length : {10, 1000}) {
        int count = n / length, *offsets;
        std::vector<int> host;
        for (int i = 0; i <= count; i++) host.push_back(i * length);
        offsets = upload(host);
        peer("CUB", "reduce-offsets", "f32", std::to_string(n) + " of " + std::to_string(length), [&] {
            bytes = limit;
            CHECK(cub::DeviceSegmentedReduce::Sum(scratch, bytes, x, to, count, offsets, offsets + 1));
        });
        CHECK(cudaFree(offsets));
    }
    unsigned* keys = random<unsigned>(largest, 2);
    for (unsigned length : {8, 1000}) {
        in_runs<<<largest / 256, 256>>>(keys, largest, length);
        peer("CUB", "scan-by-key", "f32", std::to_string(largest) + " runs of " + std::to_string(length), [&] {
            bytes = limit;
            CHECK(cub::DeviceScan::InclusiveSumByKey(scratch, bytes, keys, x, to, largest));
        });
    }
    std::string size = std::to_string(largest);
    peer("CUB", "adjacent-difference", "f32", size, [&] {
        bytes = limit;
        CHECK(cub::DeviceAdjacentDifference::SubtractLeftCopy(scratch, bytes, x, to, largest));
    });
    peer("Thrust", "reverse", "f32", size, [&] { thrust::reverse_copy(thrust::cuda::par_nosync, x, x + largest, to); });
    peer("cudaMemcpy", "rotate", "f32", size + " by 12345",
         [&] { CHECK(cudaMemcpyAsync(to, x, size_t(largest) * 4, cudaMemcpyDeviceToDevice)); });
    CHECK(cudaFree(keys));
    CHECK(cudaFree(x));
    CHECK(cudaFree(to));
}

void blas() {
    cublasHandle_t blas;
    CHECK(cublasCreate(&blas));
    float *x = random<float>(largest, 1), *y = random<float>(largest, 1), *out = random<float>(64, 1);
    CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
    for (int length : {1 << 16, largest}) {
        std::string size = std::to_string(length);
        peer("cuBLAS", "dot", "f32", size, [&] { CHECK(cublasSdot(blas, length, x, 1, y, 1, out)); });
        peer("cuBLAS", "nrm2", "f32", size, [&] { CHECK(cublasSnrm2(blas, length, x, 1, out)); });
        peer("cuBLAS", "asum", "f32", size, [&] { CHECK(cublasSasum(blas, length, x, 1, out)); });
        peer("cuBLAS", "iamax", "f32", size, [&] { CHECK(cublasIsamax(blas, length, x, 1, (int*)out)); });
    }
    CHECK(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
    CHECK(cublasSetMathMode(blas, CUBLAS_DEFAULT_MATH)); // no TF32
    // Row-major matrices are the transposed ones of cuBLAS: A X = B with a lower A is X' A' = B' with an upper A'.
    const int side = 4096;
    const float one = 1, zero = 0;
    std::string square = std::to_string(side) + "x" + std::to_string(side);
    float* c = y + (size_t(1) << 27);
    peer("cuBLAS", "trsm", "f32", square, [&] {
        CHECK(cublasStrsm(blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, side, side,
                          &one, x, side, y, side));
    });
    peer("cuBLAS", "trsm", "f32", square + " right trans", [&] {
        CHECK(cublasStrsm(blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, side, side,
                          &one, x, side, y, side));
    });
    peer("cuBLAS", "trsm", "f32", std::to_string(side) + "x1", [&] {
        CHECK(cublasStrsv(blas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, side, x, side, y, 1));
    });
    fill<<<largest / 256, 256>>>(y, largest, 1); // the solutions in it had grown
    peer("cuBLAS", "trmm", "f32", square, [&] {
        CHECK(cublasStrmm(blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, side, side,
                          &one, x, side, y, side, c, side));
    });
    for (auto [op, what] : {std::pair{CUBLAS_OP_T, ""}, {CUBLAS_OP_N, " trans"}})
        peer("cuBLAS", "syrk", "f32", square + what, [&, op = op] {
            CHECK(cublasSsyrk(blas, CUBLAS_FILL_MODE_UPPER, op, side, side, &one, x, side, &zero, c, side));
        });
    peer("cuBLAS", "symm", "f32", square, [&] {
        CHECK(cublasSsymm(blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, side, side, &one, x, side, y, side, &zero, c,
                          side));
    });
    for (float* memory : {x, y, out}) CHECK(cudaFree(memory));
}

void random_numbers() {
    curandGenerator_t generator;
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    float* x;
    CHECK(cudaMalloc(&x, size_t(largest) * 4));
    for (size_t count : {1 << 20, 1 << 28}) {
        std::string size = " " + std::to_string(count);
        peer("cuRAND", "random", "f32", "uniform" + size, [&] { CHECK(curandGenerateUniform(generator, x, count)); });
        peer("cuRAND", "random", "f32", "normal" + size, [&] { CHECK(curandGenerateNormal(generator, x, count, 0, 1)); });
        peer("cuRAND", "random", "u32", "bits" + size, [&] { CHECK(curandGenerate(generator, (unsigned*)x, count)); });
        peer("cuRAND", "random", "u32", "poisson" + size,
             [&] { CHECK(curandGeneratePoisson(generator, (unsigned*)x, count, 10.0)); });
    }
    CHECK(cudaFree(x));
}

int main(int count, char** arguments) {
    if (count > 1) only = arguments[1];
    CHECK(cudaMalloc(&scratch, limit));
    lists();
    segments();
    blas();
    random_numbers();
    printf("\n]\n");
}
