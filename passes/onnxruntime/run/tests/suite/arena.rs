//! With the memory arena on, as it is where nothing is set, what was written takes no more than the original.

use std::path::{Path, PathBuf};
use std::time::Duration;

use remat::solver::SolveControl;
use remat_onnxruntime_run::{MeasureOptions, Peaks, SessionSettings, measure};

use remat_testing::{is_nightly, workspace};

use crate::common::{models, runtime};
use crate::deploy::{deployed_within, host};
use crate::measure::{child_program, runner};

/// Peaks of the first run and of later ones, in a process of its own.
fn peaks(model: &Path) -> Peaks {
    let child = child_program();
    let runner = runner(&child, runtime().library());
    let measured = measure(&runner, model, &SessionSettings::stock(), &MeasureOptions::default());
    let measured = measured.unwrap_or_else(|error| panic!("{}: {error}", model.display()));
    measured.peaks.expect("there is a meter")
}

/// What a peak may differ by from one process to the next: tables and names, not tensors.
fn tolerated(bytes: u64) -> u64 {
    bytes + bytes / 100 + (1 << 17)
}

fn assert_no_more(paths: impl IntoIterator<Item = PathBuf>) {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let out = temporary.path().join("out.onnx");
    let (mut lower, mut measured) = (0, 0);
    for model in paths {
        // However busy the machine is: the search ends by its steps, and measuring takes as long as it takes.
        let control = SolveControl::new()
            .step_limit(5_000)
            .time_limit(Duration::from_secs(3_600));
        let found = deployed_within(&model, &out, "auto", Some(&host()), &control);
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", model.display()));
        if !found.is_written || !found.arena_is_measured() {
            continue;
        }
        let (before, after) = (peaks(&model), peaks(&out));
        let message = format!("{}, {}: {before:?} became {after:?}", model.display(), found.strategy);
        assert!(after.first <= tolerated(before.first), "{message}");
        let later = |peaks: &Peaks| peaks.steady.expect("there were warm runs");
        // What there was no time to measure is a prediction.
        if found.arena_steady_is_measured() {
            assert!(later(&after) <= tolerated(later(&before)), "{message}");
            measured += 1;
        }
        lower += usize::from(after.first < before.first);
    }
    assert!(measured > 0, "no later run was measured: the test shows nothing");
    assert!(lower > 0, "nothing became lower: the test shows nothing");
}

pub(crate) fn own_models_take_no_more_with_the_arena_than_they_did() {
    assert_no_more(models("test/models"));
}

pub(crate) fn larger_models_take_no_more_with_the_arena_than_they_did() {
    // One whose arena shrinks, and one whose arena would grow by a region.
    // Dense networks are left out: a search of whole ops with as many steps takes minutes on them.
    let names: &[&str] = if is_nightly() {
        &["swin_t_infer", "unet_infer"]
    } else {
        &["swin_t_infer"]
    };
    assert_no_more(
        names
            .iter()
            .map(|name| workspace().join(format!("../shared/models/{name}.onnx"))),
    );
}
