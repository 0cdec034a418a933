//! The simulation beside what the runtime did.

use remat_onnxruntime_sim::{ArenaSettings, Settings, allocate, arena, default_order, heap, priority_order};

use crate::facts::Facts;

/// Level and order of the settings that are compared.
pub(crate) const SETTINGS: [(&str, &str); 3] = [("off", "priority"), ("off", "default"), ("all", "default")];

/// Predicted and measured heap peaks: with reuse of dead buffers, without; and with the arena on, of the first run and of a
/// later one.
fn peaks(facts: &Facts) -> [(u64, u64); 4] {
    let (program, run) = (facts.program(), facts.run());
    let allocation = |reuse| allocate(&program, &run, &Settings { reuse });
    let peak = |reuse| heap(&program, &run, &allocation(reuse)).peak;
    let trace = arena(&program, &run, &allocation(true), &ArenaSettings::default());
    [
        (peak(true), facts.heap.reuse),
        (peak(false), facts.heap.no_reuse),
        (trace.first_peak, facts.arena[0]),
        (trace.steady_peak, facts.arena[1]),
    ]
}

/// The orders are the same, name for name; where optimizers add nodes, their places in the file are not known, and neither is
/// the order.
pub(crate) fn assert_same_order(name: &str, facts: &Facts, order: &str) {
    if facts.placed {
        let program = facts.program();
        let simulated = match order {
            "default" => default_order(&program),
            _ => priority_order(&program),
        };
        assert_eq!(simulated, facts.run(), "{name}: order");
    }
}

/// Compares with the facts of one model; gives what is more than 3 per mille off.
pub(crate) fn compare(name: &str, facts: &Facts, level: &str, order: &str) -> Option<String> {
    assert_same_order(name, facts, order);
    let peaks = peaks(facts);
    let text = format!("{name} {level} {order}: predicted and measured {peaks:?}");
    println!("{text}");
    let off = |&(predicted, measured): &(u64, u64)| predicted.abs_diff(measured) * 1000 > 3 * measured;
    peaks.iter().any(off).then_some(text)
}
