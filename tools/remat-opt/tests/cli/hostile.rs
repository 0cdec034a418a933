//! What an input, a folder or a broken pipe can do to the program: nothing.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::{Folder, assert_contains_all, remat_opt, workspace};

const NAMES: &str = "hostile/control_characters.json";
const CHAIN: &str = "cli/training_chain.json";

fn output(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Nothing that a terminal acts upon, and no line that a name forged.
fn assert_tame(bytes: &[u8], line: &str) {
    let text = text(bytes);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{line}: {text:?}");
    assert!(
        !text.lines().any(|line| line.trim_start().starts_with("FAKE")),
        "{line}: {text}"
    );
}

#[test]
fn names_cannot_write_on_the_terminal() {
    let folder = Folder::new();
    let broken = r#"{"nodes": [{"id": "\u001b[2Ja\nFAKE"}], "links": []}"#;
    std::fs::write(folder.path("broken.json"), broken).expect("it can be written");
    let plan = std::fs::read_to_string(workspace().join("test/cli/wrong_plan.json")).expect("it is there");
    std::fs::write(
        folder.path("plan.json"),
        plan.replacen("\"node\": \"", "\"node\": \"\\u001b[2J\\nFAKE", 1),
    )
    .expect("it can be written");
    let path = |name: &str| folder.path(name).display().to_string();
    let steps = "--step-limit 100 --threads 1";
    for line in [
        format!("inspect {NAMES}"),
        format!("inspect {NAMES} --format json"),
        format!("-v {NAMES} --budget none {steps}"),
        format!("{NAMES} --budget 1 {steps}"),
        format!("-vv {NAMES} --budget 1 {steps}"),
        format!("sweep {NAMES} --budgets 90%,1% {steps}"),
        format!("compare {NAMES} --budgets 90% --solvers search {steps}"),
        format!("max-batch {NAMES} --batch-factor --memory 1KiB {steps}"),
        format!("verify {CHAIN} {}", path("plan.json")),
        format!("inspect {}", path("broken.json")),
        format!("inspect {NAMES} --device \u{1b}[2J"),
        format!("inspect {NAMES} \u{1b}[2J"),
    ] {
        let found = output(&mut remat_opt(&line));
        assert_tame(&found.stdout, &line);
        assert_tame(&found.stderr, &line);
    }
    let inspected = text(&output(&mut remat_opt(&format!("inspect {NAMES}"))).stdout);
    assert!(inspected.contains(r"\u001b[31mn0\r\n FAKE LINE"), "{inspected}");
}

#[test]
fn names_in_json_are_exact() {
    let printed = output(&mut remat_opt(&format!("inspect {NAMES} --format json"))).stdout;
    let document: serde_json::Value = serde_json::from_slice(&printed).expect("it is JSON");
    let document = document.to_string();
    assert!(
        document.contains(r"\u001b[31mn0\r\n FAKE LINE: plan OPTIMAL"),
        "{document}"
    );
}

#[cfg(unix)]
#[test]
fn values_are_followed_within_a_bound() {
    let program = remat_opt("");
    let limited = "ulimit -v 2000000; exec \"$0\" inspect hostile/doubling_values.onnx";
    let mut command = Command::new("bash");
    command.args(["-c", limited]).arg(program.get_program());
    let found = output(command.current_dir(workspace().join("test")));
    assert_eq!(found.status.code(), Some(2), "{}", text(&found.stderr));
    assert_contains_all(&text(&found.stderr), &["ConstantOfShape_41", "1099511627776"]);
}

#[test]
fn threads_are_bounded() {
    for threads in ["0", "257", "100000", "18446744073709551615"] {
        for line in [
            format!("{CHAIN} --threads {threads}"),
            format!("sweep {CHAIN} --threads {threads}"),
            format!("compare {CHAIN} --threads {threads}"),
            format!("max-batch {CHAIN} --batch-factor --memory 1MiB --threads {threads}"),
        ] {
            let found = output(&mut remat_opt(&line));
            assert_eq!(found.status.code(), Some(2), "{line}");
            assert_contains_all(&text(&found.stderr), &["from 1 to 256 threads"]);
        }
    }
    let found = output(&mut remat_opt("profile x.onnx --intra-threads 100000"));
    assert_contains_all(&text(&found.stderr), &["from 1 to 256 threads"]);
    let most = output(&mut remat_opt(&format!("{CHAIN} --step-limit 100 --threads 256")));
    assert!(most.status.success(), "{}", text(&most.stderr));
}

/// The program's status with its streams wired by a shell; 101 is a panic, 134 an abort.
#[cfg(unix)]
fn status(arguments: &str, redirections: &str) -> Option<i32> {
    let program = remat_opt("");
    let script = format!("set -o pipefail; \"$0\" {arguments} {redirections}");
    let status = Command::new("bash")
        .args(["-c", &script])
        .arg(program.get_program())
        .current_dir(workspace().join("test"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("bash runs").code()
}

#[cfg(unix)]
#[test]
fn closed_streams_are_no_panic() {
    let runs = [
        ("--help", 0),
        ("no-such-file.json", 2),
        ("--no-such-option", 2),
        ("inspect cli/training_chain.json", 0),
        ("inspect cli/training_chain.json --format json", 0),
        ("-vv cli/training_chain.json --step-limit 100", 0),
        ("completions bash", 0),
        ("explain", 0),
    ];
    for (arguments, expected) in runs {
        for redirections in ["2>&1 | true", "2>&-", ">&-", ">&- 2>&-", "2> >(true)", "2>&- <&-"] {
            let found = status(arguments, redirections);
            assert_eq!(found, Some(expected), "{arguments} {redirections}");
        }
    }
}

/// The variables that say where the runtime is are gone, and the program lies outside of its checkout.
#[cfg(target_os = "linux")]
fn elsewhere(folder: &Folder, line: &str) -> Command {
    let program = folder.path("remat-opt");
    if !program.exists() {
        std::fs::copy(remat_opt("").get_program(), &program).expect("it can be copied");
    }
    let mut command = Command::new(program);
    command
        .args(line.split_whitespace())
        .current_dir(folder.0.path())
        .env("PATH", "")
        .env("HOME", "/nonexistent");
    for name in [
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "REMAT_ORT_LIBRARY",
        "REMAT_ORTOOLS_LIBRARY",
        "ORT_DYLIB_PATH",
        "PYTHONUSERBASE",
        "CARGO_MANIFEST_DIR",
    ] {
        command.env_remove(name);
    }
    command
}

/// A file that stands for a library: it is no library, which the loader says with the path.
#[cfg(target_os = "linux")]
fn plant(path: &Path) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    std::fs::write(path, "no library").expect("it can be written");
}

#[cfg(target_os = "linux")]
#[test]
fn no_library_is_taken_from_the_working_directory() {
    let folder = Folder::new();
    let name = "libonnxruntime.so";
    let wheel = format!("lib/python3.11/site-packages/onnxruntime/capi/{name}.1.0");
    plant(&folder.path("third_party/onnxruntime/lib").join(name));
    plant(&folder.path(name));
    plant(&folder.path(&wheel));
    plant(&folder.path("bin/python3"));
    std::fs::copy(
        workspace().join("test/models/mlp_tiny_train.onnx"),
        folder.path("model.onnx"),
    )
    .expect("it is there");
    let mut command = elsewhere(&folder, "profile model.onnx");
    command
        .env("PATH", ":.:bin")
        .env("VIRTUAL_ENV", ".")
        .env("CONDA_PREFIX", "");
    let found = text(&output(&mut command).stderr);
    assert!(
        !found.contains("third_party") && !found.contains("site-packages"),
        "{found}"
    );
    // What the environment names is taken.
    for (variable, value) in [
        ("VIRTUAL_ENV", folder.0.path().display().to_string()),
        ("CONDA_PREFIX", folder.0.path().display().to_string()),
        ("PATH", folder.path("bin").display().to_string()),
    ] {
        let found = text(&output(elsewhere(&folder, "profile model.onnx").env(variable, value)).stderr);
        assert!(found.contains("site-packages"), "{variable}: {found}");
    }
}

#[test]
fn a_library_that_is_named_has_to_load() {
    let folder = Folder::new();
    let out = folder.path("out.onnx");
    let model = "models/mlp_tiny_train.onnx --step-limit 10";
    for line in [
        format!("{model} -o {} --ort-library nowhere.so", out.display()),
        format!("{model} --target onnx -o {} --ort-library nowhere.so", out.display()),
        format!("{model} --ort-library nowhere.so"),
        format!("inspect {CHAIN} --ort-library nowhere.so"),
    ] {
        let found = output(&mut remat_opt(&line));
        assert_eq!(found.status.code(), Some(2), "{line}");
        assert_contains_all(&text(&found.stderr), &["cannot load ONNX Runtime from `nowhere.so`"]);
    }
    let mut command = remat_opt(&format!("{model} -o {}", out.display()));
    let found = output(command.env("REMAT_ORT_LIBRARY", "nowhere.so"));
    assert_eq!(found.status.code(), Some(2));
    assert!(!out.exists());
}

#[test]
fn a_library_of_or_tools_that_is_named_has_to_load() {
    let mut named = remat_opt(&format!("{CHAIN} -b 80% --ortools-library nowhere.so"));
    let mut by_variable = remat_opt(&format!("{CHAIN} -b 80%"));
    by_variable.env("REMAT_ORTOOLS_LIBRARY", "nowhere.so");
    for command in [&mut named, &mut by_variable] {
        let found = output(command);
        assert_eq!(found.status.code(), Some(2));
        assert_contains_all(
            &text(&found.stderr),
            &["`nowhere.so` cannot be used as OR-Tools' library"],
        );
    }
}

#[test]
fn a_solver_that_lacks_its_library_says_what_to_install() {
    let found = output(&mut remat_opt(&format!("{CHAIN} -b 80% --solver exact")));
    assert_eq!(found.status.code(), Some(2));
    assert_contains_all(
        &text(&found.stderr),
        &[
            "solver `exact` cannot be used: OR-Tools is not installed",
            "pip install ortools",
            "--ortools-library",
        ],
    );
}

#[test]
fn an_input_without_an_element_type_is_written_as_it_was_read() {
    let folder = Folder::new();
    let out = folder.path("out.onnx");
    let line = "hostile/untyped_input.onnx --target onnx --budget none --step-limit 10 -o";
    let found = output(remat_opt(line).arg(&out));
    assert!(found.status.success(), "{}", text(&found.stderr));
    // The declaration of `factor` with its type, which has 11 bytes, 2 of them for the element type.
    let stated = b"factor\x12\x0b";
    for path in [workspace().join("test/hostile/untyped_input.onnx"), out] {
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(
            bytes.windows(stated.len()).any(|window| window == stated),
            "{}",
            path.display()
        );
    }
}
