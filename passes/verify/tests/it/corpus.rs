//! The corpus of plans is complete; `tests/corpus.rs` runs it.

use std::collections::BTreeSet;
use std::path::Path;

use remat_verify::Code;

#[test]
fn every_code_has_a_plan_in_the_corpus_that_breaks_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/plans/invalid");
    let mut broken = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let case: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = case["expect"].as_array().unwrap();
        broken.extend(
            expected
                .iter()
                .map(|code| code.as_str().unwrap().parse::<Code>().unwrap()),
        );
    }
    let of_plans = Code::ALL.iter().filter(|code| !code.is_about_fission());
    let missing: Vec<_> = of_plans.filter(|code| !broken.contains(code)).collect();
    assert!(missing.is_empty(), "no plan in test/plans/invalid breaks {missing:?}");
}
