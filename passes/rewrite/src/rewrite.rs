//! The plan, step by step, as ops of a new graph.

use remat_ir::{Block, Graph, Op, OpId, OpKind, Storage, StorageClass, StorageId, Tensor, TensorId, Workspace};
use remat_plan::{BlockPlacement, PlacedInterval, Plan, Problem, Resident, Step};
use typed_index_collections::TiVec;

use crate::RewriteError;
use crate::names::Names;

/// The graph that runs `plan`: the ops in the order of the steps, a `recompute` op for each recompute, a `dealloc` op for each
/// free. Attributes, effects, captures, types, sizes and positions in the importer's table are copied.
///
/// - The first run of an op keeps its name and the names of its results, so graph outputs are what they were.
/// - The k-th recompute of `op` is named `op__remat1`, `op__remat2`, …, its results likewise; names that the graph has or
///   that `reserved` claims (those inside subgraphs, say) are avoided with a further number.
/// - Readers read the latest run of a tensor. Where a result is recomputed while its storage is still resident, the duplicate gets
///   a name and is deallocated at once, and readers keep reading the resident one.
/// - A free of memory that holds a graph output is left out: graphs never give outputs up. Such frees occur in paper
///   accounting, where the plan's peak takes outputs as dead after their last reader. One that ends in the second memory comes back at the end.
/// - What is computed again while it is in the second memory is an instance of its own there; a later `page_out` moves that one.
///
/// `problem` must be built one-to-one from `graph`: ids are the same in both. A plan that `remat-verify` accepts can be
/// rewritten. The new graph keeps all invariants of graphs, and computes the same outputs from the same
/// inputs.
///
/// # Errors
/// [`RewriteError`] if the problem is that of another graph, or if the plan is not valid.
pub fn rewrite(
    graph: &Graph,
    problem: &Problem,
    plan: &Plan,
    reserved: &dyn Fn(&str) -> bool,
) -> Result<Graph, RewriteError> {
    rewrite_placed(graph, problem, plan, None, reserved)
}

/// [`rewrite`], and the graph says where everything lies in the block of `placement`, which the checker accepts.
///
/// Where the plan frees a graph output, the graph has no block: it never gives outputs up, so their bytes would be taken twice.
///
/// # Errors
/// As [`rewrite`].
pub fn rewrite_placed(
    graph: &Graph,
    problem: &Problem,
    plan: &Plan,
    placement: Option<&BlockPlacement>,
    reserved: &dyn Fn(&str) -> bool,
) -> Result<Graph, RewriteError> {
    check_same(graph, problem)?;
    let mut rewriter = Rewriter::new(graph, Names::new(graph, reserved))?;
    rewriter.new.block = placement.map(|placement| Block {
        bytes: placement.block.bytes,
        alignment: placement.block.alignment,
        ..Block::default()
    });
    for (position, &step) in plan.steps.iter().enumerate() {
        let before = (rewriter.new.storages.len(), rewriter.new.ops.next_key());
        rewriter.step(position, step)?;
        if let Some(placement) = placement {
            rewriter.place(problem, placement.at(position), before);
        }
    }
    rewriter.finish()
}

/// Ids mean the same in graph and problem.
fn check_same(graph: &Graph, problem: &Problem) -> Result<(), RewriteError> {
    let ops = graph.ops.iter().map(|op| op.name.as_str());
    let problem_ops = problem.ops.iter().map(|op| op.name.as_str());
    check_table("op", ops, problem_ops)?;
    let tensors = graph.tensors.iter().map(|tensor| tensor.name.as_str());
    let problem_tensors = problem.tensors.iter().map(|tensor| tensor.name.as_str());
    check_table("tensor", tensors, problem_tensors)?;
    let storages = graph.storages.keys().map(|id| graph.storage_name(id));
    let problem_storages = problem.storages.keys().map(|id| problem.storage_name(id));
    check_table("storage", storages, problem_storages)
}

fn check_table<'a>(
    what: &'static str,
    mut graph: impl Iterator<Item = &'a str>,
    mut problem: impl Iterator<Item = &'a str>,
) -> Result<(), RewriteError> {
    for id in 0.. {
        let (ours, theirs) = (graph.next(), problem.next());
        if ours != theirs {
            return Err(RewriteError::OtherGraph {
                what,
                id,
                graph: ours.map(str::to_owned),
                problem: theirs.map(str::to_owned),
            });
        }
        if ours.is_none() {
            break;
        }
    }
    Ok(())
}

