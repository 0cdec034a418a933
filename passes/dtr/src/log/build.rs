//! From the instructions of a log to a trace: names become tensors, changes in place become copies.

use remat_plan::{StorageId, TensorId};
use rustc_hash::FxHashMap;

use super::LogErrorKind;
use super::instruction::{Instruction, LARGEST};
use crate::trace::{Event, Trace, TraceOp};

/// What is due before the next instruction of another kind.
struct Pending {
    op: TraceOp,
    names: Vec<String>,
    /// Of the results so far: bytes, and the argument they look into.
    known: Vec<(u64, Option<usize>)>,
    /// The size that came, its alias did not yet.
    size: Option<u64>,
}

/// Takes instructions one by one.
#[derive(Default)]
pub(super) struct Builder {
    trace: Trace,
    names: FxHashMap<String, TensorId>,
    pending: Option<Pending>,
    started: bool,
    bytes: u64,
    duration: u64,
}

impl Builder {
    /// Takes the next instruction. What stands before `START` is skipped.
    pub(super) fn add(&mut self, instruction: Instruction) -> Result<(), LogErrorKind> {
        if !self.started {
            self.started = matches!(instruction, Instruction::Annotate { is_start: true });
            return Ok(());
        }
        if let Some(pending) = self.pending.take() {
            return self.describe_result(pending, &instruction);
        }
        match instruction {
            Instruction::Annotate { .. } => Ok(()),
            Instruction::Memory { name, .. } => Err(LogErrorKind::Stray {
                instruction: "MEMORY",
                name,
            }),
            Instruction::Alias { name, .. } => Err(LogErrorKind::Stray {
                instruction: "ALIAS",
                name,
            }),
            Instruction::Constant { name } => self.expect_results(TraceOp::constant(), vec![name]),
            Instruction::Call {
                op,
                arguments,
                results,
                duration,
            } => {
                let op = self.op(op, &arguments, duration)?;
                self.expect_results(op, results)
            }
            Instruction::Mutate {
                op,
                arguments,
                mutated,
                duration,
            } => self.mutate(op, &arguments, &mutated, duration),
            Instruction::Copy { to, from } => {
                let tensor = self.tensor(&from)?;
                self.bind(to, tensor)?;
                self.trace.events.push(Event::Reference(tensor));
                Ok(())
            }
            Instruction::CopyFrom { to, from } => {
                let new = self.tensor(&from)?;
                let old = self.tensor(&to)?;
                self.names.insert(to, new);
                self.trace.events.push(Event::Release(old));
                self.trace.events.push(Event::Reference(new));
                Ok(())
            }
            Instruction::Release { name } => {
                // Logs release names that were never in scope; those mean nothing.
                if let Some(tensor) = self.names.remove(&name) {
                    self.trace.events.push(Event::Release(tensor));
                }
                Ok(())
            }
        }
    }

    /// The trace, once all instructions were taken.
    pub(super) fn finish(self) -> Result<Trace, LogErrorKind> {
        if !self.started {
            return Err(LogErrorKind::NoStart);
        }
        match self.pending {
            Some(pending) => Err(out_of_place(&pending, "the end")),
            None => Ok(self.trace),
        }
    }

    fn tensor(&self, name: &str) -> Result<TensorId, LogErrorKind> {
        let known = self.names.get(name).copied();
        known.ok_or_else(|| LogErrorKind::UnknownName(name.to_owned()))
    }

    fn bind(&mut self, name: String, tensor: TensorId) -> Result<(), LogErrorKind> {
        if self.names.contains_key(&name) {
            return Err(LogErrorKind::DuplicateName(name));
        }
        self.names.insert(name, tensor);
        Ok(())
    }

    fn op(&mut self, name: String, arguments: &[String], duration: u64) -> Result<TraceOp, LogErrorKind> {
        add(&mut self.duration, duration, "durations")?;
        let arguments = arguments
            .iter()
            .map(|name| self.tensor(name))
            .collect::<Result<_, _>>()?;
        Ok(TraceOp::new(name, duration, arguments))
    }

