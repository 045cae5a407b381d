// The blocks of a product on cooperative matrices, for gemm_coop and conv_coop. The importer declares TILE_M and
// TILE_N, the tile of a workgroup, and enables f16 and cooperative matrices. Costs no workgroup memory.
// Steps of k in a tile.
const TILE_K: u32 = 16u;
// Rows and columns of C that one subgroup computes.
const PART_M: u32 = 16u;
const PART_N: u32 = 16u;
// Rows and columns of a cooperative matrix: 16 or 8.
const BLOCK_SIDE: u32 = 16u;
// Threads of a subgroup.
const LANES: u32 = 32u;

// Elements that a thread moves together, and elements that a row in workgroup memory is longer than the tile.
const PIECE: u32 = 8u;
const PAD: u32 = 8u;

// Subgroups of a workgroup along the rows and the columns of the tile, and the blocks of each.
const TEAMS_M: u32 = TILE_M / PART_M;
const TEAMS_N: u32 = TILE_N / PART_N;
const INVOCATIONS: u32 = TEAMS_M * TEAMS_N * LANES;
const BLOCKS_M: u32 = PART_M / BLOCK_SIDE;
const BLOCKS_N: u32 = PART_N / BLOCK_SIDE;
const BLOCKS: u32 = BLOCKS_M * BLOCKS_N;
// Blocks of a tile along k.
const STEPS: u32 = TILE_K / BLOCK_SIDE;

// The element type of workgroup memory. Metal, where a side is 8, loads no matrix from vectors.
#if BLOCK_SIDE == 16
const WIDTH: u32 = 4u;
#else
const WIDTH: u32 = 1u;
#endif
