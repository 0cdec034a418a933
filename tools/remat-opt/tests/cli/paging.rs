//! Results that move to a second memory, energy and deadlines.

use crate::{Folder, remat_opt};

/// A model on a board, searched in the same way in every run.
const ON_A_BOARD: &str = "models/unet_tiny_train.onnx --device raspberry-pi-4 --budget 70% --step-limit 2000 --time-limit 10m --threads 1 -q";

#[test]
fn results_move_and_the_plan_is_verified_with_a_timeline() {
    // Run in the folder: snapshots hold the arguments, and must not name it.
    let folder = Folder::new();
    let model = crate::workspace().join("test/models/unet_tiny_train.onnx");
    std::fs::create_dir(folder.path("models")).expect("the folder is new");
    std::fs::copy(model, folder.path("models/unet_tiny_train.onnx")).expect("it can be copied");
    let in_folder = |line: &str| {
        let mut command = remat_opt(line);
        command.current_dir(folder.0.path());
        command
    };
    assert_run!(in_folder(&format!(
        "{ON_A_BOARD} --paging dma --objective energy --deadline 1.5x -o out.json -v"
    )));
    assert_run!(in_folder("verify models/unet_tiny_train.onnx out.json --svg out.svg"));
    crate::assert_contains_all(
        &folder.read("out.svg"),
        &["processor", "bus", "memory, KiB", "page out", "page in", "budget, "],
    );
}

#[test]
fn a_plan_that_moves_results_is_not_written_as_a_model() {
    let folder = Folder::new();
    let mut make = remat_opt(&format!("{ON_A_BOARD} --paging sync --no-remat"));
    let output = make.arg("-o").arg(folder.path("out.onnx")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
    crate::assert_contains_all(
        &message,
        &[
            "which ONNX cannot say",
            "--target ort",
            "--target plan",
            "--target mlir",
        ],
    );
    assert!(!folder.path("out.onnx").exists());
}

#[test]
fn a_plan_that_moves_results_is_written_as_a_schedule_and_as_text() {
    let folder = Folder::new();
    let written = |name: &str, options: &str| {
        let mut make = remat_opt(&format!("{ON_A_BOARD} --paging sync --no-remat {options}"));
        let output = make.arg("-o").arg(folder.path(name)).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    written("out.remat", "");
    crate::assert_contains_all(&folder.read("out.remat"), &["  page_out %", "  page_in %"]);
    written("out.dot", "");
    crate::assert_contains_all(&folder.read("out.dot"), &[": page_in\\n"]);
    written("out.sched", "--target plan");
    let verify = |changed: bool| {
        let path = folder.path("out.sched");
        if changed {
            let mut bytes = std::fs::read(&path).expect("it was written");
            bytes[9] ^= 1;
            std::fs::write(&path, bytes).expect("it can be changed");
        }
        let mut verify = remat_opt("verify models/unet_tiny_train.onnx --device raspberry-pi-4 --paging sync");
        let output = verify.arg(path).output().expect("it runs");
        let streams = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code(), streams.concat())
    };
    let (status, report) = verify(false);
    assert_eq!(status, Some(0), "{report}");
    crate::assert_contains_all(&report, &["valid: peak"]);
    let (status, report) = verify(true);
    assert_eq!(status, Some(2), "{report}");
    crate::assert_contains_all(&report, &["the checksum is wrong"]);
}

#[test]
fn devices_of_ones_own_are_read_from_a_file() {
    let folder = Folder::new();
    let table = "\
[[device]]
name = \"my-board\"
description = \"a board\"
source = \"measured\"
family = \"microcontroller\"
peak = { bits64 = 1, bits32 = 1_000_000, bits16 = 1_000_000, bits8 = 1_000_000 }
memory_bytes_per_s = 1_000_000
vector_bytes = 4
launch_ns = 0
view_ns = 0
alignment = 4
cpu_kernels = false

[device.second_memory]
mode = \"sync\"
page_out = { bytes_per_s = 1_000_000 }
page_in = { bytes_per_s = 1_000_000 }
";
    let run = |table: &str, device: &str| {
        std::fs::write(folder.path("devices.toml"), table).expect("it can be written");
        let options = "models/unet_tiny_train.onnx --paging sync --budget 80% --step-limit 100 --time-limit 10m -q";
        let mut run = remat_opt(&format!("{options} --device {device}"));
        let output = run
            .arg("--device-file")
            .arg(folder.path("devices.toml"))
            .output()
            .expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
        (output.status.code(), message)
    };
    let (status, message) = run(table, "my-board");
    assert_eq!(status, Some(0), "{message}");
    let (status, message) = run(table, "your-board");
    assert_eq!(status, Some(2));
    crate::assert_contains_all(
        &message,
        &["there is no device `your-board`", "`my-board`", "`mkr1000`"],
    );
    let (status, message) = run(&table.replace("alignment = 4", "alignment = 5"), "my-board");
    assert_eq!(status, Some(2));
    crate::assert_contains_all(
        &message,
        &["line 11", "`alignment` of device `my-board` must be a power of two"],
    );
}

#[test]
fn what_is_written_fits_its_target() {
    let folder = Folder::new();
    for (name, target, message) in [
        (
            "out.onnx",
            "plan",
            "is not what `--target plan` writes: `.json`, `.sched`",
        ),
        ("out.json", "mlir", "is not what `--target mlir` writes: `.mlir`"),
        (
            "out.json",
            "ort --objective energy",
            "`--target ort` plans for least time",
        ),
    ] {
        let mut make = remat_opt(&format!("{ON_A_BOARD} --target {target}"));
        let output = make.arg("-o").arg(folder.path(name)).output().expect("it runs");
        let found = String::from_utf8_lossy(&output.stderr).replace("\n  │", "");
        assert_eq!(output.status.code(), Some(2), "{found}");
        crate::assert_contains_all(&found, &[message]);
    }
}

#[test]
fn a_second_memory_and_energies_have_to_be_known() {
    assert_run!("models/unet_tiny_train.onnx --device cortex-m7 --paging dma");
    assert_run!("models/unet_tiny_train.onnx --objective energy --budget 80%");
    assert_run!("models/unet_tiny_train.onnx --deadline soon");
}

#[test]
fn a_deadline_that_no_plan_meets_is_a_finding() {
    let output = remat_opt(&format!("{ON_A_BOARD} --deadline 0.9x"))
        .output()
        .expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
}
