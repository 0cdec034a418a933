//! Changes of lines and words.

use crate::Rng;

/// `None` where the bytes are no text.
pub(super) fn mutate(data: &[u8], other: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let text = str::from_utf8(data).ok()?;
    let changed = match rng.below(3) {
        0 => lines(text, str::from_utf8(other).unwrap_or(text), rng),
        1 => number(text, rng),
        _ => word(text, rng),
    };
    Some(changed.into_bytes())
}

/// Removes, doubles or swaps lines, or takes one of `other`.
fn lines(text: &str, other: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let others: Vec<&str> = other.lines().collect();
    let (at, to) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(4) {
        0 if !lines.is_empty() => drop(lines.remove(at)),
        1 if !lines.is_empty() => lines.insert(to, lines[at]),
        2 if !lines.is_empty() => lines.swap(at, to),
        _ => lines.insert(at, rng.pick(&others).copied().unwrap_or_default()),
    }
    lines.join("\n")
}

/// Puts another number in the place of one.
fn number(text: &str, rng: &mut Rng) -> String {
    let new = match rng.below(8) {
        0 => format!("-{}", rng.number()),
        1 => format!("{}.5e{}", rng.number(), rng.below(400)),
        _ => rng.number().to_string(),
    };
    replace(text, |c| c.is_ascii_digit(), rng, |_, _| new)
}

/// Puts another word of the text in the place of one.
fn word(text: &str, rng: &mut Rng) -> String {
    replace(
        text,
        |c| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@'),
        rng,
        |words, rng| rng.pick(words).copied().unwrap_or_default().to_owned(),
    )
}

/// Replaces one of the runs of such characters by what `new` makes of all of them.
fn replace(
    text: &str,
    is_part: impl Fn(char) -> bool,
    rng: &mut Rng,
    new: impl FnOnce(&[&str], &mut Rng) -> String,
) -> String {
    let runs: Vec<&str> = text.split(|c| !is_part(c)).filter(|run| !run.is_empty()).collect();
    let Some(&run) = rng.pick(&runs) else {
        return text.to_owned();
    };
    let start = run.as_ptr().addr() - text.as_ptr().addr();
    let new = new(&runs, rng);
    format!("{}{new}{}", &text[..start], &text[start + run.len()..])
}
