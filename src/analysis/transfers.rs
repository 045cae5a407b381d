//! Bandwidth of a bus, and memory and quality of language models.

/// Returns the bytes per second each way of a PCI Express 3 slot: 8 GT/s per lane, 128 of 130 bits for data.
///
/// ```
/// use tilework::analysis::pcie3_bytes_per_second;
///
/// let gigabytes = [1, 2, 4, 8, 16].map(|lanes| pcie3_bytes_per_second(lanes) * 1e-9);
/// for (got, want) in gigabytes.iter().zip([0.985, 1.97, 3.94, 7.88, 15.75]) {
///     assert!((got - want).abs() < 0.005);
/// }
/// ```
pub fn pcie3_bytes_per_second(lanes: u32) -> f64 {
    f64::from(lanes) * 8e9 * 128.0 / 130.0 / 8.0
}

/// Returns the bytes of keys and values of `tokens` tokens.
///
/// ```
/// use tilework::analysis::kv_cache_bytes;
///
/// assert_eq!(kv_cache_bytes(32, 8, 128, 4096, 2), 512 << 20);
/// ```
pub fn kv_cache_bytes(layers: u64, heads: u64, head_size: u64, tokens: u64, element_bytes: u64) -> u64 {
    2 * layers * heads * head_size * tokens * element_bytes
}

/// Returns the perplexity of a text, from its tokens' negative log-likelihoods; NaN for an empty text.
///
/// ```
/// use tilework::analysis::perplexity;
///
/// assert!((perplexity(&[2f64.ln(), 8f64.ln()]) - 4.0).abs() < 1e-12);
/// ```
pub fn perplexity(negative_log_likelihoods: &[f64]) -> f64 {
    (negative_log_likelihoods.iter().sum::<f64>() / negative_log_likelihoods.len() as f64).exp()
}
