//! The interface in C, called by a C program: with the standard library, and without, with an allocator of the program; and for a processor without an
//! operating system. The libraries are compiled here, by the compiler alone: nothing but the two crates is needed for them.
#![expect(clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use remat_testing::{BARE_METAL, Need, run, trial, workspace};

fn main() -> ExitCode {
    run([
        trial!(a_c_program_is_served, Need::CCompiler),
        trial!(without_a_standard_library_memory_is_the_programs, Need::CCompiler),
        trial!(it_builds_for_a_processor_without_an_operating_system, Need::BareMetal),
    ])
}

const EXPECTED: &str = "small: load 4, height 5\norder 2 3 0 1 4, peak 33, bound 33\ndone\n";

fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The static library in a folder, compiled with these options.
fn library(folder: &Path, is_with_std: bool, options: &[&str]) -> PathBuf {
    let rustc = |krate: &str, kind: &str| {
        let name = format!("remat_{}", krate.replace('-', "_"));
        let mut rustc = Command::new("rustc");
        rustc
            .args([
                "--edition=2024",
                "-Copt-level=0",
                "--crate-name",
                &name,
                "--crate-type",
                kind,
            ])
            .args(options)
            .arg("--out-dir")
            .arg(folder)
            .arg("-L")
            .arg(folder)
            .arg(workspace().join(format!("passes/{krate}/src/lib.rs")));
        if is_with_std {
            rustc.args(["--cfg", "feature=\"std\""]);
        }
        rustc
    };
    done(&mut rustc("planner", "rlib"));
    let planner = folder.join("libremat_planner.rlib");
    let mut with_planner = rustc("planner-c", "staticlib");
    with_planner
        .arg("--extern")
        .arg(format!("remat_planner={}", planner.display()));
    done(&mut with_planner);
    folder.join("libremat_planner_c.a")
}

/// What the C program prints with a library.
fn served(library: &Path, options: &[&str]) -> String {
    let program = library.with_file_name("program");
    let folder = workspace().join("passes/planner-c");
    let mut compile = Command::new("cc");
    compile
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I"])
        .arg(folder.join("c"))
        .arg("-o")
        .arg(&program)
        .arg(folder.join("tests/planner.c"))
        .arg(library)
        .args(options);
    done(&mut compile);
    done(&mut Command::new(program))
}

fn a_c_program_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), true, &[]);
    // What Rust's standard library stands on.
    let system: &[&str] = if cfg!(target_os = "linux") {
        &["-lgcc_s", "-lpthread", "-lm", "-ldl"]
    } else {
        &[]
    };
    assert_eq!(served(&library, system), EXPECTED);
}

fn without_a_standard_library_memory_is_the_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), false, &["-Cpanic=abort"]);
    assert_eq!(served(&library, &["-DCOUNTED"]), EXPECTED);
}

fn it_builds_for_a_processor_without_an_operating_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path(), false, &["--target", BARE_METAL, "-Cpanic=abort"]);
    assert!(library.is_file());
}
