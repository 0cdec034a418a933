//! Fission beside the other ways of planning: what it would give, sweeps, the largest batch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protobuf::Message;
use remat::fission::{Axis, Exactness};
use remat::plan::{BudgetSpec, Tiling};
use remat::solver::SolveControl;
use remat::{
    BatchFinding, BatchRequest, Error, FissionRequest, FrontFile, LoadOptions, Model, SolveRequest, SweepRequest,
    TileChoice, TiledModel, TiledSweep, max_batch, sweep_in_tiles, tile_to_measure, tiling_outlook,
};
use remat_testing::onnx::{FLOAT, NodeExt, graph, model, node, numbers, tensor_type};
use remat_testing::{Trial, trial};
use tempfile::TempDir;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(what_tiles_would_give_lies_between_the_bound_and_the_peak_of_whole_ops),
        trial!(tiles_beyond_the_limit_of_time_come_last_and_only_where_their_peaks_are_lower),
        trial!(where_whole_ops_are_known_not_to_do_tiles_need_not_be_better_than_they_seem_to_be),
        trial!(a_budget_is_kept_in_tiles_within_a_few_hundred_steps),
        trial!(over_rising_budgets_time_never_rises_nor_above_that_of_the_default_budget),
        trial!(a_sweep_finds_plans_in_tiles_where_whole_ops_have_none_and_continues_with_them),
        trial!(a_larger_batch_fits_in_tiles),
        trial!(other_bits_are_planned_only_where_they_take_clearly_less),
        trial!(a_tiling_that_keeps_bits_splits_no_sum),
        trial!(no_fused_chain_is_cut_along_a_free_dimension_and_along_a_fixed_one_the_input_states_it),
    ]
}

/// What is left of a large result by a pool over squares of it.
const SQUARES: &str = "1 64 8 8";

/// A chain of convolutions whose middle results are its peak.
struct Chain {
    _folder: TempDir,
    path: PathBuf,
}

impl Chain {
    fn new() -> Self {
        Self::sized("N 4 32 32", "N 2 1 1")
    }

    fn sized(input: &str, output: &str) -> Self {
        let same = [1, 1, 1, 1];
        let nodes = vec![
            node("Conv", &["x", "w0"], &["c0"]).ints("pads", &same).named("first"),
            node("Relu", &["c0"], &["r0"]).named("relu"),
            node("Conv", &["r0", "w1"], &["c1"]).ints("pads", &same).named("middle"),
            node("Conv", &["c1", "w2"], &["c2"]).ints("pads", &same).named("last"),
            node("GlobalAveragePool", &["c2"], &["y"]).named("mean"),
        ];
        let mut built = graph(&[("x", tensor_type(FLOAT, input))], nodes, &["y"]);
        built.output[0].type_ = Some(tensor_type(FLOAT, output)).into();
        for (name, dims) in [("w0", [16, 4, 3, 3]), ("w1", [16, 16, 3, 3]), ("w2", [2, 16, 3, 3])] {
            built.initializer.push(numbers(name, &dims));
        }
        Self::written(&model(built).write_to_bytes().expect("it can be written"))
    }

    /// A large result before a pool: of maxima, or of means.
    fn pooled(pool: &str, output: &str) -> Self {
        let mut pool = node(pool, &["r"], &["y"]).named("pool");
        if output == SQUARES {
            pool = pool.ints("kernel_shape", &[4, 4]).ints("strides", &[4, 4]);
        }
        let nodes = vec![
            node("Concat", &["x"; 16], &["c"]).int("axis", 1).named("wide"),
            node("Relu", &["c"], &["r"]).named("relu"),
            pool,
        ];
        let mut built = graph(&[("x", tensor_type(FLOAT, "1 4 32 32"))], nodes, &["y"]);
        built.output[0].type_ = Some(tensor_type(FLOAT, output)).into();
        Self::written(&model(built).write_to_bytes().expect("it can be written"))
    }

    fn written(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("there is space");
        let path = folder.path().join("chain.onnx");
        std::fs::write(&path, bytes).expect("there is space");
        Self { _folder: folder, path }
    }

    fn options(batch: u64) -> LoadOptions {
        LoadOptions {
            dims: BTreeMap::from([("N".to_owned(), batch)]),
            ..LoadOptions::default()
        }
    }

    fn open(&self, batch: u64) -> Result<Model, Error> {
        Model::open(&self.path, &Self::options(batch))
    }
}

fn request() -> FissionRequest {
    FissionRequest {
        exactness: Exactness::WholeSums,
        ..FissionRequest::EXACT
    }
}

