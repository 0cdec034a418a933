//! The simulation against what the runtime did.

use remat_onnxruntime_sim::{ArenaSettings, Settings, allocate, arena, default_order, heap, priority_order};

use crate::facts::Facts;

/// Promised and measured heap peaks: with reuse of dead buffers, without; and with the arena on, of the first run and of a
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

const MODELS: [&str; 7] = [
    "densenet121_infer",
    "efficientnet_b0_infer",
    "gpt_train",
    "resnet18_train",
    "swin_t_infer",
    "unet_infer",
    "unet_train",
];

/// The orders are the same, name for name; where optimizers add nodes, their places in the file are not known, and neither is
/// the order.
fn assert_same_order(name: &str, facts: &Facts, order: &str) {
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
fn compare(name: &str, facts: &Facts, level: &str, order: &str) -> Option<String> {
    assert_same_order(name, facts, order);
    let peaks = peaks(facts);
    let text = format!("{name} {level} {order}: promised and measured {peaks:?}");
    println!("{text}");
    let off = |&(promised, measured): &(u64, u64)| promised.abs_diff(measured) * 1000 > 3 * measured;
    peaks.iter().any(off).then_some(text)
}

const SETTINGS: [(&str, &str); 3] = [("off", "priority"), ("off", "default"), ("all", "default")];

#[test]
fn small_models_run_as_recorded() {
    for name in ["mlp_tiny_train", "unet_tiny_train"] {
        for (level, order) in SETTINGS {
            let facts = Facts::committed(&format!("{name}.{level}.{order}.json"));
            assert_eq!(compare(name, &facts, level, order), None);
        }
    }
}

#[test]
fn fused_half_quantized_and_recurrent_models_run_as_recorded() {
    for name in [
        "transformer",
        "transformer_half",
        "recurrent",
        "quantized",
        "workspaces",
    ] {
        let facts = Facts::committed(&format!("{name}.all.default.json"));
        assert_eq!(compare(name, &facts, "all", "default"), None);
    }
}

#[test]
fn orders_of_unsorted_files_and_of_captured_values_are_those_recorded() {
    for name in ["unsorted", "if_captures", "loop_captures", "scan_captures", "views"] {
        for order in ["default", "priority"] {
            let facts = Facts::committed(&format!("{name}.off.{order}.json"));
            assert!(facts.placed);
            assert_same_order(name, &facts, order);
        }
    }
}

#[test]
fn orders_and_peaks_of_real_models_are_those_of_the_runtime() {
    let mut wrong = Vec::new();
    for model in MODELS {
        // The large ones take their time: one setting must do.
        let settings = if ["gpt_train", "resnet18_train"].contains(&model) {
            &SETTINGS[2..]
        } else {
            &SETTINGS
        };
        for &(level, order) in settings {
            match Facts::measure(&format!("{model}.onnx"), level, order) {
                Ok(facts) => wrong.extend(compare(model, &facts, level, order)),
                Err(why) => return eprintln!("skipped: {why}"),
            }
        }
    }
    assert!(wrong.is_empty(), "more than 3 per mille off: {wrong:#?}");
}