/// The original graph, the new one, and what stands for what right now.
struct Rewriter<'a> {
    old: &'a Graph,
    names: Names<'a>,
    new: Graph,
    /// Of the tensors of the old graph: whether it is a graph output.
    is_output: TiVec<TensorId, bool>,
    /// Of the storages of the new graph: the storage of the old one that it is an instance of.
    origin: TiVec<StorageId, StorageId>,
    /// Of the storages of the new graph: whether it holds a graph output.
    returned: TiVec<StorageId, bool>,
    /// The first run of each op.
    first_run: TiVec<OpId, Option<OpId>>,
    /// How often each op was recomputed.
    recomputes: TiVec<OpId, usize>,
    /// The result of the first run of each tensor's op.
    original: TiVec<TensorId, Option<TensorId>>,
    /// The result of the latest run of each tensor's op that is no duplicate.
    latest: TiVec<TensorId, Option<TensorId>>,
    /// The instance of each storage that readers use; `None` where there is none now.
    instance: TiVec<StorageId, Option<StorageId>>,
    /// Of the storages of the new graph: whether it is in the second memory.
    is_out: TiVec<StorageId, bool>,
}

impl<'a> Rewriter<'a> {
    /// A graph without ops, but with all inputs and constants.
    fn new(old: &'a Graph, names: Names<'a>) -> Result<Self, RewriteError> {
        if let Some(op) = old.ops.iter().find(|op| op.kind != OpKind::Compute) {
            return Err(RewriteError::AlreadyRewritten(op.name.clone()));
        }
        let mut is_output: TiVec<TensorId, bool> = TiVec::from(vec![false; old.tensors.len()]);
        for &output in &old.outputs {
            is_output[output] = true;
        }
        let mut rewriter = Self {
            old,
            names,
            new: Graph {
                name: old.name.clone(),
                ..Graph::default()
            },
            is_output,
            origin: TiVec::new(),
            returned: TiVec::new(),
            first_run: TiVec::from(vec![None; old.ops.len()]),
            recomputes: TiVec::from(vec![0; old.ops.len()]),
            original: TiVec::from(vec![None; old.tensors.len()]),
            latest: TiVec::from(vec![None; old.tensors.len()]),
            instance: TiVec::from(vec![None; old.storages.len()]),
            is_out: TiVec::new(),
        };
        for (id, tensor) in old.tensors.iter_enumerated() {
            if tensor.producer.is_none() {
                let storage = rewriter.push_storage(tensor.storage);
                rewriter.instance[tensor.storage] = Some(storage);
                let source = rewriter.push_tensor(id, tensor.name.clone(), storage, None);
                (rewriter.original[id], rewriter.latest[id]) = (Some(source), Some(source));
            }
        }
        Ok(rewriter)
    }

    /// States where what a step made or brought back lies. Before it, there were so many storages, and its first op was still to come.
    fn place(&mut self, problem: &Problem, places: &[PlacedInterval], (storages, op): (usize, OpId)) {
        let Some(block) = &mut self.new.block else { return };
        for placed in places {
            match placed.what {
                Resident::Storage(_) if self.new.ops[op].kind == OpKind::PageIn => {
                    block.returns.insert(op, placed.offset);
                }
                Resident::Storage(storage) => {
                    let new = self.origin.iter_enumerated().skip(storages);
                    let made = new.filter(|&(_, &origin)| origin == storage);
                    block.results.extend(made.map(|(id, _)| (id, placed.offset)));
                }
                Resident::Workspace(run) => {
                    let workspace = Workspace {
                        bytes: problem.ops[run].workspace,
                        offset: placed.offset,
                    };
                    block.workspaces.insert(op, workspace);
                }
            }
        }
    }

