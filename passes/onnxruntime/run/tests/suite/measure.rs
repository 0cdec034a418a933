//! Memory, time and bits of a run, in a process of its own. The child is a small program beside the tests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use remat_onnxruntime_run::{
    ChildCommand, ChildLimits, MeasureOptions, Measurement, OptimizationLevel, PairOptions, Provider, Runner,
    RuntimeError, SessionSettings, compare_bits, compare_time, measure, optimize, run_seeded,
};

use remat_testing::workspace;

use crate::common::runtime;

/// Whether the heap of a child process can be metered here.
const HAS_METER: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

/// The program that runs models for these tests.
pub(crate) fn child_program() -> ChildCommand {
    ChildCommand {
        program: env!("CARGO_BIN_EXE_remat-onnxruntime-run-child").into(),
        arguments: Vec::new(),
    }
}

/// Runs models in that program, for as long as it takes.
pub(crate) fn runner<'a>(child: &'a ChildCommand, library: &'a Path) -> Runner<'a> {
    Runner {
        child,
        library,
        limits: ChildLimits::default(),
    }
}

fn unet() -> PathBuf {
    workspace().join("test/models/unet_tiny_train.onnx")
}

fn exact() -> SessionSettings {
    SessionSettings::exact(OptimizationLevel::All)
}

fn measured(library: &Path, model: &Path, settings: &SessionSettings) -> Measurement {
    let options = MeasureOptions {
        runs: 2,
        seeds: vec![7, 8],
        time: None,
    };
    measure(&runner(&child_program(), library), model, settings, &options).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn two_measurements_of_one_model_agree_in_memory_and_bits() {
    let runtime = runtime();
    let once = measured(runtime.library(), &unet(), &exact());
    let again = measured(runtime.library(), &unet(), &exact());
    assert_eq!(once.outputs, again.outputs);
    assert_eq!(once.first_difference(&again), None);
    assert_ne!(
        once.outputs[0].outputs, once.outputs[1].outputs,
        "two seeds, two answers"
    );
    assert!(once.finite);
    assert!(once.min_ns > 0 && once.min_ns <= once.median_ns);
    // No system hands out a GiB in 10 us, and none takes 10 s.
    assert!((10..10_000_000).contains(&once.fresh_ns_per_mib), "{once:?}");
    if cfg!(target_os = "linux") {
        // Its largest result has 1 MiB; what the C library keeps comes on top.
        let resident = once.resident.expect("the system tells");
        assert!((1 << 20..1 << 28).contains(&resident.first), "{resident:?}");
        assert!(resident.later.is_some_and(|later| later > 1 << 19), "{resident:?}");
    }
    if !HAS_METER {
        assert!(once.peaks.is_err());
        return;
    }
    let (once, again) = (
        once.peaks.expect("there is a meter"),
        again.peaks.expect("there is a meter"),
    );
    // Its largest result has 1 MiB.
    assert!(once.first > 1 << 20, "{once:?}");
    assert!(once.first.abs_diff(again.first) < 300_000, "{once:?} {again:?}");
    let steady = once.steady.expect("there were warm runs");
    assert!(once.first.abs_diff(steady) < 300_000, "{once:?}");
}

pub(crate) fn an_arena_takes_more_than_the_tensors_and_keeps_it() {
    let runtime = runtime();
    let measured = |settings| measured(runtime.library(), &unet(), settings);
    let (exact, stock) = (measured(&exact()), measured(&SessionSettings::stock()));
    assert_eq!(exact.arena_peak, None);
    let in_use = stock.arena_peak.expect("the arena states what is in use");
    if !HAS_METER {
        assert!(exact.peaks.is_err());
        return;
    }
    let [exact, stock] = [exact.peaks, stock.peaks].map(|peaks| peaks.expect("there is a meter"));
    assert!(stock.first > exact.first, "{stock:?} {exact:?}");
    assert!(stock.steady > exact.steady, "{stock:?} {exact:?}");
    assert!(in_use > 1 << 20 && Some(in_use) <= stock.steady, "{in_use} {stock:?}");
}

pub(crate) fn times_of_a_model_and_itself_are_about_the_same() {
    let runtime = runtime();
    let model = unet();
    let pair = (model.as_path(), model.as_path());
    let options = PairOptions {
        pairs: 4,
        seed: 0,
        time: None,
    };
    let times = compare_time(&runner(&child_program(), runtime.library()), pair, &exact(), options).expect("it runs");
    assert!(
        times.base_min_ns > 0 && times.base_min_ns <= times.base_median_ns,
        "{times:?}"
    );
    assert!(times.other_min_ns > 0 && times.ratio > 0.0, "{times:?}");
}

pub(crate) fn a_model_that_cannot_be_loaded_and_a_child_that_dies_are_errors() {
    let runtime = runtime();
    let options = MeasureOptions::default();
    let missing = Path::new("no/such/model.onnx");
    let error = measure(
        &runner(&child_program(), runtime.library()),
        missing,
        &exact(),
        &options,
    )
    .unwrap_err();
    assert!(matches!(error, RuntimeError::Load { .. }), "{error}");

    let silent = ChildCommand {
        program: std::env::current_exe().expect("the test program is a file"),
        arguments: vec!["--no-such-option".into()],
    };
    let error = measure(&runner(&silent, runtime.library()), &unet(), &exact(), &options).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Child { why, .. } if why.contains("try '--help'")),
        "{error}"
    );
}

