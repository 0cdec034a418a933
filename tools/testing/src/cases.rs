//! How many random cases a property is tried on.

use proptest::test_runner::Config;

/// Where this is `1`, properties are tried on ten times as many cases.
const NIGHTLY: &str = "REMAT_NIGHTLY";
/// No property is tried on fewer, unless it asks for them.
const LEAST: u32 = 32;

/// An eighth of `most` cases, where that is enough to tell anything; ten times as many where the environment variable `REMAT_NIGHTLY` is 1.
#[must_use]
pub fn cases(most: u32) -> Config {
    let is_nightly = std::env::var(NIGHTLY).is_ok_and(|value| value == "1");
    let cases = (most / 8).max(LEAST.min(most));
    Config::with_cases(if is_nightly { cases * 10 } else { cases })
}
