//! A network in tiles on a device with 64 KiB of memory: the C reader follows its program over a static array, with real kernels, and computes the
//! bits that the network computes whole.

mod program;

use std::path::Path;
use std::process::Command;

use remat::fission::Axis;
use remat::plan::{Bound, BudgetSpec};
use remat::solver::SolveControl;
use remat::{DeviceMemory, Error, FissionRequest, Goal, LoadOptions, Model, Output, Solution, SolveRequest, Target};
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial!(
        a_tiled_network_fits_a_static_array_and_computes_what_it_computes_whole
    )]
}

/// Bytes of memory that the device has for the input and everything that ops make; weights lie in its flash.
const MEMORY: u64 = 64 * 1024;

/// Pixels along an edge of the image.
const SIZE: u32 = 40;

fn request() -> SolveRequest {
    SolveRequest {
        // What the input leaves of the memory.
        budget: BudgetSpec::Auto,
        max_overhead: Some(400_000),
        solver: "search".to_owned(),
    }
}

fn options() -> LoadOptions {
    LoadOptions {
        device: Some("cortex-m7".to_owned()),
        device_memory: Some(DeviceMemory::Bytes(MEMORY)),
        ..LoadOptions::default()
    }
}

/// The program of the model in one block that fits the device, as it is read back from its file.
fn program_of(model: &Model, folder: &Path) -> Result<Vec<u8>, Error> {
    let control = SolveControl::new().step_limit(20_000);
    let solution = remat::solve_in_block(model, &request(), Goal::default(), Bound::Block, &control)?;
    let path = folder.join("network.sched");
    assert_eq!(Output::of(&path, model.format()).expect("a format"), Output::Schedule);
    remat::save(model, &solution, &Target::Onnx, &path)?;
    let bytes = std::fs::read(path).expect("it was written");
    let checked = remat::check_schedule(model, &bytes)?;
    let places = |solution: &Solution| {
        solution
            .placement
            .as_ref()
            .map(|placed| placed.placement.intervals.clone())
    };
    assert!(places(&checked) == places(&solution), "the file has other offsets");
    Ok(bytes)
}

fn a_tiled_network_fits_a_static_array_and_computes_what_it_computes_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("mobile_net.onnx");
    std::fs::write(&path, remat_testing::mobile_net(SIZE)).expect("it can be written");
    let whole = Model::open(&path, &options()).expect("the model opens");
    assert!(program_of(&whole, folder.path()).is_err(), "it fits without tiles");
    let fission = FissionRequest {
        tiles: vec![4, 8],
        axes: vec![Axis::Rows],
        ..FissionRequest::EXACT
    };
    let control = SolveControl::new().step_limit(20_000);
    let tiled = remat::tile(&whole, &options(), &request(), &fission, &control).expect("nothing fails");
    let tiled = tiled.into_iter().next().expect("tiles fit the memory");
    let bytes = program_of(&tiled, folder.path()).expect("the tiled network fits");
    let header = program::header(&whole, &tiled, &bytes, MEMORY);
    std::fs::write(folder.path().join("network.h"), header).expect("it can be written");
    let output = Command::new(compiled(folder.path())).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let ops = tiled.problem().ops.len();
    assert_eq!(said, format!("{ops} ops, 10 numbers\n"));
}

/// The program beside this file, compiled with what lies in `folder`. There is a C compiler wherever rustc links.
fn compiled(folder: &Path) -> std::path::PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("run");
    let flags = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-O2",
        // One rounding for each multiplication and each addition, wherever the compiler puts them.
        "-ffp-contract=off",
    ];
    let mut compile = Command::new("cc");
    compile
        .args(flags)
        .arg("-I")
        .arg(root.join("../schedule/c"))
        .arg("-I")
        .arg(folder)
        .arg("-o")
        .arg(&program)
        .arg(root.join("tests/it/device/run.c"));
    let output = compile.output().expect("`cc` runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}
