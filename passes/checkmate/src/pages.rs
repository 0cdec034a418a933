//! What the POET paper adds to the program: a second memory, prices apart from durations, and a deadline.
//!
//! | symbol | variable | meaning |
//! |---|---|---|
//! | `S_aux[t,i]` | 0/1 | results of `i` lie in the second memory in stage `t` |
//! | `M_in[t,i]` | 0/1 | they come back in stage `t`: they may be held into `t + 1` |
//! | `M_out[t,i]` | 0/1 | they are moved out in stage `t`: they may lie in the second memory in `t + 1` |
//!
//! `S` is called `S_ram` there. Minimize the price of all `R`, `M_in` and `M_out`, with the constraints of Checkmate and
//!
//! 1. `S_ram[t+1,i] <= S_ram[t,i] + R[t,i] + M_in[t,i]` in the place of its second one;
//! 2. `S_aux[t+1,i] <= S_aux[t,i] + M_out[t,i]`, `M_in[t,i] <= S_aux[t,i]`, `M_out[t,i] <= S_ram[t,i]`;
//! 3. the times of what happens keep the deadline, with or without those of transfers.
//!
//! So what was moved out once stays there for nothing, and what comes back takes memory from the next stage on.

use remat_ortools::ModelSize;

/// A number for a run, a transfer out and a transfer back of each node.
pub struct Numbers {
    /// Of a run.
    pub run: Vec<i64>,
    /// Of a transfer out.
    pub out: Vec<i64>,
    /// Of a transfer back.
    pub back: Vec<i64>,
}

/// Prices and times of what the program decides.
pub struct Pages {
    /// Whether there is a second memory at all; without one there are prices and a deadline only.
    pub moves: bool,
    /// What the program pays.
    pub price: Numbers,
    /// Times, and how much of them the deadline leaves beside the first runs.
    pub deadline: Option<(Numbers, i64)>,
}

impl Pages {
    /// The size of the program with its second memory, for that many nodes.
    pub(super) fn enlarge(&self, size: ModelSize, nodes: usize) -> ModelSize {
        // What may be held, over all stages, and over all but the last.
        let held = nodes * nodes.saturating_sub(1) / 2;
        let before_last = nodes.saturating_sub(1) * nodes.saturating_sub(2) / 2;
        let stages = nodes.saturating_sub(1);
        let moves = usize::from(self.moves);
        let deadline = usize::from(self.deadline.is_some());
        ModelSize {
            booleans: size.booleans + moves * 3 * held,
            constraints: size.constraints + moves * (before_last + stages + 2 * held) + deadline,
            terms: size.terms + moves * (4 * before_last + stages + 4 * held) + deadline * (held + moves * 2 * held),
            ..size
        }
    }
}
