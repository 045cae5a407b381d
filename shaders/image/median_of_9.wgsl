// The medians of four windows of 3 x 3: the median of the largest minimum, the median of medians and the smallest
// maximum of the columns. Requires STEP, `shifted` and `row_keys` of its importer.
const GROUPS: u32 = 2u; // of four columns that four windows have

struct Column {
    low: Keys,
    middle: Keys,
    high: Keys,
}

// The sorted columns of the four elements from `e` on.
fn column(p: vec3<u32>, e: i32) -> Column {
    let y = i32(p.y);
    let a = row_keys(p, y - 1, e);
    let b = row_keys(p, y, e);
    let c = row_keys(p, y + 1, e);
    return Column(min(min(a, b), c), median_of_3(a, b, c), max(max(a, b), c));
}

fn beside(a: Column, b: Column, by: u32) -> Column {
    return Column(shifted(a.low, b.low, by), shifted(a.middle, b.middle, by), shifted(a.high, b.high, by));
}

fn medians(p: vec3<u32>) -> Keys {
    var columns: array<Column, GROUPS>;
#for i in GROUPS
    columns[{i}] = column(p, i32(p.x + 4u * {i}u) - i32(STEP));
#end
    let left = columns[0];
    let centre = beside(columns[STEP / 4u], columns[min(STEP / 4u + 1u, GROUPS - 1u)], STEP % 4u);
    let right = beside(columns[STEP / 2u], columns[min(STEP / 2u + 1u, GROUPS - 1u)], 2u * STEP % 4u);
    return median_of_3(
        max(max(left.low, centre.low), right.low),
        median_of_3(left.middle, centre.middle, right.middle),
        min(min(left.high, centre.high), right.high),
    );
}
