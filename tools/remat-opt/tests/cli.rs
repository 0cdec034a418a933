//! The command line as users meet it: what it prints on both streams, and how it ends.

use std::path::{Path, PathBuf};
use std::process::Command;

use insta_cmd::{assert_cmd_snapshot, get_cargo_bin};

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace exists")
}

/// The program, run in `test/` with a fixed terminal width.
fn remat_opt(args: &[&str]) -> Command {
    let mut command = Command::new(get_cargo_bin("remat-opt"));
    command
        .args(args)
        .current_dir(workspace().join("test"))
        .env("COLUMNS", "100")
        .env_remove("REMAT_LOG");
    command
}

/// Times and search steps differ from run to run; so do folders.
fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"time      \d+\.\d+ s", "time      [TIME] s");
    settings.add_filter(r#""(seconds|elapsed_ms|steps)": [\d.]+"#, r#""$1": "[N]""#);
    settings.add_filter(r#""problem": "[0-9a-f]{16}""#, r#""problem": "[DIGEST]""#);
    // The column of seconds in a comparison; widths follow from it.
    settings.add_filter(
        r" +\d+\.\d{3}  (yes|no|refused|impossible|not tried)",
        "  [SECONDS]  $1",
    );
    // What else there is depends on the build.
    settings.add_filter(r"(?s)known are `auto`, `search`.*", "known are `auto`, `search`[MORE]");
    settings.add_filter(r"/[^\s`]*/out\.", "[FOLDER]/out.");
    settings
}

macro_rules! assert_run {
    ($($arg:expr),* $(,)?) => {
        settings().bind(|| assert_cmd_snapshot!(remat_opt(&[$($arg),*])));
    };
}

#[test]
fn help_is_worth_reading() {
    assert_run!("--help");
}

#[test]
fn short_help_fits_a_screen() {
    assert_run!("-h");
}

#[test]
fn a_graph_is_solved_to_a_budget() {
    assert_run!(
        "cli/training_chain.json",
        "--budget",
        "80%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search"
    );
}

#[test]
fn the_report_is_json_on_request() {
    assert_run!(
        "cli/training_chain.json",
        "--budget",
        "80%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search",
        "--format",
        "json"
    );
}

#[test]
fn a_budget_below_the_largest_op_names_the_op() {
    assert_run!("cli/training_chain.json", "--budget", "1MiB");
}

#[test]
fn the_lowest_peak_is_found() {
    assert_run!(
        "cli/training_chain.json",
        "--budget",
        "min",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search"
    );
}

#[test]
fn a_model_is_inspected() {
    assert_run!("inspect", "cli/training_chain.json");
}

#[test]
fn a_wrong_plan_is_rejected_with_every_violation() {
    assert_run!("verify", "cli/training_chain.json", "cli/wrong_plan.json");
}

#[test]
fn a_wrong_plan_is_rejected_in_json_too() {
    assert_run!(
        "verify",
        "cli/training_chain.json",
        "cli/wrong_plan.json",
        "--format",
        "json"
    );
}

#[test]
fn rules_are_listed_and_explained() {
    assert_run!("explain");
    assert_run!("explain", "v006");
    assert_run!("explain", "V999");
}

#[test]
fn simulation_has_a_help_of_its_own() {
    assert_run!("simulate", "--help");
}

#[test]
fn one_replay_of_a_log_is_one_object() {
    assert_run!("simulate", "dtr-logs/training_step.log", "--ratio", "0.8");
}

#[test]
fn several_replays_of_a_log_are_a_table() {
    let log = "dtr-logs/training_step.log";
    assert_run!(
        "simulate",
        log,
        "--heuristic",
        "all",
        "--ratio",
        "1,0.8,50%",
        "--trials",
        "3"
    );
    assert_run!(
        "simulate",
        log,
        "--budget",
        "12kB",
        "--runtime",
        "banish",
        "--format",
        "text"
    );
    assert_run!("simulate", log, "--ratio", "0.9,0.7", "--format", "json");
}

#[test]
fn a_broken_log_is_refused_with_its_line() {
    assert_run!("simulate", "dtr-logs/invalid/alias_missing.log");
    assert_run!("dtr-logs/invalid/alias_missing.log");
}

#[test]
fn an_unknown_heuristic_lists_what_exists() {
    assert_run!("simulate", "dtr-logs/training_step.log", "--heuristic", "oracle");
}

#[test]
fn a_log_is_planned_like_a_model() {
    assert_run!(
        "dtr-logs/training_step.log",
        "--solver",
        "dtr:dtr-eq",
        "--budget",
        "70%"
    );
}

#[test]
fn a_missing_file_is_an_input_error() {
    assert_run!("no-such-model.onnx");
}

#[test]
fn a_file_of_another_kind_is_an_input_error() {
    assert_run!("cli/README.md");
}

#[test]
fn a_budget_that_is_none_is_a_usage_error() {
    assert_run!("cli/training_chain.json", "--budget", "a lot");
}

#[test]
fn a_graph_has_no_model_to_rewrite() {
    assert_run!("cli/training_chain.json", "-o", "out.onnx");
}

#[test]
fn an_unknown_extension_is_refused_before_the_search() {
    assert_run!("cli/training_chain.json", "-o", "out.txt");
}

#[test]
fn the_input_is_never_overwritten() {
    assert_run!("cli/training_chain.json", "-o", "cli/training_chain.json");
}

#[test]
fn unknown_devices_and_solvers_list_what_exists() {
    assert_run!("cli/training_chain.json", "--solver", "oracle");
    assert_run!("models/unet_tiny_train.onnx", "--device", "abacus");
}

#[test]
fn a_real_model_is_rewritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.onnx");
    let run = remat_opt(&[
        "models/unet_tiny_train.onnx",
        "-o",
        out.to_str().expect("UTF-8"),
        "--budget",
        "80%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search",
    ])
    .output();
    let run = run.expect("the program runs");
    assert!(run.status.success() && out.exists());
    settings().bind(|| insta::assert_snapshot!(String::from_utf8_lossy(&run.stdout)));
}

