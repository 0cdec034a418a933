//! `Einsum`: which axis of an operand runs along which axis of the result.

use super::super::site::{NoWay, Site, Way};

/// The symbol of each axis: a letter, or a digit for those under the ellipsis, `0` for the last of them.
type Symbols = Vec<char>;

/// An axis of an operand with the symbol of an axis of the result has its rows; one of one row under the ellipsis is broadcast.
pub(super) fn einsum<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let unclear = || NoWay::from("its equation is not understood");
    let equation: String = site.text("equation").ok_or_else(unclear)?.replace(' ', "");
    let (operands, result) = match equation.split_once("->") {
        Some((operands, result)) => (operands, Some(result)),
        None => (&equation[..], None),
    };
    let operands: Vec<&str> = operands.split(',').collect();
    if operands.len() != site.op.inputs.len() {
        return Err(unclear());
    }
    let mut all: Vec<Symbols> = Vec::new();
    for (operand, term) in operands.iter().enumerate() {
        all.push(symbols(term, site.dims(operand)?.len()).ok_or_else(unclear)?);
    }
    let result = match result {
        Some(result) => symbols(result, site.rank()),
        None => Some(without_arrow(&all)),
    };
    let result = result
        .filter(|result| result.len() == site.rank())
        .ok_or_else(unclear)?;
    let mut way = site.way()?;
    for (axis, symbol) in result.iter().enumerate().filter(|&(axis, _)| !site.is_whole(axis)) {
        if result.iter().filter(|other| *other == symbol).count() > 1 {
            return Err(unclear());
        }
        for (operand, own) in all.iter().enumerate() {
            let places: Vec<usize> = (0..own.len()).filter(|&place| own[place] == *symbol).collect();
            way = match places[..] {
                [] => way,
                [place] => match site.dims(operand)?[place] {
                    rows if rows == site.out[axis] => way.with_axis(operand, place, &site.part[axis]),
                    1 => way,
                    _ => return Err("its shapes do not fit".to_owned()),
                },
                _ => return Err("it takes a diagonal".to_owned()),
            };
        }
    }
    Ok(way)
}

fn symbols(term: &str, rank: usize) -> Option<Symbols> {
    let plain = term.replacen("...", "", 1);
    if !plain.chars().all(|letter| letter.is_ascii_alphabetic()) {
        return None;
    }
    let under = rank.checked_sub(plain.len())?;
    let digits = (0..under)
        .rev()
        .map(|place| char::from_digit(u32::try_from(place).ok()?, 10));
    let digits: Option<String> = digits.collect();
    let spelled = match term.contains("...") {
        true => term.replacen("...", &digits?, 1),
        false if under == 0 => plain,
        false => return None,
    };
    Some(spelled.chars().collect())
}

/// What stands under the ellipsis, and each letter that stands once, in the order of the alphabet.
fn without_arrow(operands: &[Symbols]) -> Symbols {
    let all: Vec<char> = operands.concat();
    let mut under: Vec<char> = all.iter().copied().filter(char::is_ascii_digit).collect();
    under.sort_unstable_by(|a, b| b.cmp(a));
    under.dedup();
    let is_alone =
        |letter: &char| letter.is_ascii_alphabetic() && all.iter().filter(|other| *other == letter).count() == 1;
    let mut letters: Vec<char> = all.iter().copied().filter(is_alone).collect();
    letters.sort_unstable();
    [under, letters].concat()
}
