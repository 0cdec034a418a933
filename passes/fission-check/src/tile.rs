//! A tile of an op, held against the rules.

use remat_ir::{Effects, Op, OpId, Part, Spare, StorageClass, TensorId};
use remat_verify::Code;

use super::Checker;
use super::rules::ways;
use super::site::{Need, NoWay, Site, Way};
use super::values::Held;

/// What is wrong with a tile under one way to compute it.
type Faults = Vec<(Code, String)>;

impl Checker<'_> {
    /// An op that computes parts of what an op of the original computes.
    pub(super) fn tile(&mut self, id: OpId, op: &Op) {
        let Some(&before_id) = op.source.and_then(|source| self.sources.get(&source)) else {
            self.add(Code::F001, id, || {
                format!("`{}` comes from no op of the original", op.name)
            });
            return;
        };
        let before = &self.original.ops[before_id];
        let is_alike = (&before.domain, &before.op_type) == (&op.domain, &op.op_type)
            && before.outputs.len() == op.outputs.len()
            && before.inputs.len() == op.inputs.len();
        if !is_alike {
            self.add(Code::F001, id, || {
                format!("`{}` is none like `{}`", op.name, before.name)
            });
            return;
        }
        if before.effects != Effects::Pure
            || op.effects != before.effects
            || !before.bodies.is_empty()
            || !self.captures_constants(before)
            || op.captures.len() != before.captures.len()
        {
            self.in_tiles[before_id.index()] = true;
            self.add(Code::F003, id, || {
                format!("`{}` has effects or subgraphs and runs as it was only", before.name)
            });
            return;
        }
        for (&now, &then) in op.captures.iter().zip(&before.captures) {
            self.expect(id, op, now, &Held::whole(self.original, then));
        }
        if let Some(part) = op.parts.iter().flatten().find(|part| part.is_sum) {
            self.summed(id, op, before_id, part);
            return;
        }
        let results = op.outputs.iter().zip(&op.parts).zip(&before.outputs);
        let mut parts = Vec::new();
        for (position, ((result, part), expected)) in results.enumerate() {
            let (Some(result), Some(part)) = (*result, part) else {
                continue;
            };
            let Some(of) = self.part_of(id, op, part, *expected) else {
                return;
            };
            parts.push((position, result, part, of));
        }
        for &(position, result, part, of) in &parts {
            self.computes(id, op, before, (position, of), part, parts.len() > 1);
            let held = Held::Part {
                of,
                rows: Some(part.ranges.clone()),
                spare: part.spare,
            };
            self.define(id, op, result, part, held, Code::F002);
        }
    }

    /// Whether an op captures constants only.
    fn captures_constants(&self, before: &Op) -> bool {
        let is_constant = |&tensor: &TensorId| {
            let storage = self.original.tensors[tensor].storage;
            self.original.storages[storage].class == StorageClass::Constant
        };
        before.captures.iter().all(is_constant)
    }

    /// The tensor of which a part is stated, if the op computes it and it has such rows.
    fn part_of(&mut self, id: OpId, op: &Op, part: &Part, expected: Option<TensorId>) -> Option<TensorId> {
        let tensor = expected
            .map(|of| &self.original.tensors[of])
            .filter(|tensor| tensor.name == part.of);
        let dims = tensor.and_then(|tensor| tensor.ty.known_shape());
        let is_inside = dims.is_some_and(|dims| {
            dims.len() == part.ranges.len() && dims.iter().zip(&part.ranges).all(|(&dim, rows)| rows.end <= dim)
        });
        if !is_inside {
            self.add(Code::F002, id, || format!("`{}` cannot compute {part}", op.name));
            return None;
        }
        expected
    }

    /// Whether the operands and attributes are those for a part, and its spare rows.
    fn computes(
        &mut self,
        id: OpId,
        op: &Op,
        before: &Op,
        (position, of): (usize, TensorId),
        part: &Part,
        has_several: bool,
    ) {
        let whole = Held::whole(self.original, of);
        let is_whole = matches!(&whole, Held::Part { rows: Some(rows), .. } if *rows == part.ranges);
        if is_whole && part.spare.is_none() && self.is_again(op, before) {
            return;
        }
        let site = Site {
            graph: self.original,
            op: before,
            out: self.original.tensors[of].ty.known_shape().unwrap_or_default(),
            part: &part.ranges,
        };
        let found = match may_have(before, position, has_several) {
            Ok(()) => ways(&site),
            Err(why) => Err(why),
        };
        let ways = match found {
            Ok(ways) => ways,
            Err(why) => {
                self.add(Code::F004, id, || {
                    format!("`{}` ({}) cannot compute {part}: {why}", op.name, op.op_type)
                });
                return;
            }
        };
        let judged = ways.iter().map(|way| self.faults(op, before, way, part));
        for (code, message) in judged.min_by_key(Vec::len).unwrap_or_default() {
            self.add(code, id, || format!("{message} of `{}` for {part}", op.name));
        }
    }

    /// Whether a tile is the whole op once more.
    fn is_again(&self, op: &Op, before: &Op) -> bool {
        let operands = op.inputs.iter().zip(&before.inputs);
        let same = |now: &Option<TensorId>, then: &Option<TensorId>| match (now, then) {
            (Some(now), Some(then)) => {
                let held = self.values.get(*now);
                held.is_none_or(|held| *held == Held::whole(self.original, *then))
            }
            (None, None) => true,
            _ => false,
        };
        op.attributes == before.attributes && operands.clone().all(|(now, then)| same(now, then))
    }

    fn faults(&self, op: &Op, before: &Op, way: &Way<'_>, part: &Part) -> Faults {
        let mut faults = Faults::new();
        for (position, need) in way.operands.iter().enumerate() {
            let now = op.inputs.get(position).copied().flatten();
            let then = before.inputs.get(position).copied().flatten();
            faults.extend(self.fault(position, now, then, need));
        }
        let names = op.attributes.keys().chain(before.attributes.keys());
        let mut names: Vec<&str> = names
            .map(String::as_str)
            .chain(way.attributes.iter().map(|(name, _)| *name))
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (now, then) = (op.attributes.get(name), before.attributes.get(name));
            let allowed = way.attributes.iter().find(|(allowed, _)| *allowed == name);
            let is_right = match allowed {
                Some((_, values)) => values.iter().any(|value| value.as_ref() == now),
                None => now == then,
            };
            if !is_right {
                let now = now.map_or_else(|| "left out".to_owned(), |now| format!("{now}"));
                faults.push((
                    Code::F006,
                    format!("attribute `{name}` is {now}, which is not the right value"),
                ));
            }
        }
        if way.spare != part.spare {
            let shown = |spare: Option<Spare>| match spare {
                Some(spare) => format!("{} and {} of axis {}", spare.before, spare.after, spare.axis),
                None => "none".to_owned(),
            };
            let (stated, right) = (shown(part.spare), shown(way.spare));
            faults.push((
                Code::F010,
                format!("the spare rows are {stated}, not {right}, in the result"),
            ));
        }
        faults
    }

    /// What is wrong with an operand.
    fn fault(
        &self,
        position: usize,
        now: Option<TensorId>,
        then: Option<TensorId>,
        need: &Need<'_>,
    ) -> Option<(Code, String)> {
        let (now, then) = match (need, now, then) {
            (Need::Nothing, None, _) => return None,
            (Need::All | Need::Part(_) | Need::Elements(_), Some(now), Some(then)) => (now, then),
            _ => return Some((Code::F005, format!("operand {position} is left out or added"))),
        };
        // What nothing is known of was reported before.
        let held = self.values.get(now)?;
        let tensor = &self.tiled.tensors[now];
        match need {
            Need::Nothing => None,
            Need::All => {
                let expected = Held::whole(self.original, then);
                let shown = || [held, &expected].map(|held| held.shown(self.original));
                (*held != expected).then(|| {
                    let [held, expected] = shown();
                    let message = format!("operand `{}` holds {held}, not {expected},", tensor.name);
                    (Code::F005, message)
                })
            }
            Need::Part(rows) => {
                let expected = Held::Part {
                    of: then,
                    rows: Some(rows.clone()),
                    spare: None,
                };
                let is_copy = *held == Held::Integers
                    && expected == Held::whole(self.original, then)
                    && tensor.ty == self.original.tensors[then].ty
                    && self.tiled.values.get(&now) == self.original.values.get(&then);
                if *held == expected || is_copy {
                    return None;
                }
                let code = match held {
                    Held::Part { spare: Some(_), .. } => Code::F010,
                    Held::Part { .. } => Code::F005,
                    Held::Integers => Code::F007,
                    Held::Sum { .. }
                    | Held::Moments { .. }
                    | Held::Exponentials { .. }
                    | Held::Best { .. }
                    | Held::Numbers(_) => Code::F014,
                };
                let (held, expected) = (held.shown(self.original), expected.shown(self.original));
                Some((code, format!("operand `{}` holds {held}, not {expected},", tensor.name)))
            }
            Need::Elements(right) => {
                let elements = match held {
                    Held::Integers => self.tiled.values.get(&now),
                    Held::Part { of, .. } if *held == Held::whole(self.original, *of) => self.original.values.get(of),
                    _ => None,
                };
                let has_type = tensor.ty.element() == self.original.tensors[then].ty.element();
                let has_dims = tensor
                    .ty
                    .known_shape()
                    .is_some_and(|dims| dims == [right.plain.len() as u64]);
                if has_type && has_dims && elements.is_some_and(|elements| right.fit(elements)) {
                    let place = right.states_open(elements?)?;
                    let name = &tensor.name;
                    let message = format!("element {place} of operand `{name}` states a size that is left open,");
                    return Some((Code::F016, message));
                }
                let elements = elements.map_or_else(|| "not known".to_owned(), |elements| format!("{elements:?}"));
                let message = format!(
                    "the elements of operand `{}` are {elements}, not {:?},",
                    tensor.name, right.plain
                );
                Some((Code::F007, message))
            }
        }
    }
}

/// Which results a tile may have: the first one, of some ops others too.
fn may_have(before: &Op, position: usize, has_several: bool) -> Result<(), NoWay> {
    let is_right = match before.op_type.as_str() {
        // Of the same elements those that are greatest, and where they stand.
        "Split" | "TopK" => true,
        // Mean and deviation have the axes before those that are normalized.
        "LayerNormalization" | "SimplifiedLayerNormalization" => true,
        // The last result is the sum that is normalized.
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => matches!(position, 0 | 3),
        _ => position == 0 && !has_several,
    };
    match is_right {
        true => Ok(()),
        false => Err(format!("nothing is known of its result {position}")),
    }
}
