//! Tilings of which none is better than another in both memory and time.

use crate::Tiling;

use super::options::Candidate;

/// A Pareto front, from the fastest to the one of the lowest peak.
#[derive(Default)]
pub(super) struct Front(Vec<Candidate>);

impl Front {
    /// Adds a candidate unless one is as good; those that it is better than go.
    pub(super) fn offer(&mut self, peak: u64, time_ppm: u64, tiling: impl FnOnce() -> Tiling) {
        if self
            .0
            .iter()
            .any(|known| known.peak <= peak && known.time_ppm <= time_ppm)
        {
            return;
        }
        self.0.retain(|known| known.peak < peak || known.time_ppm < time_ppm);
        let tiling = tiling();
        let place = self.0.partition_point(|known| known.time_ppm < time_ppm);
        let candidate = Candidate { tiling, peak, time_ppm };
        self.0.insert(place, candidate);
    }

    pub(super) fn into_candidates(self) -> Vec<Candidate> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_better_in_something_stays_and_it_is_sorted() {
        let mut front = Front::default();
        for (peak, time) in [(100, 10), (50, 20), (60, 30), (40, 40), (50, 15)] {
            front.offer(peak, time, Tiling::default);
        }
        let figures: Vec<_> = front.into_candidates().iter().map(|c| (c.peak, c.time_ppm)).collect();
        assert_eq!(figures, [(100, 10), (50, 15), (40, 40)]);
    }
}
