//! Judges a graph after fission against the graph before it.
//!
//! Every tensor of the tiled graph holds a *part* of a tensor of the original: rows `lo..hi` of every axis, its box. What it holds is derived op
//! by op, and must be what the graph states ([`remat_ir::Part`]):
//! - graph inputs and constants are whole, and so are the results of ops that fission left alone, whose operands must be whole;
//! - a `Slice` takes the rows that its bounds say, a `Concat` puts boxes together that abut on its axis and agree elsewhere;
//! - a tile of an op computes a box of the op's result if its operands hold the boxes, and its attributes and integer operands are the ones,
//!   that the rules give for that box from the original op alone. A larger operand would shift a window, a smaller one lack rows;
//! - what an op sums up over rows of its operand is put together with what it sums up over all others;
//! - a normalization multiplies by and adds what follows from the statistics of all of its operand, and from its own numbers;
//! - a softmax divides by the sum of the exponentials of all of its operand, less their maximum;
//! - the best along an axis are the best of those of parts that follow each other and make up all of it, with places counted from where each begins.
//!
//! The rules are those of this module: nothing of them comes from what makes tiled graphs. They know operators by name; an op of which they
//! know nothing may run again whole, but not in tiles. Some kernels need rows around a box that are not there and give rows that are not right:
//! those are *spare*, the rules say how many, and a slice must cut them off before anything else reads.
//!
//! Two graphs that are accepted compute the same, up to the order of sums: within kernels, and where tiles sum up, between tiles. Scales of a
//! `Resize` are taken to be the quotients of its shapes: the graph does not know the elements of floating-point constants.

mod best;
mod made;
mod norms;
mod open;
mod pattern;
mod rules;
mod site;
mod softmax;
#[cfg(test)]
mod streamed_tests;
mod sums;
#[cfg(test)]
mod tests;
mod tile;
mod values;

use remat_ir::{Effects, Graph, Op, OpId, OpKind, TensorId};
use remat_verify::{Code, Findings, Rejection};
use rustc_hash::FxHashMap;

use values::{Held, Values};

/// Judges `tiled`, which fission made of `original`. Both have the elements of integer constants ([`Graph::values`]); where the original lacks
/// some that a rule asks for, the tiles that need them are rejected.
///
/// # Errors
/// [`Rejection`] with the rules `F001` to `F016` that are broken; steps are positions of ops in the tiled graph.
pub fn check_fission(original: &Graph, tiled: &Graph) -> Result<(), Rejection> {
    let mut findings = Findings::default();
    if let Err(errors) = tiled.validate() {
        for error in errors {
            findings.add(Code::F013, None, || error.to_string());
        }
        return findings.judge(());
    }
    let mut checker = Checker {
        original,
        tiled,
        tensors: names(original),
        ops: original.ops.iter_enumerated().map(|(id, op)| (&*op.name, id)).collect(),
        sources: sources(original),
        values: Values::new(tiled),
        stand: vec![false; original.ops.len()],
        in_tiles: vec![false; original.ops.len()],
        last_effect: None,
        findings,
    };
    checker.sources();
    for (id, op) in tiled.ops.iter_enumerated() {
        checker.op(id, op);
    }
    checker.names();
    checker.effects();
    checker.signature();
    let Checker { values, findings, .. } = checker;
    findings.judge(())?;
    // Where nothing is wrong, something is known of every tensor.
    let mut unknown = Findings::default();
    for (id, tensor) in tiled.tensors.iter_enumerated() {
        if values.get(id).is_none() {
            let producer = tensor.producer.map(OpId::index);
            unknown.add(Code::F001, producer, || {
                format!("nothing is known of what `{}` holds", tensor.name)
            });
        }
    }
    unknown.judge(())
}

fn names(graph: &Graph) -> FxHashMap<&str, TensorId> {
    let tensors = graph.tensors.iter_enumerated();
    tensors.map(|(id, tensor)| (tensor.name.as_str(), id)).collect()
}