    fn step(&mut self, position: usize, step: Step) -> Result<(), RewriteError> {
        match step {
            Step::Compute(op) => {
                check_id(position, "op", op.index(), self.old.ops.len())?;
                if self.first_run[op].is_some() {
                    let op = self.old.ops[op].name.clone();
                    return Err(RewriteError::ComputedTwice { step: position, op });
                }
                self.first_run[op] = Some(self.run(position, op, OpKind::Compute)?);
                Ok(())
            }
            Step::Recompute(op) => {
                check_id(position, "op", op.index(), self.old.ops.len())?;
                let Some(of) = self.first_run[op] else {
                    let op = self.old.ops[op].name.clone();
                    return Err(RewriteError::NotComputed { step: position, op });
                };
                self.recomputes[op] += 1;
                self.run(position, op, OpKind::Recompute { of })?;
                Ok(())
            }
            Step::Free(storage) => {
                check_id(position, "storage", storage.index(), self.old.storages.len())?;
                self.free(position, storage)
            }
            Step::PageOut(storage) => self.page(position, storage, OpKind::PageOut),
            Step::PageIn(storage) => self.page(position, storage, OpKind::PageIn),
        }
    }

    /// Adds a run of `op`, then deallocates the duplicates it makes.
    fn run(&mut self, position: usize, op: OpId, kind: OpKind) -> Result<OpId, RewriteError> {
        let entry = &self.old.ops[op];
        let operand = |&tensor: &TensorId| {
            self.current(tensor)
                .ok_or_else(|| not_there(self.old, position, op, tensor))
        };
        let inputs = entry.inputs.iter().map(|input| input.as_ref().map(operand).transpose());
        let inputs = inputs.collect::<Result<_, _>>()?;
        let captures = entry.captures.iter().map(operand).collect::<Result<_, _>>()?;
        let id = self.new.ops.next_key();
        let mut duplicates = Vec::new();
        let mut outputs = Vec::with_capacity(entry.outputs.len());
        for &output in &entry.outputs {
            let output = output.map(|tensor| self.result(position, op, kind, tensor, &mut duplicates));
            outputs.push(output.transpose()?);
        }
        let name = match kind {
            OpKind::Recompute { .. } => self.names.op(&entry.name, self.recomputes[op]),
            _ => entry.name.clone(),
        };
        self.new.ops.push(Op {
            name,
            kind,
            inputs,
            captures,
            outputs,
            ..entry.clone()
        });
        for duplicate in duplicates {
            self.on_memory(OpKind::Dealloc, duplicate);
        }
        Ok(id)
    }

    /// Adds one result of the op that is to be pushed next.
    fn result(
        &mut self,
        position: usize,
        op: OpId,
        kind: OpKind,
        tensor: TensorId,
        duplicates: &mut Vec<StorageId>,
    ) -> Result<TensorId, RewriteError> {
        let id = self.new.ops.next_key();
        let old = self.old;
        let entry = &old.tensors[tensor];
        let root = old.storages[entry.storage].root;
        let resident = self.resident(entry.storage);
        let storage = match resident {
            _ if root == tensor => self.push_storage(entry.storage),
            Some(storage) => storage,
            None => return Err(not_there(old, position, op, root)),
        };
        let name = match kind {
            OpKind::Recompute { .. } => self.names.tensor(&entry.name, self.recomputes[op]),
            _ => entry.name.clone(),
        };
        let result = self.push_tensor(tensor, name, storage, Some(id));
        if kind == OpKind::Compute {
            self.original[tensor] = Some(result);
            self.returned[storage] |= self.is_output[tensor];
        }
        if root == tensor && resident.is_some() {
            if old.storages[entry.storage].class == StorageClass::Intermediate {
                duplicates.push(storage);
            }
        } else {
            self.instance[entry.storage] = Some(storage);
            self.latest[tensor] = Some(result);
        }
        Ok(result)
    }

    fn free(&mut self, position: usize, storage: StorageId) -> Result<(), RewriteError> {
        let bad = |why| RewriteError::BadFree {
            step: position,
            storage: self.old.storage_name(storage).to_owned(),
            why,
        };
        if self.old.storages[storage].class != StorageClass::Intermediate {
            return Err(bad("belongs to the caller or the session"));
        }
        let Some(instance) = self.resident(storage) else {
            return Err(bad("is not there"));
        };
        self.instance[storage] = None;
        if self.returned[instance] {
            self.new.block = None;
        } else {
            self.on_memory(OpKind::Dealloc, instance);
        }
        Ok(())
    }

