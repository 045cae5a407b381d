//! Whole small products side by side in a workgroup: specialises `shaders/dense/gemm_small.wgsl`.

use super::division::{Division, ProductTile, register_sides};
use super::job::ProductJob;
use super::register::RegisterForm;
use crate::error::{Result, err};

/// The longest side of C that `small` takes: 256 threads of 4 x 4.
pub(super) const SMALL_SIDE: usize = 64;

/// The maximum steps of k that a kernel holds.
const SMALL_K: usize = 32;

/// Threads of a workgroup of `small`, if there are enough products and one takes no more. On an H100 (Vulkan,
/// driver 580.159.04): 2^18 of 8^3 in 81 us (16 threads 81, 64 90), 2^16 of 16^3 in 75 us (64 77, 512 85).
pub(super) const SMALL_WORKGROUP: u32 = 32;

/// The same where one product alone takes [`SMALL_WORKGROUP`] and is read by vec4s: 10,000 of 32^3 in 54 us (64
/// threads 56, 512 72), of f16 in 42 (64 51). By single elements more threads are slower.
const SMALL_WORKGROUP_OF_VEC4S: u32 = 128;

/// Maximum bytes of workgroup memory of `small`, so that many workgroups run side by side.
const SMALL_BYTES: u64 = 12 << 10;

const SMALL_THREAD: [u32; 2] = [4, 4];

/// The form of `small`: products that share a workgroup, and steps of k staged at a time.
pub(super) fn small_form(job: &ProductJob<'_>) -> Result<RegisterForm> {
    let (name, product) = (job.name, job.product);
    let [m, n] = [product.m, product.n];
    if m.max(n) > SMALL_SIDE {
        return Err(err!(
            InvalidArgument,
            "{name}: `small` holds whole matrices of at most {SMALL_SIDE} rows and columns of C; take `register`"
        ));
    }
    let thread = product.thread.unwrap_or(SMALL_THREAD);
    let [rows, columns] = thread;
    if !register_sides(thread) {
        return Err(err!(
            InvalidArgument,
            "{name}: a thread of `small` cannot compute {rows} x {columns} elements of C; the thread tiles of this \
             variant are multiples of 4 up to 16 in rows and columns"
        ));
    }
    let [m, n] = [whole(m, rows), whole(n, columns)];
    let form = RegisterForm::new(job, Division::new([m, n, 4], thread), false);
    let products = products(job, &form)?;
    staged(job, RegisterForm { products: Some(products), ..form })
}

fn whole(extent: usize, of: u32) -> u32 {
    (extent.max(1) as u32).next_multiple_of(of)
}

fn products(job: &ProductJob<'_>, form: &RegisterForm) -> Result<u32> {
    let lanes = form.lanes();
    let batch = u32::try_from(job.product.batch).unwrap_or(u32::MAX).max(1);
    let vec4s = lanes >= SMALL_WORKGROUP && form.vec_a && form.vec_b;
    let wanted = if vec4s { SMALL_WORKGROUP_OF_VEC4S } else { SMALL_WORKGROUP };
    let products = job.product.products.unwrap_or_else(|| (wanted / lanes).clamp(1, batch));
    let limits = &job.profile.limits;
    let most = limits.max_invocations.min(limits.max_workgroup_size[0]);
    let threads = u64::from(lanes) * u64::from(products);
    if products == 0 || threads > most.into() {
        return Err(err!(
            TooLarge,
            "{}: {products} products of {lanes} threads each make a workgroup of {threads}; {} allows 1 to {most}",
            job.name,
            job.profile.name
        ));
    }
    Ok(products)
}

/// Fits the steps of k: cuts k into slices of about equal length, and adds slices until they fit.
fn staged(job: &ProductJob<'_>, form: RegisterForm) -> Result<RegisterForm> {
    let (k, [rows, columns]) = (job.product.k, form.thread);
    // At most 16 loads of each factor in registers of a thread.
    let width = if form.vec_a && form.vec_b { 4 } else { 1 };
    // Processors compile unrolled steps slowly.
    let longest = if job.profile.quirks.slow_compiler { SMALL_K / 4 } else { SMALL_K };
    let most = longest.min((16 * width * form.tile.m.min(form.tile.n) / (rows * columns)).max(4) as usize);
    let all = u64::from(job.profile.limits.max_workgroup_bytes);
    let budget = all.min(SMALL_BYTES);
    let mut slices = k.div_ceil(most).max(1);
    loop {
        // At most `SMALL_K` steps.
        let tile = ProductTile { k: whole(k.div_ceil(slices), 4), ..form.tile };
        let form = RegisterForm { tile, ..form };
        let bytes = form.workgroup_bytes();
        if bytes <= budget || (tile.k == 4 && bytes <= all) {
            return Ok(form);
        }
        if tile.k == 4 {
            return Err(err!(
                TooLarge,
                "{}: {} products need {bytes} bytes of workgroup memory; {} has {all}; take fewer",
                job.name,
                form.products.unwrap_or(1),
                job.profile.name
            ));
        }
        slices += 1;
    }
}

#[cfg(test)]
mod tests;