fn sources(graph: &Graph) -> FxHashMap<u32, OpId> {
    let ops = graph.ops.iter_enumerated();
    ops.filter_map(|(id, op)| Some((op.source?, id))).collect()
}

struct Checker<'a> {
    original: &'a Graph,
    tiled: &'a Graph,
    /// Tensors of the original by name.
    tensors: FxHashMap<&'a str, TensorId>,
    /// Ops of the original by name.
    ops: FxHashMap<&'a str, OpId>,
    /// Ops of the original by position in the importer's table.
    sources: FxHashMap<u32, OpId>,
    values: Values,
    /// Of the ops of the original: whether it stands in the tiled graph as it was.
    stand: Vec<bool>,
    /// Of the ops of the original: whether it has effects and yet runs in tiles.
    in_tiles: Vec<bool>,
    /// The last op of the original with an effect that stood so far.
    last_effect: Option<OpId>,
    findings: Findings,
}

impl<'a> Checker<'a> {
    fn add(&mut self, code: Code, op: OpId, message: impl FnOnce() -> String) {
        self.findings.add(code, Some(op.index()), message);
    }

    /// Graph inputs and constants.
    fn sources(&mut self) {
        for (id, tensor) in self
            .tiled
            .tensors
            .iter_enumerated()
            .filter(|(_, t)| t.producer.is_none())
        {
            let class = |graph: &Graph, id: TensorId| graph.storages[graph.tensors[id].storage].class;
            let name = &tensor.name;
            let before = self.tensors.get(name.as_str()).copied();
            let elements = self.tiled.values.get(&id);
            let Some(before) = before else {
                if elements.is_some() {
                    self.values.set(id, Held::Integers);
                } else {
                    let message = || format!("`{name}` is neither of the original nor a constant with elements");
                    self.findings.add(Code::F001, None, message);
                }
                continue;
            };
            let was = &self.original.tensors[before];
            let known = self.original.values.get(&before);
            let is_same = was.producer.is_none()
                && (&was.ty, class(self.original, before)) == (&tensor.ty, class(self.tiled, id))
                && (elements.is_none() || elements == known);
            if !is_same {
                let message = || format!("`{name}` is not the input or constant that it was");
                self.findings.add(Code::F001, None, message);
                continue;
            }
            self.values.set(id, Held::whole(self.original, before));
        }
    }

    fn op(&mut self, id: OpId, op: &'a Op) {
        let is_plain = op.kind == OpKind::Compute;
        if !is_plain {
            self.add(Code::F001, id, || {
                format!("`{}` computes nothing, or again what was freed", op.name)
            });
        } else if op.parts.is_empty() {
            self.left_alone(id, op);
        } else if op.source.is_none() {
            self.made(id, op);
        } else {
            self.tile(id, op);
        }
    }

    /// An op that fission did not touch.
    fn left_alone(&mut self, id: OpId, op: &'a Op) {
        let Some(&before) = self.ops.get(op.name.as_str()) else {
            self.add(Code::F001, id, || format!("`{}` is no op of the original", op.name));
            return;
        };
        let was = &self.original.ops[before];
        let operands = |op: &Op| op.inputs.iter().map(Option::is_some).collect::<Vec<bool>>();
        let is_same = (&was.domain, &was.op_type, was.effects, was.source)
            == (&op.domain, &op.op_type, op.effects, op.source)
            && was.attributes == op.attributes
            && operands(was) == operands(op)
            && was.captures.len() == op.captures.len()
            && was.outputs.len() == op.outputs.len()
            && was.bodies == op.bodies;
        if !is_same {
            self.add(Code::F001, id, || format!("`{}` is not the op that it was", op.name));
            return;
        }
        if std::mem::replace(&mut self.stand[before.index()], true) {
            self.add(Code::F001, id, || format!("`{}` stands twice", op.name));
        }
        if op.effects != Effects::Pure {
            if self.last_effect.is_some_and(|last| before < last) {
                self.add(Code::F003, id, || {
                    format!("`{}` stands after an op whose effect came later", op.name)
                });
            }
            self.last_effect = Some(before);
        }
        for (read, expected) in op.reads().zip(was.reads()) {
            self.expect(id, op, read, &Held::whole(self.original, expected));
        }
        for (&result, &expected) in op.outputs.iter().zip(&was.outputs) {
            let (Some(result), Some(expected)) = (result, expected) else {
                if result.is_some() != expected.is_some() {
                    self.add(Code::F001, id, || {
                        format!("`{}` has other results than it had", op.name)
                    });
                }
                continue;
            };
            let (now, then) = (&self.tiled.tensors[result], &self.original.tensors[expected]);
            if (&now.name, &now.ty) != (&then.name, &then.ty) {
                self.add(Code::F001, id, || {
                    format!("result `{}` of `{}` was `{}`", now.name, op.name, then.name)
                });
            }
            self.values.set(result, Held::whole(self.original, expected));
        }
    }

