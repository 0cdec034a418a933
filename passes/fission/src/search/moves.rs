//! Candidates for the next stretch.

use remat_ir::{Graph, OpId, StorageClass, TensorId};
use rustc_hash::FxHashSet;

use super::basis::{Basis, Courses};
use super::options::SearchOptions;
use crate::course::Span;
use remat_plan::{Again, Axis, Mode};

/// How many ops a stretch may have before and after the op of the peak.
const REACH: usize = 60;

/// The most places to begin or end at, on each side.
const ENDS: usize = 8;

/// Results of at least this share of the largest one say which axes are worth trying.
const LARGE: u64 = 20;

/// Kinds of axes that mean different axes of the large results, each of which has rows along it.
pub(super) fn axes(graph: &Graph, options: &SearchOptions<'_>) -> Vec<Axis> {
    let made = graph
        .storages
        .iter()
        .filter(|storage| storage.class == StorageClass::Intermediate);
    let sizes = made.filter_map(|storage| Some((storage.root, storage.bytes?)));
    let largest = sizes.clone().map(|(_, bytes)| bytes).max().unwrap_or(0);
    let large: Vec<Vec<u64>> = sizes
        .filter(|&(_, bytes)| bytes >= largest / LARGE)
        .filter_map(|(tensor, _)| graph.tensors[tensor].ty.known_shape())
        .collect();
    let mut ranks: Vec<usize> = large.iter().map(Vec::len).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut chosen: Vec<(Axis, Vec<Option<usize>>)> = Vec::new();
    for &axis in &options.axes {
        let meaning: Vec<Option<usize>> = ranks.iter().map(|&rank| axis.of_rank(rank)).collect();
        let has_rows = large
            .iter()
            .any(|dims| axis.of_rank(dims.len()).is_some_and(|axis| dims[axis] > 1));
        if has_rows && chosen.iter().all(|(_, known)| *known != meaning) {
            chosen.push((axis, meaning));
        }
    }
    chosen.into_iter().map(|(axis, _)| axis).collect()
}

/// Stretches around `peak`, in one number of tiles and one mode, and others in place of those of `spans` that `peak` is in.
pub(super) fn around(
    basis: &Basis,
    courses: &mut Courses<'_>,
    peak: OpId,
    spans: &[Span],
    axes: &[Axis],
    options: &SearchOptions<'_>,
) -> Vec<Span> {
    let (Some(&tiles), Some(&mode)) = (options.tiles.get(options.tiles.len() / 2), options.modes.first()) else {
        return Vec::new();
    };
    let least = options.tiles.first().copied().unwrap_or(tiles);
    let mut starts = basis.narrow(peak, true, REACH, ENDS);
    let mut ends = basis.narrow(peak, false, REACH, ENDS);
    for &axis in axes {
        let span = |first, last| Span {
            first,
            last,
            tiles: least,
            axis,
            mode,
        };
        let mut reaches = |span: Span| courses.get(span).is_some_and(|course| course.made_before == 0);
        let (mut first, mut last) = (peak, peak);
        while last.index() + 1 < basis.graph.ops.len()
            && last.index() - peak.index() < REACH
            && reaches(span(peak, OpId::new(last.index() + 1)))
        {
            last = OpId::new(last.index() + 1);
        }
        while first.index() > 0
            && peak.index() - first.index() < REACH
            && reaches(span(OpId::new(first.index() - 1), peak))
        {
            first = OpId::new(first.index() - 1);
        }
        starts.push(first);
        ends.push(last);
    }
    for list in [&mut starts, &mut ends] {
        list.sort_unstable();
        list.dedup();
    }
    let mut found = Vec::new();
    for &first in starts.iter().rev() {
        for &last in &ends {
            for &axis in axes {
                found.push(Span {
                    first,
                    last,
                    tiles,
                    axis,
                    mode,
                });
            }
        }
    }
    for span in spans.iter().filter(|span| span.first <= peak && peak <= span.last) {
        for &tiles in &options.tiles {
            found.push(Span { tiles, ..*span });
            for first in basis.narrow(span.first, true, REACH, 3) {
                found.push(Span { first, tiles, ..*span });
            }
            for last in basis.narrow(span.last, false, REACH, 3) {
                found.push(Span { last, tiles, ..*span });
            }
        }
    }
    let mut seen = FxHashSet::default();
    found.retain(|&span| seen.insert(span));
    found
}

/// The same stretches in every number of tiles and every mode.
pub(super) fn finer(spans: &[Span], options: &SearchOptions<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    for span in spans {
        for &tiles in &options.tiles {
            for &mode in &options.modes {
                found.push(Span { tiles, mode, ..*span });
            }
        }
    }
    found
}

/// A tensor is long-lived if so many ops stand between its producer and the op of the peak.
const LONG: usize = 6;

/// The most long-lived tensors that are looked at.
const LONG_LIVED: usize = 3;

/// Stretches to run a second time, so that a large tensor that is only alive at the peak is not: they make it again before its first reader
/// after the peak.
pub(super) fn clones(basis: &Basis, courses: &Courses<'_>, peak: OpId) -> Vec<Again> {
    let graph = &basis.graph;
    let mut idle: Vec<(u64, TensorId, OpId, OpId)> = Vec::new();
    for (id, tensor) in graph.tensors.iter_enumerated() {
        let storage = &graph.storages[tensor.storage];
        let is_made = storage.class == StorageClass::Intermediate && storage.root == id;
        let (Some(producer), Some(bytes)) = (tensor.producer, storage.bytes) else {
            continue;
        };
        let readers = courses.layout.readers(id);
        let later = readers.iter().copied().find(|&reader| reader > peak);
        let reads_now = readers.contains(&peak);
        if let Some(later) = later.filter(|_| is_made && !reads_now && producer.index() + LONG < peak.index()) {
            idle.push((bytes, id, producer, later));
        }
    }
    idle.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let name = |op: OpId| graph.ops[op].name.clone();
    let mut found = Vec::new();
    for (_, _, producer, later) in idle.into_iter().take(LONG_LIVED) {
        for first in basis.narrow(producer, true, REACH, 3) {
            let again = Again {
                first: name(first),
                last: name(producer),
                before: name(later),
            };
            found.push(again);
        }
    }
    found
}

/// Stretches that lay tiles over clones that stand right before `reader`.
pub(super) fn over_clones(
    basis: &Basis,
    first: OpId,
    reader: OpId,
    axes: &[Axis],
    options: &SearchOptions<'_>,
) -> Vec<Span> {
    let mut starts = basis.narrow(first, true, REACH / 3, 2);
    starts.push(first);
    starts.sort_unstable();
    starts.dedup();
    let ends = basis.narrow(reader, false, REACH, ENDS);
    let Some(&tiles) = options.tiles.get(options.tiles.len() / 2) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for &first in starts.iter().rev() {
        for &last in &ends {
            for &axis in axes {
                for &mode in [Mode::Again, Mode::Carry]
                    .iter()
                    .filter(|mode| options.modes.contains(mode))
                {
                    found.push(Span {
                        first,
                        last,
                        tiles,
                        axis,
                        mode,
                    });
                }
            }
        }
    }
    found
}
