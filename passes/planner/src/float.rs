//! Roots and powers that are the same on every machine, with or without the standard library.

/// The square root of a number from 1 on, correctly rounded.
#[cfg(feature = "std")]
pub(crate) fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// The square root of a number from 1 on, correctly rounded.
#[cfg(not(feature = "std"))]
pub(crate) use self::by_hand::sqrt;

#[cfg(any(test, not(feature = "std")))]
mod by_hand {
    /// Bits of a fraction, the leading one apart.
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    const BIAS: u64 = 1023;

    /// The square root of a number from 1 on, correctly rounded: the root of its digits, as an integer with a bit more than is needed.
    pub(crate) fn sqrt(x: f64) -> f64 {
        let bits = x.to_bits();
        let exponent = (bits >> FRACTION).saturating_sub(BIAS);
        let digits = u128::from(bits & ((1 << FRACTION) - 1) | 1 << FRACTION);
        // x = digits * 2^(exponent - 52). With an even power taken out, the root of the rest has 54 bits.
        let shift = FRACTION + 2 + (exponent % 2) as u32;
        let root = (digits << shift).isqrt();
        // The root of a number of 53 bits never lies in the middle between two others: the last bit rounds.
        let rounded = (root + 1) >> 1;
        // `rounded` is the root times 2^52, where 2^53 carries into the exponent.
        let fraction = (rounded as u64).wrapping_sub(1 << FRACTION);
        f64::from_bits(((BIAS + exponent / 2) << FRACTION) + fraction)
    }
}

/// A base to the power of a small number.
pub(crate) fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::by_hand;
    use crate::rng::Rng;

    #[test]
    fn roots_are_those_of_the_processor() {
        let mut rng = Rng::new(1, 0);
        let random = (0..200_000).map(|_| {
            let below = 1u64 << (1 + rng.below(61));
            (1 + (rng.unit() * below as f64) as u64) as f64
        });
        let squares = (1..2_000u64).flat_map(|root| [root * root - 1, root * root, root * root + 1].map(|x| x as f64));
        for x in random.chain(squares.filter(|&x| x >= 1.0)) {
            assert_eq!(by_hand::sqrt(x).to_bits(), x.sqrt().to_bits(), "{x}");
            let root = x.sqrt();
            assert_eq!(by_hand::sqrt(root).to_bits(), root.sqrt().to_bits(), "{root}");
        }
    }
}
