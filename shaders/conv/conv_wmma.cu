// A convolution layer on tensor cores: output = activation(w windows + bias), a matrix product whose windows are
// gathered while they are staged (implicit GEMM; cuDNN, Chetlur et al., 2014). conv_pack.cu packs weights and x, so
// that 16 bytes are channels of one cell: k counts cells of a window, and the channels of each. A block of threads
// computes TILE_M filters of one group for TILE_N pixels of the output, counted through all images.
#define TRANS_A 0
#define TRANS_B 1
#include "cuda/product.cuh"
#include "cuda/epilogue.cuh"

struct Windows {
    const Factor *x;
    int images, h, w;
    // Channels of a pixel of x, and of a group.
    int channels, group_channels;
    int cells_h, cells_w;
    int stride_h, stride_w;
    int pad_h, pad_w;
    int dilation_h, dilation_w;
    int p, q;
};

// As Copy, for lines that are windows of TILE_N pixels.
struct CopyWindows {
    static constexpr int ELEMENTS = 16 / sizeof(Factor);
    static constexpr int PIECES = TILE_K / ELEMENTS;
    static constexpr int STEP = THREADS / PIECES;
    static constexpr int ROUNDS = (TILE_N + STEP - 1) / STEP;
    static_assert(THREADS % PIECES == 0, "threads share the pieces of a line evenly");

    const Windows &of;
    int line;
    int column;
    // The next cell of the windows, and its channel.
    int cell_h, cell_w, channel;
    // The first cell of each window, and its place.
    int y[ROUNDS], x[ROUNDS], at[ROUNDS];
    uint4 held[HAS_ASYNC ? 1 : ROUNDS];

    __device__ __forceinline__ CopyWindows(const Windows &of, int first_channel, unsigned first_pixel) : of(of) {
        line = threadIdx.x / PIECES;
        column = threadIdx.x % PIECES * ELEMENTS;
        cell_h = cell_w = 0;
        channel = 0;
        skip(column);
        const unsigned pixels = (unsigned)of.p * of.q;
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            const unsigned pixel = first_pixel + line + i * STEP;
            const unsigned image = pixel / pixels, inside = pixel - image * pixels;
            const unsigned row = inside / of.q;
            // Windows of images beyond the last lie outside.
            y[i] = image < of.images ? (int)row * of.stride_h - of.pad_h : -(1 << 30);
            x[i] = (int)(inside - row * of.q) * of.stride_w - of.pad_w;
            at[i] = image < of.images ? (((int)image * of.h + y[i]) * of.w + x[i]) * of.channels + first_channel : 0;
        }
    }

    __device__ __forceinline__ void skip(int steps) {
        channel += steps;
        while (channel >= of.group_channels) {
            channel -= of.group_channels;
            if (++cell_w == of.cells_w) {
                cell_w = 0;
                cell_h++;
            }
        }
    }

    __device__ __forceinline__ void begin(unsigned to) {
        const int down = cell_h * of.dilation_h, right = cell_w * of.dilation_w;
        const int offset = (down * of.w + right) * of.channels + channel;
        const unsigned place = to + (line * PITCH_B + column) * (int)sizeof(Factor);
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            const unsigned row = y[i] + down, col = x[i] + right;
            const bool there = row < of.h && col < of.w && cell_h < of.cells_h;
            const Factor *from = of.x + (there ? at[i] + offset : 0);
            if (TILE_N % STEP == 0 || line + i * STEP < TILE_N) {
                if (HAS_ASYNC) {
                    copy_async<16>(place + i * STEP * PITCH_B * (int)sizeof(Factor), from, there);
                } else {
                    held[i] = there ? *reinterpret_cast<const uint4 *>(from) : make_uint4(0, 0, 0, 0);
                }
            }
        }
        skip(TILE_K);
    }

    __device__ __forceinline__ void end(unsigned to) {
        if (!HAS_ASYNC) {
            const unsigned place = to + (line * PITCH_B + column) * (int)sizeof(Factor);
#pragma unroll
            for (int i = 0; i < ROUNDS; i++) {
                if (TILE_N % STEP == 0 || line + i * STEP < TILE_N) {
                    store_shared(place + i * STEP * PITCH_B * (int)sizeof(Factor), held[i]);
                }
            }
        }
    }
};