    fn expect_results(&mut self, op: TraceOp, names: Vec<String>) -> Result<(), LogErrorKind> {
        let pending = Pending {
            op,
            names,
            known: Vec::new(),
            size: None,
        };
        if pending.names.is_empty() {
            return self.call(pending);
        }
        self.pending = Some(pending);
        Ok(())
    }

    /// Takes the size or the alias of the next result.
    fn describe_result(&mut self, mut pending: Pending, instruction: &Instruction) -> Result<(), LogErrorKind> {
        let due = &pending.names[pending.known.len()];
        let is_constant = pending.op.is_constant;
        match (pending.size, instruction) {
            (None, Instruction::Memory { name, bytes }) if name == due => {
                if is_constant {
                    pending.known.push((*bytes, None));
                } else {
                    pending.size = Some(*bytes);
                }
            }
            (Some(bytes), Instruction::Alias { name, argument }) if name == due => {
                let count = pending.op.arguments.len();
                if let Some(index) = argument.filter(|&index| index >= count) {
                    return Err(LogErrorKind::NoSuchArgument {
                        field: "ALIAS",
                        index: i64::try_from(index).unwrap_or(i64::MAX),
                        count,
                    });
                }
                pending.known.push((bytes, *argument));
                pending.size = None;
            }
            _ => return Err(out_of_place(&pending, &instruction.describe())),
        }
        if pending.known.len() == pending.names.len() {
            return self.call(pending);
        }
        self.pending = Some(pending);
        Ok(())
    }

    /// Adds an op whose results are known.
    fn call(&mut self, pending: Pending) -> Result<(), LogErrorKind> {
        let Pending { op, names, known, .. } = pending;
        let mut results = Vec::with_capacity(known.len());
        for (bytes, argument) in known {
            let looks_into = argument.map(|index| self.trace.tensors[op.arguments[index]].storage);
            results.push((self.new_bytes(bytes, looks_into)?, looks_into));
        }
        let results = self.trace.call(op, &results);
        for (name, tensor) in names.into_iter().zip(results) {
            self.bind(name, tensor)?;
        }
        Ok(())
    }

    /// Copy on write: every changed argument becomes a fresh tensor as large as the memory it lives in.
    fn mutate(&mut self, op: String, names: &[String], mutated: &[usize], duration: u64) -> Result<(), LogErrorKind> {
        let op = self.op(op, names, duration)?;
        let old: Vec<TensorId> = mutated.iter().map(|&index| op.arguments[index]).collect();
        let mut results = Vec::with_capacity(old.len());
        for &tensor in &old {
            let bytes = self.trace.storages[self.trace.tensors[tensor].storage].bytes;
            results.push((self.new_bytes(bytes, None)?, None));
        }
        let new = self.trace.call(op, &results);
        for ((&index, old), new) in mutated.iter().zip(old).zip(new) {
            self.names.insert(names[index].clone(), new);
            self.trace.events.push(Event::Release(old));
        }
        Ok(())
    }

    /// Counts what a result adds to the sum of all sizes.
    fn new_bytes(&mut self, bytes: u64, looks_into: Option<StorageId>) -> Result<u64, LogErrorKind> {
        if looks_into.is_none() {
            add(&mut self.bytes, bytes, "sizes")?;
        }
        Ok(bytes)
    }
}

fn out_of_place(pending: &Pending, found: &str) -> LogErrorKind {
    LogErrorKind::OutOfPlace {
        expected: if pending.size.is_none() { "MEMORY" } else { "ALIAS" },
        name: pending.names[pending.known.len()].clone(),
        found: found.to_owned(),
    }
}

fn add(sum: &mut u64, value: u64, what: &'static str) -> Result<(), LogErrorKind> {
    *sum += value;
    if *sum > LARGEST {
        return Err(LogErrorKind::Overflow(what));
    }
    Ok(())
}
