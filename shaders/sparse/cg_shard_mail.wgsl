// Messages between ranks, in memory of the host that all devices read and write. A message is three words and a check
// word, which fits only the whole message of its turn: a reader needs no order of writes. Half of the memory is for even
// turns, half for odd ones. Declare `mail: array<atomic<u32>>`.
struct MailWords { a: u32, b: u32, c: u32, whole: bool }

fn mail_check(a: u32, b: u32, c: u32, turn: u32) -> u32 {
    return a ^ ((b << 11u) | (b >> 21u)) ^ ((c << 22u) | (c >> 10u)) ^ ((turn + 1u) * 0x9e3779b1u);
}

/// Writes a message whose words are `stride` words apart.
fn mail_post(at: u32, stride: u32, a: u32, b: u32, c: u32, turn: u32) {
    atomicStore(&mail[at], a);
    atomicStore(&mail[at + stride], b);
    atomicStore(&mail[at + 2u * stride], c);
    atomicStore(&mail[at + 3u * stride], mail_check(a, b, c, turn));
}

/// Reads a message, which may not be there yet.
fn mail_read(at: u32, stride: u32, turn: u32) -> MailWords {
    let a = atomicLoad(&mail[at]);
    let b = atomicLoad(&mail[at + stride]);
    let c = atomicLoad(&mail[at + 2u * stride]);
    let check = atomicLoad(&mail[at + 3u * stride]);
    return MailWords(a, b, c, check == mail_check(a, b, c, turn));
}
