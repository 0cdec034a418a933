//! `remat-opt inspect`.

#[test]
fn a_model_is_inspected() {
    assert_run!("inspect cli/training_chain.json");
}
