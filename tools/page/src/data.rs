//! Runs as JSON for the script of the page.

use std::collections::HashMap;

use remat_ir::{Dim, Graph, Op, Tensor, ValueType};
use remat_plan::{OpId, Problem, Resident, Step, StorageId};
use remat_verify::{Interval, intervals};
use serde::Serialize;

use crate::names::{Names, Origin};
use crate::recorded::Recorded;
use crate::run::Run;

/// What the script draws.
#[derive(Serialize)]
pub(crate) struct Data<'a> {
    /// What files that are saved are called, without their ends.
    file: String,
    /// Names of ops and tensors, types and shapes, each once; the first one is empty.
    names: Vec<String>,
    runs: Vec<RunData<'a>>,
    /// Names of kinds of lives, which follow those of plans; absent for plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<&'a [String]>,
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    /// Kind (0: first run, 1: recompute, 2: page out, 3: page in), name, type, and other name of each op or transfer: what it is called in what is
    /// run, where that is not the model's name.
    steps: Vec<(u8, usize, usize, usize)>,
    /// Name, shape, element type, and other name; for a workspace the names of its op.
    tensors: Vec<(usize, usize, usize, usize)>,
    /// What takes bytes: its tensor, kind, first step, first one after the last, bytes, offset.
    lives: Vec<(usize, u8, usize, usize, u64, u64)>,
    /// Size of the block, where there is one.
    block: Option<u64>,
    budget: Option<u64>,
}

/// Why something takes bytes; the script has the same numbers.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    /// A result of a first run.
    Kept,
    /// A result that was computed again.
    Again,
    /// A part of a tensor: what an op in tiles makes.
    Tiled,
    /// A result that came back from the second memory.
    Paged,
    /// What a kernel works with while it runs.
    Workspace,
}

/// How many kinds of lives plans have.
const KINDS: u8 = 5;

/// Texts by their numbers.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Texts {
    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.all.len();
        self.all.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    /// The name in what is run, where that is not the model's.
    fn other(&mut self, name: &str, origin: Origin<'_>) -> usize {
        self.place(if name == origin.name { "" } else { name })
    }
}

/// Ops and tensors of a graph by their names.
struct Known<'a> {
    ops: HashMap<&'a str, &'a Op>,
    tensors: HashMap<&'a str, &'a Tensor>,
}

impl<'a> Known<'a> {
    fn of(graph: Option<&'a Graph>) -> Self {
        let ops = graph.into_iter().flat_map(|graph| &graph.ops);
        let tensors = graph.into_iter().flat_map(|graph| &graph.tensors);
        Self {
            ops: ops.map(|op| (op.name.as_str(), op)).collect(),
            tensors: tensors.map(|tensor| (tensor.name.as_str(), tensor)).collect(),
        }
    }

    fn op_type(&self, op: &str) -> &'a str {
        self.ops.get(op).map_or("", |op| &op.op_type)
    }

    /// Shape and element type.
    fn value(&self, tensor: &str) -> (String, &'static str) {
        let Some(ValueType::Tensor { element, shape }) = self.tensors.get(tensor).map(|tensor| &tensor.ty) else {
            return (String::new(), "");
        };
        let dims = shape.iter().flatten().map(|dim| match dim {
            Dim::Known(size) | Dim::Free { size, .. } => size.to_string(),
            Dim::Symbol(name) => name.clone(),
            Dim::Unknown => "?".to_owned(),
        });
        (dims.collect::<Vec<_>>().join("×"), element.name())
    }
}

