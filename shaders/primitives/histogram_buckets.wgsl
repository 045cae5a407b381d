// Maps the bins of a histogram to BUCKETS buckets, each small enough for workgroup memory. GROUP neighbours stay
// together, so that they are written together; the next go to the next bucket, since full bins are often close.
const BUCKETS: u32 = 64u;
const GROUP: u32 = 8u;

fn bucket_of(bin: u32) -> u32 { return bin / GROUP % BUCKETS; }
fn slot_in_bucket(bin: u32) -> u32 { return bin / (GROUP * BUCKETS) * GROUP + bin % GROUP; }
fn bin_in_bucket(bucket: u32, slot: u32) -> u32 { return (slot / GROUP * BUCKETS + bucket) * GROUP + slot % GROUP; }
