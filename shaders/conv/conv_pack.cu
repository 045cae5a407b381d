// Planes of channels to pixels of channels, as the windows of a convolution are read: from [image][group][channel][pixel]
// to [image][pixel][group][channel], where a group has `padded` channels, those beyond `channels` 0. A block of 32 x 8
// threads turns 32 x 32 elements through shared memory, those of `from` from `skip` on. BYTES is the size of an element.
#if BYTES == 2
typedef unsigned short Word;
#else
typedef unsigned Word;
#endif

extern "C" __global__ void __launch_bounds__(256)
conv_pack(const Word *from, unsigned long long skip, Word *to, unsigned long long first, unsigned groups, unsigned channels, unsigned padded,
          unsigned pixels) {
    __shared__ Word tile[32][33];
    const unsigned x = threadIdx.x % 32, y = threadIdx.x / 32;
    const unsigned across = (pixels + 31) / 32, down = (padded + 31) / 32;
    unsigned long long block = first + blockIdx.x;
    const unsigned pixel = (unsigned)(block % across) * 32;
    block /= across;
    const unsigned channel = (unsigned)(block % down) * 32;
    // Of all groups of all images.
    const unsigned long long group = block / down;
    const Word *plane = from + skip + group * channels * pixels;
#pragma unroll
    for (unsigned i = y; i < 32; i += 8) {
        const bool there = channel + i < channels && pixel + x < pixels;
        tile[i][x] = there ? plane[(unsigned long long)(channel + i) * pixels + pixel + x] : 0;
    }
    __syncthreads();
    const unsigned long long image = group / groups;
    const unsigned place = (unsigned)(group % groups) * padded + channel + x;
#pragma unroll
    for (unsigned i = y; i < 32; i += 8) {
        if (pixel + i < pixels && channel + x < padded) {
            to[(image * pixels + pixel + i) * groups * padded + place] = tile[x][i];
        }
    }
}
