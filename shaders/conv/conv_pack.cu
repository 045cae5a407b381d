// Reorders planes of channels to pixels of channels, as the windows of a convolution are read: from
// [image][group][channel][pixel] to [image][pixel][group][channel]. A group has `padded` channels, multiples of 16
// bytes; those from `channels` on are 0. A block of 256 threads turns 64 channels of 64 pixels through shared
// memory, those of `from` from `skip` on. BYTES is the size of an element; with PAIRS planes have an even number of
// pixels.
#if BYTES == 2
typedef unsigned short Word;
typedef unsigned Pair;
#else
typedef unsigned Word;
typedef uint2 Pair;
#endif

#define SIDE 64
#define PIECE (16 / BYTES)

union Two {
    Pair both;
    Word each[2];
};

union Piece {
    uint4 all;
    Word each[PIECE];
};

extern "C" __global__ void __launch_bounds__(256)
conv_pack(const Word *from, unsigned long long skip, Word *to, unsigned long long first, unsigned groups, unsigned channels,
          unsigned padded, unsigned pixels) {
    __shared__ Word tile[SIDE][SIDE + 2];
    const unsigned across = (pixels + SIDE - 1) / SIDE, down = (padded + SIDE - 1) / SIDE;
    unsigned long long block = first + blockIdx.x;
    const unsigned pixel = (unsigned)(block % across) * SIDE;
    block /= across;
    const unsigned channel = (unsigned)(block % down) * SIDE;
    // Of all groups of all images.
    const unsigned long long group = block / down;
    const Word *plane = from + skip + (group * channels + channel) * pixels + pixel;
    const unsigned x = threadIdx.x % 32 * 2;
#pragma unroll
    for (unsigned i = 0; i < SIDE; i += 8) {
        const unsigned y = i + threadIdx.x / 32;
        const Word *row = plane + (unsigned long long)y * pixels + x;
        const bool there = channel + y < channels;
        Two two = {};
#if PAIRS
        if (there && pixel + x < pixels) {
            two.both = *reinterpret_cast<const Pair *>(row);
        }
#else
#pragma unroll
        for (unsigned j = 0; j < 2; j++) {
            if (there && pixel + x + j < pixels) {
                two.each[j] = row[j];
            }
        }
#endif
        tile[y][x] = two.each[0];
        tile[y][x + 1] = two.each[1];
    }
    __syncthreads();
    const unsigned long long image = group / groups;
    Word *place = to + ((image * pixels + pixel) * groups + group % groups) * padded + channel;
#pragma unroll
    for (unsigned i = threadIdx.x; i < SIDE * SIDE / PIECE; i += 256) {
        const unsigned y = i % (SIDE / PIECE) * PIECE, at = i / (SIDE / PIECE);
        if (pixel + at < pixels && channel + y < padded) {
            Piece piece;
#pragma unroll
            for (unsigned j = 0; j < PIECE; j++) {
                piece.each[j] = tile[y + j][at];
            }
            *reinterpret_cast<uint4 *>(place + (unsigned long long)at * groups * padded + y) = piece.all;
        }
    }
}
