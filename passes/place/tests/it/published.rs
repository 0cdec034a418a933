//! Published and recorded buffers: MiniMalloc's challenging ones, and those of networks in ONNX Runtime.

use remat_place::{BufferFile, Outcome, load, place, read_csv};
use remat_plan::{Blocks, PlacementProof, Status};
use remat_solve::SolveControl;
use remat_testing::{Need, Trial, trial, workspace};
use remat_verify::check_placement_certificate;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(minimallocs_buffers_fit_into_a_mebibyte, Need::Offsets),
        trial!(all_but_one_of_minimallocs_are_placed_at_their_load, Need::Offsets),
        trial!(recorded_buffers_are_placed_at_their_load, Need::Offsets),
    ]
}

const MEBIBYTE: u64 = 1 << 20;
/// More than any of these needs, so that only a failure takes long.
const TRIES: u64 = 3_000_000;

fn buffers(name: &str) -> BufferFile {
    let path = workspace().join("../shared/offsets").join(name);
    let text = std::fs::read_to_string(path).expect("the file is there");
    read_csv(&text).expect("the file is well formed")
}

fn placed(file: &BufferFile, blocks: &Blocks, tries: u64) -> Outcome {
    let control = SolveControl::new().step_limit(tries).seed(1);
    let outcome = place(&file.buffers, blocks, None, &control).expect("the buffers are valid");
    let judged = check_placement_certificate(&file.buffers, blocks, outcome.placement.as_ref(), &outcome.certificate);
    if let Err(rejection) = judged {
        panic!("{rejection}");
    }
    outcome
}

fn minimallocs_buffers_fit_into_a_mebibyte() {
    for name in ["A", "B", "C", "D", "E", "F", "G", "H"] {
        let file = buffers(&format!("{name}.1048576.csv"));
        let outcome = placed(&file, &Blocks::Given(vec![MEBIBYTE]), TRIES);
        assert_eq!(outcome.certificate.status, Status::Optimal, "{name}");
    }
}

fn all_but_one_of_minimallocs_are_placed_at_their_load() {
    for (name, expected) in [
        ("A", MEBIBYTE),
        ("B", MEBIBYTE),
        ("C", 1_039_360),
        ("E", MEBIBYTE),
        ("F", MEBIBYTE),
        ("G", MEBIBYTE),
        ("H", MEBIBYTE),
    ] {
        let file = buffers(&format!("{name}.1048576.csv"));
        let certificate = placed(&file, &Blocks::Lowest, TRIES).certificate;
        assert_eq!(
            (certificate.status, certificate.proof),
            (Status::Optimal, PlacementProof::Load),
            "{name}"
        );
        assert_eq!(
            (certificate.height, load(&file.buffers)),
            (Some(expected), expected),
            "{name}"
        );
    }
}

fn recorded_buffers_are_placed_at_their_load() {
    for name in [
        "gpt_train_remat",
        "resnet18_train_remat",
        "unet_infer_remat",
        "unet_train_remat",
    ] {
        let file = buffers(&format!("{name}.csv"));
        let certificate = placed(&file, &Blocks::Lowest, TRIES).certificate;
        assert_eq!(certificate.height, Some(load(&file.buffers)), "{name}");
    }
}
