//! A limit for a whole process: what it leaves for runs, and which ledger forbids it.

use schemars::JsonSchema;
use serde::Serialize;

use super::ledgers::{Ledgers, Program};

/// Of pages of files that may be dropped, so many bytes have to be in memory for a process to go on: with fewer it does little but read them again.
const WINDOW: u64 = 16 << 20;

/// The most that a process may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessLimit {
    /// Bytes.
    pub bytes: u64,
    /// What runs the session.
    pub program: Program,
}

/// How a process compares with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ProcessWithin {
    /// The limit.
    pub limit_bytes: u64,
    /// What runs the session.
    pub program: Program,
    /// The smallest limit that works: what must be there, and a window of what may be dropped.
    pub least_bytes: u64,
    /// With how many bytes nothing is dropped.
    pub whole_bytes: u64,
    /// Whether it works within the limit.
    pub holds: bool,
    /// The ledger that takes most of what must be there, where it does not; `program` where that alone takes more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden_by: Option<&'static str>,
}

impl ProcessLimit {
    /// How a process of these ledgers compares with the limit.
    #[must_use]
    pub fn judge(&self, ledgers: &Ledgers) -> ProcessWithin {
        let promise = ledgers.promise(self.program);
        let least_bytes = self.least(ledgers);
        let own = Ledgers::default().promise(self.program).must_be_there_bytes;
        let largest = || {
            let kept = Ledgers {
                code_bytes: 0,
                packed_weights_bytes: 0,
                mapped_weights_bytes: 0,
                ..*ledgers
            };
            let each = kept.each();
            each.into_iter().max_by_key(|&(_, bytes)| bytes).map(|(name, _)| name)
        };
        let holds = least_bytes <= self.bytes;
        ProcessWithin {
            limit_bytes: self.bytes,
            program: self.program,
            least_bytes,
            whole_bytes: promise.bytes(),
            holds,
            forbidden_by: match holds {
                true => None,
                false if own + WINDOW > self.bytes => Some("program"),
                false => largest(),
            },
        }
    }

    /// The smallest limit for a process of these ledgers: what must be there, and a window of what may be dropped.
    #[must_use]
    pub fn least(&self, ledgers: &Ledgers) -> u64 {
        let promise = ledgers.promise(self.program);
        promise.must_be_there_bytes + promise.may_be_dropped_bytes.min(WINDOW)
    }

    /// The mapped weights that stay in memory within the limit, beside all else of the process: at least a window. `None` where all of them stay.
    #[must_use]
    pub fn resident_weights(&self, ledgers: &Ledgers) -> Option<u64> {
        let weights = ledgers.packed_weights_bytes + ledgers.mapped_weights_bytes;
        let others = ledgers.promise(self.program).bytes() - weights;
        let left = self.bytes.saturating_sub(others).max(WINDOW);
        (left < weights).then_some(left)
    }

    /// The bytes that runs may take, outputs apart, beside the other ledgers: with all code in memory and a window of mapped weights if that is
    /// `enough`, else with a window of both. None where the others take more than the limit.
    #[must_use]
    pub fn left_for_runs(&self, ledgers: &Ledgers, enough: u64) -> Option<u64> {
        let others = Ledgers {
            run_bytes: 0,
            outputs_bytes: 0,
            loading_bytes: 0,
            ..*ledgers
        };
        let outputs = ledgers.runs * ledgers.outputs_bytes;
        let left = |others: u64| {
            let left = self.bytes.checked_sub(others)?;
            // Loading is over when runs begin.
            let runs = left.checked_sub(outputs)?;
            (left >= ledgers.loading_bytes && runs > 0).then_some(runs)
        };
        let weights = ledgers.packed_weights_bytes + ledgers.mapped_weights_bytes;
        let with_code = others.promise(self.program).bytes() - weights.saturating_sub(WINDOW);
        let with_code = left(with_code).filter(|&left| left >= enough);
        with_code.or_else(|| left(self.least(&others)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ledgers() -> Ledgers {
        Ledgers {
            code_bytes: 20 * MIB,
            graph_bytes: 4 * MIB,
            loading_bytes: 8 * MIB,
            packed_weights_bytes: 400 * MIB,
            run_bytes: 30 * MIB,
            runs: 1,
            outputs_bytes: MIB,
            ..Ledgers::default()
        }
    }

    #[test]
    fn what_may_be_dropped_takes_a_window_and_what_must_be_there_all_of_it() {
        let own = Ledgers::default().promise(Program::C);
        let least = own.must_be_there_bytes + (4 + 31 + 16) * MIB;
        let limit = |bytes| ProcessLimit {
            bytes,
            program: Program::C,
        };
        let found = limit(least).judge(&ledgers());
        assert!(found.holds && found.least_bytes == least, "{found:?}");
        let found = limit(least - 1).judge(&ledgers());
        assert_eq!((found.holds, found.forbidden_by), (false, Some("runs")));
        assert_eq!(limit(least).left_for_runs(&ledgers(), 20 * MIB), Some(30 * MIB));
        let whole_code = least + own.may_be_dropped_bytes + 20 * MIB;
        assert_eq!(limit(whole_code).left_for_runs(&ledgers(), 20 * MIB), Some(30 * MIB));
        assert_eq!(
            limit(least - 24 * MIB).left_for_runs(&ledgers(), 20 * MIB),
            None,
            "loading has no room"
        );
        assert_eq!(limit(MIB).judge(&ledgers()).forbidden_by, Some("program"));
    }

    #[test]
    fn mapped_weights_stay_as_far_as_the_limit_has_room() {
        let whole = ledgers().promise(Program::C).bytes();
        let resident = |bytes| {
            let program = Program::C;
            ProcessLimit { bytes, program }.resident_weights(&ledgers())
        };
        assert_eq!(resident(whole), None);
        assert_eq!(resident(whole - MIB), Some(399 * MIB));
        assert_eq!(resident(whole - 390 * MIB), Some(WINDOW));
    }

    #[test]
    fn weights_in_the_heap_forbid_a_limit_below_them() {
        let heavy = Ledgers {
            heap_weights_bytes: 400 * MIB,
            packed_weights_bytes: 0,
            ..ledgers()
        };
        let limit = ProcessLimit {
            bytes: 256 * MIB,
            program: Program::Python,
        };
        assert_eq!(limit.judge(&heavy).forbidden_by, Some("weights"));
        assert_eq!(limit.left_for_runs(&heavy, MIB), None);
    }
}