impl<'a> Data<'a> {
    /// The first run is that of the model.
    pub(crate) fn of(title: &str, runs: &[Run<'a>]) -> Self {
        let mut texts = Texts::default();
        texts.place("");
        let names = runs.first().map(|run| Names::of(run.problem));
        let runs = runs.iter().zip(names.iter().cycle());
        let runs = runs
            .map(|(run, names)| Writer::of(run, names).write(&mut texts))
            .collect();
        Self {
            file: file_name(title),
            names: texts.all,
            runs,
            kinds: None,
        }
    }

    /// That of a program without a plan.
    pub(crate) fn of_recorded(title: &str, recorded: &'a Recorded) -> Self {
        let mut texts = Texts::default();
        texts.place("");
        let steps = recorded.steps.iter();
        let steps = steps.map(|(name, about)| (0, texts.place(name), texts.place(about), 0));
        let steps: Vec<_> = steps.collect();
        let mut run = RunData {
            name: &recorded.name,
            steps,
            tensors: Vec::new(),
            lives: Vec::new(),
            block: None,
            budget: None,
        };
        for life in recorded.known_lives() {
            let kind = texts.place(&recorded.kinds[usize::from(life.kind)]);
            run.tensors
                .push((texts.place(&life.name), texts.place(&life.about), kind, 0));
            let tensor = run.tensors.len() - 1;
            run.lives
                .push((tensor, KINDS + life.kind, life.from, life.to, life.bytes, 0));
        }
        Self {
            file: file_name(title),
            names: texts.all,
            runs: vec![run],
            kinds: Some(&recorded.kinds),
        }
    }

    /// As text that may stand in an element of HTML.
    pub(crate) fn to_json(&self) -> String {
        // There are strings and numbers only, which are always JSON.
        in_element(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// What files of a page are called.
fn file_name(title: &str) -> String {
    let letters = title
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    format!("remat-{}", letters.take(60).collect::<String>())
}

/// JSON that cannot end the element it stands in.
pub(crate) fn in_element(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// What is known of a run when it is written.
struct Writer<'a, 'b> {
    run: &'b Run<'a>,
    names: &'b Names<'a>,
    known: Known<'a>,
    /// How many tensors of the run come from each of the model.
    pieces: HashMap<&'a str, usize>,
}

impl<'a, 'b> Writer<'a, 'b> {
    fn of(run: &'b Run<'a>, names: &'b Names<'a>) -> Self {
        let problem: &'a Problem = run.problem;
        let mut pieces = HashMap::new();
        for storage in problem.storages.keys() {
            let name = names.tensor(problem, storage).name;
            *pieces.entry(name).or_default() += usize::from(name != problem.storage_name(storage));
        }
        Self {
            run,
            names,
            known: Known::of(run.graph),
            pieces,
        }
    }

    fn write(&self, texts: &mut Texts) -> RunData<'a> {
        let mut data = RunData {
            name: self.run.name,
            steps: self.steps(texts),
            tensors: Vec::new(),
            lives: Vec::new(),
            block: self.run.placement.map(|placement| placement.block.bytes),
            budget: self.run.problem.budget,
        };
        self.add_lives(&mut data, texts);
        data
    }

    fn steps(&self, texts: &mut Texts) -> Vec<(u8, usize, usize, usize)> {
        let problem: &'a Problem = self.run.problem;
        let op = |kind, id: OpId| {
            let name = problem.ops[id].name.as_str();
            (kind, self.names.op(problem, id), self.known.op_type(name), name)
        };
        let moved = |kind, id: StorageId| (kind, self.names.tensor(problem, id), "", problem.storage_name(id));
        let steps = self.run.plan.steps.iter().filter_map(|step| match *step {
            Step::Compute(id) => Some(op(0, id)),
            Step::Recompute(id) => Some(op(1, id)),
            Step::PageOut(id) => Some(moved(2, id)),
            Step::PageIn(id) => Some(moved(3, id)),
            Step::Free(_) => None,
        });
        let mut place = |(kind, origin, op_type, name): (u8, Origin<'a>, &str, &str)| {
            (
                kind,
                texts.place(origin.name),
                texts.place(op_type),
                texts.other(name, origin),
            )
        };
        steps.map(&mut place).collect()
    }

    /// Of an accepted placement, intervals and their places are listed in the same order.
    fn add_lives(&self, data: &mut RunData<'a>, texts: &mut Texts) {
        let run = self.run;
        let positions = run.positions();
        let mut places: HashMap<Resident, usize> = HashMap::new();
        for (index, interval) in intervals(run.problem, run.plan, run.replay).iter().enumerate() {
            let at = |step: usize| positions.get(step).copied().unwrap_or_default();
            let (from, to) = (at(interval.steps.start), at(interval.steps.end));
            if from >= to {
                continue;
            }
            let tensor = *places.entry(interval.what).or_insert_with(|| {
                data.tensors.push(self.tensor(interval.what, texts));
                data.tensors.len() - 1
            });
            let placed = run.placement.and_then(|placement| placement.intervals.get(index));
            let offset = placed.map_or(0, |placed| placed.offset);
            data.lives
                .push((tensor, self.kind(interval) as u8, from, to, interval.bytes, offset));
        }
    }

    fn tensor(&self, what: Resident, texts: &mut Texts) -> (usize, usize, usize, usize) {
        let problem: &'a Problem = self.run.problem;
        let (origin, name, (shape, element)) = match what {
            Resident::Workspace(op) => (
                self.names.op(problem, op),
                problem.ops[op].name.as_str(),
                (String::new(), ""),
            ),
            Resident::Storage(storage) => {
                let name = problem.storage_name(storage);
                (self.names.tensor(problem, storage), name, self.known.value(name))
            }
        };
        (
            texts.place(origin.name),
            texts.place(&shape),
            texts.place(element),
            texts.other(name, origin),
        )
    }

    fn kind(&self, interval: &Interval) -> Kind {
        let Resident::Storage(storage) = interval.what else {
            return Kind::Workspace;
        };
        match self.run.plan.steps.get(interval.steps.start) {
            Some(Step::Recompute(_)) => Kind::Again,
            Some(Step::PageIn(_)) => Kind::Paged,
            _ => self.first_kind(storage),
        }
    }

    /// The kind of what a first run makes.
    fn first_kind(&self, storage: StorageId) -> Kind {
        let origin = self.names.tensor(self.run.problem, storage);
        let is_piece = self.run.problem.storage_name(storage) != origin.name;
        match is_piece {
            true if origin.is_again => Kind::Again,
            true if self.pieces.get(origin.name).is_some_and(|&pieces| pieces > 1) => Kind::Tiled,
            _ => Kind::Kept,
        }
    }
}
