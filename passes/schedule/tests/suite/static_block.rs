//! A network's schedule on a device: the reader in C follows it over a static array of exactly the block's size.

use std::fmt::Write;
use std::process::Command;

use remat_plan::{Plan, Problem, Step, StorageRole, TensorId};
use remat_schedule::{Numbering, PlanPeaks, encode};
use remat_testing::TrainingNet;

use super::c_reader::compiled;
use super::{linear, placement, planned};

/// A table in C; one of nothing would not be C.
fn table<T: std::fmt::Display>(kind: &str, name: &str, items: impl IntoIterator<Item = T>) -> String {
    let mut items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() {
        items.push("0".to_owned());
    }
    format!("static const {kind} {name}[] = {{{}}};\n", items.join(", "))
}

/// Lists one after another, and where each begins, the end at last.
fn joined<T>(lists: Vec<Vec<T>>) -> (Vec<usize>, Vec<T>) {
    let mut starts = vec![0];
    let mut all = Vec::new();
    for list in lists {
        all.extend(list);
        starts.push(all.len());
    }
    (starts, all)
}

/// What is compiled into the device.
fn header(problem: &Problem, schedule: &[u8], block: u64) -> String {
    let numbering = Numbering::of(problem);
    let storages = numbering.storages();
    let sizes: Vec<u64> = storages.iter().map(|&id| problem.storages[id].bytes).collect();
    let starts = sizes.iter().scan(0, |end, &size| {
        let start = *end;
        *end += size;
        Some(start)
    });
    let reads = problem.ops.iter().map(|op| {
        let storage = |&tensor: &TensorId| {
            let outside = -i64::try_from(usize::from(tensor)).expect("they are few") - 1;
            let number = numbering.number(problem.tensors[tensor].storage);
            number.map_or(outside, i64::from)
        };
        op.reads.iter().map(storage).collect()
    });
    let makes = problem.ops.iter().map(|op| {
        let is_root = |&tensor: &TensorId| problem.storages[problem.tensors[tensor].storage].root == tensor;
        let roots = op.defines.iter().copied().filter(is_root);
        roots
            .filter_map(|tensor| numbering.number(problem.tensors[tensor].storage))
            .collect()
    });
    let (reads_from, reads) = joined::<i64>(reads.collect());
    let (makes_from, makes) = joined::<u32>(makes.collect());
    let workspaces: Vec<u64> = problem.ops.iter().map(|op| op.workspace).collect();
    let stays = storages
        .iter()
        .map(|&id| u8::from(problem.storages[id].role == StorageRole::LiveOut));
    let mut text = String::new();
    for (name, value) in [
        ("BLOCK", block),
        ("OPS", problem.ops.len() as u64),
        ("STORAGES", storages.len() as u64),
        ("TOTAL", sizes.iter().sum()),
        ("WORKSPACE", workspaces.iter().max().copied().unwrap_or(0).max(1)),
    ] {
        writeln!(text, "#define {name} UINT64_C({value})").expect("strings take all");
    }
    text += &table("uint8_t", "schedule_bytes", schedule);
    text += &table("uint64_t", "starts", starts);
    text += &table("uint64_t", "sizes", &sizes);
    text += &table("uint64_t", "workspaces", workspaces);
    text += &table("uint8_t", "stays", stays);
    text += &table("uint32_t", "reads_from", reads_from);
    text += &table("int32_t", "reads", reads);
    text += &table("uint32_t", "makes_from", makes_from);
    text + &table("uint32_t", "makes", makes)
}

/// What the program says of a network's schedule, and whether it ends well.
fn followed(problem: &Problem, schedule: &[u8], block: u64) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("network.h"), header(problem, schedule, block)).expect("it can be written");
    let output = Command::new(compiled("run", folder.path())).output().expect("it runs");
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// A plan in its block, followed to its end, and with one storage over another one.
fn follows((problem, plan, figures): (Problem, Plan, PlanPeaks)) {
    let mut placement = placement(&problem, &plan);
    let bytes = encode(&problem, &plan, figures, Some(&placement)).expect("it is valid");
    let block = placement.block.bytes;
    let (is_right, said) = followed(&problem, &bytes, block);
    assert!(is_right, "{said}");
    // Two storages that are there together, one onto the other.
    let replay = remat_verify::replay(&problem, &plan).expect("it is valid");
    let needed = remat_verify::intervals(&problem, &plan, &replay);
    let long = needed
        .iter()
        .position(|interval| interval.steps.len() > 5)
        .expect("one stays for long");
    let within = |interval: &remat_verify::Interval| {
        let outer = &needed[long].steps;
        outer.contains(&(interval.steps.start + 1)) && interval.steps.start > outer.start && interval.steps.len() > 1
    };
    let other = needed.iter().position(within).expect("another one comes meanwhile");
    assert!(
        needed.is_sorted_by_key(|interval| (interval.steps.start, interval.what)),
        "as the placement is"
    );
    placement.intervals[other].offset = placement.intervals[long].offset;
    let wrong = encode(&problem, &plan, figures, Some(&placement)).expect("it is valid");
    let (is_right, _) = followed(&problem, &wrong, block);
    assert!(!is_right, "an overlap changes what is computed");
    let moves = plan
        .steps
        .iter()
        .filter(|step| matches!(step, Step::PageOut(_) | Step::PageIn(_)));
    let outputs = problem
        .storages
        .iter()
        .filter(|storage| storage.role == StorageRole::LiveOut);
    let (runs, moves, outputs) = (plan.runs().count(), moves.count(), outputs.count());
    assert_eq!(said, format!("{runs} runs, {moves} moves, {outputs} outputs\n"));
}

#[test]
fn a_static_array_of_the_blocks_size_holds_all_that_a_network_needs() {
    follows(linear());
    follows(planned(TrainingNet::Resnet18Cifar, "mkr1000", 60, "capuchin"));
}

#[test]
fn recomputes_and_duplicates_have_their_own_bytes() {
    let resnet = planned(TrainingNet::Resnet18Cifar, "raspberry-pi-4", 60, "search");
    assert!(resnet.1.recomputes() > 0);
    follows(resnet);
}