pub(crate) fn elements_that_differ_are_counted() {
    let runtime = runtime();
    let (here, there) = (unet(), workspace().join("test/models/mlp_tiny_train.onnx"));
    let compare = |other: &Path| {
        compare_bits(
            &runner(&child_program(), runtime.library()),
            (&here, other),
            &exact(),
            0,
        )
    };
    assert_eq!(compare(&here).expect("it runs"), []);
    let found = compare(&there).expect("they run");
    assert!(found.iter().any(|difference| difference.form.is_some()), "{found:?}");
}

pub(crate) fn the_optimized_model_computes_the_same_and_has_the_same_signature() {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["unet_tiny_train", "features/external_data", "features/dynamic_batch"] {
        let model = workspace().join(format!("test/models/{name}.onnx"));
        let out = folder.path().join("out.onnx");
        optimize(
            &runner(&child_program(), runtime.library()),
            &model,
            OptimizationLevel::Extended,
            &out,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let run = |model: &Path, level| {
            let outputs = run_seeded(runtime, model, &SessionSettings::exact(level), 3);
            outputs.unwrap_or_else(|error| panic!("{error}"))
        };
        assert_eq!(
            run(&model, OptimizationLevel::Extended),
            run(&out, OptimizationLevel::Off),
            "{name}"
        );
        let data = folder.path().join("out.onnx.data");
        assert_eq!(data.exists(), name.ends_with("external_data"), "{name}");
        let _ = std::fs::remove_file(data);
    }
    let error = optimize(
        &runner(&child_program(), runtime.library()),
        Path::new("no/model.onnx"),
        OptimizationLevel::Basic,
        &folder.path().join("none.onnx"),
    )
    .unwrap_err();
    assert!(matches!(error, RuntimeError::Load { .. }), "{error}");
}

pub(crate) fn a_provider_that_the_library_lacks_is_named() {
    let runtime = runtime();
    let settings = SessionSettings {
        provider: Provider::Cuda(0),
        ..exact()
    };
    let options = MeasureOptions::default();
    match measure(
        &runner(&child_program(), runtime.library()),
        &unet(),
        &settings,
        &options,
    ) {
        Ok(measured) => {
            let peaks = measured.peaks.as_ref().expect("the provider's arena states its peak");
            assert!(peaks.first > 1 << 20, "{peaks:?}");
            assert_eq!(measured.first_difference(&measured), None);
        }
        Err(RuntimeError::Provider { provider, .. }) => {
            assert_eq!(provider, "cuda:0");
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn a_model_that_never_ends_is_stopped_and_named() {
    let runtime = runtime();
    let child = child_program();
    let runner = Runner {
        limits: ChildLimits {
            time: Some(Duration::from_secs(3)),
            cancel: None,
        },
        ..runner(&child, runtime.library())
    };
    let model = workspace().join("test/cli/infinite_loop.onnx");
    let error = measure(&runner, &model, &exact(), &MeasureOptions::default()).unwrap_err();
    assert!(matches!(error, RuntimeError::TimedOut { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("infinite_loop.onnx` did not finish within 3 s"), "{text}");
}

pub(crate) fn runs_that_do_not_fit_into_the_time_are_left_out_but_for_the_first() {
    let runtime = runtime();
    let measured = |time| {
        let options = MeasureOptions {
            runs: 2,
            seeds: vec![7, 8],
            time,
        };
        let child = child_program();
        measure(&runner(&child, runtime.library()), &unet(), &exact(), &options)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let short = measured(Some(Duration::ZERO));
    assert_eq!((short.warm_runs, short.outputs.len()), (0, 1));
    assert!(short.first_ns > 0 && short.median_ns == short.first_ns);
    assert!(short.peaks.as_ref().is_ok_and(|peaks| peaks.steady.is_none()) || short.peaks.is_err());
    let long = measured(Some(Duration::from_secs(600)));
    assert_eq!((long.warm_runs, long.outputs.len()), (2, 2));
    assert_eq!(short.first_difference(&long), None);
}
