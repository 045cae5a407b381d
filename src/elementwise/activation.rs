use crate::program::prelude::*;

/// A function applied to each element of a result before it is stored.
///
/// It is computed in f32. NaN stays NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Activation {
    /// `x`.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `x Phi(x)` with the normal distribution `Phi(x) = (1 + erf(x / sqrt 2)) / 2`: the exact form of
    /// GELU, with the limits 0 at minus infinity and infinity at infinity.
    Gelu,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Activation; 5] = [Self::None, Self::Relu, Self::Sigmoid, Self::Tanh, Self::Gelu];

    /// Returns the name, as on the command line of the `op` example.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
        }
    }

    /// Finds the activation of that name.
    ///
    /// ```
    /// use tilework::dense::Activation;
    /// assert_eq!(Activation::from_name("gelu"), Some(Activation::Gelu));
    /// assert_eq!(Activation::from_name("swish"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }

    pub(crate) const SETTING: Setting = Setting::word("activation", || Self::ALL.map(Self::name).to_vec());

    /// Reads the option; `Activation::None` if it is absent.
    pub(crate) fn asked(settings: &Settings) -> Result<Self> {
        Ok(Self::from_name(settings.choice(Self::SETTING.name)?).unwrap_or_default())
    }

    pub(crate) const fn fragment(self) -> &'static str {
        match self {
            Self::None => "activation/none",
            Self::Relu => "activation/relu",
            Self::Sigmoid => "activation/sigmoid",
            Self::Tanh => "activation/tanh",
            Self::Gelu => "activation/gelu",
        }
    }
}
