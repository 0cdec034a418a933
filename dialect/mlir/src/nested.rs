//! The ops of a block whose regions are scheduled on their own.

use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;
use remat_ir::OpId;

use crate::body::Body;
use crate::ffi;
use crate::import::Imported;
use crate::positions::name_of;

/// Where the values that a region hands on go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionKind {
    /// It runs at most once: what it hands on becomes the results of the operation.
    Branch,
    /// It runs again and again: what it hands on becomes its own arguments, which have the memory of the results, and only then the results.
    Loop {
        /// How often, as far as that is known; else 1.
        trips: u64,
    },
}

impl RegionKind {
    /// What is known of operations of this name.
    fn of(op: OperationRef<'_, '_>) -> Option<Self> {
        match name_of(op).as_str() {
            "scf.if" | "scf.index_switch" | "scf.execute_region" => Some(Self::Branch),
            "scf.for" | "scf.while" => Some(Self::Loop {
                trips: u64::try_from(ffi::describe(op).trips).unwrap_or(1),
            }),
            _ => None,
        }
    }

    /// How often a region of this kind runs when its operation does.
    #[must_use]
    pub fn trips(self) -> u64 {
        match self {
            Self::Branch => 1,
            Self::Loop { trips } => trips,
        }
    }
}

/// An op whose regions are scheduled on their own.
pub struct Regions<'c> {
    /// The op in the graph of the block around it.
    pub op: OpId,
    /// What its regions do.
    pub kind: RegionKind,
    /// Its regions, of one block each.
    pub bodies: Vec<Body<'c>>,
}

impl<'c> Imported<'c> {
    /// The ops of the graph whose regions are scheduled on their own: those of `scf`, where each region has one block.
    #[must_use]
    pub fn regions(&self) -> Vec<Regions<'c>> {
        let mut found = Vec::new();
        for (id, op) in self.graph.ops.iter_enumerated() {
            let entry = op.source.and_then(|source| self.table.entries.get(source as usize));
            let Some((entry, kind)) = entry.and_then(|entry| Some((entry, RegionKind::of(entry.op)?))) else {
                continue;
            };
            let regions = entry
                .op
                .regions()
                .map(|region| Body::of_region(entry.op, region, &op.name));
            let regions: Vec<Vec<Body<'c>>> = regions.filter(|bodies| !bodies.is_empty()).collect();
            if !regions.is_empty() && regions.iter().all(|bodies| bodies.len() == 1) {
                let bodies = regions.into_iter().flatten().collect();
                found.push(Regions { op: id, kind, bodies });
            }
        }
        found
    }
}
