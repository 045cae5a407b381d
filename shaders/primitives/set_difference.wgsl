// Keeps elements that have no partner.
#import primitives/set_partner

fn keep_one(at: u32, bits: u32) -> bool { return !has_partner(at, bits); }
