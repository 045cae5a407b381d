//! What fits a device.

use super::DeviceProfile;

/// Rounds that all loops of an invocation may take together on every driver that we know. Mesa's software driver leaves all
/// loops silently after these; other drivers have no such limit.
pub(crate) const LOOP_ROUNDS: u32 = 65535;

impl DeviceProfile {
    /// Whether an invocation whose loops take `rounds` rounds together runs them all. Rounds of nested loops add up: those
    /// of an inner loop count each time.
    pub(crate) fn runs_rounds(&self, rounds: u64) -> bool {
        rounds <= self.max_rounds()
    }

    /// Whether the driver ends loops that are too long.
    pub(crate) fn ends_loops(&self) -> bool {
        self.quirks.max_loop_rounds.is_some()
    }

    /// Rounds that all loops of an invocation may take together.
    pub(crate) fn max_rounds(&self) -> u64 {
        self.quirks.max_loop_rounds.map_or(u64::MAX, u64::from)
    }

    /// Steps of at most `each` rounds, a power of two of them, that one invocation may take; `most` where the driver has no
    /// limit, and at the most.
    pub(crate) fn loop_steps(&self, each: u64, most: u64) -> u64 {
        let fit = |rounds: u32| 1 << (u64::from(rounds) / each.max(1)).max(1).ilog2();
        self.quirks.max_loop_rounds.map_or(most, |rounds| most.min(fit(rounds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_software_drivers_limit_loops() {
        for (profile, limited) in [
            (DeviceProfile::mesa(), true),
            (DeviceProfile::swiftshader(), true),
            (DeviceProfile::webgpu_defaults(), false),
            (DeviceProfile::h100(), false),
        ] {
            assert!(profile.runs_rounds(65535), "{}", profile.name);
            assert_eq!(profile.runs_rounds(65536), !limited, "{}", profile.name);
            let steps = if limited { [1 << 15, 1 << 13] } else { [1 << 20; 2] };
            assert_eq!([1, 6].map(|each| profile.loop_steps(each, 1 << 20)), steps, "{}", profile.name);
            assert_eq!(profile.loop_steps(6, 100), 100, "{}", profile.name);
        }
    }
}
