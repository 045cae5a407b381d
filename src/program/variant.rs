use super::{Determinism, DeviceProfile, Setting};
use crate::error::{Result, err};

/// A compiler that a variant's shaders can be translated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Translation {
    /// Vulkan.
    SpirV,
    /// Metal.
    Msl,
    /// Direct3D 12.
    Hlsl,
    /// Browsers built on Dawn.
    Tint,
}

impl Translation {
    /// All of them: what every portable variant declares.
    pub const ALL: &'static [Translation] = &[Self::SpirV, Self::Msl, Self::Hlsl, Self::Tint];
}

/// What a variant needs of a device, beyond WebGPU's default limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requires {
    /// Subgroup operations.
    pub subgroups: bool,
    /// 16-bit floats in shaders.
    pub f16: bool,
    /// Cooperative matrices of f16 with sums of f32 ([`DeviceProfile::cooperative_side`]).
    pub cooperative: bool,
}

impl Requires {
    /// Needs nothing: the variant runs on any WebGPU device.
    pub const NOTHING: Self = Self { subgroups: false, f16: false, cooperative: false };
    /// Needs subgroup operations.
    pub const SUBGROUPS: Self = Self { subgroups: true, ..Self::NOTHING };

    /// Returns what `profile` lacks, in words, or `None`.
    ///
    /// ```
    /// use tilework::program::{DeviceProfile, Requires};
    /// let matrices = Requires { f16: true, cooperative: true, ..Requires::SUBGROUPS };
    /// let missing = matrices.missing(&DeviceProfile::webgpu_defaults()).unwrap();
    /// assert!(missing.contains("SUBGROUP") && missing.contains("SHADER_F16"));
    /// assert_eq!(matrices.missing(&DeviceProfile::h100()), None);
    /// ```
    pub fn missing(self, profile: &DeviceProfile) -> Option<String> {
        let all = [
            (self.subgroups && !profile.features.subgroups, "subgroup operations (feature SUBGROUP)"),
            (self.f16 && !profile.features.f16, "16-bit floats in shaders (feature SHADER_F16)"),
            (
                self.cooperative && profile.cooperative_side().is_none(),
                "cooperative matrices of f16 with sums of f32, 16 x 16 x 16 or 8 x 8 x 8, and subgroups of one size, \
                 through Vulkan (feature EXPERIMENTAL_COOPERATIVE_MATRIX)",
            ),
        ];
        let missing: Vec<_> = all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect();
        (!missing.is_empty()).then(|| missing.join(", "))
    }
}

/// One way to run an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Name, as selected by `.variant(name)`.
    pub name: &'static str,
    /// One sentence: what it does.
    pub about: &'static str,
    /// What it needs of the device.
    pub requires: Requires,
    /// The compilers that its shaders can be translated for.
    pub translations: &'static [Translation],
    /// Whether the order of combination depends on timing, so that rounded results may vary from run to run.
    pub any_order: bool,
}

impl Variant {
    /// Makes a variant that every WebGPU device can run.
    pub const fn portable(name: &'static str, about: &'static str) -> Self {
        Self { name, about, requires: Requires::NOTHING, translations: Translation::ALL, any_order: false }
    }

    /// Makes a variant that needs subgroup operations.
    pub const fn subgroups(name: &'static str, about: &'static str) -> Self {
        Self { requires: Requires::SUBGROUPS, ..Self::portable(name, about) }
    }

    /// Marks a variant whose order of combination depends on timing.
    pub const fn in_any_order(self) -> Self {
        Self { any_order: true, ..self }
    }

    /// The determinism of its results, given whether they round.
    pub(crate) fn determinism(&self, rounds: bool) -> Determinism {
        if rounds && self.any_order { Determinism::RoundingVaries } else { Determinism::SameBits }
    }
}

