//! How cases are drawn.

use crate::support::{Random, Sample};
use tilework::program::Variant;

/// Random numbers that decide a case; smaller numbers make smaller cases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choices(pub(super) [u32; 16]);

/// The kind of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contents {
    /// Small whole numbers.
    Whole,
    /// Floats in [-1, 1), integers of any size.
    Unit,
    /// The same with zeros of both signs, and either NaN and infinities or subnormal numbers: a device that flushes
    /// subnormals to 0 would make NaN of a subnormal and an infinity.
    Special,
    /// Any bits, and extreme values.
    Any,
}

/// Draws the parts of a case; each call draws the next.
pub(super) struct Draw {
    choices: std::array::IntoIter<u32, 16>,
    spec: usize,
    options: Random,
    random: Random,
    contents: u32,
}

impl Draw {
    /// For `op`; options are drawn by `options`, and `spec` numbers them.
    pub(super) fn new(op: &str, options: u64, spec: usize, choices: Choices, contents: u64) -> Self {
        let seed = op.bytes().fold(options, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
        let mut choices = choices.0.into_iter();
        let kind = choices.next().unwrap_or(0);
        Self { choices, spec, options: Random::new(seed), random: Random::new(contents), contents: kind }
    }

    fn choice(&mut self) -> u64 {
        self.choices.next().unwrap_or(0).into()
    }

    /// A uniform number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((self.choice() * n as u64) >> 32) as usize
    }

    /// From `least` to `most`: small ones more often, and often a multiple of 4 or next to one.
    pub(super) fn length(&mut self, least: usize, most: usize) -> usize {
        let choice = self.choice();
        let share = choice as f64 / 2f64.powi(32);
        let n = ((most - least + 1) as f64).powf(share) as usize - 1 + least;
        // The last bits of the choice are unused above.
        let n = match choice & 7 {
            1 => n.next_multiple_of(4),
            2 => n.next_power_of_two(),
            3 => n.next_power_of_two() + 1,
            _ => n,
        };
        n.clamp(least, most)
    }

    /// One of these, for which kernels are compiled, so few are drawn. The first is the simplest.
    pub(super) fn option<T: Clone>(&mut self, of: &[T]) -> T {
        let number = self.options.next() as usize;
        of[if self.spec == 0 { 0 } else { number % of.len() }].clone()
    }

    /// One of these, for which no kernel is compiled. The first is the simplest.
    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let at = self.below(of.len());
        of[at].clone()
    }

    /// `auto` or a variant, each as often as the others.
    pub(super) fn variant(&mut self, variants: &'static [Variant]) -> &'static str {
        let number = self.spec % (variants.len() + 1);
        if number == 0 { "auto" } else { variants[number - 1].name }
    }

    /// True for one in `one_in` cases.
    pub(super) fn chance(&mut self, one_in: u64) -> bool {
        self.random.next().is_multiple_of(one_in)
    }

    /// The kind of elements of this case, at most `most`.
    fn contents(&self, most: Contents) -> Contents {
        let all = [Contents::Whole, Contents::Unit, Contents::Special, Contents::Any];
        let kind = all[(self.contents >> 30) as usize];
        kind.min(most)
    }

    /// `n` elements of a kind up to `most`.
    pub(super) fn elements<T: Sample>(&mut self, n: usize, most: Contents) -> Vec<T> {
        let contents = self.contents(most);
        let extremes = T::extremes();
        let subnormal = self.contents & 1 == 1;
        let special = extremes.iter().copied().filter(|x| is_special(x.to_f64(), subnormal));
        let special: Vec<T> = special.collect();
        let random = &mut self.random;
        let one = |_| match contents {
            Contents::Whole => T::from_f64((random.next() % 7) as f64 - if signed::<T>() { 3.0 } else { 0.0 }),
            Contents::Special if !special.is_empty() && random.next().is_multiple_of(8) => {
                special[random.next() as usize % special.len()]
            }
            Contents::Unit | Contents::Special => T::sample(random),
            Contents::Any if random.next().is_multiple_of(2) => extremes[random.next() as usize % extremes.len()],
            Contents::Any => T::any(random),
        };
        (0..n).map(one).collect()
    }

    /// Elements of any kind.
    pub(super) fn any<T: Sample>(&mut self, n: usize) -> Vec<T> {
        self.elements(n, Contents::Any)
    }

    /// Numbers, NaN and infinities, but no finite number so large that a sum overflows.
    pub(super) fn special<T: Sample>(&mut self, n: usize) -> Vec<T> {
        self.elements(n, Contents::Special)
    }

    /// Numbers whose sums and products are finite.
    pub(super) fn numbers<T: Sample>(&mut self, n: usize) -> Vec<T> {
        self.elements(n, Contents::Unit)
    }

    /// `n` numbers below `end`, and a few out of range.
    pub(super) fn indices(&mut self, n: usize, end: usize) -> Vec<u32> {
        let end = end.max(1) as u64;
        let random = &mut self.random;
        let one = |_| match random.next() % 16 {
            0 => u32::MAX,
            1 => end as u32,
            _ => (random.next() % end) as u32,
        };
        (0..n).map(one).collect()
    }

    /// Flags, some of which are nonzero.
    pub(super) fn flags(&mut self, n: usize) -> Vec<u32> {
        let every = self.pick(&[2, 1, 7, 50, u64::MAX]);
        let random = &mut self.random;
        let one = |_| if random.next().is_multiple_of(every) { 1 << (random.next() % 32) } else { 0 };
        (0..n).map(one).collect()
    }

    /// Elements in runs of equal ones.
    pub(super) fn runs<T: Sample>(&mut self, n: usize) -> Vec<T> {
        let longest = self.length(1, 200) as u64;
        let values = self.any::<T>(n);
        let mut runs = Vec::with_capacity(n);
        for value in values {
            let length = 1 + self.random.next() % longest;
            runs.extend(std::iter::repeat_n(value, (length as usize).min(n - runs.len())));
        }
        runs
    }

    /// Multiples of 1/8 around 0; half of the time an outer product of lines.
    pub(super) fn eighths(&mut self, shape: &[usize]) -> Vec<f64> {
        let lines = self.option(&[false, true]);
        let mut eighth = |_| (self.random.next() % 9) as f64 / 8.0 - 0.375;
        if !lines {
            return (0..shape.iter().product()).map(eighth).collect();
        }
        let mut all = vec![1.0];
        for &n in shape {
            let line: Vec<f64> = (0..n).map(&mut eighth).collect();
            all = all.iter().flat_map(|a| line.iter().map(move |l| a * l)).collect();
        }
        all
    }

    /// The generator of contents.
    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }
}

fn signed<T: Sample>() -> bool {
    T::from_f64(-1.0).to_f64() < 0.0
}

/// A zero, and either a subnormal f32 or a non-finite number.
fn is_special(x: f64, subnormal: bool) -> bool {
    x == 0.0 || if subnormal { x.abs() < f64::from(f32::MIN_POSITIVE) } else { !x.is_finite() }
}

/// Calls a function for one of these types of elements.
macro_rules! typed {
    ($draw:ident, $case:ident, [$($t:ty),+]) => {{
        let of: &[fn(&mut Draw) -> Case] = &[$($case::<$t>),+];
        $draw.option(of)($draw)
    }};
}
pub(super) use typed;
