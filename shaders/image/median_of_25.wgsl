// The medians of four windows of 5 x 5. Columns are sorted, then rows: 6 keys in each of two corners cannot be the
// median. Of the three diagonals between, the first has one candidate, its largest key, and the last its smallest.
// Requires STEP, `shifted` and `row_keys` of its importer.
const GROUPS: u32 = 2u; // of four columns that four windows have

struct Five {
    a: Keys,
    b: Keys,
    c: Keys,
    d: Keys,
    e: Keys,
}

// Nine comparisons (D. E. Knuth, The Art of Computer Programming 3, 5.3.4).
fn sorted(x: Five) -> Five {
    let a1 = min(x.a, x.d);
    let d1 = max(x.a, x.d);
    let b1 = min(x.b, x.e);
    let e1 = max(x.b, x.e);
    let a2 = min(a1, x.c);
    let c2 = max(a1, x.c);
    let b2 = min(b1, d1);
    let d2 = max(b1, d1);
    let a3 = min(a2, b2);
    let b3 = max(a2, b2);
    let c3 = min(c2, e1);
    let e3 = max(c2, e1);
    let b4 = min(b3, c3);
    let c4 = max(b3, c3);
    let d4 = min(d2, e3);
    let e4 = max(d2, e3);
    return Five(a3, b4, min(c4, d4), max(c4, d4), e4);
}

// The sorted columns of the four elements from `e` on.
fn column(p: vec3<u32>, e: i32) -> Five {
    let y = i32(p.y);
    return sorted(Five(
        row_keys(p, y - 2, e),
        row_keys(p, y - 1, e),
        row_keys(p, y, e),
        row_keys(p, y + 1, e),
        row_keys(p, y + 2, e),
    ));
}

fn beside(a: Five, b: Five, by: u32) -> Five {
    return Five(
        shifted(a.a, b.a, by),
        shifted(a.b, b.b, by),
        shifted(a.c, b.c, by),
        shifted(a.d, b.d, by),
        shifted(a.e, b.e, by),
    );
}

// The median of seven keys: of five in order, the outer two are too far from the middle.
fn median_of_7(a: Keys, x: Five, b: Keys) -> Keys {
    let y = sorted(x);
    let low = min(a, b);
    let high = max(a, b);
    return median_of_3(y.c, max(y.b, low), min(y.d, high));
}

fn medians(p: vec3<u32>) -> Keys {
    var columns: array<Five, GROUPS>;
#for i in GROUPS
    columns[{i}] = column(p, i32(p.x + 4u * {i}u) - i32(2u * STEP));
#end
    let v = columns[0];
    let w = beside(columns[STEP / 4u], columns[min(STEP / 4u + 1u, GROUPS - 1u)], STEP % 4u);
    let x = beside(columns[STEP / 2u], columns[min(STEP / 2u + 1u, GROUPS - 1u)], 2u * STEP % 4u);
    let y = beside(columns[3u * STEP / 4u], columns[min(3u * STEP / 4u + 1u, GROUPS - 1u)], 3u * STEP % 4u);
    let z = columns[STEP];
    let first = sorted(Five(v.a, w.a, x.a, y.a, z.a));
    let second = sorted(Five(v.b, w.b, x.b, y.b, z.b));
    let third = sorted(Five(v.c, w.c, x.c, y.c, z.c));
    let fourth = sorted(Five(v.d, w.d, x.d, y.d, z.d));
    let fifth = sorted(Five(v.e, w.e, x.e, y.e, z.e));
    let low = max(max(first.d, second.c), max(third.b, fourth.a));
    let high = min(min(second.e, third.d), min(fourth.c, fifth.b));
    return median_of_7(low, Five(first.e, second.d, third.c, fourth.b, fifth.a), high);
}
