// Where segments begin in a tile of TILE keys: the first place and the last, 16 bits each, or HEADLESS if no segment
// begins there. The importer binds `ends`, one word a tile. A segment that holds a headless tile is long; any other
// lies in one tile or in two neighbours. The importer has `params.n`, the number of keys.
#import dispatch/extent

const TILE: u32 = 1920u;
const HEADLESS: u32 = 4294967295u;

#put extent(params.n, 0u)

fn tiles_there() -> u32 { return (extent() + TILE - 1u) / TILE; }
fn first_head(e: u32) -> u32 { return e & 0xffffu; }
fn last_head(e: u32) -> u32 { return e >> 16u; }
