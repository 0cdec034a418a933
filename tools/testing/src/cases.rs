//! How many random cases a property is tried on.

use proptest::test_runner::Config;

/// No property is tried on fewer, unless it asks for them.
const LEAST: u32 = 32;

/// An eighth of `most` cases, where that is enough to tell anything; nightly ten times as many.
#[must_use]
pub fn cases(most: u32) -> Config {
    let cases = (most / 8).max(LEAST.min(most));
    Config::with_cases(if crate::is_nightly() { cases * 10 } else { cases })
}
