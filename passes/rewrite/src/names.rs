//! Names for what is computed again.

use remat_ir::Graph;
use rustc_hash::FxHashSet;

/// Gives out names that neither the graph nor the caller uses.
pub(crate) struct Names<'a> {
    ops: FxHashSet<String>,
    tensors: FxHashSet<String>,
    reserved: &'a dyn Fn(&str) -> bool,
}

impl<'a> Names<'a> {
    /// The names of `graph` are taken, and those that `reserved` says.
    pub(crate) fn new(graph: &Graph, reserved: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            ops: graph.ops.iter().map(|op| op.name.clone()).collect(),
            tensors: graph.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
            reserved,
        }
    }

    /// A name for the `nth` recompute (from 1) of op `name`.
    pub(crate) fn op(&mut self, name: &str, nth: usize) -> String {
        fresh(&mut self.ops, self.reserved, name, nth)
    }

    /// A name for tensor `name` as the `nth` recompute of its op makes it.
    pub(crate) fn tensor(&mut self, name: &str, nth: usize) -> String {
        fresh(&mut self.tensors, self.reserved, name, nth)
    }
}

/// `name__remat2`, or the first of `name__remat2_1`, `name__remat2_2`, … that is free.
fn fresh(taken: &mut FxHashSet<String>, reserved: &dyn Fn(&str) -> bool, name: &str, nth: usize) -> String {
    let plain = format!("{name}__remat{nth}");
    let mut candidate = plain.clone();
    let mut suffix = 0usize;
    while taken.contains(&candidate) || reserved(&candidate) {
        suffix += 1;
        candidate = format!("{plain}_{suffix}");
    }
    taken.insert(candidate.clone());
    candidate
}
