//! The largest or smallest elements along an axis in two passes: of parts, put together, and what the original finds.

use remat_ir::{Attribute, ElementType, Graph, Op, OpId, Part, TensorId};
use remat_verify::Code;

use super::Checker;
use super::pattern::{dims, maker, operand};
use super::site::axis;
use super::values::{Held, Ranking, Rows};

/// What a result of the original is of the best along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Values,
    /// Whether they have the axis.
    Places {
        keeps_axis: bool,
    },
}

/// The tensor and the ranking along an axis of it that give a result of the original.
fn found(graph: &Graph, result: TensorId) -> Option<(TensorId, Ranking, Wanted)> {
    let op = maker(graph, result).filter(|op| op.domain.is_empty() && op.captures.is_empty())?;
    let of = operand(op, 0)?;
    let all = dims(graph, of)?;
    let int = |name: &str, default: i64| op.attributes.get(name).map_or(Some(default), Attribute::as_int);
    let flag = |name: &str, default: i64| match int(name, default)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    let states_only = |known: &[&str]| op.attributes.keys().all(|name| known.contains(&name.as_str()));
    let is_result = |place: usize| op.outputs.get(place) == Some(&Some(result));
    let (ranking, wanted) = match (op.op_type.as_str(), op.inputs.len()) {
        ("ArgMax" | "ArgMin", 1) if states_only(&["axis", "keepdims", "select_last_index"]) && is_result(0) => {
            let ranking = Ranking {
                axis: axis(int("axis", 0)?, all.len()).ok()?,
                count: 1,
                is_largest: op.op_type == "ArgMax",
                is_last: flag("select_last_index", 0)?,
            };
            let keeps_axis = flag("keepdims", 1)?;
            (ranking, Wanted::Places { keeps_axis })
        }
        ("TopK", 2) if states_only(&["axis", "largest", "sorted"]) && flag("sorted", 1)? => {
            let &[count] = graph.values.get(&operand(op, 1)?)?.as_slice() else {
                return None;
            };
            let ranking = Ranking {
                axis: axis(int("axis", -1)?, all.len()).ok()?,
                count: u64::try_from(count).ok()?,
                is_largest: flag("largest", 1)?,
                is_last: false,
            };
            let wanted = match (is_result(0), is_result(1)) {
                (true, false) => Wanted::Values,
                (false, true) => Wanted::Places { keeps_axis: true },
                _ => return None,
            };
            (ranking, wanted)
        }
        _ => return None,
    };
    let mut own = all.clone();
    match wanted {
        Wanted::Places { keeps_axis: false } => drop(own.remove(ranking.axis)),
        _ => own[ranking.axis] = ranking.count,
    }
    let is_understood = (1..=all[ranking.axis]).contains(&ranking.count)
        && dims(graph, result)? == own
        && graph.tensors[of].ty.element().is_some_and(is_ordered)
        && !graph.tensors[of].ty.is_free(ranking.axis);
    is_understood.then_some((of, ranking, wanted))
}

/// Whether elements of this type are compared.
fn is_ordered(element: ElementType) -> bool {
    matches!(
        element,
        ElementType::Float16
            | ElementType::Float32
            | ElementType::Float64
            | ElementType::Int8
            | ElementType::Uint8
            | ElementType::Int32
            | ElementType::Int64
    )
}

impl Ranking {
    /// What is kept of a box of a tensor: an element and its place for each that is found.
    pub(super) fn kept(&self, rows: &[Rows]) -> Vec<u64> {
        let mut kept: Vec<u64> = rows.iter().map(|rows| rows.end - rows.start).collect();
        kept[self.axis] = kept[self.axis].min(self.count);
        kept.push(2);
        kept
    }

    /// Whether an op states this ranking, and so many other things.
    pub(super) fn is_stated(&self, op: &Op, others: usize) -> bool {
        stated(op) == Some(*self) && op.attributes.len() == 4 + others
    }
}

