// Shared by the passes of the variant `onesweep`: a ticket for each of up to eight passes, the number of keys, and from
// HEAD on the counts of digits of each pass, then their exclusive sums.
const KEYS: u32 = 8u;
const HEAD: u32 = 64u;