fn control() -> SolveControl<'static> {
    SolveControl::new().step_limit(400)
}

/// The models in tiles that are to be measured, of a chain for one image.
fn to_measure(model: &Model, asked: &SolveRequest, choice: TileChoice) -> Vec<TiledModel> {
    tile_to_measure(model, &Chain::options(1), asked, &request(), choice, &control())
        .expect("a model that can be tiled")
}

fn what_tiles_would_give_lies_between_the_bound_and_the_peak_of_whole_ops() {
    let chain = Chain::new();
    let (model, options) = (chain.open(1).unwrap(), Chain::options(1));
    let outlook = tiling_outlook(&model, &options, &request(), &control()).unwrap();
    let lowest = outlook.lowest(None).expect("tiles lower the peak");
    let bound = outlook.bound.as_ref().expect("sizes are known");
    assert!(lowest.peak * 10 < outlook.front[0].peak * 8 && bound.bytes <= lowest.peak);
    let cheap = outlook.lowest(Some(10_000));
    assert!(cheap.is_none_or(|cheap| cheap.peak >= lowest.peak && cheap.time_ppm <= 1_010_000));
    // What it says is what the tiled model takes in its own order.
    let tiled = model.tiled(&lowest.tiling, &options).unwrap();
    assert_eq!(tiled.baseline().peak, lowest.peak);
}

fn other_bits_are_planned_only_where_they_take_clearly_less() {
    let close = FissionRequest {
        exactness: Exactness::Close,
        ..FissionRequest::EXACT
    };
    let asked = SolveRequest {
        budget: BudgetSpec::Auto,
        max_overhead: Some(10_000_000),
        solver: "search".to_owned(),
    };
    let lowest = |chain: &Chain, fission: &FissionRequest| {
        let options = LoadOptions::default();
        let model = Model::open(&chain.path, &options).unwrap();
        let found = tile_to_measure(&model, &options, &asked, fission, TileChoice::default(), &control()).unwrap();
        let lowest = found.into_iter().min_by_key(|tiled| tiled.peak)?;
        Some((lowest.peak, lowest.model.tiling()?.close))
    };
    let pools = [
        ("GlobalAveragePool", "1 64 1 1"),
        ("MaxPool", SQUARES),
        ("GlobalMaxPool", "1 64 1 1"),
    ];
    let [means, maxima, largest] = pools
        .map(|(pool, output)| Chain::pooled(pool, output))
        .map(|chain| [&close, &FissionRequest::EXACT].map(|fission| lowest(&chain, fission)));
    assert!(means[0].is_some_and(|(_, is_close)| is_close), "{means:?}");
    assert_eq!(means[1], None, "the mean needs all at once");
    assert!(maxima[0].is_some_and(|(_, is_close)| !is_close), "{maxima:?}");
    assert_eq!(maxima[0], maxima[1]);
    // The largest of parts is the largest of all: no bit differs.
    assert!(largest[0].is_some_and(|(_, is_close)| !is_close), "{largest:?}");
    assert_eq!(largest[0], largest[1]);
}

fn a_tiling_that_keeps_bits_splits_no_sum() {
    let chain = Chain::pooled("GlobalAveragePool", "1 64 1 1");
    let options = LoadOptions::default();
    let model = Model::open(&chain.path, &options).unwrap();
    let close = FissionRequest {
        exactness: Exactness::Close,
        ..FissionRequest::EXACT
    };
    let outlook = tiling_outlook(&model, &options, &close, &control()).unwrap();
    let split = &outlook.lowest(None).expect("tiles lower the peak").tiling;
    assert!(split.close && model.tiled(split, &options).is_ok());
    let whole = Tiling {
        close: false,
        ..split.clone()
    };
    let refused = model.tiled(&whole, &options).unwrap_err().to_string();
    assert!(refused.contains("`y`"), "{refused}");
}

fn tiles_beyond_the_limit_of_time_come_last_and_only_where_their_peaks_are_lower() {
    let chain = Chain::new();
    let (model, options) = (chain.open(1).unwrap(), Chain::options(1));
    let outlook = tiling_outlook(&model, &options, &request(), &control()).unwrap();
    let [fast, slow] = [1, outlook.front.len() - 1].map(|place| outlook.front[place].time_ppm - 1_000_000);
    assert!(fast < slow, "{fast} {slow}");
    let most = fast.midpoint(slow);
    let asked = SolveRequest {
        budget: BudgetSpec::Auto,
        max_overhead: Some(most),
        solver: "search".to_owned(),
    };
    let found = |slack| {
        let choice = TileChoice {
            slack,
            ..TileChoice::default()
        };
        to_measure(&model, &asked, choice)
    };
    let within = found(0);
    assert!(!within.is_empty() && within.iter().all(|tiled| tiled.max_overhead == Some(most)));
    let beyond = found(slow);
    let lowest = within.iter().map(|tiled| tiled.peak).min();
    let (is_slow, peaks): (Vec<bool>, Vec<u64>) = beyond
        .iter()
        .map(|tiled| (tiled.max_overhead != Some(most), tiled.peak))
        .unzip();
    assert!(is_slow.is_sorted() && is_slow.contains(&true), "{is_slow:?}");
    let lower = peaks.iter().zip(&is_slow).filter(|(_, is_slow)| **is_slow);
    assert!(
        lower.clone().all(|(&peak, _)| Some(peak) < lowest),
        "{peaks:?} {lowest:?}"
    );
}