    /// Whether a tensor holds what it must; what nothing is known of was reported before.
    fn expect(&mut self, id: OpId, op: &Op, tensor: TensorId, expected: &Held) -> bool {
        let Some(held) = self.values.get(tensor) else {
            return true;
        };
        if held == expected {
            return true;
        }
        let (held, expected) = (held.shown(self.original), expected.shown(self.original));
        let name = &self.tiled.tensors[tensor].name;
        let code = match self.values.get(tensor) {
            Some(Held::Part { spare: Some(_), .. }) => Code::F010,
            _ => Code::F005,
        };
        self.add(code, id, || {
            format!("operand `{name}` of `{}` holds {held}, it needs {expected}", op.name)
        });
        false
    }

    /// A name of the original says what is under it.
    fn names(&mut self) {
        for (id, tensor) in self.tiled.tensors.iter_enumerated() {
            let Some(&before) = self.tensors.get(tensor.name.as_str()) else {
                continue;
            };
            let Some(held) = self.values.get(id) else { continue };
            if *held != Held::whole(self.original, before) {
                let held = held.shown(self.original);
                let message = || {
                    format!(
                        "`{}` has the name of a tensor of the original, and holds {held}",
                        tensor.name
                    )
                };
                self.findings.add(Code::F012, tensor.producer.map(OpId::index), message);
            }
        }
    }

    /// What has an effect is there.
    fn effects(&mut self) {
        for (id, op) in self.original.ops.iter_enumerated() {
            if op.effects != Effects::Pure && !self.stand[id.index()] && !self.in_tiles[id.index()] {
                self.findings.add(Code::F001, None, || {
                    format!("`{}`, which has effects, is gone", op.name)
                });
            }
        }
    }

    /// Inputs and outputs are those of the original, in its order.
    fn signature(&mut self) {
        let named = |graph: &'a Graph, ids: &[TensorId]| -> Vec<&'a str> {
            ids.iter().map(|&id| graph.tensors[id].name.as_str()).collect()
        };
        for (what, before, after) in [
            ("inputs", &self.original.inputs, &self.tiled.inputs),
            ("outputs", &self.original.outputs, &self.tiled.outputs),
        ] {
            let (before, after) = (named(self.original, before), named(self.tiled, after));
            if before != after {
                self.findings.add(Code::F011, None, || {
                    format!("the {what} were {before:?}, they are {after:?}")
                });
            }
        }
        for &output in &self.tiled.outputs {
            let name = &self.tiled.tensors[output].name;
            let expected = self
                .tensors
                .get(name.as_str())
                .map(|&id| Held::whole(self.original, id));
            let (Some(expected), Some(held)) = (expected, self.values.get(output)) else {
                continue;
            };
            if *held != expected {
                let held = held.shown(self.original);
                self.findings
                    .add(Code::F011, None, || format!("graph output `{name}` holds {held}"));
            }
        }
    }
}
