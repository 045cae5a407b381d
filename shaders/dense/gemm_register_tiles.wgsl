// A register-tiled matrix product: its tiles, and the workgroup memory that holds them.
// A thread computes THREAD_M x THREAD_N elements of C in registers, a workgroup TILE_M x TILE_N, with tiles of A
// and B in workgroup memory. Requires of the importer the number of BUFFERS for the tile of a factor, F, TILE_M and
// TILE_N, and the factors that are not matrices in memory (WALKED_a, WALKED_b).

// Sums are variables of four columns each: an indexed array would live in memory. The elements of one step of k lie
// side by side in workgroup memory, so that a vec4 at a time goes to registers. Threads are laid out in patches of up
// to 8 x 4, within which those reads spread over the banks or are one address. A thread computes 4 x 4 blocks that are
// a patch apart. A constant in _a belongs to A and one in _b to B, so that a loop over both writes their common part.
const TILE_K: u32 = 4u;
const THREAD_M: u32 = 4u;
const THREAD_N: u32 = 4u;
// Products of a batch that a workgroup computes side by side, each with its share of the threads and of workgroup
// memory.
const PRODUCTS: u32 = 1u;

// Threads that share a tile, down and across.
const DOWN: u32 = TILE_M / THREAD_M;
const ACROSS: u32 = TILE_N / THREAD_N;
const LANES: u32 = DOWN * ACROSS;

// A patch has PATCH_a threads down and PATCH_b across: powers of two.
const PATCH_a: u32 = select(select(select(1u, 2u, DOWN % 2u == 0u), 4u, DOWN % 4u == 0u), 8u, DOWN % 8u == 0u);
const PATCH_b: u32 = select(select(1u, 2u, ACROSS % 2u == 0u), 4u, ACROSS % 4u == 0u);
const PATCHES_ACROSS: u32 = ACROSS / PATCH_b;

// Rows (columns) of the tile, and vec4s of them that a thread computes.
const SIDE_a: u32 = TILE_M;
const SIDE_b: u32 = TILE_N;
const GROUPS_a: u32 = THREAD_M / 4u;
const GROUPS_b: u32 = THREAD_N / 4u;

// Elements of a load.
#if VEC_A
const WIDTH_a: u32 = 4u;
#else
const WIDTH_a: u32 = 1u;
#endif
#if VEC_B
const WIDTH_b: u32 = 4u;
#else
const WIDTH_b: u32 = 1u;
#endif

// If stored rows run along k.
#if TRANS_A
const ALONG_K_a: bool = false;
#else
const ALONG_K_a: bool = true;
#endif
#if TRANS_B
const ALONG_K_b: bool = true;
#else
const ALONG_K_b: bool = false;
#endif

// With VECTORS workgroup memory is made of vec4s, and a read of four is always one instruction. Their components
// are stored one by one: WGSL lets such a store touch the whole vector, which other threads store to at the same
// time, so this is for compilers that do not.
#if VECTORS
alias Staged = vec4<F>;
const UNIT: u32 = 4u;
#else
alias Staged = F;
const UNIT: u32 = 1u;
#endif

// PITCH: elements from one step of k to the next. A factor stored along k is transposed on the way, and four more
// elements spread it over the banks. NEXT: the distance of the elements of a load in workgroup memory. ACROSS:
// loads beside each other in memory. PIECES: loads of a tile. LOADS: those of a thread, of which the first WHOLE
// are for every lane.
#for x in a, b
#if ALONG_K_{x}
const PITCH_{x}: u32 = SIDE_{x} + 4u;
const NEXT_{x}: u32 = PITCH_{x} / UNIT;
const ACROSS_{x}: u32 = TILE_K / WIDTH_{x};
#else
const PITCH_{x}: u32 = SIDE_{x};
const NEXT_{x}: u32 = 1u;
const ACROSS_{x}: u32 = SIDE_{x} / WIDTH_{x};
#endif
const STAGED_{x}: u32 = TILE_K * PITCH_{x};
const PIECES_{x}: u32 = TILE_K * SIDE_{x} / WIDTH_{x};
const LOADS_{x}: u32 = (PIECES_{x} + LANES - 1u) / LANES;
const WHOLE_{x}: u32 = PIECES_{x} / LANES;
#for buffer in BUFFERS
var<workgroup> wg_{x}{buffer}: array<Staged, PRODUCTS * STAGED_{x} / UNIT>;
#end
#end

// The buffer that the first tile goes to.
#if BUFFERS == 2 && ODD_STEPS
const FIRST_BUFFER: u32 = 1u;
#else
const FIRST_BUFFER: u32 = 0u;
#endif

// Steps of k of a tile that are written out, or one in a loop.
#if ROLLED
const WRITTEN: u32 = 1u;
#else
const WRITTEN: u32 = TILE_K;
#endif
