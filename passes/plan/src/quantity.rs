//! Sizes, shares and times as people write them, read exactly: no digit passes through floating point.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// Most decimals that a number may have.
const DECIMALS: usize = 12;
/// Millionths in a whole.
pub(crate) const MILLION: u64 = 1_000_000;

/// Units of sizes, in lower case, and their bytes.
const SIZES: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("k", 1_000),
    ("kb", 1_000),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Units of times and their nanoseconds.
const TIMES: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// What a text was read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantityKind {
    /// A number of bytes.
    Size,
    /// A share of something.
    Share,
    /// A length of time.
    Time,
    /// A multiple of a model's own time, or a length of time.
    Deadline,
    /// A number of bytes, a share of a peak, or a word.
    Budget,
}

impl QuantityKind {
    /// The forms that are read.
    fn forms(self) -> &'static str {
        match self {
            Self::Size => "`512MiB`, `1.5GB` or a whole number of bytes",
            Self::Share => "`5%` or `0.05`",
            Self::Time => "`500ms`, `30s`, `5m` or `1h`",
            Self::Deadline => "a multiple of the model's own time (`1.5x`) or a time (`40ms`, `2s`, `500us`)",
            Self::Budget => "a share (`80%`), a size (`512MiB`, `1.5GB`, `1048576`), `min`, `auto` or `none`",
        }
    }
}

impl fmt::Display for QuantityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "size",
            Self::Share => "share",
            Self::Time => "time",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
        })
    }
}

/// Why a text is no quantity: what was written, what it was to be, what is wrong, and what to write.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a {kind}: {why}")]
pub struct QuantityError {
    text: String,
    kind: QuantityKind,
    why: String,
}

impl QuantityError {
    pub(crate) fn new(text: &str, kind: QuantityKind, why: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            kind,
            why: why.into(),
        }
    }

    pub(crate) fn form(text: &str, kind: QuantityKind) -> Self {
        Self::new(text, kind, format!("write {}", kind.forms()))
    }
}

/// A decimal number that is not negative, as `digits / 10^decimals`, and the unit after it, in lower case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    digits: u128,
    decimals: u32,
    /// Whether it is written with a point.
    has_point: bool,
    number: String,
    pub(crate) unit: String,
}

impl Written {
    /// Splits a text into number and unit. White space around both is skipped.
    ///
    /// # Errors
    /// [`QuantityError`] for what begins with no number, for a negative one, and for one with too many digits.
    pub(crate) fn read(text: &str, kind: QuantityKind) -> Result<Self, QuantityError> {
        let trimmed = text.trim();
        if let Some(rest) = trimmed.strip_prefix('-')
            && rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return Err(QuantityError::new(text, kind, "it must not be negative"));
        }
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim();
        if number.is_empty()
            && SIZES
                .iter()
                .any(|(name, _)| !unit.is_empty() && unit.eq_ignore_ascii_case(name))
        {
            return Err(QuantityError::new(
                text,
                kind,
                format!("the number is missing, as in `512{unit}`"),
            ));
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(QuantityError::form(text, kind));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > DECIMALS {
            return Err(QuantityError::new(
                text,
                kind,
                format!("it has more than {DECIMALS} decimals"),
            ));
        }
        let digits = format!("{whole}{fraction}");
        Ok(Self {
            digits: digits.parse().map_err(|_| too_large(text, kind))?,
            decimals: u32::try_from(fraction.len()).unwrap_or(u32::MAX),
            has_point: number.contains('.'),
            number: number.to_owned(),
            unit: unit.to_lowercase(),
        })
    }

    /// The number times `scale`, rounded down.
    pub(crate) fn times(&self, scale: u64) -> Option<u64> {
        let scaled = self.digits.checked_mul(u128::from(scale))?;
        u64::try_from(scaled / 10u128.checked_pow(self.decimals)?).ok()
    }

    /// Whether the number is 0.
    pub(crate) fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// The number in per cent, where it has decimals and is at most 1: what stands for a share without saying so.
    pub(crate) fn as_percent(&self) -> Option<String> {
        let millionths = self.times(MILLION).filter(|&millionths| millionths <= MILLION)?;
        (self.has_point && millionths > 0).then(|| percent(millionths))
    }
}

/// Millionths in per cent, `12.5%`.
#[must_use]
pub fn percent(millionths: u64) -> String {
    decimal(millionths, 4) + "%"
}

