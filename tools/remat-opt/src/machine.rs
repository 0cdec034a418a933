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

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar: the algorithm `civil_from_days` of Howard Hinnant, in
/// which years begin in March, so that leap days end them, and come again in eras of 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + later, month, day)
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