#[test]
fn help_of_the_sweep_is_worth_reading() {
    assert_run!("sweep", "--help");
}

#[test]
fn a_sweep_prints_the_front_and_what_is_impossible() {
    assert_run!(
        "sweep",
        "cli/training_chain.json",
        "--budgets",
        "90%..70%:10%,4MiB,50%,min",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search"
    );
}

#[test]
fn a_sweep_is_json_on_request() {
    assert_run!(
        "sweep",
        "cli/training_chain.json",
        "--budgets",
        "80%,1%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search",
        "--format",
        "json"
    );
}

#[test]
fn a_sweep_without_any_plan_is_a_finding() {
    assert_run!("sweep", "cli/training_chain.json", "--budgets", "1%,2%");
}

#[test]
fn a_sweep_refuses_budgets_without_bytes() {
    assert_run!("sweep", "cli/training_chain.json", "--budgets", "90%,auto");
}

#[test]
fn a_sweep_refuses_to_continue_what_is_no_front() {
    assert_run!("sweep", "cli/training_chain.json", "-o", "cli/training_chain.json");
}

/// The second run takes everything from the file of the first one; the chart shows the floor and what is impossible.
#[test]
fn a_sweep_is_continued_and_drawn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (front, chart) = (path("front.json"), path("front.svg"));
    let run = || {
        let arguments = [
            "sweep",
            "cli/training_chain.json",
            "--budgets",
            "80%,60%,1%",
            "--step-limit",
            "20000",
        ];
        let mut command = remat_opt(&arguments);
        let output = command
            .args(["--threads", "1", "--solver", "search", "-o", &front, "--svg", &chart])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        let table: Vec<_> = stdout.lines().filter(|line| !line.starts_with("time")).collect();
        (table.join("\n"), std::fs::read_to_string(&front).expect("written"))
    };
    let first = run();
    assert_eq!(run(), first);
    let svg = std::fs::read_to_string(&chart).expect("written");
    for words in [
        "<svg",
        "floor, 57.1 %",
        "impossible",
        "plans of `search`",
        "training_chain: memory against time",
    ] {
        assert!(svg.contains(words), "the chart lacks `{words}`");
    }
}

#[test]
fn help_of_the_comparison_is_worth_reading() {
    assert_run!("compare", "--help");
}

#[test]
fn a_comparison_prints_every_solver_under_every_budget() {
    assert_run!(
        "compare",
        "cli/training_chain.json",
        "--budgets",
        "90%,70%,1%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solvers",
        "search,dtr,no-such-solver"
    );
}

#[test]
fn a_comparison_is_json_on_request() {
    assert_run!(
        "compare",
        "cli/training_chain.json",
        "--budgets",
        "70%,1%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solvers",
        "search",
        "--format",
        "json"
    );
}

#[test]
fn a_comparison_without_any_solver_lists_what_exists() {
    assert_run!("compare", "cli/training_chain.json", "--solvers", "oracle");
}

#[test]
fn a_comparison_refuses_budgets_without_bytes() {
    assert_run!("compare", "cli/training_chain.json", "--budgets", "min");
}

/// Figures and chart of one run.
#[test]
fn a_comparison_is_written_and_drawn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (figures, chart) = (path("figures.json"), path("chart.svg"));
    let arguments = [
        "compare",
        "cli/training_chain.json",
        "--budgets",
        "80%,60%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solvers",
        "auto,search",
        "-o",
        &figures,
        "--svg",
        &chart,
    ];
    let output = remat_opt(&arguments).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures = std::fs::read_to_string(&figures).expect("written");
    assert_eq!(figures.matches("\"finding\": \"plan\"").count(), 4, "{figures}");
    let svg = std::fs::read_to_string(&chart).expect("written");
    for words in [
        "<svg",
        "floor, 57.1 %",
        "auto",
        "search",
        "training_chain: solvers side by side",
    ] {
        assert!(svg.contains(words), "the chart lacks `{words}`");
    }
}

#[test]
fn help_of_the_largest_batch_is_worth_reading() {
    assert_run!("max-batch", "--help");
}

