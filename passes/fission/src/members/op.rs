//! One op: the roles of its results from those of its operands.

use std::ops::Range;

use remat_ir::{Effects, Graph, Op, OpId, OpKind, TensorId};
use remat_operators::{Split, operator};

use super::{BatchSample, FEW, NotByMember, Role, Walk, WhyMixed, places};
use crate::rules::{Cut, Need, Reason, split};

impl Walk {
    /// Gives the results of an op their roles.
    pub(super) fn op(&mut self, op: OpId) -> Result<(), NotByMember> {
        let roles = self.results(op).map_err(|why| {
            let entry = &self.samples[0].graph.ops[op];
            NotByMember {
                op: entry.name.clone(),
                op_type: entry.op_type.clone(),
                why,
            }
        })?;
        for (tensor, role) in roles {
            self.settle(tensor, role);
        }
        Ok(())
    }

    fn results(&mut self, op: OpId) -> Result<Vec<(TensorId, Role)>, WhyMixed> {
        let entry = &self.samples[0].graph.ops[op];
        let results: Vec<TensorId> = entry.results().collect();
        let has_batch = entry.reads().any(|tensor| self.roles[tensor].axis().is_some());
        let is_apart = !has_batch && entry.reads().all(|tensor| self.roles[tensor] == Role::Same);
        match entry.effects {
            Effects::Pure => {}
            Effects::ControlFlow if is_apart && entry.bodies.iter().all(|body| is_pure(&body.graph)) => {}
            Effects::ControlFlow => return Err(WhyMixed::Subgraphs),
            Effects::Random | Effects::Stateful => return Err(WhyMixed::Effects),
        }
        if entry.kind != OpKind::Compute {
            return Err(WhyMixed::Effects);
        }
        let mut roles = Vec::with_capacity(results.len());
        let mut computed = None;
        for tensor in results {
            if is_apart {
                roles.push((tensor, Role::Same));
                continue;
            }
            let axis = self.axis_of(tensor)?;
            let role = match (self.role_of_elements(tensor, axis), axis) {
                (Some(role), _) => role,
                // What looks at shapes alone, or at what only sizes are in, knows nothing of a member.
                (None, None) if !has_batch || is_measure(entry) => Role::Size,
                (None, None) => return Err(WhyMixed::Together),
                (None, Some(axis)) => {
                    if computed.is_some_and(|known| known != axis) {
                        return Err(WhyMixed::Extent);
                    }
                    computed = Some(axis);
                    Role::Members(axis)
                }
            };
            roles.push((tensor, role));
        }
        if let Some(axis) = computed {
            self.prove(op, axis)?;
            self.ops.push((op, axis));
        }
        Ok(roles)
    }

    /// Shows that rows of a member along an axis of the results need those of this member alone.
    fn prove(&self, op: OpId, axis: usize) -> Result<(), WhyMixed> {
        for sample in self.samples.iter().filter(|sample| sample.members > 1) {
            let first = sample.graph.ops[op].results().next().ok_or(WhyMixed::Shapes)?;
            let each = Self::each(sample, first, axis);
            let last = sample.members - 1;
            let looked_at = (0..sample.members).filter(|&member| sample.members <= FEW || member < 2 || member == last);
            for member in looked_at {
                let rows = member * each..(member + 1) * each;
                let cut = split(&sample.graph, op, axis, rows).map_err(|refused| mixed(refused.reason))?;
                self.judge(sample, op, &cut, member)?;
            }
        }
        Ok(())
    }

    /// Whether what the rows of a member need is its own.
    fn judge(&self, sample: &BatchSample, op: OpId, cut: &Cut, member: u64) -> Result<(), WhyMixed> {
        let entry = &sample.graph.ops[op];
        let row = operator(&entry.domain, &entry.op_type);
        // A shape follows from the operands; all else that a part is told differs from what the op is told.
        let is_told = |(name, value)| entry.attributes.get(name) == Some(value);
        if row.split != Split::Reshape && !cut.attributes.iter().all(is_told) || cut.spare != (0, 0) {
            return Err(WhyMixed::Attributes);
        }
        for (place, operand) in entry.inputs.iter().enumerate() {
            let Some(operand) = *operand else { continue };
            let need = cut.needs.get(place).unwrap_or(&Need::Whole);
            match (self.roles[operand], need) {
                (Role::Same, Need::Whole) => {}
                (Role::Same, Need::Rows { .. }) => return Err(WhyMixed::Place),
                (Role::Size, Need::Whole) => {
                    let is_shape = row.shape_operand == Some(place);
                    let is_list = row.lists.contains(&place);
                    if !is_shape && (!is_list || !self.is_stated(op, place, cut, sample)) {
                        return Err(WhyMixed::Size);
                    }
                }
                (Role::Members(axis), Need::Rows { axis: needed, rows }) => {
                    if *needed != axis || *rows != self.own_rows(sample, operand, axis, member) {
                        return Err(WhyMixed::Together);
                    }
                }
                (Role::Members(axis), Need::Whole) => {
                    if !places::names_itself(self, sample, op, (place, axis), member) {
                        return Err(WhyMixed::Together);
                    }
                }
                (Role::Places(axis), Need::Rows { axis: needed, rows }) => {
                    let is_own = *needed == axis && *rows == self.own_rows(sample, operand, axis, member);
                    if !is_own || !places::are_indices(row.split, place) {
                        return Err(WhyMixed::Place);
                    }
                }
                (Role::Places(_), Need::Whole) => return Err(WhyMixed::Place),
                (Role::Size, Need::Rows { .. }) => return Err(WhyMixed::Size),
            }
        }
        if entry.captures.iter().any(|&tensor| self.roles[tensor] != Role::Same) {
            return Err(WhyMixed::Subgraphs);
        }
        Ok(())
    }

    fn own_rows(&self, sample: &BatchSample, tensor: TensorId, axis: usize, member: u64) -> Range<u64> {
        let each = Self::each(sample, tensor, axis);
        member * each..(member + 1) * each
    }

    /// Whether all that differs with the size of the batch in a list of bounds is about the rows of the batch, which the rule states anew.
    fn is_stated(&self, op: OpId, place: usize, cut: &Cut, sample: &BatchSample) -> bool {
        let Some(operand) = sample.graph.ops[op].inputs.get(place).copied().flatten() else {
            return false;
        };
        let (Some(here), Some(stated)) = (sample.graph.values.get(&operand), cut.integers.get(&place)) else {
            return false;
        };
        let mut alike = self.samples.iter().filter(|other| other.setting == sample.setting);
        here.len() == stated.elements.len()
            && alike.all(|other| {
                let there = other.graph.values.get(&operand);
                there.is_some_and(|there| {
                    let mut elements = here.iter().zip(there).zip(&stated.elements);
                    there.len() == here.len() && elements.all(|((here, there), stated)| here == there || here != stated)
                })
            })
    }
}

/// A rule that says that rows depend on each other says that of members here.
fn mixed(reason: Reason) -> WhyMixed {
    match reason {
        Reason::Dependent => WhyMixed::Together,
        Reason::Shapes => WhyMixed::Shapes,
        other => WhyMixed::Rule(other),
    }
}

/// Whether an op looks at no element of what it reads.
fn is_measure(op: &Op) -> bool {
    operator(&op.domain, &op.op_type).measures
}

/// Whether a subgraph computes the same in every run.
fn is_pure(graph: &Graph) -> bool {
    graph.ops.iter().all(|op| match op.effects {
        Effects::Pure => true,
        Effects::ControlFlow => op.bodies.iter().all(|body| is_pure(&body.graph)),
        Effects::Random | Effects::Stateful => false,
    })
}
