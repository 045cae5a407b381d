// Morton codes (G. M. Morton, 1966): the bits of column and row in turn.

// Moves bit i of 16 to bit 2 i.
fn spread(x: u32) -> u32 {
    var bits = x;
    bits = (bits | (bits << 8u)) & 0x00ff00ffu;
    bits = (bits | (bits << 4u)) & 0x0f0f0f0fu;
    bits = (bits | (bits << 2u)) & 0x33333333u;
    return (bits | (bits << 1u)) & 0x55555555u;
}

fn morton_code(column: u32, row: u32) -> u32 { return spread(column) | (spread(row) << 1u); }
