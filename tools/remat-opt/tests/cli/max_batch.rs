//! `remat-opt max-batch`.

use crate::SEARCH;

#[test]
fn the_largest_batch_of_a_model_is_found() {
    assert_run!(
        "max-batch models/features/dynamic_batch.onnx --batch-dim batch --memory 100KiB --fixed-memory 0 {SEARCH}"
    );
}

#[test]
fn the_largest_batch_of_a_graph_is_found() {
    assert_run!(
        "max-batch cli/training_chain.json --batch-factor 4 --memory 36MiB --fixed-memory 8MiB --max-overhead 10% {SEARCH}"
    );
}

#[test]
fn the_largest_batch_is_json_on_request() {
    assert_run!("max-batch cli/training_chain.json --batch-factor --memory 12MiB {SEARCH} --format json");
}

#[test]
fn memory_for_no_batch_at_all_is_a_finding() {
    assert_run!("max-batch cli/training_chain.json --batch-factor --memory 1MiB");
}

#[test]
fn the_batch_that_is_looked_for_has_no_stated_sizes() {
    assert_run!(
        "max-batch models/features/dynamic_batch.onnx --batch-dim batch --memory 1MiB --fixed-memory 0 --shapes batch=1..4"
    );
}

#[test]
fn the_batch_has_to_be_named() {
    assert_run!("max-batch models/features/dynamic_batch.onnx --memory 1MiB");
    assert_run!("max-batch models/features/dynamic_batch.onnx --memory 1MiB --fixed-memory 0 --batch-dim bunch");
    assert_run!("max-batch models/unet_tiny_train.onnx --memory 1MiB --batch-factor");
}
