//! The simulation against what the runtime did.

use remat_ortsim::{ArenaSettings, Settings, allocate, arena, default_order, heap, priority_order};

use crate::facts::Facts;

/// Promised over measured heap peak of one run, in per mille off, with reuse of dead buffers and without.
fn errors(facts: &Facts) -> [i64; 2] {
    let program = facts.program();
    let run = facts.run();
    [(true, facts.heap.reuse), (false, facts.heap.no_reuse)].map(|(reuse, measured)| {
        let allocation = allocate(&program, &run, &Settings { reuse });
        let promised = heap(&program, &run, &allocation).peak;
        println!("    reuse {reuse}: promised {promised}, measured {measured}");
        (i64::try_from(promised).unwrap() - i64::try_from(measured).unwrap()) * 1000 / i64::try_from(measured).unwrap()
    })
}

/// Promised over measured heap peak with the arena and the memory pattern on, of the first run and of later ones.
fn arena_errors(facts: &Facts) -> [i64; 2] {
    let program = facts.program();
    let run = facts.run();
    let allocation = allocate(&program, &run, &Settings { reuse: true });
    let trace = arena(&program, &run, &allocation, &ArenaSettings::default());
    println!(
        "    arena: promised {} {}, measured {:?}; block {}",
        trace.first_peak, trace.steady_peak, facts.arena, trace.pattern_block
    );
    let off = |promised: u64, measured: u64| {
        (i64::try_from(promised).unwrap() - i64::try_from(measured).unwrap()) * 1000 / i64::try_from(measured).unwrap()
    };
    [
        off(trace.first_peak, facts.arena[0]),
        off(trace.steady_peak, facts.arena[1]),
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

/// Compares with the facts of one model; gives what is more than `limit` per mille off.
fn compare(name: &str, facts: &Facts, level: &str, order: &str, limit: i64) -> Option<String> {
    // Where optimizers add nodes, their places are not known, and neither is the order.
    if facts.placed {
        let program = facts.program();
        let simulated = if order == "default" {
            default_order(&program)
        } else {
            priority_order(&program)
        };
        assert_eq!(simulated, facts.run(), "{name}: order");
    }
    let errors = errors(facts);
    println!(
        "{name} {level} {order}: per mille off {errors:?} {:?}",
        arena_errors(facts)
    );
    let wrong = errors.iter().any(|error| error.abs() > limit);
    wrong.then(|| format!("{name} {level} {order}: {errors:?}"))
}

const SETTINGS: [(&str, &str); 3] = [("off", "priority"), ("off", "default"), ("all", "default")];

#[test]
fn small_models_run_as_recorded() {
    for name in ["mlp_tiny_train", "unet_tiny_train"] {
        for (level, order) in SETTINGS {
            let facts = Facts::committed(&format!("{name}.{level}.{order}.json"));
            assert_eq!(compare(name, &facts, level, order, 10), None);
        }
    }
}

#[test]
fn orders_and_peaks_of_real_models_are_those_of_the_runtime() {
    let mut wrong = Vec::new();
    for model in MODELS {
        for (level, order) in SETTINGS {
            match Facts::measure(&format!("{model}.onnx"), level, order) {
                Ok(facts) => wrong.extend(compare(model, &facts, level, order, 10)),
                Err(why) => return eprintln!("skipped: {why}"),
            }
        }
    }
    assert!(wrong.is_empty(), "more than 10 per mille off: {wrong:#?}");
}

#[test]
fn zz_tmp() {
    for model in MODELS {
        for (level, order) in [("ext", "default")] {
            let text = std::fs::read_to_string(format!("/tmp/t/sim/facts/{model}.{level}.{order}.json")).unwrap();
            let facts: Facts = serde_json::from_str(&text).unwrap();
            compare(model, &facts, level, order, 10);
        }
    }
}
