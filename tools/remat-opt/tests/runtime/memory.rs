//! `--arena-plan`: the memory of a written model, planned, replayed and reported.

use remat_onnxruntime_arena::ArenaPlanFile;
use serde_json::Value;

use crate::{Folder, assert_contains_all, remat_opt, stdout_of, with_runtime};

const MLP: &str = "models/mlp_tiny_train.onnx";
const DYNAMIC: &str = "models/features/dynamic_batch.onnx";

pub(crate) fn a_plan_is_written_beside_a_model_that_stays_as_it_came() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!(
        "{MLP} --budget none --arena-plan --arena-threads 1,2 --format json"
    ));
    let text = stdout_of(command.arg("-o").arg(folder.path("out.onnx")));
    let report: Value = serde_json::from_str(&text).expect("the report is JSON");
    assert_eq!(report["strategy"], "untouched");
    let arena = &report["arena_plan"];
    let block = arena["block_bytes"].as_u64().expect("a number");
    assert!(block > 1 << 20, "{arena}");
    let load = arena["cases"][0]["load_bytes"].as_u64().expect("a number");
    assert!(block >= load && block <= load + load / 50, "{arena}");
    let resident = arena["resident_first_bytes"].as_u64().expect("Linux states it");
    assert!(resident <= block + block / 50 + (4 << 20), "{arena}");
    let plans = ArenaPlanFile::parse(&folder.read("out.onnx.arena")).expect("it is well-formed");
    assert_eq!(plans.plans.iter().map(|plan| plan.threads).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(plans.plans[0].block_bytes, block);
    assert!(folder.path("libremat_arena.so").is_file());
}

pub(crate) fn every_value_of_a_dimension_has_a_plan() {
    let folder = Folder::new();
    let mut command = with_runtime(&format!(
        "{DYNAMIC} --budget none --arena-plan --dim batch=1 --arena-dim batch=3,5 -v"
    ));
    command.arg("-o").arg(folder.path("out.onnx"));
    let text = stdout_of(command.arg("--arena-library").arg(folder.path("arena.so")));
    assert_contains_all(&text, &["in one block", "remat.arena.plan", "arena.so"]);
    let plans = ArenaPlanFile::parse(&folder.read("out.onnx.arena")).expect("it is well-formed");
    let batches: Vec<i64> = plans.plans.iter().map(|plan| plan.inputs[0].1[0]).collect();
    assert_eq!(batches, [1, 3, 5]);
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
        format!("{MLP} --arena-plan"),
        format!("{MLP} --arena-plan --target ort"),
        format!("{MLP} --arena-library x.so"),
        format!("{MLP} --settings"),
        format!("{MLP} --emit-settings x.py -o out.onnx"),
        format!("{MLP} --settings --arena-plan -o out.onnx"),
    ] {
        let output = with_runtime(&line).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{line}");
    }
    for option in ["--arena-plan", "--settings"] {
        let mut command = with_runtime(&format!("{MLP} {option} --device cuda:0"));
        let output = command.arg("-o").arg(folder.path("out.onnx")).output();
        let output = output.expect("the program runs");
        assert_eq!(output.status.code(), Some(2));
        assert_contains_all(
            &String::from_utf8_lossy(&output.stderr),
            &[option, "--device cpu", "never measured"],
        );
        assert!(!folder.path("out.onnx").exists());
    }
    let other = folder.path("out.json");
    let output = remat_opt(&format!("{MLP} --arena-plan -o")).arg(other).output();
    assert_eq!(output.expect("the program runs").status.code(), Some(2));
}
