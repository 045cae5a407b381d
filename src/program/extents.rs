//! Shapes as formulas, such as `(N, C, (H + pads - kernel) / stride + 1)`, and their values for a request.

use super::{OpCall, Operation, Role, Settings, front};
use crate::array::shape_text;
use crate::error::{Result, err};

/// Extents by name, as inputs and options give them.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    known: Vec<(String, Vec<usize>)>,
    /// Which of several shapes the first input has.
    alternative: Option<usize>,
}

/// The shapes that a formula allows: the last ones whose condition holds, or those without one.
fn alternatives(formula: &str, holds: impl Fn(&str) -> bool) -> Vec<&str> {
    let cases = formula.split("; ").map(|case| case.split_once(" with ").unwrap_or((case, "")));
    let fitting = cases.filter(|(_, condition)| condition.is_empty() || holds(condition)).last();
    fitting.map_or(Vec::new(), |(shapes, _)| shapes.split(" or ").collect())
}

/// The extents between the outer brackets; `None` if there are no brackets.
fn items(shape: &str) -> Option<Vec<&str>> {
    let inside = &shape[shape.find('(')? + 1..shape.rfind(')')?];
    let mut depth = 0;
    let split = inside.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    Some(split.map(str::trim).filter(|item| !item.is_empty()).collect())
}

impl Extents {
    /// Sets extents that an op computes itself.
    pub(crate) fn set(&mut self, name: &str, extents: &[usize]) {
        if self.get(name).is_none() {
            self.known.push((name.to_owned(), extents.to_vec()));
        }
    }

    fn get(&self, name: &str) -> Option<&[usize]> {
        self.known.iter().find(|(known, _)| known == name).map(|(_, extents)| &extents[..])
    }

    /// Whether a condition holds: an option or an input that is there, or an option with a word.
    fn holds(&self, condition: &str, settings: &Settings) -> bool {
        match condition.split_once(' ') {
            Some((option, word)) => settings.choice(option).is_ok_and(|chosen| chosen == word),
            None => settings.has(condition) || self.get(condition).is_some(),
        }
    }

    /// Learns the extents that an input's formula names from its shape.
    pub(crate) fn learn(&mut self, settings: &Settings, (name, formula): (&str, &str), shape: &[usize]) {
        self.set(name, shape);
        let all = alternatives(formula, |condition| self.holds(condition, settings));
        let fits = |items: &Vec<&str>| match items.contains(&"...") {
            true => shape.len() + 1 >= items.len(),
            false => shape.len() == items.len(),
        };
        let found = all.iter().map(|shape| items(shape)).position(|items| items.is_some_and(|i| fits(&i)));
        self.alternative = self.alternative.or(found);
        let Some(items) = found.and_then(|at| items(all[at])) else { return };
        let mut left = shape;
        for item in &items {
            let taken = if *item == "..." { (shape.len() + 1).saturating_sub(items.len()) } else { 1 };
            let (extents, rest) = left.split_at(taken.min(left.len()));
            left = rest;
            match item.split_once('/') {
                None if item.parse::<usize>().is_ok() => {}
                None => self.set(item, extents),
                // A group of them.
                Some((whole, parts)) => {
                    if let (Some(parts), [extent]) = (self.number(settings, parts, 0), extents) {
                        self.set(whole, &[extent.saturating_mul(parts)]);
                    }
                }
            }
        }
    }

    /// A number, an extent or an option. Of two values along height and width, `axis` tells which.
    fn number(&self, settings: &Settings, name: &str, axis: usize) -> Option<usize> {
        let one = |all: &[usize]| all.get(axis).or(all.first()).copied();
        let option = |name: &str| {
            let numbers = settings.word(name)?.split(',').map(|part| part.trim().parse().ok());
            one(&numbers.collect::<Option<Vec<usize>>>()?)
        };
        if let Some(extents) = self.get(name) {
            return one(extents);
        }
        if name == "pads" {
            // The padding on both sides.
            let Some(sides) = settings.word("pad-each") else { return option("pad")?.checked_mul(2) };
            let sides: Vec<usize> = sides.split(',').map_while(|side| side.trim().parse().ok()).collect();
            return sides.get(axis)?.checked_add(*sides.get(axis + 2)?);
        }
        name.parse().ok().or_else(|| option(name))
    }

