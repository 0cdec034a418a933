//! How far two outputs of floating-point numbers are apart, where sums were split and are rounded otherwise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Output;

/// How far one output is from another.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Distance {
    /// The largest difference of two elements, as a share of the largest element of the first output; the largest number of all where one is NaN
    /// or infinite and the other is not.
    pub largest: f64,
    /// The mean of the squared differences as a peak signal-to-noise ratio in decibels, for images: four axes, up to four channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psnr_db: Option<f64>,
    /// The largest difference that rounding explains, whatever a network does with it: three times the root of what the type rounds one by,
    /// as much as is left of half of the digits.
    pub limit: f64,
}

/// Axes of images, and the most channels of those that people look at.
const IMAGE_AXES: usize = 4;
const MOST_CHANNELS: i64 = 4;

/// What is left of half of the digits.
const LIMIT_IN_ROOTS: f64 = 3.0;

impl Distance {
    /// How far `after` is from `before`, of one type and shape; `None` where they are not floating-point numbers.
    pub(crate) fn between(before: &Output, after: &Output) -> Option<Self> {
        let (first, second) = (before.numbers()?, after.numbers()?);
        let finite = |number: &&f64| number.is_finite();
        let scale = first
            .iter()
            .filter(finite)
            .fold(0.0_f64, |scale, number| scale.max(number.abs()));
        let (mut largest, mut squares) = (0.0_f64, 0.0_f64);
        for (a, b) in first.iter().zip(&second) {
            let is_same = a.total_cmp(b).is_eq() || a.is_nan() && b.is_nan();
            if is_same {
                continue;
            }
            let apart = (a - b).abs();
            largest = if apart.is_finite() {
                largest.max(apart)
            } else {
                f64::MAX
            };
            squares += if apart.is_finite() { apart * apart } else { 0.0 };
        }
        let share = if largest > 0.0 { largest / scale } else { 0.0 };
        let is_image = before.shape.len() == IMAGE_AXES && (1..=MOST_CHANNELS).contains(&before.shape[1]);
        let least = first
            .iter()
            .filter(finite)
            .fold(f64::INFINITY, |least, &number| least.min(number));
        let most = first
            .iter()
            .filter(finite)
            .fold(f64::NEG_INFINITY, |most, &number| most.max(number));
        let noise = squares / first.len().max(1) as f64;
        let psnr = 10.0 * ((most - least).powi(2) / noise).log10();
        Some(Self {
            largest: if share.is_finite() { share } else { f64::MAX },
            psnr_db: Some(psnr).filter(|psnr| is_image && psnr.is_finite() && largest < f64::MAX),
            limit: LIMIT_IN_ROOTS * before.rounding()?.sqrt(),
        })
    }

    /// Whether it is more than rounding explains.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.largest > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(shape: &[i64], numbers: &[f32]) -> Output {
        Output {
            name: "y".to_owned(),
            element: "f32".to_owned(),
            shape: shape.to_vec(),
            bytes: numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
        }
    }

    #[test]
    fn differences_are_shares_of_the_largest_element() {
        let (before, after) = (output(&[3], &[1.0, -4.0, 0.5]), output(&[3], &[1.0, -4.0, 0.501]));
        let distance = Distance::between(&before, &after).unwrap();
        assert!((distance.largest - 0.001 / 4.0).abs() < 1e-7 && !distance.is_far());
        assert_eq!(distance.psnr_db, None);
        let far = Distance::between(&before, &output(&[3], &[1.0, -4.0, 0.6])).unwrap();
        assert!(far.is_far());
    }

    #[test]
    fn what_is_no_number_any_more_is_far_and_what_never_was_is_not() {
        let nan = output(&[2], &[1.0, f32::NAN]);
        assert!(Distance::between(&output(&[2], &[1.0, 2.0]), &nan).unwrap().is_far());
        assert!(Distance::between(&nan, &nan).unwrap().largest <= 0.0);
        let zeros = output(&[1], &[0.0]);
        assert!(Distance::between(&zeros, &output(&[1], &[1e-9])).unwrap().is_far());
    }

    #[test]
    fn images_have_a_ratio_of_signal_to_noise() {
        let before = output(&[1, 1, 2, 2], &[0.0, 1.0, 0.0, 1.0]);
        let after = output(&[1, 1, 2, 2], &[0.0, 1.0, 0.0, 0.998]);
        let psnr = Distance::between(&before, &after).unwrap().psnr_db.unwrap();
        // A mean of squares of 0.002^2 / 4.
        assert!((psnr - 60.0).abs() < 0.01, "{psnr}");
    }
}