#[test]
fn the_largest_batch_of_a_model_is_found() {
    assert_run!(
        "max-batch",
        "models/features/dynamic_batch.onnx",
        "--batch-dim",
        "batch",
        "--memory",
        "100KiB",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search"
    );
}

#[test]
fn the_largest_batch_of_a_graph_is_found() {
    assert_run!(
        "max-batch",
        "cli/training_chain.json",
        "--batch-factor",
        "4",
        "--memory",
        "36MiB",
        "--fixed-memory",
        "8MiB",
        "--max-overhead",
        "10%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search"
    );
}

#[test]
fn the_largest_batch_is_json_on_request() {
    assert_run!(
        "max-batch",
        "cli/training_chain.json",
        "--batch-factor",
        "--memory",
        "12MiB",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search",
        "--format",
        "json"
    );
}

#[test]
fn memory_for_no_batch_at_all_is_a_finding() {
    assert_run!(
        "max-batch",
        "cli/training_chain.json",
        "--batch-factor",
        "--memory",
        "1MiB"
    );
}

#[test]
fn the_batch_has_to_be_named() {
    assert_run!("max-batch", "models/features/dynamic_batch.onnx", "--memory", "1MiB");
    assert_run!(
        "max-batch",
        "models/features/dynamic_batch.onnx",
        "--memory",
        "1MiB",
        "--batch-dim",
        "bunch"
    );
    assert_run!(
        "max-batch",
        "models/unet_tiny_train.onnx",
        "--memory",
        "1MiB",
        "--batch-factor"
    );
}

#[test]
fn a_solver_that_refuses_is_told_from_one_that_finds_nothing() {
    assert_run!("cli/training_chain.json", "--budget", "80%", "--solver", "griewank");
    assert_run!(
        "compare",
        "cli/training_chain.json",
        "--budgets",
        "80%",
        "--step-limit",
        "20000",
        "--solvers",
        "griewank,search",
        "--threads",
        "1"
    );
}

/// A plan written by one run is accepted by `verify` and applied by another run.
#[test]
fn a_plan_travels_between_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (plan, direct, applied) = (path("plan.json"), path("direct.remat"), path("applied.remat"));
    let model = "models/unet_tiny_train.onnx";
    let run = |args: &[&str]| {
        let output = remat_opt(args).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&[
        model,
        "-o",
        &direct,
        "--budget",
        "80%",
        "--step-limit",
        "20000",
        "--threads",
        "1",
        "--solver",
        "search",
        "--emit-plan",
        &plan,
    ]);
    run(&["verify", model, &plan]);
    run(&[model, "-o", &applied, "--plan", &plan]);
    let read = |path: &str| std::fs::read_to_string(path).expect("written");
    assert_eq!(read(&direct), read(&applied));
    assert!(read(&direct).contains("recompute"), "the plan recomputes something");
}

/// What the runs with a second memory have in common.
const ON_A_BOARD: [&str; 12] = [
    "models/unet_tiny_train.onnx",
    "--device",
    "raspberry-pi-4",
    "--budget",
    "70%",
    "--step-limit",
    "2000",
    "--time-limit",
    "10m",
    "--threads",
    "1",
    "--quiet",
];

fn on_a_board(more: &[&str]) -> Command {
    let mut args = ON_A_BOARD.to_vec();
    args.extend_from_slice(more);
    remat_opt(&args)
}

#[test]
fn results_move_to_the_second_memory_and_the_plan_is_verified_with_a_timeline() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (plan, timeline) = (path("out.json"), path("out.svg"));
    let more = [
        "--paging",
        "dma",
        "--objective",
        "energy",
        "--deadline",
        "1.5x",
        "-o",
        &plan,
    ];
    settings().bind(|| assert_cmd_snapshot!(on_a_board(&more)));
    let verify = [
        "verify",
        ON_A_BOARD[0],
        &plan,
        "--device",
        "raspberry-pi-4",
        "--paging",
        "dma",
    ];
    let mut command = remat_opt(&verify);
    command.args(["--timeline", &timeline]);
    settings().bind(|| assert_cmd_snapshot!(command));
    let drawn = std::fs::read_to_string(timeline).expect("the timeline is written");
    assert!(drawn.contains("processor") && drawn.contains("bus"));
}

#[test]
fn a_plan_that_moves_results_is_not_written_as_a_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("out.onnx").display().to_string();
    let more = ["--paging", "sync", "--no-remat", "-o", &model];
    let output = on_a_board(&more).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
    assert!(message.contains("only a plan (`.json`) can say"), "{message}");
    assert!(!folder.path().join("out.onnx").exists());
}

#[test]
fn a_second_memory_and_energies_have_to_be_known() {
    assert_run!("models/unet_tiny_train.onnx", "--paging", "dma");
    assert_run!(
        "models/unet_tiny_train.onnx",
        "--objective",
        "energy",
        "--budget",
        "80%"
    );
    assert_run!("models/unet_tiny_train.onnx", "--deadline", "soon");
}

#[test]
fn a_deadline_that_no_plan_meets_is_a_finding() {
    let output = on_a_board(&["--deadline", "0.9x"]).output().expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
