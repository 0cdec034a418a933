//! The memory of a written model, planned, replayed and reported.

use remat_formula::{Formula, OpenDim};
use remat_onnxruntime_arena::{ArenaPlanFile, Plans};
use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of, with_runtime};

const MLP: &str = "models/mlp_tiny_train.onnx";
const DYNAMIC: &str = "models/features/dynamic_batch.onnx";

pub(crate) fn a_plan_is_written_beside_a_model_that_stays_as_it_came() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!("{MLP} --budget none --format json"));
    let text = stdout_of(command.arg("-o").arg(folder.path("out.onnx")));
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    assert_eq!(report["strategy"], "untouched");
    let arena = &report["arena_plan"];
    let block = arena["block_bytes"].as_u64().expect("a number");
    assert!(block > 1 << 20, "{arena}");
    let load = arena["load_bytes"].as_u64().expect("a number");
    assert!(block >= load && block <= load + load / 50, "{arena}");
    let resident = arena["resident_first_bytes"].as_u64().expect("Linux states it");
    assert!(resident <= block + block / 50 + (4 << 20), "{arena}");
    let plans = ArenaPlanFile::parse(&folder.read("out.onnx.arena")).expect("it is well-formed");
    assert_eq!(Plans::new(&plans).block_bytes(), block);
    assert!(folder.path("libremat_arena.so").is_file());
}

pub(crate) fn one_plan_serves_every_value_of_a_dimension() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!("{DYNAMIC} --budget none --shapes batch=1..24 -v"));
    command.arg("-o").arg(folder.path("out.onnx"));
    let text = stdout_of(command.arg("--arena-library").arg(folder.path("arena.so")));
    assert_contains_all(
        &text,
        &[
            "in one block with batch=24",
            ": batch=1..24",
            "remat.arena.plan",
            "arena.so",
        ],
    );
    let plans = ArenaPlanFile::parse(&folder.read("out.onnx.arena")).expect("it is well-formed");
    let batch = OpenDim {
        name: "batch".to_owned(),
        least: 1,
        most: 24,
    };
    assert_eq!(plans.dims[0], batch);
    assert_eq!(plans.plans[0].inputs[0].1[0], Formula::variable(0));
    let plans = Plans::new(&plans);
    let block = |batch| plans.shape(0, &[batch]).expect("it is small").block_bytes();
    assert!(block(1) < block(2) && block(23) < block(24) && block(24) == plans.block_bytes());
}

pub(crate) fn a_budget_is_kept_for_all_shapes_or_the_exit_status_says_for_how_many_it_is() {
    let folder = Folder::new();
    let run = |budget: &str| {
        let mut command = with_runtime(&format!(
            "{DYNAMIC} --shapes batch=1..64 --budget {budget} --format json"
        ));
        command.arg("-o").arg(folder.path("out.onnx"));
        let output = command.output().expect("it runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        (
            output.status.code(),
            report["range"].clone(),
            report["error"]["details"].clone(),
        )
    };
    let (code, range, _) = run("300KiB");
    assert_eq!((code, &range["bound_proof"]), (Some(0), &"largest-shape".into()));
    assert_eq!(range["budget"]["holds"], 64);
    let (code, range, details) = run("100KiB");
    assert_eq!((code, &details["type"]), (Some(1), &"shapes-missed".into()));
    assert_eq!(details["holds"], range["budget"]["holds"]);
    let budget = &range["budget"];
    let holds = budget["holds"].as_u64().expect("a number");
    assert!(0 < holds && holds < 64 && budget["is_every"] == true, "{range}");
    assert_eq!(budget["highest_bytes"], range["peak_bound_bytes"]);
    assert!(folder.path("out.onnx.arena").is_file());
}

pub(crate) fn shapes_come_from_a_file_of_what_was_seen() {
    let folder = Folder::new();
    std::fs::write(folder.path("seen"), "batch=2 90\nbatch=7 10\n").expect("it can be written");
    let mut command = with_runtime(&format!("{DYNAMIC} --budget none --format json"));
    command.arg("-o").arg(folder.path("out.onnx"));
    let text = stdout_of(command.arg("--weights").arg(folder.path("seen")));
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    let arena = &report["arena_plan"];
    assert_eq!(
        (&arena["dims"]["batch"], &arena["shapes"]["batch"]),
        (&2.into(), &"2..7".into())
    );
    assert_eq!(arena["at"][0]["dims"]["batch"], 7);
    let mut command = with_runtime(&format!("{DYNAMIC} --shapes batch=1..4"));
    let output = command
        .arg("--weights")
        .arg(folder.path("seen"))
        .output()
        .expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr).replace("\n  │ ", "");
    assert!(
        words.contains("the shape batch=7 of `--weights` is none of `--shapes batch=1..4`"),
        "{words}"
    );
}

