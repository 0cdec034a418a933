//! `remat-opt inspect`.

#[test]
fn a_model_is_inspected() {
    assert_run!("inspect cli/training_chain.json");
}

#[test]
fn a_model_with_open_dimensions_has_formulas() {
    assert_run!("inspect models/features/dynamic_batch.onnx --dim batch=3");
}

#[test]
fn all_stated_shapes_have_a_bound() {
    assert_run!("inspect models/features/dynamic_batch.onnx --shapes batch=1..64 --top 3");
}
