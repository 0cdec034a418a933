//! Einstein's sum: operands are multiplied at each point of the space that all letters span, and summed over the letters that the result
//! does not have.

use super::{Cut, Reason, Site};

/// An axis of an operand or of the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Letter {
    /// An axis under the ellipsis, counted from its last one; such axes broadcast.
    Any(usize),
    /// A letter of the equation.
    Named(char),
}

/// Each letter that the result has, and what the operands have.
pub(super) fn einsum(site: &Site<'_>) -> Result<Cut, Reason> {
    let equation = Equation::of(site)?;
    let own = *equation.result.get(site.axis).ok_or(Reason::Shapes)?;
    if equation.result.iter().filter(|&&letter| letter == own).count() != 1 {
        return Err(Reason::Attribute("equation"));
    }
    let mut cut = site.whole();
    for (place, letters) in equation.operands.iter().enumerate() {
        let mut axes = (0..letters.len()).filter(|&axis| letters[axis] == own);
        let Some(axis) = axes.next() else { continue };
        let rows = site.dims(place)?[axis];
        if axes.next().is_some() || rows != site.extent() && rows != 1 {
            return Err(Reason::Attribute("equation"));
        }
        if rows == site.extent() {
            cut = cut.with(place, axis, site.rows.clone());
        }
    }
    Ok(cut)
}

/// How many terms each element of the result is a sum of.
pub(crate) fn terms(site: &Site<'_>) -> Result<u64, Reason> {
    let equation = Equation::of(site)?;
    let mut summed: Vec<(Letter, u64)> = Vec::new();
    for (place, letters) in equation.operands.iter().enumerate() {
        for (&letter, &rows) in letters.iter().zip(&site.dims(place)?) {
            if !equation.result.contains(&letter) && !summed.iter().any(|(known, _)| *known == letter) {
                summed.push((letter, rows));
            }
        }
    }
    let product = summed
        .iter()
        .try_fold(1_u64, |product, (_, rows)| product.checked_mul(*rows));
    product.ok_or(Reason::Shapes)
}

/// An equation, its ellipses spelled out.
struct Equation {
    operands: Vec<Vec<Letter>>,
    result: Vec<Letter>,
}

impl Equation {
    fn of(site: &Site<'_>) -> Result<Self, Reason> {
        let text: String = site.text("equation", "").split_whitespace().collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != site.op.inputs.len() {
            return Err(Reason::Attribute("equation"));
        }
        let mut operands = Vec::with_capacity(terms.len());
        for (place, term) in terms.into_iter().enumerate() {
            operands.push(letters(term, site.dims(place)?.len())?);
        }
        let result = match right {
            Some(right) => letters(right, site.out.len())?,
            None => implied(&operands),
        };
        if result.len() != site.out.len() {
            return Err(Reason::Attribute("equation"));
        }
        Ok(Self { operands, result })
    }
}

/// The axes that a term names, of `rank` in all.
fn letters(term: &str, rank: usize) -> Result<Vec<Letter>, Reason> {
    let named = |text: &str| text.chars().map(Letter::Named).collect::<Vec<_>>();
    let Some((before, after)) = term.split_once("...") else {
        let letters = named(term);
        return if letters.len() == rank && !term.contains('.') {
            Ok(letters)
        } else {
            Err(Reason::Attribute("equation"))
        };
    };
    let (mut letters, after) = (named(before), named(after));
    let open = rank.checked_sub(letters.len() + after.len());
    let open = open.ok_or(Reason::Attribute("equation"))?;
    letters.extend((0..open).rev().map(Letter::Any));
    letters.extend(after);
    Ok(letters)
}

/// The letters of a result that is not stated: what stands under an ellipsis, then those that stand once, by the alphabet.
fn implied(operands: &[Vec<Letter>]) -> Vec<Letter> {
    let all: Vec<Letter> = operands.iter().flatten().copied().collect();
    let open = all.iter().filter_map(|letter| match letter {
        Letter::Any(place) => Some(*place + 1),
        Letter::Named(_) => None,
    });
    let open = open.max().unwrap_or(0);
    let is_single = |letter: &&Letter| {
        matches!(letter, Letter::Named(_)) && all.iter().filter(|other| other == letter).count() == 1
    };
    let mut named: Vec<Letter> = all.iter().filter(is_single).copied().collect();
    named.sort_unstable();
    let mut result: Vec<Letter> = (0..open).rev().map(Letter::Any).collect();
    result.extend(named);
    result
}
