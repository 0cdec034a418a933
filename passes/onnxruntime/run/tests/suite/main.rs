//! Rewritten models compute the same bits in ONNX Runtime, whatever the runtime does to them when it loads them.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod arena;
mod bits;
mod bodies;
mod branch;
mod common;
mod deploy;
mod features;
mod findings;
mod fission;
mod measure;
mod monotone;
mod profile;
mod streamed;
mod stress;

use std::process::ExitCode;

use remat_testing::{Need, run, trial};

fn main() -> ExitCode {
    run([
        trial!(
            arena::own_models_take_no_more_with_the_arena_than_they_did,
            Need::OnnxRuntime
        ),
        trial!(
            arena::larger_models_take_no_more_with_the_arena_than_they_did,
            Need::OnnxRuntime,
            Need::Models
        ),
        trial!(
            bits::own_models_at_their_lowest_peak_compute_the_same_bits,
            Need::OnnxRuntime
        ),
        trial!(
            bits::larger_models_at_their_lowest_peak_compute_the_same_bits,
            Need::OnnxRuntime,
            Need::Models
        ),
        trial!(
            bodies::subgraphs_take_what_is_predicted_and_keep_their_bits,
            Need::OnnxRuntime
        ),
        trial!(bodies::a_subgraph_that_fits_stays_as_it_came),
        trial!(bodies::plans_of_subgraphs_replay_and_wrong_ones_are_rejected),
        trial!(bits::different_inputs_give_different_bits, Need::OnnxRuntime),
        trial!(bits::a_missing_library_is_an_error),
        trial!(bits::a_missing_model_is_an_error, Need::OnnxRuntime),
        trial!(branch::nodes_in_a_branch_compute_the_same_bits, Need::OnnxRuntime),
        trial!(branch::the_signature_stays_no_weight_is_there_twice_and_the_file_opens_again),
        trial!(branch::files_with_a_branch_pass_the_checker_of_onnx, Need::Python),
        trial!(
            branch::later_runs_of_a_branch_take_what_is_predicted_which_is_what_the_first_one_takes,
            Need::OnnxRuntime
        ),
        trial!(deploy::what_is_predicted_is_what_is_measured, Need::OnnxRuntime),
        trial!(
            deploy::a_kernel_that_overwrites_its_operand_does_so_in_plans_and_files,
            Need::OnnxRuntime
        ),
        trial!(deploy::without_the_runtime_the_model_itself_is_written_and_nothing_measured),
        trial!(
            deploy::what_is_written_without_the_runtime_computes_the_same,
            Need::OnnxRuntime
        ),
        trial!(deploy::a_budget_that_cannot_be_met_leaves_no_file),
        trial!(deploy::a_budget_is_refused_after_every_strategy, Need::OnnxRuntime),
        trial!(deploy::only_models_run_in_the_runtime),
        trial!(
            monotone::no_budget_is_answered_by_more_time_than_none_is_in_own_models,
            Need::OnnxRuntime
        ),
        trial!(
            monotone::no_budget_is_answered_by_more_time_than_none_is_in_larger_models,
            Need::OnnxRuntime,
            Need::Models,
            Need::Nightly
        ),
        trial!(
            deploy::at_the_end_of_the_time_a_verified_file_is_there_and_what_is_missing_is_told,
            Need::OnnxRuntime
        ),
        trial!(deploy::a_cancelled_deployment_leaves_no_file, Need::OnnxRuntime),
        trial!(
            deploy::an_original_that_never_ends_is_an_error_within_the_limit_and_what_is_granted_beyond,
            Need::OnnxRuntime
        ),
        trial!(features::each_feature_is_recomputed),
        trial!(
            features::each_feature_survives_the_recompute_of_what_it_touches,
            Need::OnnxRuntime
        ),
        trial!(findings::a_kernel_that_works_in_place_still_does, Need::OnnxRuntime),
        trial!(findings::subgraphs_take_what_the_simulation_says, Need::OnnxRuntime),
        trial!(
            findings::images_that_the_runtime_lays_out_in_blocks_keep_their_bits,
            Need::OnnxRuntime
        ),
        trial!(
            findings::convolutions_in_blocks_are_recomputed_in_blocks,
            Need::OnnxRuntime
        ),
        trial!(findings::copies_out_of_blocks_are_made_in_one_order, Need::OnnxRuntime),
        trial!(
            findings::dimensions_that_are_given_count_in_what_is_predicted,
            Need::OnnxRuntime
        ),
        trial!(
            findings::sizes_that_the_data_decides_are_measured_on_the_way,
            Need::OnnxRuntime
        ),
        trial!(
            findings::names_that_fusing_writes_twice_are_no_reason_not_to_fuse,
            Need::OnnxRuntime
        ),
        trial!(findings::what_was_written_with_room_for_the_arena_can_be_read_again),
        trial!(fission::tiled_models_compute_the_same_bits, Need::OnnxRuntime),
        trial!(fission::a_part_that_is_computed_twice_is_not_merged, Need::OnnxRuntime),
        trial!(fission::weights_are_cut_and_constants_shared),
        trial!(fission::equal_pieces_of_weights_are_one),
        trial!(fission::weights_in_another_file_are_cut_by_a_node, Need::OnnxRuntime),
        trial!(
            fission::bounds_are_attributes_where_the_operators_are_old,
            Need::OnnxRuntime
        ),
        trial!(fission::tiled_models_pass_the_checker_of_onnx, Need::Python),
        trial!(
            streamed::two_passes_are_as_accurate_as_the_kernels_of_the_runtime,
            Need::OnnxRuntime
        ),
        trial!(
            streamed::what_rounds_otherwise_is_close_and_what_computes_otherwise_is_apart,
            Need::OnnxRuntime
        ),
        trial!(
            measure::two_measurements_of_one_model_agree_in_memory_and_bits,
            Need::OnnxRuntime
        ),
        trial!(
            measure::an_arena_takes_more_than_the_tensors_and_keeps_it,
            Need::OnnxRuntime
        ),
        trial!(
            measure::times_of_a_model_and_itself_are_about_the_same,
            Need::OnnxRuntime
        ),
        trial!(
            measure::a_model_that_cannot_be_loaded_and_a_child_that_dies_are_errors,
            Need::OnnxRuntime
        ),
        trial!(measure::elements_that_differ_are_counted, Need::OnnxRuntime),
        trial!(
            measure::the_optimized_model_computes_the_same_and_has_the_same_signature,
            Need::OnnxRuntime
        ),
        trial!(measure::a_provider_that_the_library_lacks_is_named, Need::OnnxRuntime),
        trial!(measure::a_model_that_never_ends_is_stopped_and_named, Need::OnnxRuntime),
        trial!(
            measure::runs_that_do_not_fit_into_the_time_are_left_out_but_for_the_first,
            Need::OnnxRuntime
        ),
        trial!(
            profile::every_op_of_every_feature_has_a_time_under_its_name,
            Need::OnnxRuntime
        ),
        trial!(
            profile::every_op_of_larger_models_has_a_time_under_its_name,
            Need::OnnxRuntime,
            Need::Models,
            Need::Nightly
        ),
        trial!(profile::fused_nodes_are_profiled_at_higher_levels, Need::OnnxRuntime),
        trial!(profile::inputs_can_be_given_and_must_fit, Need::OnnxRuntime),
        trial!(profile::what_is_no_library_of_the_runtime_is_named_in_the_error),
        trial!(
            stress::features_survive_random_recomputes_in_random_order,
            Need::OnnxRuntime
        ),
        trial!(
            stress::training_steps_survive_random_recomputes_in_random_order,
            Need::OnnxRuntime
        ),
        trial!(
            stress::larger_models_survive_random_recomputes,
            Need::OnnxRuntime,
            Need::Models,
            Need::Nightly
        ),
    ])
}