/// The choice of a variant by name, which goes to this field of the descriptor, and the list of all.
macro_rules! variants {
    (choose $($field:ident).+) => {
        /// Runs the variant of this name instead of `auto`.
        #[must_use]
        pub fn variant(mut self, name: &str) -> Self {
            name.clone_into(&mut self.$($field).+);
            self
        }
    };
    ($($field:ident).+) => {
        $crate::program::variants!($($field).+, VARIANTS);
    };
    ($($field:ident).+, $all:ident) => {
        $crate::program::variants!(choose $($field).+);
        $crate::program::variants!(list $all);
    };
    (list $all:expr) => {
        /// Lists the variants.
        pub fn variants() -> &'static [$crate::program::Variant] {
            $all
        }
    };
}
pub(crate) use variants;

/// Who chose a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// The caller, by name.
    Asked,
    /// A measurement on this device: see the module [`tune`](mod@crate::tune).
    Tuned,
    /// The op's own policy.
    Policy,
    /// The library, because the policy's choice failed on this driver.
    Fallback,
}

/// Which variant a program runs, who chose it, and why.
///
/// ```
/// use tilework::program::{DecidedBy, DeviceProfile, Op};
/// use tilework::{Reduce, Sum};
///
/// let lower = |op: &Reduce<Sum>| Op::<f32>::lower(op, &DeviceProfile::h100());
/// let (auto, asked) = (Reduce::new(Sum, 1 << 20), Reduce::new(Sum, 1 << 20).variant("shared"));
/// assert_eq!(lower(&auto)?.decision.by, DecidedBy::Policy);
/// assert_eq!(lower(&asked)?.decision.by, DecidedBy::Asked);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Name of the variant.
    pub variant: &'static str,
    /// Who chose it.
    pub by: DecidedBy,
    /// The reason, for reports. No code reads it.
    pub why: String,
}

impl Decision {
    /// Makes a choice of the op's policy.
    pub fn policy(variant: &'static str, why: impl Into<String>) -> Self {
        Self { variant, by: DecidedBy::Policy, why: why.into() }
    }

    /// Makes a choice of the caller.
    pub fn asked(variant: &'static str) -> Self {
        Self { variant, by: DecidedBy::Asked, why: "asked for by name".to_owned() }
    }