pub(crate) fn without_a_plan_no_other_one_stays_beside_the_file() {
    let folder = Folder::new();
    let run = |more: &str| {
        let mut command = with_runtime(&format!("{MLP} --budget none --force {more}"));
        stdout_of(command.arg("-o").arg(folder.path("out.onnx")));
        folder.path("out.onnx.arena").is_file()
    };
    assert!(run("") && !run("--no-arena-plan"));
}

pub(crate) fn settings_are_tried_and_none_is_recommended_with_which_the_process_grows() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!("{MLP} --budget none --settings --format json"));
    command.arg("-o").arg(folder.path("out.onnx"));
    let text = stdout_of(command.arg("--emit-settings").arg(folder.path("session.py")));
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    let settings = &report["settings"];
    let tried = settings["tried"].as_array().expect("a list");
    let growth = |name: &Value| {
        let of = tried
            .iter()
            .find(|tried| &tried["setting"] == name)
            .expect("it was tried");
        let bytes = |key: &str| of["measured"][key].as_u64().expect("Linux states it");
        bytes("resident_first_bytes").max(bytes("resident_later_bytes"))
    };
    assert_eq!(tried[0]["setting"], "default");
    let recommended = growth(&settings["recommended"]);
    assert!(
        tried
            .iter()
            .all(|one| recommended <= growth(&one["setting"]) + (2 << 20)),
        "{settings}"
    );
    assert!(recommended <= growth(&tried[0]["setting"]), "{settings}");
    assert_eq!(report["recommends_arena_off"], settings["recommended"] == "arena_off");
    // What an arena of the environment holds is known before it is measured.
    let shared = tried
        .iter()
        .find(|one| one["setting"] == "shared_first_region")
        .expect("it was tried");
    for key in [
        "heap_first_bytes",
        "heap_later_bytes",
        "resident_first_bytes",
        "resident_later_bytes",
    ] {
        let [predicted, measured] = ["predicted", "measured"].map(|side| shared[side][key].as_u64().expect("a number"));
        assert!(
            predicted.abs_diff(measured) <= measured / 50 + (1 << 20),
            "{key}: {shared}"
        );
    }
    assert_eq!(folder.read("session.py"), settings["python"].as_str().expect("a text"));
    let mut command = with_runtime(&format!("{MLP} --budget none --settings"));
    command.arg("-o").arg(folder.path("again.onnx"));
    let text = stdout_of(command.arg("--emit-settings").arg(folder.path("settings.json")));
    assert_contains_all(&text, &["tried     ", "settings  ", "import onnxruntime"]);
    let written: Value = serde_json::from_str(&folder.read("settings.json")).expect("it is JSON");
    assert_eq!(written["format"], "remat-settings/1");
}

pub(crate) fn a_plan_needs_a_model_that_is_written() {
    let folder = Folder::new();
    for line in [
        format!("{MLP} --arena-library x.so"),
        format!("{MLP} --settings"),
        format!("{MLP} --emit-settings x.py -o out.onnx"),
        format!("{MLP} --settings --arena-library x.so -o out.onnx"),
        format!("{MLP} --no-arena-plan --arena-library x.so -o out.onnx"),
    ] {
        let output = with_runtime(&line).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
    for option in ["--arena-library x.so", "--settings"] {
        let mut command = with_runtime(&format!("{MLP} {option} --device cuda:0"));
        let output = command.arg("-o").arg(folder.path("out.onnx")).output();
        let output = output.expect("the program runs");
        assert_eq!(output.status.code(), Some(2));
        assert_contains_all(
            &String::from_utf8_lossy(&output.stderr),
            &[&option[..10], "--device cpu", "never measured"],
        );
        assert!(!folder.path("out.onnx").exists());
    }
    let other = folder.path("out.json");
    let output = remat_opt(&format!("{MLP} --arena-library x.so -o")).arg(other).output();
    assert_eq!(output.expect("the program runs").status.code(), Some(2));
}
