//! What reports say of where and when they were made.

use std::time::{SystemTime, UNIX_EPOCH};

/// The processor in its own words, where the system tells them; else its architecture.
pub(crate) fn processor() -> String {
    let words = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let told = std::fs::read_to_string("/proc/cpuinfo").ok();
    told.as_deref()
        .and_then(words)
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Today's date in UTC, as ISO 8601; `None` where the clock stands before 1970.
pub(crate) fn today() -> Option<String> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let (mut year, mut left) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(58), (1970, 2, 28));
        assert_eq!(date(59), (1970, 3, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_322), (2000, 12, 31));
        assert_eq!(date(20_513), (2026, 3, 1));
    }
}