    /// The shape by a formula; `None` if it has an unknown extent.
    fn shape(&self, settings: &Settings, formula: &str) -> Option<Vec<usize>> {
        if let Some(other) = formula.strip_prefix("as ") {
            return self.get(other).map(<[usize]>::to_vec);
        }
        let all = alternatives(formula, |condition| self.holds(condition, settings));
        let items = items(all.get(self.alternative.unwrap_or(0)).or(all.last())?)?;
        let mut shape = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match self.get(item) {
                Some(extents) => shape.extend_from_slice(extents),
                None => {
                    let spaced = item.replace('(', " ( ").replace(')', " ) ");
                    let mut formula = ExtentFormula {
                        words: spaced.split_whitespace().collect::<Vec<_>>().into_iter().peekable(),
                        number: |name: &str| self.number(settings, name, usize::from(at + 1 == items.len())),
                    };
                    shape.push(formula.sum()?);
                }
            }
        }
        Some(shape)
    }
}

/// Whole numbers with `+ - * /` and brackets, rounded down.
struct ExtentFormula<'f, N> {
    words: std::iter::Peekable<std::vec::IntoIter<&'f str>>,
    number: N,
}

impl<N: Fn(&str) -> Option<usize>> ExtentFormula<'_, N> {
    fn sum(&mut self) -> Option<usize> {
        let mut sum = self.product()?;
        while let Some(sign) = self.words.next_if(|word| ["+", "-"].contains(word)) {
            let term = self.product()?;
            sum = if sign == "+" { sum.checked_add(term)? } else { sum.checked_sub(term)? };
        }
        Some(sum)
    }

    fn product(&mut self) -> Option<usize> {
        let mut product = self.factor()?;
        while let Some(sign) = self.words.next_if(|word| ["*", "/"].contains(word)) {
            let factor = self.factor()?;
            product = if sign == "*" { product.checked_mul(factor)? } else { product.checked_div(factor)? };
        }
        Some(product)
    }

    fn factor(&mut self) -> Option<usize> {
        match self.words.next()? {
            "(" => {
                let sum = self.sum()?;
                self.words.next_if_eq(&")").map(|_| sum)
            }
            name => (self.number)(name),
        }
    }
}

impl Operation {
    /// The declared shapes of the outputs of a call; `None` where the formula has no value.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) unless the call has the declared outputs, in their shapes. An output that the
    /// device counts has none.
    pub(crate) fn declared_outputs(
        &self, settings: &Settings, extents: &Extents, call: &OpCall,
    ) -> Result<Vec<Option<Vec<usize>>>> {
        let op = self.name;
        let roles: Vec<_> = call.operands.iter().filter(|role| role.is_output()).collect();
        let least = self.outputs.iter().filter(|(name, _)| !name.starts_with('[')).count();
        if !(least..=self.outputs.len()).contains(&roles.len()) && !self.matrix {
            return Err(err!(Shape, "{op}: {} outputs; {} are declared", roles.len(), self.outputs.len()));
        }
        // If some are left out, an optional output is there if the option of its name is set.
        let all = roles.len() == self.outputs.len();
        let is_there = |name: &str| {
            let option = name.trim_matches(['[', ']']);
            all || option == name || self.option(option).is_none() || settings.has(option)
        };
        let declared = self.outputs.iter().filter(|(name, _)| is_there(name));
        let outputs = roles.into_iter().zip(call.outputs()).zip(declared);
        let declared = outputs.map(|((role, shape), (name, formula))| {
            let wanted = match role {
                Role::Counted | Role::CountedRows(_) => Some(Vec::new()),
                Role::Front(shape, there) => Some(front(shape, *there)),
                _ => extents.shape(settings, formula),
            };
            match wanted {
                Some(wanted) if wanted != shape => Err(err!(
                    Shape,
                    "{op}: {name} is {}, but its declared shape, {formula}, is {}",
                    shape_text(&shape),
                    shape_text(&wanted)
                )),
                wanted => Ok(wanted),
            }
        });
        declared.collect()
    }
}

#[cfg(test)]
mod tests;