    /// Moves the instance of a storage out or back.
    fn page(&mut self, position: usize, storage: StorageId, kind: OpKind) -> Result<(), RewriteError> {
        check_id(position, "storage", storage.index(), self.old.storages.len())?;
        let is_back = kind == OpKind::PageIn;
        let bad = |why| RewriteError::BadPage {
            step: position,
            way: if is_back { "in" } else { "out" },
            storage: self.old.storage_name(storage).to_owned(),
            why,
        };
        if self.old.storages[storage].class != StorageClass::Intermediate {
            return Err(bad("belongs to the caller or the session"));
        }
        let found = self.instance[storage].filter(|&instance| self.is_out[instance] == is_back);
        let Some(instance) = found else {
            return Err(bad(if is_back {
                "is not in the second memory"
            } else {
                "is not there"
            }));
        };
        self.is_out[instance] = !is_back;
        self.on_memory(kind, instance);
        Ok(())
    }

    /// The instance of a storage that is in memory.
    fn resident(&self, storage: StorageId) -> Option<StorageId> {
        self.instance[storage].filter(|&instance| !self.is_out[instance])
    }

    /// What readers of `tensor` read now.
    fn current(&self, tensor: TensorId) -> Option<TensorId> {
        let latest = self.latest[tensor]?;
        let instance = self.resident(self.old.tensors[tensor].storage)?;
        (self.new.tensors[latest].storage == instance).then_some(latest)
    }

    /// Adds an instance of a storage; its root is the tensor that is pushed next.
    fn push_storage(&mut self, storage: StorageId) -> StorageId {
        self.origin.push(storage);
        self.returned.push(false);
        self.is_out.push(false);
        self.new.storages.push_and_get_key(Storage {
            root: self.new.tensors.next_key(),
            ..self.old.storages[storage].clone()
        })
    }

    fn push_tensor(&mut self, tensor: TensorId, name: String, storage: StorageId, producer: Option<OpId>) -> TensorId {
        let new = self.new.tensors.push_and_get_key(Tensor {
            name,
            ty: self.old.tensors[tensor].ty.clone(),
            storage,
            producer,
        });
        if let Some(elements) = self.old.values.get(&tensor) {
            self.new.values.insert(new, elements.clone());
        }
        new
    }

    /// Adds an op that gives a storage of the new graph up, or moves it.
    fn on_memory(&mut self, kind: OpKind, storage: StorageId) {
        let op = Op::on_memory(kind, self.new.storages[storage].root, self.new.storage_name(storage));
        self.new.ops.push(op);
    }

    /// The finished graph with the signature of the old one.
    fn finish(mut self) -> Result<Graph, RewriteError> {
        let unrun = |&(_, first): &(&Op, &Option<OpId>)| first.is_none();
        if let Some((op, _)) = self.old.ops.iter().zip(&self.first_run).find(unrun) {
            return Err(RewriteError::NeverComputed(op.name.clone()));
        }
        let outside: Vec<StorageId> = self
            .returned
            .keys()
            .filter(|&id| self.returned[id] && self.is_out[id])
            .collect();
        for output in outside {
            self.new.block = None;
            self.on_memory(OpKind::PageIn, output);
        }
        let original = |tensors: &[TensorId]| tensors.iter().filter_map(|&tensor| self.original[tensor]).collect();
        let (inputs, outputs) = (original(&self.old.inputs), original(&self.old.outputs));
        (self.new.inputs, self.new.outputs) = (inputs, outputs);
        self.new.validate().map_err(RewriteError::Invalid)?;
        Ok(self.new)
    }
}

fn check_id(position: usize, what: &'static str, id: usize, count: usize) -> Result<(), RewriteError> {
    if id < count {
        return Ok(());
    }
    Err(RewriteError::UnknownId {
        step: position,
        what,
        id,
    })
}

fn not_there(graph: &Graph, position: usize, op: OpId, tensor: TensorId) -> RewriteError {
    RewriteError::NotThere {
        step: position,
        op: graph.ops[op].name.clone(),
        tensor: graph.tensors[tensor].name.clone(),
    }
}