/// The ranking that an op states.
fn stated(op: &Op) -> Option<Ranking> {
    let int = |name: &str| op.attributes.get(name).and_then(Attribute::as_int);
    let flag = |name: &str| int(name).filter(|flag| matches!(flag, 0 | 1)).map(|flag| flag == 1);
    Some(Ranking {
        axis: usize::try_from(int("axis")?).ok()?,
        count: u64::try_from(int("count")?).ok().filter(|&count| count > 0)?,
        is_largest: flag("largest")?,
        is_last: flag("last")?,
    })
}

impl Checker<'_> {
    /// The best of rows of a tensor.
    pub(super) fn best(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let Some(held) = self.operands_to_combine(id, op) else {
            return;
        };
        let data = match &held[..] {
            [
                Held::Part {
                    of,
                    rows: Some(rows),
                    spare: None,
                },
            ] => Some((*of, rows.clone())),
            _ => None,
        };
        let ranking = stated(op).filter(|ranking| ranking.is_stated(op, 1));
        let Some(((of, rows), ranking)) = data.zip(ranking) else {
            self.add(Code::F014, id, || {
                format!("`{}` does not find the best along an axis of rows of a tensor", op.name)
            });
            return;
        };
        let dims = dims(self.original, of).unwrap_or_default();
        let mut others = (0..dims.len()).filter(|&at| at != ranking.axis);
        let is_whole_but_axis =
            ranking.axis < dims.len() && rows.len() == dims.len() && others.all(|at| rows[at] == (0..dims[at]));
        let ty = &self.original.tensors[of].ty;
        if !is_whole_but_axis || !ty.element().is_some_and(is_ordered) || ty.is_free(ranking.axis) {
            self.add(Code::F014, id, || {
                format!(
                    "`{}` needs rows of one axis of its operand, whose size is fixed, and elements that are compared",
                    op.name
                )
            });
            return;
        }
        let from = op.attributes.get("from").and_then(Attribute::as_int);
        let first = rows[ranking.axis].start;
        if from.and_then(|from| u64::try_from(from).ok()) != Some(first) {
            self.add(Code::F014, id, || {
                format!("`{}` does not count places from {first}, where its rows begin", op.name)
            });
        }
        self.state(id, op, result, part, Held::Best { of, ranking, rows }, Code::F014);
    }

    /// What the original finds of the best of a tensor.
    pub(super) fn best_of_all(&mut self, id: OpId, op: &Op, result: TensorId, part: &Part) {
        let &[Some(kept)] = op.inputs.as_slice() else {
            self.add(Code::F015, id, || format!("`{}` needs the best alone", op.name));
            return;
        };
        let Some(kept) = self.values.get(kept).cloned() else {
            return;
        };
        let of = self.tensors.get(part.of.as_str()).copied();
        let Some((whole, (of, ranking, wanted))) = of.and_then(|whole| Some((whole, found(self.original, whole)?)))
        else {
            self.add(Code::F004, id, || {
                format!("`{}` is not what is found of the best along an axis", part.of)
            });
            return;
        };
        let int = |name: &str| op.attributes.get(name).and_then(Attribute::as_int);
        let is_stated = match wanted {
            Wanted::Values => op.op_type == "BestValues" && op.attributes.is_empty(),
            Wanted::Places { keeps_axis } => {
                op.op_type == "BestPlaces"
                    && op.attributes.len() == 2
                    && int("axis") == i64::try_from(ranking.axis).ok()
                    && int("keepdims") == Some(i64::from(keeps_axis))
            }
        };
        if !is_stated {
            self.add(Code::F002, id, || format!("`{}` cannot compute {part}", op.name));
            return;
        }
        let rows = dims(self.original, of).unwrap_or_default();
        let rows = rows.into_iter().map(|dim| 0..dim).collect();
        let own = Held::Best { of, ranking, rows };
        if kept != own {
            let (kept, own) = (kept.shown(self.original), own.shown(self.original));
            self.add(Code::F015, id, || {
                format!("`{}` gives what is of {kept}, not of {own}", op.name)
            });
        }
        self.define(id, op, result, part, Held::whole(self.original, whole), Code::F002);
    }
}