fn where_whole_ops_are_known_not_to_do_tiles_need_not_be_better_than_they_seem_to_be() {
    let chain = Chain::new();
    let model = chain.open(1).unwrap();
    let whole = model.baseline().peak;
    // By estimate no op has to run again for it.
    let asked = SolveRequest {
        budget: BudgetSpec::Bytes(whole),
        max_overhead: None,
        solver: "search".to_owned(),
    };
    let found = |without_whole| {
        to_measure(
            &model,
            &asked,
            TileChoice {
                without_whole,
                slack: 0,
            },
        )
    };
    assert!(found(false).is_empty());
    let tiles = found(true);
    assert!(!tiles.is_empty() && tiles.iter().all(|tiled| tiled.peak < whole));
}

fn a_budget_is_kept_in_tiles_within_a_few_hundred_steps() {
    let chain = Chain::new();
    let (model, options) = (chain.open(1).unwrap(), Chain::options(1));
    let few = SolveControl::new().step_limit(100);
    let whole = model.baseline().peak;
    for percent in [90, 75, 60] {
        let asked = SolveRequest {
            budget: BudgetSpec::Bytes(whole / 100 * percent),
            max_overhead: None,
            solver: "search".to_owned(),
        };
        let tiled = remat::tile(&model, &options, &asked, &request(), &few).unwrap();
        let planned = remat::solve(tiled.first().expect("tiles keep the budget"), &asked, &few).unwrap();
        assert!(planned.replay.peak <= whole / 100 * percent);
    }
}

/// The best plan under a budget, in tiles or whole: its duration and peak.
fn best_under(model: &Model, options: &LoadOptions, budget: BudgetSpec) -> (u64, u64) {
    let asked = SolveRequest {
        budget,
        max_overhead: Some(1_000_000),
        solver: "auto".to_owned(),
    };
    let tiled = remat::tile(model, options, &asked, &request(), &control()).expect("a model that can be tiled");
    let planned = |model: &Model| {
        let replay = remat::solve(model, &asked, &control()).ok()?.replay;
        Some((replay.duration, replay.peak))
    };
    // Tiles come first where they are known to gain.
    let first = tiled.first().and_then(planned);
    first
        .or_else(|| planned(model))
        .expect("the budget is not below what tiles reach")
}

fn over_rising_budgets_time_never_rises_nor_above_that_of_the_default_budget() {
    let chain = Chain::new();
    let (model, options) = (chain.open(1).unwrap(), Chain::options(1));
    let whole = model.baseline().peak;
    let (free_time, free_peak) = best_under(&model, &options, BudgetSpec::Auto);
    assert!(free_peak < whole);
    let mut last = u64::MAX;
    for percent in [60, 65, 70, 75, 80, 85, 90, 95, 100] {
        let budget = whole * percent / 100;
        let (time, peak) = best_under(&model, &options, BudgetSpec::Bytes(budget));
        assert!(peak <= budget, "{percent} %: {peak} of {budget}");
        assert!(time <= last, "{percent} %: {time} after {last}");
        assert!(
            free_peak > budget || time <= free_time,
            "{percent} %: {time} of {free_time}"
        );
        last = time;
    }
}

