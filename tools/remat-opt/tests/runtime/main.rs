//! The command line where it runs models in ONNX Runtime, or proves with OR-Tools.

mod budgets;
#[cfg(target_os = "linux")]
mod check;
#[path = "../cli/common.rs"]
mod common;
#[cfg(target_os = "linux")]
mod memory;
mod models;
#[cfg(target_os = "linux")]
#[path = "../cli/process.rs"]
mod process;
mod proofs;
#[cfg(target_os = "linux")]
mod signals;

use std::process::{Command, ExitCode};

use common::{Folder, assert_contains_all, remat_opt, stdout_of};
use remat_testing::{Need, run, runtime_library, trial};

fn main() -> ExitCode {
    let models = [
        trial!(models::a_model_computes_what_it_computes, Need::OnnxRuntime),
        trial!(
            models::the_first_output_that_differs_is_named_and_is_a_finding,
            Need::OnnxRuntime
        ),
        trial!(
            models::a_model_that_cannot_be_loaded_is_an_input_error,
            Need::OnnxRuntime
        ),
        trial!(models::a_measured_profile_is_used_like_any_other, Need::OnnxRuntime),
        trial!(
            models::times_of_a_profile_are_carried_over_to_fused_nodes,
            Need::OnnxRuntime
        ),
        trial!(models::ops_are_measured_where_a_file_is_written, Need::OnnxRuntime),
        trial!(
            models::no_file_is_written_where_none_takes_less_unless_it_is_forced,
            Need::OnnxRuntime
        ),
        trial!(models::the_slowest_ops_are_listed, Need::OnnxRuntime),
        trial!(models::inputs_come_from_a_folder_and_must_fit, Need::OnnxRuntime),
        trial!(
            models::a_plan_for_a_fused_graph_is_checked_on_that_graph,
            Need::OnnxRuntime
        ),
        trial!(
            models::a_plan_for_a_laid_out_graph_is_checked_on_that_graph,
            Need::OnnxRuntime
        ),
        trial!(models::a_plan_for_tiles_is_checked_on_tiles, Need::OnnxRuntime),
        trial!(budgets::the_exit_status_is_that_of_the_measured_peak, Need::OnnxRuntime),
        trial!(
            budgets::a_budget_that_no_file_keeps_is_said_first_and_nothing_is_written_unless_forced,
            Need::OnnxRuntime
        ),
        trial!(
            budgets::the_first_figures_are_measured_on_both_models,
            Need::OnnxRuntime
        ),
        trial!(budgets::a_model_without_nodes_ends, Need::OnnxRuntime),
    ];
    #[cfg(target_os = "linux")]
    let signals = [
        trial!(
            signals::a_signal_while_a_model_is_measured_leaves_no_process_and_no_file,
            Need::OnnxRuntime
        ),
        trial!(
            signals::a_process_that_runs_a_model_dies_with_the_program,
            Need::OnnxRuntime
        ),
        trial!(
            signals::a_model_that_never_ends_reaches_the_limit_and_is_named,
            Need::OnnxRuntime
        ),
    ];
    #[cfg(target_os = "linux")]
    let memory = [
        trial!(
            memory::a_plan_is_written_beside_a_model_that_stays_as_it_came,
            Need::OnnxRuntime
        ),
        trial!(memory::one_plan_serves_every_value_of_a_dimension, Need::OnnxRuntime),
        trial!(
            memory::a_budget_is_kept_for_all_shapes_or_the_exit_status_says_for_how_many_it_is,
            Need::OnnxRuntime
        ),
        trial!(memory::shapes_come_from_a_file_of_what_was_seen, Need::OnnxRuntime),
        trial!(
            memory::without_a_plan_no_other_one_stays_beside_the_file,
            Need::OnnxRuntime
        ),
        trial!(memory::a_plan_needs_a_model_that_is_written, Need::OnnxRuntime),
        trial!(
            memory::settings_are_tried_and_none_is_recommended_with_which_the_process_grows,
            Need::OnnxRuntime
        ),
    ];
    #[cfg(target_os = "linux")]
    let check = [
        trial!(
            check::what_is_checked_is_what_the_main_command_measures_of_the_original,
            Need::OnnxRuntime
        ),
        trial!(check::a_limit_is_about_what_was_measured, Need::OnnxRuntime),
        trial!(
            check::a_model_that_grew_is_told_by_what_was_measured_before_and_now,
            Need::OnnxRuntime
        ),
        trial!(
            check::a_model_that_does_not_run_is_no_model_within_its_limit,
            Need::OnnxRuntime
        ),
    ];
    #[cfg(not(target_os = "linux"))]
    let (signals, memory, check) = ([], [], []);
    let proofs = [
        trial!(proofs::a_plan_is_proved_where_or_tools_is_found, Need::OrTools),
        trial!(proofs::every_solver_takes_part_in_a_comparison, Need::OrTools),
    ];
    run(models
        .into_iter()
        .chain(signals)
        .chain(memory)
        .chain(check)
        .chain(proofs))
}

/// The command line with the runtime's library named.
fn with_runtime(line: &str) -> Command {
    let mut command = remat_opt(line);
    command.arg("--ort-library").arg(runtime_library());
    command
}