    pub(crate) fn because(&mut self, more: impl std::fmt::Display) {
        self.why = format!("{}; {more}", self.why);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits {
    /// Whether the results round, so that their bits depend on the order of combination.
    pub(crate) rounds: bool,
    /// Whether the op must repeat its bits.
    pub(crate) deterministic: bool,
}

/// Declares the switch `deterministic` of an op with a variant whose order varies, stored in these fields.
macro_rules! deterministic {
    ($($field:ident).+) => {
        /// Makes every run give the same bits. `auto` skips variants whose rounding varies, and naming one is an
        /// error. [`GpuOptions::deterministic`](crate::GpuOptions::deterministic) does so for all ops.
        #[must_use]
        pub fn deterministic(mut self) -> Self {
            self.$($field).+ = true;
            self
        }
    };
}
pub(crate) use deterministic;

/// The switch by which an op reads its number of elements on the device. `$what` names the elements, and `$rest` says
/// what becomes of those behind them. [`operands!`](super::operands) adds `with_length`.
macro_rules! counted {
    ($($field:ident).+, $what:literal, $rest:literal) => {
        #[doc = concat!("Reads the number of ", $what, ", at most `n`, from the device: an operand `length` of one u32, which plans take by")]
        #[doc = concat!("`with_length`. A number above `n` counts as `n`. ", $rest)]
        #[must_use]
        pub fn counted(mut self) -> Self {
            self.$($field).+ = true;
            self
        }
    };
}
pub(crate) use counted;

/// The option of [`counted`] ops.
pub(crate) const LENGTH: Setting = Setting::array("length", "u32 (1)");

/// As [`choose_with`], for ops without the switch `deterministic`: only the device may ask for repeated bits.
pub(crate) fn choose(
    op: &str, asked: &str, variants: &'static [Variant], profile: &DeviceProfile,
    policy: impl FnOnce() -> (&'static str, String),
) -> Result<(&'static Variant, Decision)> {
    choose_with(op, asked, variants, profile, Bits { rounds: true, deterministic: false }, policy)
}

/// Resolves a variant by name. `auto` takes the forced choice, or else asks `policy`. A named variant must exist and
/// fit the device. Denied variants are skipped, and so are those whose bits vary, if the op or the device asks for
/// repeated bits.
pub(crate) fn choose_with(
    op: &str, asked: &str, variants: &'static [Variant], profile: &DeviceProfile, bits: Bits,
    policy: impl FnOnce() -> (&'static str, String),
) -> Result<(&'static Variant, Decision)> {
    let mut policy = Some(policy);
    resolve(op, asked, variants, profile, bits, &mut || policy.take().map(|policy| policy()).unwrap_or_default())
}

/// [`choose_with`], compiled once for all policies; calls `policy` at most once.
fn resolve(
    op: &str, asked: &str, variants: &'static [Variant], profile: &DeviceProfile, bits: Bits,
    policy: &mut dyn FnMut() -> (&'static str, String),
) -> Result<(&'static Variant, Decision)> {
    let find = |name: &str| {
        variants.iter().position(|v| v.name == name).ok_or_else(|| {
            let names: Vec<_> = variants.iter().map(|v| v.name).collect();
            err!(InvalidArgument, "{op}: no variant `{name}`; there are: auto, {}", names.join(", "))
        })
    };
    let choices = &profile.choices;
    let denied = |v: &Variant| choices.denies(op, v.name);
    let same_bits = bits.deterministic || profile.deterministic;
    let varies = |v: &Variant| same_bits && v.determinism(bits.rounds) == Determinism::RoundingVaries;
    let asker = if bits.deterministic { "`deterministic` asks" } else { "`GpuOptions::deterministic` asks" };
    let left_out =
        |name: &str| format!("`{name}` is skipped: its rounding varies from run to run, and {asker} for the same bits");
    let fits = |v: &&'static Variant| v.requires.missing(profile).is_none() && denied(v).is_none();
    let usable = |v: &&'static Variant| fits(v) && !varies(v);
    let auto = asked == "auto";
    let forced = choices.forced.get(op).filter(|_| auto).and_then(|choice| {
        let variant = variants.iter().find(|v| v.name == choice.variant).filter(fits)?;
        Some((variant, choice))
    });
    if let Some((variant, choice)) = forced.filter(|(variant, _)| !varies(variant)) {
        return Ok((variant, Decision { variant: variant.name, by: choice.by, why: choice.why.clone() }));
    }
    let (name, why) = if auto { policy() } else { (asked, String::new()) };
    let place = find(name)?;
    let variant = &variants[place];
    let mut decision = if auto { Decision::policy(variant.name, why) } else { Decision::asked(variant.name) };
    if let Some((forced, _)) = forced.filter(|(forced, _)| forced.name != name) {
        decision.because(left_out(forced.name));
    }
    if let Some(missing) = variant.requires.missing(profile) {
        return Err(err!(Unsupported, "{op}: the variant `{name}` needs {missing}, {}; use `auto`", profile.lacks()));
    }
    let (varies, wrong) = (varies(variant), denied(variant));
    // Variants are listed from slow to fast: the one before is next in speed, and needs no more.
    let mut others = variants[..place].iter().rev().chain(&variants[place + 1..]).filter(usable);
    let next = if auto { others.next() } else { None };
    if varies {
        return match next {
            Some(next) => Ok((next, Decision::policy(next.name, left_out(name)))),
            None => Err(err!(
                Unsupported,
                "{op}: the rounding of the variant `{name}` varies from run to run, and {asker} for the same bits; {}",
                if auto { "no other variant fits, so remove that" } else { "use `auto`, or remove that" }
            )),
        };
    }
    let Some(wrong) = wrong else { return Ok((variant, decision)) };
    match next {
        Some(next) => {
            let why = format!("`{name}` failed on this driver; {} is the next fastest", next.name);
            Ok((next, Decision { variant: next.name, by: DecidedBy::Fallback, why }))
        }
        None => Err(err!(
            Unsupported,
            "{op}: the variant `{name}` failed with the driver {} of {} ({}){}; after an update of the driver, \
             call Gpu::clear_cache to try it again",
            profile.driver,
            profile.name,
            wrong.why,
            if auto { ", and no other variant fits" } else { "; use `auto`" }
        )),
    }
}
