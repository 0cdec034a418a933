//! How low the blocks of shapes are that come for the first time, beside those that a search finds for each of them.
//!
//! `cargo bench -p remat-onnxruntime-observe --bench unseen -- PATH..`. Paths are plans of memory, and buffers in MiniMalloc's form, or folders of
//! such. Buffers get made-up formulas in one open dimension: of three in ten sizes it is a constant, of five it grows with the dimension, of two with its
//! square. Prints a row for each.

#![expect(clippy::print_stdout, reason = "a bench prints what it finds")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use remat::place::{BufferFile, read_csv};
use remat_formula::{Formula, OpenDim};
use remat_onnxruntime_arena::{ArenaPlan, ArenaPlanFile, PlannedBuffer, Plans, Shape, THREADS, first_block_bytes};
use remat_onnxruntime_observe::order_buffers;
use remat_plan::{Blocks, Buffer};
use remat_solve::{Rng, SolveControl};

/// Sizes of the made-up dimension, and the one at which buffers have the sizes of their file.
const RANGE: (u64, u64) = (64, 1024);
const RECORDED: u64 = 256;
/// Shapes for which orders are found, and those that come for the first time.
const SEEN: usize = 50;
const UNSEEN: usize = 30;
/// So often the range is halved.
const SCALES: usize = 5;
/// For the search.
const SECOND: Duration = Duration::from_secs(1);

fn main() {
    println!(
        "| buffers | number | orders | above a search, most, % | on average | in the first run, most | search above the load, most |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let paths = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    for path in paths.flat_map(|path| files(Path::new(&path))) {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "csv") {
            let buffers = read_csv(&text).expect("these are buffers");
            (0..2).for_each(|draw| row(&format!("{name}, {draw}"), made_up(&buffers, draw)));
        } else {
            row(&name, ArenaPlanFile::parse(&text).expect("this is a plan"));
        }
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(folder) = path.read_dir() else {
        return vec![path.to_owned()];
    };
    let mut files: Vec<PathBuf> = folder.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    files.sort();
    files
}

/// A plan of these buffers, whose sizes depend on a dimension.
fn made_up(file: &BufferFile, draw: u64) -> ArenaPlanFile {
    let mut rng = Rng::new(draw, 0);
    let mut sizes: Vec<u64> = file.buffers.iter().map(|buffer| buffer.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let powers: Vec<u32> = sizes
        .iter()
        .map(|_| [0, 0, 0, 1, 1, 1, 1, 1, 2, 2][rng.below(10)])
        .collect();
    let count = file.buffers.len() as u64;
    let mut by_time: Vec<&Buffer> = file.buffers.iter().collect();
    by_time.sort_by_key(|buffer| buffer.lifetime.start);
    // Buffers that begin at one time begin one after the other.
    let planned = (0..).zip(by_time).map(|(place, buffer)| {
        let power = powers[sizes.binary_search(&buffer.size).expect("it is one of them")];
        let unit = RECORDED.pow(power);
        let size = buffer.size.div_ceil(unit).cast_signed();
        PlannedBuffer {
            size: Formula::sum([(size, if power == 0 { Vec::new() } else { vec![(0, power)] })]),
            is_exact: true,
            first: buffer.lifetime.start * count + place,
            last: buffer.lifetime.end * count,
            ranks: None,
            is_output: false,
        }
    });
    ArenaPlanFile {
        dims: vec![OpenDim {
            name: "n".to_owned(),
            least: RANGE.0,
            most: RANGE.1,
        }],
        plans: vec![ArenaPlan {
            buffers: planned.collect(),
            ..ArenaPlan::default()
        }],
        ..ArenaPlanFile::default()
    }
}

fn row(name: &str, file: ArenaPlanFile) {
    let mut rng = Rng::new(1, 0);
    // Of all scales. The runs of a session have one number of threads.
    let mut size = |dim: &OpenDim, scale: usize| match dim.name == THREADS {
        true => 1,
        false => dim.least + rng.below(usize::try_from((dim.most - dim.least) >> scale).unwrap_or(0) + 1) as u64,
    };
    let mut shape = |at: usize| -> Vec<u64> { file.dims.iter().map(|dim| size(dim, at % SCALES)).collect() };
    let mut shapes = |count: usize| -> Vec<Vec<u64>> { (0..count).map(&mut shape).collect() };
    let (seen, unseen) = (shapes(SEEN), shapes(UNSEEN));
    let most = |dim: &OpenDim| if dim.name == THREADS { 1 } else { dim.most };
    let largest: Vec<u64> = file.dims.iter().map(most).collect();
    let file = order_buffers(file, &[largest], &seen, &SolveControl::new()).expect("they can be placed");
    let plans = Plans::new(&file);
    let before: Vec<Arc<Shape>> = seen
        .iter()
        .filter_map(|dims| plans.shape(0, dims))
        .map(Arc::new)
        .collect();
    let (mut most, mut sum, mut first, mut searched): (f64, f64, f64, f64) = (0.0, 0.0, 0.0, 0.0);
    for dims in &unseen {
        let shape = plans.shape(0, dims).expect("it is small");
        let lowest = lowest(&file, &shape).min(shape.block_bytes());
        let above = |bytes: u64, than: u64| 100.0 * bytes.saturating_sub(than) as f64 / than as f64;
        let in_run = first_block_bytes(&plans, &before, &shape).expect("it is of the plan");
        most = most.max(above(shape.block_bytes(), lowest));
        sum += above(shape.block_bytes(), lowest);
        first = first.max(above(in_run, lowest));
        searched = searched.max(above(lowest, shape.load_bytes(&plans)));
    }
    let (count, orders) = (file.plans[0].buffers.len(), file.plans[0].orders);
    println!(
        "| {name} | {count} | {orders} | {most:.2} | {:.2} | {first:.2} | {searched:.2} |",
        sum / UNSEEN as f64
    );
}

/// The lowest block for a shape that a search finds, from its offsets.
fn lowest(file: &ArenaPlanFile, shape: &Shape) -> u64 {
    let alignment = file.alignment();
    let sized = file.plans[0].buffers.iter().zip(shape.sizes()).enumerate();
    let buffers = sized.map(|(place, (planned, bytes))| Buffer {
        alignment,
        ..Buffer::new(
            place.to_string(),
            bytes.next_multiple_of(alignment),
            planned.first..planned.last,
        )
    });
    let buffers = BufferFile {
        buffers: buffers.filter(|buffer| buffer.size > 0).collect(),
        hints: None,
    };
    let control = SolveControl::new().time_limit(SECOND);
    let placed = remat::place_buffers(&buffers, &Blocks::Lowest, &control).expect("they can be placed");
    placed.outcome.certificate.height.unwrap_or(u64::MAX)
}
