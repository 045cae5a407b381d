//! Images of bytes, row-major without gaps.
//!
//! | want | take |
//! |---|---|
//! | the brightness of RGB pixels | [`Grey`] |
//! | the mean of each pixel's surroundings | [`Blur`] |
//! | any other filter | [`Conv2d`](crate::Conv2d), which takes `u8` too |

mod blur;
mod grey;

pub use blur::{Blur, Divide};
pub use grey::{Grey, GreyWeights};

use crate::error::{Result, err};
use crate::program::{DeviceProfile, OpInfo, Operand};
use crate::shape::round_up;

/// The ops of this family.
pub const OPS: &[OpInfo] = &[grey::INFO, blur::INFO];

/// Pixels (and bytes of an image) that kernels address.
const MOST: usize = (1 << 32) - (1 << 17);

/// Whether the device can hold and bind the operand, and a kernel index it.
fn check_size(name: &str, operand: &Operand, profile: &DeviceProfile) -> Result<()> {
    let bytes = round_up(operand.bytes(), 4);
    let limits = &profile.limits;
    let limit = limits.max_buffer_size.min(limits.max_storage_binding).min(MOST as u64);
    if bytes <= limit {
        return Ok(());
    }
    Err(err!(
        TooLarge,
        "{name}: {} has {bytes} bytes, above {limit}, the most that a kernel binds or addresses on {}; work on bands \
         of rows, a call each",
        operand.name,
        profile.name
    ))
}
