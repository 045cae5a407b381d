//! Collective calls as plain data: the messages of each rank, in order. A [`Rank`](super::Rank) runs a schedule on
//! data, a [`Model`](super::Model) counts its messages and predicts its time.

use std::ops::Range;

/// A step of a rank: it sends elements of its array, or waits for elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends these elements. Does not wait.
    Send {
        /// The receiver.
        to: usize,
        /// The elements.
        range: Range<usize>,
    },
    /// Waits for these elements.
    Receive {
        /// The sender.
        from: usize,
        /// The elements.
        range: Range<usize>,
        /// Whether they are combined with those that are there, instead of replacing them.
        combine: bool,
    },
}

impl Step {
    fn send(to: usize, range: Range<usize>) -> Self {
        Self::Send { to, range }
    }

    fn receive(from: usize, range: Range<usize>) -> Self {
        Self::Receive { from, range, combine: false }
    }

    fn combine(from: usize, range: Range<usize>) -> Self {
        Self::Receive { from, range, combine: true }
    }
}

/// Arrays of at most this many bytes are reduced and sent along trees: few messages matter more than few bytes.
pub const TREE_BYTES: usize = 32 << 10;
/// Bytes of a piece of a long broadcast.
const PIECE_BYTES: usize = 1 << 20;

/// Returns the elements of part `i` when `n` elements are split into `parts` of nearly equal length.
///
/// ```
/// use tilework::shard::part;
/// assert_eq!([0, 1, 2].map(|i| part(7, 3, i)), [0..2, 2..4, 4..7]);
/// ```
pub fn part(n: usize, parts: usize, i: usize) -> Range<usize> {
    let at = |i: usize| (n as u128 * i as u128 / parts.max(1) as u128) as usize;
    at(i)..at(i + 1)
}

/// Messages of rank `rank` of `size` in a broadcast of `n` elements of `bytes` bytes from `root`: a binomial tree, or a
/// pipeline through all ranks for long arrays.
pub fn broadcast(rank: usize, size: usize, root: usize, n: usize, bytes: usize) -> Vec<Step> {
    // Ranks counted from the root.
    let place = (rank + size - root) % size;
    let real = |place: usize| (place + root) % size;
    if n.saturating_mul(bytes) > TREE_BYTES && size > 2 {
        let pieces = (n * bytes).div_ceil(PIECE_BYTES).max(size);
        let piece = |i| part(n, pieces, i);
        return (0..pieces)
            .flat_map(|i| {
                let receive = (place > 0).then(|| Step::receive(real(place - 1), piece(i)));
                receive.into_iter().chain((place + 1 < size).then(|| Step::send(real(place + 1), piece(i))))
            })
            .collect();
    }
    let mut steps = Vec::new();
    let mut reach = 1;
    while reach < size {
        reach *= 2;
    }
    // A rank receives across its lowest set bit, and sends across all lower ones.
    let own = if place == 0 { reach } else { 1 << place.trailing_zeros() };
    if place > 0 {
        steps.push(Step::receive(real(place - own), 0..n));
    }
    let mut bit = own / 2;
    while bit > 0 {
        if place + bit < size {
            steps.push(Step::send(real(place + bit), 0..n));
        }
        bit /= 2;
    }
    steps
}

/// Messages of an all-reduce of `n` elements of `bytes` bytes: along a ring, or along a tree and back for short arrays.
pub fn all_reduce(rank: usize, size: usize, n: usize, bytes: usize) -> Vec<Step> {
    if n.saturating_mul(bytes) > TREE_BYTES && n >= size {
        let parts: Vec<_> = (0..size).map(|i| part(n, size, i)).collect();
        let mut steps = reduce_scatter(rank, &parts);
        steps.extend(all_gather(rank, &parts));
        return steps;
    }
    let mut steps = Vec::new();
    let mut bit = 1;
    while bit < size {
        if rank & bit != 0 {
            steps.push(Step::send(rank - bit, 0..n));
            break;
        }
        if rank + bit < size {
            steps.push(Step::combine(rank + bit, 0..n));
        }
        bit *= 2;
    }
    // The tree of few elements, whatever their number.
    steps.extend(broadcast(rank, size, 0, n, 0));
    steps
}

/// Messages of a reduce-scatter along a ring: rank `i` ends with the combined elements of `parts[i]`.
pub fn reduce_scatter(rank: usize, parts: &[Range<usize>]) -> Vec<Step> {
    let size = parts.len();
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let steps = (1..size).flat_map(|s| {
        let sent = parts[(rank + size - s) % size].clone();
        let taken = parts[(rank + 2 * size - s - 1) % size].clone();
        [Step::send(next, sent), Step::combine(last, taken)]
    });
    steps.collect()
}

/// Messages of an all-gather along a ring: rank `i` begins with the elements of `parts[i]`, all ranks end with all.
pub fn all_gather(rank: usize, parts: &[Range<usize>]) -> Vec<Step> {
    let size = parts.len();
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let steps = (1..size).flat_map(|s| {
        let sent = parts[(rank + size + 1 - s) % size].clone();
        let taken = parts[(rank + size - s) % size].clone();
        [Step::send(next, sent), Step::receive(last, taken)]
    });
    steps.collect()
}

/// Messages of an all-to-all: rank `rank` sends `sends[j]` to rank `j` and takes `receives[j]` from it. Ranges of sends
/// are in the array that is sent, the others in the one that is filled.
pub fn all_to_all(rank: usize, sends: &[Range<usize>], receives: &[Range<usize>]) -> Vec<Step> {
    let size = sends.len();
    let steps = (1..size).flat_map(|s| {
        let (to, from) = ((rank + s) % size, (rank + size - s) % size);
        [Step::send(to, sends[to].clone()), Step::receive(from, receives[from].clone())]
    });
    steps.collect()
}

/// Messages of a barrier by dissemination, each without elements.
pub fn barrier(rank: usize, size: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut reach = 1;
    while reach < size {
        steps.push(Step::send((rank + reach) % size, 0..0));
        steps.push(Step::receive((rank + size - reach) % size, 0..0));
        reach *= 2;
    }
    steps
}
