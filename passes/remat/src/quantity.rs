//! Shares and times as people write them on command lines and in the options of passes.

use std::time::Duration;

/// A share such as `5%` or `0.05`, in millionths.
///
/// # Errors
/// What to write instead.
pub fn parse_share(text: &str) -> Result<u64, String> {
    let percent = text.trim().strip_suffix('%');
    let (number, scale) = percent.map_or((text, 1e6), |percent| (percent, 1e4));
    match number.trim().parse::<f64>() {
        Ok(value) if value >= 0.0 && value * scale < 1e15 => Ok((value * scale).round() as u64),
        _ => Err(format!("`{text}` is not a share: write `5%` or `0.05`")),
    }
}

/// A time such as `500ms`, `30s`, `5m`, `1h` or a number of seconds.
///
/// # Errors
/// What to write instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{text}` is not a time: write `500ms`, `30s`, `5m` or `1h`")),
    };
    match number.parse::<f64>() {
        Ok(value) if value * scale < 1e9 => Ok(Duration::from_secs_f64(value * scale)),
        _ => Err(format!("`{text}` is not a time: write `500ms`, `30s`, `5m` or `1h`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_read() {
        assert_eq!(parse_share("5%"), Ok(50_000));
        assert_eq!(parse_share("0.05"), Ok(50_000));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
    }

    #[test]
    fn nonsense_is_rejected() {
        assert!(parse_share("-1%").is_err());
        assert!(parse_share("NaN").is_err());
        assert!(parse_duration("soon").is_err());
        assert!(parse_duration("").is_err());
    }
}
