//! A limit for a whole process: what it leaves for runs, and which ledger forbids it.

use schemars::JsonSchema;
use serde::Serialize;

use super::ledgers::{Ledgers, Program};

/// Weights in a mapped file of which so many bytes are in memory are read from the disk in every run, but they are read.
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
    /// The smallest limit that works: what must be there, code, and of mapped weights a window.
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
        let weights = ledgers.packed_weights_bytes + ledgers.mapped_weights_bytes;
        let least_bytes = promise.bytes() - weights.saturating_sub(WINDOW);
        let own = Ledgers::default().promise(self.program).bytes();
        let largest = || {
            let kept = Ledgers {
                packed_weights_bytes: weights.min(WINDOW),
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
                false if own > self.bytes => Some("program"),
                false => largest(),
            },
        }
    }

    /// The smallest limit for a process of these ledgers, whatever it is for.
    #[must_use]
    pub fn least(&self, ledgers: &Ledgers) -> u64 {
        self.judge(ledgers).least_bytes
    }

    /// What a process takes beside its runs, in bytes.
    #[must_use]
    pub fn beside_runs(&self, ledgers: &Ledgers) -> u64 {
        self.least(&Ledgers {
            run_bytes: 0,
            outputs_bytes: 0,
            loading_bytes: 0,
            ..*ledgers
        })
    }

    /// The bytes that runs may take, outputs apart, beside the other ledgers; none where these take more than the limit.
    #[must_use]
    pub fn left_for_runs(&self, ledgers: &Ledgers) -> Option<u64> {
        let left = self.bytes.checked_sub(self.beside_runs(ledgers))?;
        // Loading is over when runs begin.
        (left >= ledgers.loading_bytes).then(|| left.saturating_sub(ledgers.runs * ledgers.outputs_bytes))
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
    fn weights_that_are_mapped_take_a_window_and_what_must_be_there_all_of_it() {
        let own = Ledgers::default().promise(Program::C).bytes();
        let least = own + (20 + 4 + 31 + 16) * MIB;
        let limit = |bytes| ProcessLimit {
            bytes,
            program: Program::C,
        };
        let found = limit(least).judge(&ledgers());
        assert!(found.holds && found.least_bytes == least, "{found:?}");
        let found = limit(least - 1).judge(&ledgers());
        assert_eq!((found.holds, found.forbidden_by), (false, Some("runs")));
        assert_eq!(limit(least).left_for_runs(&ledgers()), Some(30 * MIB));
        assert_eq!(
            limit(least - 24 * MIB).left_for_runs(&ledgers()),
            None,
            "loading has no room"
        );
        assert_eq!(limit(MIB).judge(&ledgers()).forbidden_by, Some("program"));
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
        assert_eq!(limit.left_for_runs(&heavy), None);
    }
}
