//! How a tensor is held between two stretches of a tiled graph, so that a stretch can be written by itself.

use std::ops::Range;

use remat_ir::{OpSpec, Part, Placement, ResultSpec, StorageClass, TensorId, ValueType};
use remat_operators::Combine;

use crate::FissionError;
use crate::layout::Layout;
use crate::names::Names;
use crate::pieces::{Piece, Pieces, Writer};
use crate::sums::Summed;
use crate::transfer::Transfer;

/// How a tensor of the old graph is held. What is written for its readers depends on nothing else.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Held {
    Whole {
        /// Who owns its memory.
        class: StorageClass,
        /// Whether it is in no blocks of channels, whatever it is part of is in.
        has_left_blocks: bool,
    },
    /// Pieces along an axis, in the order in which they were made.
    Pieces(usize, Vec<HeldPiece>),
    /// Sums over tiles, and of how many elements each is.
    Sums(Combine, Vec<i64>, Option<Part>),
}

/// A piece: its rows, its box, who owns its memory, and whether it is in no blocks of channels.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct HeldPiece {
    rows: Range<u64>,
    bounds: Vec<Range<u64>>,
    class: StorageClass,
    has_left_blocks: bool,
}

impl<'g> Writer<'g> {
    /// A writer without names, for which nothing is there yet.
    pub(crate) fn of_stretch(layout: &Layout<'g>) -> Self {
        Self::new(Transfer::empty(layout.graph), Names::none(), layout.blocks())
    }

    /// Makes a tensor of the old graph available as `held` says: with an op for each tensor of the new graph. Those that the caller or the session
    /// has are there without.
    pub(crate) fn give(&mut self, tensor: TensorId, held: &Held) -> Result<(), FissionError> {
        let ty = self.transfer.graph.tensors[tensor].ty.clone();
        match held {
            Held::Whole { class, has_left_blocks } => {
                let whole = self.given(ty, *class, *has_left_blocks)?;
                self.transfer.name_whole(tensor, whole);
            }
            Held::Pieces(axis, list) => {
                let mut pieces = Pieces {
                    axis: *axis,
                    list: Vec::with_capacity(list.len()),
                };
                for piece in list {
                    let HeldPiece { rows, bounds, .. } = piece;
                    let piece = self.given(self.part_type(tensor, bounds), piece.class, piece.has_left_blocks)?;
                    self.boxes.insert(piece, bounds.clone());
                    pieces.list.push(Piece {
                        rows: rows.clone(),
                        tensor: piece,
                    });
                }
                self.pieces[tensor] = Some(pieces);
            }
            Held::Sums(combine, counts, over) => {
                let parts = counts
                    .iter()
                    .map(|_| self.given(ty.clone(), StorageClass::Intermediate, false));
                let summed = Summed {
                    combine: *combine,
                    parts: parts.collect::<Result<_, FissionError>>()?,
                    counts: counts.clone(),
                    over: over.clone(),
                };
                self.sums.insert(tensor, summed);
            }
        }
        Ok(())
    }

    fn given(&mut self, ty: ValueType, class: StorageClass, has_left_blocks: bool) -> Result<TensorId, FissionError> {
        let placement = match class {
            StorageClass::Intermediate => Placement::New,
            StorageClass::Constant => Placement::Constant,
            StorageClass::Input => Placement::ViewOf(self.transfer.input(ty.clone())?),
        };
        let mut spec = OpSpec::new("", "");
        spec.results = vec![Some(ResultSpec {
            name: String::new(),
            ty,
            placement,
        })];
        let made = self.transfer.add(self.at, spec)?.into_iter().flatten().next();
        let made = made.ok_or_else(|| FissionError::RunsOnce(String::new()))?;
        if has_left_blocks {
            self.blocks.leave(made);
        }
        Ok(made)
    }

    /// How a tensor of the old graph is held now, and the tensors of the new graph that hold it, in order.
    pub(crate) fn held(&self, tensor: TensorId) -> Option<(Held, Vec<TensorId>)> {
        if let Some(whole) = self.transfer.whole[tensor] {
            let held = Held::Whole {
                class: self.transfer.class(whole),
                has_left_blocks: self.blocks.has_left(whole),
            };
            return Some((held, vec![whole]));
        }
        if let Some(summed) = self.sums.get(&tensor) {
            let held = Held::Sums(summed.combine, summed.counts.clone(), summed.over.clone());
            return Some((held, summed.parts.clone()));
        }
        let pieces = self.pieces[tensor].as_ref()?;
        let held = |piece: &Piece| HeldPiece {
            rows: piece.rows.clone(),
            bounds: self.boxes.get(&piece.tensor).cloned().unwrap_or_default(),
            class: self.transfer.class(piece.tensor),
            has_left_blocks: self.blocks.has_left(piece.tensor),
        };
        let held = Held::Pieces(pieces.axis, pieces.list.iter().map(held).collect());
        Some((held, pieces.list.iter().map(|piece| piece.tensor).collect()))
    }
}
