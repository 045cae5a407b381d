// The state of conjugate gradients on shards: words of a buffer.
const STATUS: u32 = 0u;
const ALPHA: u32 = 1u;
const BETA: u32 = 2u;
const OLD: u32 = 3u;          // r r of the step before
const COUNT: u32 = 4u;        // sums r r so far
const THRESHOLD: u32 = 5u;    // of r r, at which to stop
const LEFT: u32 = 6u;         // steps that may follow
const CURVATURE: u32 = 7u;
const HISTORY: u32 = 16u;     // the last sums r r, in turn
const HISTORY_LEN: u32 = 48u;

const GOING: u32 = 0u;
const CONVERGED: u32 = 1u;
const LIMIT: u32 = 2u;
const NOT_FINITE: u32 = 3u;
const NOT_POSITIVE: u32 = 4u;
