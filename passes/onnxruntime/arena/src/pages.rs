//! Address space for blocks, and which of its bytes are in use or kept for the next run.

use std::ops::Range;

/// Address space from the system. Bytes that were never written, or were forgotten, take no memory.
pub(crate) trait Memory {
    /// The address of that many bytes; `None` where there are none.
    fn map(&self, bytes: usize) -> Option<usize>;
    /// All of these bytes of a mapping are about to be used.
    fn expect(&self, addresses: Range<usize>);
    /// Gives a mapping back.
    fn unmap(&self, start: usize, bytes: usize);
    /// Gives the memory back that the whole pages of these addresses take; their content is lost, they stay mapped. They are no longer expected
    /// to be used.
    fn forget(&self, addresses: Range<usize>);
    /// Whether others have the same bytes: then a run needs a turn to have buffers there.
    fn is_shared(&self) -> bool {
        false
    }
    /// The turn of a run is over.
    fn leave(&self) {}
    /// Whether parts of a mapping can be given back.
    fn forgets(&self) -> bool {
        true
    }
    /// A block that runs of one thread used is about to be that of another one.
    fn changes_hands(&self) {}
}

/// Pages of a block go back that none of so many runs in a row needed: of every so many, it is looked at what they needed.
const WINDOW: u64 = 8;

/// Which bytes of a block are in use: those up to one, and beyond it those of buffers that were live when others went back.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pages {
    /// Up to here bytes were written to, and not given back.
    used: u64,
    /// Start and end of what is kept beyond that, in order.
    above: Vec<(u64, u64)>,
    /// Expected to be used.
    expected: u64,
    /// Up to here the last run used them.
    last: u64,
    /// The runs of this window.
    window: u64,
    /// How many these are.
    runs: u64,
}

impl Pages {
    /// A run begins; up to where the bytes are kept, if others go back now.
    pub(crate) fn begin(&mut self) -> Option<u64> {
        self.last = 0;
        if self.runs < WINDOW {
            self.runs += 1;
            return None;
        }
        let needed = self.window;
        (self.runs, self.window) = (1, 0);
        (needed < self.used).then_some(needed)
    }

    /// Bytes up to here are used.
    pub(crate) fn use_to(&mut self, end: u64) {
        self.used = self.used.max(end);
        self.last = self.last.max(end);
        self.window = self.window.max(end);
        self.clip();
    }

    /// Bytes up to here are about to be used; those of which this is news.
    pub(crate) fn expect_to(&mut self, end: u64) -> Option<(u64, u64)> {
        let from = self.expected;
        self.expected = from.max(end);
        (from < end).then_some((from, end))
    }

    /// How far they are expected to be used.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// All bytes from one on went back but those of these live buffers, which are in order.
    pub(crate) fn kept(&mut self, keep: u64, live: impl Iterator<Item = (u64, u64)>) {
        self.used = self.used.min(keep);
        self.expected = self.expected.min(keep);
        self.above = live.collect();
        self.clip();
    }

    fn clip(&mut self) {
        let used = self.used;
        self.above.retain(|&(_, end)| end > used);
        self.above.iter_mut().for_each(|(start, _)| *start = used.max(*start));
    }

    /// How many bytes are in use if those up to `end` are.
    pub(crate) fn bytes_to(&self, end: u64) -> u64 {
        let used = self.used.max(end);
        let above = self
            .above
            .iter()
            .map(|&(start, end)| end.saturating_sub(start.max(used)));
        used + above.sum::<u64>()
    }

    /// How many bytes are in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_to(0)
    }

    /// Up to where the last run used them, if more are.
    pub(crate) fn unused(&self) -> Option<u64> {
        (self.last < self.used).then_some(self.last)
    }

    /// Up to where bytes are kept where nothing is live.
    pub(crate) fn left(&self) -> Option<u64> {
        self.unused().or_else(|| (!self.above.is_empty()).then_some(self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_beyond_the_used_bytes_counts_once() {
        let mut pages = Pages::default();
        pages.use_to(1000);
        assert_eq!((pages.bytes(), pages.bytes_to(1200)), (1000, 1200));
        pages.kept(0, [(100, 200), (900, 1000)].into_iter());
        assert_eq!(
            (pages.bytes(), pages.bytes_to(150), pages.bytes_to(2000)),
            (200, 300, 2000)
        );
        pages.use_to(150);
        assert_eq!(pages.bytes(), 300);
        pages.use_to(950);
        assert_eq!(pages.bytes(), 1000);
        pages.kept(500, [(450, 600)].into_iter());
        assert_eq!(pages.bytes(), 600);
    }

    #[test]
    fn bytes_go_back_that_a_window_of_runs_did_not_need() {
        let mut pages = Pages::default();
        let mut run = |end| {
            let back = pages.begin();
            pages.use_to(end);
            back
        };
        assert!((0..WINDOW).all(|run_| run(if run_ == 0 { 1000 } else { 10 }).is_none()));
        assert!((0..WINDOW).all(|_| run(10).is_none()));
        assert_eq!(run(10), Some(10));
    }
}