fn a_sweep_finds_plans_in_tiles_where_whole_ops_have_none_and_continues_with_them() {
    let chain = Chain::new();
    let (model, options) = (chain.open(1).unwrap(), Chain::options(1));
    let asked = SweepRequest {
        budgets: vec!["60%".parse().unwrap(), BudgetSpec::Min],
        solver: "search".to_owned(),
        time_per_budget: None,
    };
    let fission = request();
    let sweep = |resume| TiledSweep {
        options: &options,
        fission: &fission,
        request: &asked,
        resume,
    };
    let whole = || remat::sweep(&model, &asked, &control(), None, &mut |_| Ok(())).unwrap();
    let mut front = whole();
    assert!(front.points[0].solution().is_none(), "no plan of whole ops fits");
    sweep_in_tiles(&model, &mut front, &sweep(None), &control(), &mut |_| Ok(())).unwrap();
    let budget = front.points[0].budget.unwrap();
    let least = front.points[1].solution().unwrap().replay.peak;
    let peaks: Vec<u64> = front
        .points
        .iter()
        .map(|point| point.in_tiles.as_ref().unwrap().peak)
        .collect();
    assert!(
        peaks[0] <= budget && peaks[1] < least,
        "{peaks:?} of {budget} and {least}"
    );
    // A file of it gives the same plans without a search.
    let text = FrontFile::new(&model, &front, &asked, &control()).to_json();
    let file = FrontFile::from_json(&text).unwrap();
    let mut again = whole();
    let none = SolveControl::new().step_limit(0);
    sweep_in_tiles(&model, &mut again, &sweep(Some(&file)), &none, &mut |_| Ok(())).unwrap();
    for (point, known) in again.points.iter().zip(&front.points) {
        let (point, known) = (point.in_tiles.as_ref().unwrap(), known.in_tiles.as_ref().unwrap());
        assert_eq!((point.peak, &point.plan), (known.peak, &known.plan));
    }
}

fn a_larger_batch_fits_in_tiles() {
    let chain = Chain::new();
    let open = |batch| chain.open(batch);
    let asked = BatchRequest {
        memory: 3 * chain.open(1).unwrap().baseline().peak,
        fixed: 0,
        max_overhead: 1_000_000,
        solver: "search".to_owned(),
        largest: 64,
    };
    let fission = request();
    let tile = |batch: u64, model: &Model, request: &SolveRequest, control: &SolveControl<'_>| {
        let found = remat::tile(model, &Chain::options(batch), request, &fission, control)?;
        Ok(found.into_iter().next())
    };
    let whole = max_batch(&open, None, &asked, &control()).unwrap();
    let tiled = max_batch(&open, Some(&tile), &asked, &control()).unwrap();
    let (Some(whole), Some(with)) = (whole.with, tiled.with) else {
        panic!("a batch of 3 fits as it is");
    };
    assert!(with > whole, "{with} and {whole}");
    for trial in &tiled.trials {
        let BatchFinding::Plan { peak, duration } = trial.finding else {
            assert!(trial.tiling.is_none());
            continue;
        };
        assert!(peak <= asked.memory && duration <= 2 * trial.baseline_duration);
        assert!(trial.tiling.is_some(), "order and recomputing gain nothing here");
    }
}

fn no_fused_chain_is_cut_along_a_free_dimension_and_along_a_fixed_one_the_input_states_it() {
    let chain = Chain::sized("1 4 H 32", "1 2 1 1");
    let free = LoadOptions {
        dims: BTreeMap::from([("H".to_owned(), 32)]),
        ..LoadOptions::default()
    };
    let fixed = LoadOptions {
        fixed_dims: free.dims.keys().cloned().collect(),
        ..free.clone()
    };
    let rows = FissionRequest {
        axes: vec![Axis::Rows],
        ..request()
    };
    let outlook = |options: &LoadOptions| {
        let model = Model::open(&chain.path, options).unwrap();
        tiling_outlook(&model, options, &rows, &control()).unwrap()
    };
    let found = outlook(&fixed);
    let tiling = &found.lowest(None).expect("rows are fixed").tiling;
    let tiled = Model::open(&chain.path, &fixed).unwrap().tiled(tiling, &fixed).unwrap();
    let graph = &tiled.onnx().unwrap().proto().graph;
    assert_eq!(graph.input[0].type_, Some(tensor_type(FLOAT, "1 4 32 32")).into());
    assert!(outlook(&free).lowest(None).is_none());
    let error = Model::open(&chain.path, &free)
        .unwrap()
        .tiled(tiling, &free)
        .unwrap_err();
    assert!(error.to_string().contains("free dimension"), "{error}");
    // Columns have a number: they may be cut whatever the height.
    let columns = FissionRequest {
        axes: vec![Axis::Columns],
        ..request()
    };
    let model = Model::open(&chain.path, &free).unwrap();
    let found = tiling_outlook(&model, &free, &columns, &control()).unwrap();
    let tiling = &found.lowest(None).expect("columns are fixed").tiling;
    let tiled = model.tiled(tiling, &free).unwrap();
    let graph = &tiled.onnx().unwrap().proto().graph;
    assert_eq!(graph.input[0].type_, Some(tensor_type(FLOAT, "1 4 H 32")).into());
}