// The rest of the weights from the first filter on.
struct Left {
    int m, k;

    template <typename CopyA>
    __device__ __forceinline__ void begin(CopyA &a, CopyWindows &b, unsigned to_a, unsigned to_b, int first_k) const {
        a.begin(to_a, m, k - first_k);
        a.advance(TILE_K);
        b.begin(to_b);
    }
};

struct Tile {
    // From the first filter of the tile on, of the image that its first pixel is of, and that pixel there.
    Element *output;
    unsigned first_pixel, pixels;
    size_t image;
    Epilogue end;

    __device__ __forceinline__ Element *place(int row, int col) const {
        unsigned pixel = first_pixel + col;
        Element *of = output;
        if (pixels < TILE_N) {
            const unsigned images = pixel / pixels;
            pixel -= images * pixels;
            of += images * image;
        } else if (pixel >= pixels) {
            pixel -= pixels;
            of += image;
        }
        return of + (size_t)row * pixels + pixel;
    }

    __device__ __forceinline__ void one(int row, int col, float sum) const {
        end.one(place(row, col), row, col, sum);
    }

    __device__ __forceinline__ void four(int row, int col, float4 sums) const {
        end.four(place(row, col), row, col, sums);
    }
};

// `first` is the first tile of this launch; tiles are counted through the groups. `filters` are those of a group.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
conv_wmma(const Factor *w, const Factor *x, const Element *bias, Element *output, unsigned long long first,
          unsigned first_image, unsigned images, unsigned groups, unsigned filters, unsigned group_channels, unsigned size_h,
          unsigned size_w, unsigned out_h, unsigned out_w, unsigned cells_h, unsigned cells_w, unsigned stride_h,
          unsigned stride_w, unsigned pad_h, unsigned pad_w, unsigned dilation_h, unsigned dilation_w) {
    const unsigned pixels = out_h * out_w;
    const unsigned all_pixels = images * pixels;
    const TilePlace place = tile_place(first + blockIdx.x, filters, all_pixels);
    const unsigned group = (unsigned)place.product;

    Windows windows;
    windows.x = x;
    windows.images = images;
    windows.h = size_h;
    windows.w = size_w;
    windows.channels = groups * group_channels;
    windows.group_channels = group_channels;
    windows.cells_h = cells_h;
    windows.cells_w = cells_w;
    windows.stride_h = stride_h;
    windows.stride_w = stride_w;
    windows.pad_h = pad_h;
    windows.pad_w = pad_w;
    windows.dilation_h = dilation_h;
    windows.dilation_w = dilation_w;
    windows.p = out_h;
    windows.q = out_w;

    Left left;
    left.m = filters - place.row;
    left.k = cells_h * cells_w * group_channels;
    const size_t filter = (size_t)group * filters + place.row;
    Copy<TILE_M, TILE_K, PITCH_A, 16, false> copy_a(w + filter * left.k, left.k);
    CopyWindows copy_b(windows, group * group_channels, place.col);
    SumsOfWarp sums = {};
    sum_products(sums, left.k, copy_a, copy_b, left);

    Tile tile;
    tile.image = (size_t)groups * filters * pixels;
    const unsigned image = place.col / pixels;
    tile.output = output + (first_image + image) * tile.image + filter * pixels;
    tile.first_pixel = place.col - image * pixels;
    tile.pixels = pixels;
    tile.end.alpha = 1.0f;
    tile.end.beta = 0.0f;
    tile.end.bias = BIAS ? bias + filter : nullptr;
    end_tile(sums, left.m, all_pixels - place.col, pixels % 4 == 0, tile);
}