/// `value / 10^decimals` without zeros at the end.
#[must_use]
pub fn decimal(value: u64, decimals: u32) -> String {
    let one = 10u64.pow(decimals);
    let fraction = format!("{:0width$}", value % one, width = decimals as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", value / one)
}

pub(crate) fn too_large(text: &str, kind: QuantityKind) -> QuantityError {
    QuantityError::new(text, kind, "it is too large: 64 bits do not hold it")
}

/// A size such as `512MiB`, `1.5GB` or a number of bytes, rounded down. Units may be in any case: `mb` is a million bytes, `mib`
/// 1,048,576.
///
/// # Errors
/// What to write instead.
pub fn parse_bytes(text: &str) -> Result<u64, QuantityError> {
    let written = Written::read(text, QuantityKind::Size)?;
    bytes(text, &written, QuantityKind::Size)
}

pub(crate) fn bytes(text: &str, written: &Written, kind: QuantityKind) -> Result<u64, QuantityError> {
    let Some(&(unit, scale)) = SIZES.iter().find(|(unit, _)| *unit == written.unit) else {
        return Err(unknown_size(text, written, kind));
    };
    if unit.is_empty() && written.has_point {
        let why = match written.as_percent().filter(|_| kind == QuantityKind::Budget) {
            Some(percent) => format!("bytes are whole; did you mean `{percent}`?"),
            None => "bytes are whole; is a unit missing, as in `1.5GiB`?".to_owned(),
        };
        return Err(QuantityError::new(text, kind, why));
    }
    written.times(scale).ok_or_else(|| too_large(text, kind))
}

/// A unit that is none: the one that begins with the same letter is what was meant.
fn unknown_size(text: &str, written: &Written, kind: QuantityKind) -> QuantityError {
    let Written { number, unit, .. } = written;
    let multiple = unit
        .chars()
        .next()
        .filter(|first| "kmgt".contains(*first) && unit.len() <= 5);
    let Some(multiple) = multiple else {
        return QuantityError::form(text, kind);
    };
    let meant = format!("{number}{}iB", multiple.to_ascii_uppercase());
    QuantityError::new(text, kind, format!("`{unit}` is not a unit; did you mean `{meant}`?"))
}

/// A share such as `5%` or `0.05`, in millionths, rounded down.
///
/// # Errors
/// What to write instead.
pub fn parse_share(text: &str) -> Result<u64, QuantityError> {
    let kind = QuantityKind::Share;
    let written = Written::read(text, kind)?;
    let scale = match written.unit.as_str() {
        "" => MILLION,
        "%" => MILLION / 100,
        _ => return Err(QuantityError::form(text, kind)),
    };
    if written.unit.is_empty() && !written.has_point && written.digits > 1 {
        let why = format!("did you mean `{}%`? A share without `%` is part of 1", written.digits);
        return Err(QuantityError::new(text, kind, why));
    }
    written.times(scale).ok_or_else(|| too_large(text, kind))
}

/// A time such as `500ms`, `30s`, `5m`, `1h` or a number of seconds.
///
/// # Errors
/// What to write instead.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let kind = QuantityKind::Time;
    let written = Written::read(text, kind)?;
    nanoseconds(text, &written, kind, 1_000_000_000).map(Duration::from_nanos)
}

/// A time in nanoseconds, rounded down; `bare` are those of a number without unit, 0 if it needs one.
pub(crate) fn nanoseconds(text: &str, written: &Written, kind: QuantityKind, bare: u64) -> Result<u64, QuantityError> {
    let scale = match TIMES.iter().find(|(unit, _)| *unit == written.unit) {
        Some(&(_, scale)) => scale,
        None if written.unit.is_empty() && bare > 0 => bare,
        None => return Err(QuantityError::form(text, kind)),
    };
    written.times(scale).ok_or_else(|| too_large(text, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: fmt::Debug>(result: Result<T, QuantityError>) -> String {
        result.expect_err("it is no quantity").to_string()
    }

    #[test]
    fn sizes_shares_and_times_are_read_exactly() {
        assert_eq!(parse_bytes("1.5 GB"), Ok(1_500_000_000));
        assert_eq!(parse_bytes("512mb"), Ok(512_000_000));
        assert_eq!(parse_bytes("2TiB"), Ok(2 << 40));
        assert_eq!(parse_bytes("9007199254740993"), Ok((1 << 53) + 1));
        assert_eq!(parse_share("5%"), Ok(50_000));
        assert_eq!(parse_share("0.05"), Ok(50_000));
        assert_eq!(parse_share("1"), Ok(1_000_000));
        assert_eq!(parse_share("150 %"), Ok(1_500_000));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("0.1"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_duration("0.000000001s"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (found, part) in [
            (words(parse_bytes("-5")), "must not be negative"),
            (words(parse_bytes("MiB")), "the number is missing, as in `512MiB`"),
            (words(parse_bytes("512Mi")), "did you mean `512MiB`?"),
            (words(parse_bytes("4gigs")), "did you mean `4GiB`?"),
            (words(parse_bytes("1.5")), "is a unit missing, as in `1.5GiB`?"),
            (words(parse_bytes("99999999999GiB")), "too large"),
            (
                words(parse_bytes("99999999999999999999999999999999999999999")),
                "too large",
            ),
            (words(parse_bytes("80%")), "write `512MiB`"),
            (words(parse_bytes("0.1234567890123KB")), "more than 12 decimals"),
            (words(parse_share("5")), "did you mean `5%`?"),
            (words(parse_share("-1%")), "must not be negative"),
            (words(parse_share("NaN")), "write `5%` or `0.05`"),
            (words(parse_duration("soon")), "write `500ms`"),
            (words(parse_duration("")), "write `500ms`"),
            (words(parse_duration("1.2.3s")), "write `500ms`"),
        ] {
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn decimals_are_written_without_zeros_at_the_end() {
        assert_eq!(percent(800_000), "80%");
        assert_eq!(percent(125_000), "12.5%");
        assert_eq!(percent(1), "0.0001%");
        assert_eq!(decimal(1_500_000, 6), "1.5");
    }
}
