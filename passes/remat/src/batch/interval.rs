//! Doubling, then halving.

/// An answer is no closer to the smallest size that does not fit than this part of it: who chooses a batch asks for no more.
const CLOSE: u64 = 100;

/// The largest size up to `cap` that fits, as far as `fits` says, given that `known` does (0 if nothing is known to): up to [`CLOSE`] exactly,
/// above it to a hundredth. Asks for each size above `known` at most once, and for one above the answer, as close to it, unless the answer is `cap`.
///
/// # Errors
/// The first error of `fits`.
pub(super) fn largest<E>(known: u64, cap: u64, mut fits: impl FnMut(u64) -> Result<bool, E>) -> Result<u64, E> {
    let (mut low, mut high) = (known, None);
    while high.is_none() && low < cap {
        let next = low.saturating_mul(2).max(1).min(cap);
        if fits(next)? {
            low = next;
        } else {
            high = Some(next);
        }
    }
    match high {
        Some(high) => between(low, high, |size| fits(size).map(Some)),
        None => Ok(low),
    }
}

/// The largest size from `low`, which fits, to below `high`, which does not, as far and as close as [`largest`] says. Where `fits` does not know,
/// that is the largest one so far.
///
/// # Errors
/// The first error of `fits`.
pub(super) fn between<E>(
    mut low: u64,
    mut high: u64,
    mut fits: impl FnMut(u64) -> Result<Option<bool>, E>,
) -> Result<u64, E> {
    while high - low > (low / CLOSE).max(1) {
        let middle = low + (high - low) / 2;
        match fits(middle)? {
            Some(true) => low = middle,
            Some(false) => high = middle,
            None => break,
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn the_answer_is_that_of_trying_all_sizes() {
        for cap in 0..40u64 {
            for most in 0..45 {
                for known in 0..=most.min(cap) {
                    let mut asked = Vec::new();
                    let found = largest(known, cap, |size| {
                        asked.push(size);
                        Ok::<_, Infallible>(size <= most)
                    });
                    assert_eq!(found, Ok(most.min(cap)), "up to {cap}, from {known}");
                    assert!(asked.iter().all(|&size| size > known && size <= cap));
                    assert!(most >= cap || asked.contains(&(most + 1)), "the limit was tried");
                    asked.sort_unstable();
                    let count = asked.len();
                    asked.dedup();
                    assert_eq!(asked.len(), count, "each size once");
                }
            }
        }
    }

    #[test]
    fn large_sizes_are_found_to_a_hundredth_with_few_questions() {
        for most in [101, 999, 262_046, 1 << 40] {
            let mut asked = Vec::new();
            let found = largest(0, u64::MAX, |size| {
                asked.push(size);
                Ok::<_, Infallible>(size <= most)
            });
            let Ok(found) = found;
            assert!(found <= most && most - found <= found / CLOSE, "{found} for {most}");
            let doublings = most.ilog2() as usize + 2;
            assert!(asked.len() <= doublings + 7, "{} for {most}", asked.len());
            assert!(asked.iter().any(|&size| size > most && size - found <= found / CLOSE));
        }
    }

    #[test]
    fn what_is_not_known_ends_it_with_the_largest_so_far() {
        let up_to = |questions: usize| {
            let mut asked = Vec::new();
            let found = between(8, 40, |size| {
                asked.push(size);
                Ok::<_, Infallible>((asked.len() <= questions).then_some(size <= 30))
            });
            let Ok(found) = found;
            (found, asked)
        };
        assert_eq!(up_to(0), (8, vec![24]));
        assert_eq!(up_to(2), (24, vec![24, 32, 28]));
        assert_eq!(up_to(9).0, 30);
    }

    #[test]
    fn an_error_ends_it() {
        assert_eq!(
            largest(0, 100, |size| if size < 8 { Ok(true) } else { Err(size) }),
            Err(8)
        );
    }

    #[test]
    fn the_end_of_all_numbers_is_no_end_of_the_search() {
        assert_eq!(largest(0, u64::MAX, |_| Ok::<_, Infallible>(true)), Ok(u64::MAX));
    }
}
