//! The reader in C does what the reader in Rust does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use remat_schedule::{FormatError, Schedule, Step, encode};
use remat_testing::TrainingNet;

use super::hostile::{broken, sealed};
use super::{any_plan, linear, placement, planned};

/// A program of this folder, compiled with what lies in `folder`. There is a C compiler wherever rustc links.
pub(super) fn compiled(name: &str, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(name);
    let flags = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-pedantic",
        "-Werror",
        "-O1",
        "-I",
    ];
    // Reads outside of the bytes and undefined arithmetic end the program, where the compiler can see to that.
    for checks in [&["-fsanitize=address,undefined", "-fno-sanitize-recover"][..], &[]] {
        let mut compile = Command::new("cc");
        compile
            .args(flags)
            .arg(root.join("c"))
            .arg("-I")
            .arg(folder)
            .args(checks)
            .arg("-o")
            .arg(&program);
        let source = root.join(format!("tests/{name}.c"));
        let output = compile.arg(source).output().expect("`cc` runs");
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return program;
        }
        assert!(!checks.is_empty(), "{message}");
    }
    unreachable!("the last try passes or panics")
}

/// What the program prints of these schedules, one after another.
fn printed(program: &Path, schedules: &[Vec<u8>]) -> Vec<String> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut input = child.stdin.take().expect("a pipe");
    let framed: Vec<u8> = schedules
        .iter()
        .flat_map(|bytes| {
            [
                &u32::try_from(bytes.len()).expect("they are short").to_le_bytes(),
                &bytes[..],
            ]
            .concat()
        })
        .collect();
    let writer = std::thread::spawn(move || input.write_all(&framed).expect("it reads"));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("all was read");
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).expect("it prints text");
    text.lines().map(str::to_owned).collect()
}

/// The same by the reader in Rust.
fn expected(bytes: &[u8]) -> String {
    let schedule = match Schedule::open(bytes) {
        Ok(schedule) => schedule,
        Err(error) => {
            let result = match error {
                FormatError::Magic => 1,
                FormatError::Version(_) => 2,
                FormatError::Truncated => 3,
                FormatError::Checksum => 4,
                FormatError::Number { .. } => 5,
                FormatError::Range { .. } => 6,
                FormatError::Trailing { .. } => 7,
            };
            return format!("error {result}");
        }
    };
    let (ops, storages, peak, second) = (
        schedule.ops(),
        schedule.storages(),
        schedule.peak(),
        schedule.second_peak(),
    );
    let sizes = schedule.sizes().map(|size| format!(" {size}"));
    let steps = schedule.steps().map(|step| match step {
        Step::Run(id) => format!(" run {id}"),
        Step::Free(id) => format!(" free {id}"),
        Step::PageOut(id) => format!(" out {id}"),
        Step::PageIn(id) => format!(" in {id}"),
        Step::Place { storage, offset } => format!(" place {storage} at {offset}"),
        Step::Duplicate { storage, offset } => format!(" duplicate {storage} at {offset}"),
        Step::Workspace { offset } => format!(" workspace 0 at {offset}"),
    });
    let (sizes, steps): (String, String) = (sizes.collect(), steps.collect());
    let block = schedule.block().map_or_else(
        || "0 1 0".to_owned(),
        |block| format!("{} {} {}", block.bytes, block.alignment, block.outputs_bytes),
    );
    format!("{ops} {storages} {peak} {second} block {block} sizes{sizes} steps{steps}")
}

#[test]
fn both_readers_read_and_refuse_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("print", folder.path());
    let (problem, plan, figures) = linear();
    let plain = encode(&problem, &plan, figures, None).unwrap();
    let placed = encode(&problem, &plan, figures, Some(&placement(&problem, &plan))).unwrap();
    let (large, plan, figures) = planned(TrainingNet::Resnet18Cifar, "mkr1000", 60, "capuchin");
    let mut schedules = vec![
        encode(&large, &plan, figures, None).unwrap(),
        encode(&large, &plan, figures, Some(&placement(&large, &plan))).unwrap(),
    ];
    schedules.extend(broken().into_iter().map(|(_, bytes, _)| bytes));
    // Cut at every length, as it is and with the right checksum, and changed at every byte.
    for whole in [plain, placed] {
        for length in 0..whole.len() {
            schedules.push(whole[..length].to_vec());
            schedules.push(sealed(&whole[..length]));
            let mut changed = whole[..whole.len() - 4].to_vec();
            if let Some(byte) = changed.get_mut(length) {
                *byte = byte.wrapping_mul(31).wrapping_add(1);
                schedules.push(sealed(&changed));
            }
        }
        schedules.push(whole);
    }
    let mut runner = TestRunner::deterministic();
    for _ in 0..200 {
        let plan = any_plan(&problem).new_tree(&mut runner).unwrap().current();
        schedules.push(encode(&problem, &plan, figures, None).unwrap());
    }
    let found = printed(&program, &schedules);
    assert_eq!(found.len(), schedules.len());
    let mut accepted = 0;
    for (bytes, found) in schedules.iter().zip(found) {
        assert_eq!(found, expected(bytes), "{bytes:?}");
        accepted += usize::from(!found.starts_with("error"));
    }
    assert!(
        accepted > 200 && schedules.len() - accepted > 200,
        "{accepted} of {}",
        schedules.len()
    );
}
