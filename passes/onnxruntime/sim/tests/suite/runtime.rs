//! The simulation against what the runtime did when its facts were recorded.

use std::path::Path;

use crate::comparison::{SETTINGS, assert_same_order, compare};
use crate::facts::Facts;

/// The facts of `name`, committed beside this test.
fn committed(name: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn small_models_run_as_recorded() {
    for name in ["mlp_tiny_train", "unet_tiny_train"] {
        for (level, order) in SETTINGS {
            let facts = committed(&format!("{name}.{level}.{order}.json"));
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
        let facts = committed(&format!("{name}.all.default.json"));
        assert_eq!(compare(name, &facts, "all", "default"), None);
    }
}

#[test]
fn orders_of_unsorted_files_and_of_captured_values_are_those_recorded() {
    for name in ["unsorted", "if_captures", "loop_captures", "scan_captures", "views"] {
        for order in ["default", "priority"] {
            let facts = committed(&format!("{name}.off.{order}.json"));
            assert!(facts.placed);
            assert_same_order(name, &facts, order);
        }
    }
}
