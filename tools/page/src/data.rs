//! Runs as JSON for the script of the page.

use std::collections::HashMap;

use remat_ir::{Dim, Graph, Op, Tensor, ValueType};
use remat_plan::{OpId, Resident, Step, StorageId};
use remat_verify::{Interval, intervals};
use serde::Serialize;

use crate::run::Run;

/// What the script draws.
#[derive(Serialize)]
pub(crate) struct Data<'a> {
    /// What files that are saved are called, without their ends.
    file: String,
    /// Names of ops and tensors, types and shapes, each once; the first one is empty.
    names: Vec<String>,
    runs: Vec<RunData<'a>>,
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    /// Kind (0: first run, 1: recompute, 2: page out, 3: page in), name, and type of each op or transfer.
    steps: Vec<(u8, usize, usize)>,
    /// Name, shape and element type; for a workspace the name of its op.
    tensors: Vec<(usize, usize, usize)>,
    /// What takes bytes: its tensor, kind, first step, first one after the last, bytes, offset.
    lives: Vec<(usize, Kind, usize, usize, u64, u64)>,
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

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

#[derive(Default)]
struct Names {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = self.all.len();
        self.all.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

/// Ops and tensors of a graph by their names.
struct Known<'a> {
    graph: Option<&'a Graph>,
    ops: HashMap<&'a str, &'a Op>,
    tensors: HashMap<&'a str, &'a Tensor>,
}

impl<'a> Known<'a> {
    fn of(graph: Option<&'a Graph>) -> Self {
        let ops = graph.into_iter().flat_map(|graph| &graph.ops);
        let tensors = graph.into_iter().flat_map(|graph| &graph.tensors);
        Self {
            graph,
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

    /// Whether a tensor is part of another one.
    fn is_part(&self, tensor: &str) -> bool {
        let producer = self.tensors.get(tensor).and_then(|tensor| tensor.producer);
        let op = self.graph.zip(producer).and_then(|(graph, id)| graph.ops.get(id));
        op.is_some_and(|op| op.parts.iter().any(Option::is_some))
    }
}

impl<'a> Data<'a> {
    pub(crate) fn of(title: &str, runs: &[Run<'a>]) -> Self {
        let mut names = Names::default();
        names.place("");
        let runs = runs.iter().map(|run| RunData::of(run, &mut names)).collect();
        let letters = title
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
        Self {
            file: format!("remat-{}", letters.take(60).collect::<String>()),
            names: names.all,
            runs,
        }
    }

    /// As text that may stand in an element of HTML.
    pub(crate) fn to_json(&self) -> String {
        // There are strings and numbers only, which are always JSON.
        in_element(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// JSON that cannot end the element it stands in.
pub(crate) fn in_element(json: &str) -> String {
    json.replace('<', "\\u003c")
}

impl<'a> RunData<'a> {
    fn of(run: &Run<'a>, names: &mut Names) -> Self {
        let known = Known::of(run.graph);
        let mut data = Self {
            name: run.name,
            steps: Vec::new(),
            tensors: Vec::new(),
            lives: Vec::new(),
            block: run.placement.map(|placement| placement.block.bytes),
            budget: run.problem.budget,
        };
        data.add_steps(run, &known, names);
        data.add_lives(run, &known, names);
        data
    }

    fn add_steps(&mut self, run: &Run<'_>, known: &Known<'_>, names: &mut Names) {
        let problem = run.problem;
        for step in &run.plan.steps {
            let (kind, name, op_type) = match *step {
                Step::Compute(op) => (0, &*problem.ops[op].name, known.op_type(&problem.ops[op].name)),
                Step::Recompute(op) => (1, &*problem.ops[op].name, known.op_type(&problem.ops[op].name)),
                Step::PageOut(storage) => (2, problem.storage_name(storage), ""),
                Step::PageIn(storage) => (3, problem.storage_name(storage), ""),
                Step::Free(_) => continue,
            };
            self.steps.push((kind, names.place(name), names.place(op_type)));
        }
    }

    /// Of an accepted placement, intervals and their places are listed in the same order.
    fn add_lives(&mut self, run: &Run<'_>, known: &Known<'_>, names: &mut Names) {
        let positions = run.positions();
        let mut storages: HashMap<StorageId, (usize, bool)> = HashMap::new();
        let mut workspaces: HashMap<OpId, usize> = HashMap::new();
        for (index, interval) in intervals(run.problem, run.plan, run.replay).iter().enumerate() {
            let at = |step: usize| positions.get(step).copied().unwrap_or_default();
            let (from, to) = (at(interval.steps.start), at(interval.steps.end));
            if from >= to {
                continue;
            }
            let (tensor, kind) = match interval.what {
                Resident::Workspace(op) => {
                    let place = *workspaces.entry(op).or_insert(self.tensors.len());
                    (place, Kind::Workspace)
                }
                Resident::Storage(storage) => {
                    let is_part = || known.is_part(run.problem.storage_name(storage));
                    let &mut (place, is_part) = storages
                        .entry(storage)
                        .or_insert_with(|| (self.tensors.len(), is_part()));
                    (place, kind(run, interval, is_part))
                }
            };
            if tensor == self.tensors.len() {
                self.tensors.push(described(run, interval.what, known, names));
            }
            let placed = run.placement.and_then(|placement| placement.intervals.get(index));
            let offset = placed.map_or(0, |placed| placed.offset);
            self.lives.push((tensor, kind, from, to, interval.bytes, offset));
        }
    }
}

fn described(run: &Run<'_>, what: Resident, known: &Known<'_>, names: &mut Names) -> (usize, usize, usize) {
    match what {
        Resident::Workspace(op) => (names.place(&run.problem.ops[op].name), 0, 0),
        Resident::Storage(storage) => {
            let name = run.problem.storage_name(storage);
            let (shape, element) = known.value(name);
            (names.place(name), names.place(&shape), names.place(element))
        }
    }
}

fn kind(run: &Run<'_>, interval: &Interval, is_part: bool) -> Kind {
    match run.plan.steps.get(interval.steps.start) {
        Some(Step::Recompute(_)) => Kind::Again,
        Some(Step::PageIn(_)) => Kind::Paged,
        _ if is_part => Kind::Tiled,
        _ => Kind::Kept,
    }
}
