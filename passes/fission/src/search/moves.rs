//! Candidates for the next fused chain.

use remat_ir::{Graph, OpId, StorageClass, TensorId};
use remat_operators::{Combine, operator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::basis::Basis;
use super::courses::Courses;
use super::options::SearchOptions;
use crate::course::Span;
use crate::moved::may_move;
use remat_plan::{Again, Axis, Mode, Moved, Within};

/// How many ops a fused chain may have before and after the op of the peak.
const REACH: usize = 60;

/// The most places to begin or end at, on each side.
const ENDS: usize = 8;

/// In how many numbers of tiles, the most first, fused chains are looked for that take turns.
const MOST_IN_TURNS: usize = 2;

/// From which shares of the peak, in per cent, fused chains are looked for that take turns.
const SHARES_OF_PEAK: [u64; 3] = [80, 55, 35];

/// Results of at least this share of the largest one say which axes are worth trying.
pub(super) const LARGE: u64 = 20;

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

/// Fused chains around `peak` in one number of tiles and one mode, those first whose level is least by a bound, about `most`; and those of `spans` that `peak` is in
/// with other ends, numbers, modes and axes.
pub(super) fn around(
    basis: &Basis,
    courses: &mut Courses,
    (peak, levels): (OpId, &[u64]),
    spans: &[Span],
    (axes, most): (&[Axis], usize),
    options: &SearchOptions<'_>,
) -> Vec<Span> {
    let (Some(&tiles), Some(&mode)) = (options.tiles.get(options.tiles.len() / 2), options.modes.first()) else {
        return Vec::new();
    };
    let starts = basis.narrow(peak, true, REACH, ENDS);
    let ends = basis.narrow(peak, false, REACH, ENDS);
    let mut pairs: Vec<(OpId, OpId, Option<Axis>)> = Vec::new();
    for &first in &starts {
        pairs.extend(ends.iter().map(|&last| (first, last, None)));
    }
    for &axis in axes {
        let (first, last) = reach(basis, courses, peak, axis, options);
        pairs.push((first, last, Some(axis)));
        pairs.extend(starts.iter().map(|&first| (first, last, Some(axis))));
        pairs.extend(ends.iter().map(|&last| (first, last, Some(axis))));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let level = levels.get(peak.index()).copied().unwrap_or(0);
    let ranked = |(first, last, axis): (OpId, OpId, Option<Axis>)| {
        let least = basis.least_level((first, last), tiles, levels, spans);
        (least < level).then_some((least, last.index() - first.index(), first, last, axis))
    };
    let mut ranked: Vec<_> = pairs.into_iter().filter_map(ranked).collect();
    ranked.sort_unstable();
    // Of each order of lengths the best, then of each the second best: long fused chains save more and cost more.
    let mut places: FxHashMap<u32, usize> = FxHashMap::default();
    let mut in_turns: Vec<_> = Vec::new();
    for (_, length, first, last, own) in ranked {
        let place = places.entry((length + 1).ilog2()).or_default();
        in_turns.push((*place, first, last, own));
        *place += 1;
    }
    in_turns.sort_by_key(|&(place, ..)| place);
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    for (_, first, last, own) in in_turns {
        let mut has_rows = false;
        for &axis in axes.iter().filter(|&&axis| own.is_none_or(|own| own == axis)) {
            let span = |&tiles: &u32| Span::new((first, last), tiles, axis, mode);
            // Columns are rows that lie apart.
            if axis == Axis::Columns && has_rows || !seen.insert(span(&tiles)) {
                continue;
            }
            let fewer = options.tiles.iter().rev().filter(|&&fewer| fewer <= tiles);
            let possible = fewer.map(span).find(|&span| courses.get(span).is_some());
            has_rows |= axis == Axis::Rows && possible.is_some();
            found.extend(possible);
        }
        if found.len() >= most {
            break;
        }
    }
    for span in spans.iter().filter(|span| span.first <= peak && peak <= span.last) {
        found.extend(varied(basis, span, axes, options));
    }
    found
}

/// A fused chain with other ends, numbers of tiles, axes and modes.
fn varied(basis: &Basis, span: &Span, axes: &[Axis], options: &SearchOptions<'_>) -> Vec<Span> {
    let along = |&axis: &Axis| Span {
        axis,
        within: None,
        ..*span
    };
    let mut found: Vec<Span> = axes.iter().map(along).collect();
    found.extend(grids(span, options));
    found.extend(options.modes.iter().map(|&mode| Span { mode, ..*span }));
    found.extend(options.tiles.iter().map(|&tiles| Span { tiles, ..*span }));
    for inside in [false, true] {
        let (from, to) = if inside {
            (span.last, span.first)
        } else {
            (span.first, span.last)
        };
        let firsts = basis.narrow(from, true, REACH, 3).into_iter();
        found.extend(
            firsts
                .filter(|&first| first <= span.last)
                .map(|first| Span { first, ..*span }),
        );
        let lasts = basis.narrow(to, false, REACH, 3).into_iter();
        found.extend(
            lasts
                .filter(|&last| last >= span.first)
                .map(|last| Span { last, ..*span }),
        );
    }
    found
}

/// A fused chain with its rows, or the tiles of them, in tiles along columns.
fn grids(span: &Span, options: &SearchOptions<'_>) -> Vec<Span> {
    let mut found = Vec::new();
    if !options.grids || span.axis != Axis::Rows {
        return found;
    }
    for &tiles in &options.tiles {
        for mode in [Mode::Recompute, Mode::Hybrid] {
            let within = Within {
                tiles,
                axis: Axis::Columns,
                mode: span.within.map_or(Mode::LineBuffer, |within| within.mode),
            };
            found.push(Span {
                within: Some(within),
                mode,
                ..*span
            });
        }
    }
    found.push(Span { within: None, ..*span });
    found
}

/// How far the axis reaches from `peak` on both sides: by steps that double, then by halves.
fn reach(basis: &Basis, courses: &mut Courses, peak: OpId, axis: Axis, options: &SearchOptions<'_>) -> (OpId, OpId) {
    let (tiles, mode) = (
        options.tiles.first().copied().unwrap_or(2),
        options.modes.first().copied().unwrap_or(Mode::LineBuffer),
    );
    let mut is_cut = |first: usize, last: usize| {
        let span = Span::new((OpId::new(first), OpId::new(last)), tiles, axis, mode);
        courses.get(span).is_some_and(|course| course.made_before == 0)
    };
    let at = peak.index();
    let after = furthest(basis.graph.ops.len() - 1 - at, |step| is_cut(at, at + step));
    let before = furthest(at, |step| is_cut(at - step, at));
    (OpId::new(at - before), OpId::new(at + after))
}

/// The largest step up to `most` that is possible, where those after one that is not are not either.
fn furthest(most: usize, mut is_possible: impl FnMut(usize) -> bool) -> usize {
    let (mut good, mut bad) = (0, most + 1);
    let mut step = 1;
    while good + step < bad {
        if is_possible(good + step) {
            good += step;
            step *= 2;
        } else {
            bad = good + step;
            step = ((bad - good) / 2).max(1);
            if bad - good <= 1 {
                break;
            }
        }
        step = step.min((bad - good).saturating_sub(1).max(1));
    }
    good
}

/// The same fused chains in every number of tiles and every mode.
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

/// Sets of fused chains one behind the other that go along two axes in turns, each as far as it can. What stands between two of them is in pieces, of
/// which none is joined: a convolution by rows reads rows of what a normalization made by channels. A set begins where more than a share of the
/// peak is in memory, with the fused chain that this is in, or within it where least is alive, and ends with the graph. Those that are found until
/// it `is_over`.
pub(super) fn in_turns(
    basis: &Basis,
    courses: &mut Courses,
    (levels, axes): (&[u64], &[Axis]),
    options: &SearchOptions<'_>,
    is_over: &dyn Fn() -> bool,
) -> Vec<Vec<Span>> {
    let Some(&mode) = options.modes.first() else {
        return Vec::new();
    };
    let peak = levels.iter().copied().max().unwrap_or(0);
    // Columns are rows that lie apart.
    let axes: Vec<Axis> = axes.iter().copied().filter(|&axis| axis != Axis::Columns).collect();
    let (mut found, mut seen) = (Vec::new(), FxHashSet::default());
    for (place, &first) in axes.iter().enumerate() {
        for &second in &axes[place + 1..] {
            for &tiles in options.tiles.iter().rev().take(MOST_IN_TURNS) {
                let along = ([first, second], tiles, mode);
                let Some(spans) = one_behind_the_other(basis, courses, along, options, is_over) else {
                    return found;
                };
                for percent in SHARES_OF_PEAK {
                    let is_high = |span: &Span| {
                        let levels = &levels[span.first.index()..=span.last.index()];
                        levels.iter().any(|&level| level >= peak / 100 * percent)
                    };
                    let Some(from) = spans.iter().position(is_high) else {
                        continue;
                    };
                    let whole = spans[from..].to_vec();
                    let mut narrow = whole.clone();
                    narrow[0].first = basis.narrowest(narrow[0].first, narrow[0].last);
                    let is_new = |spans: &Vec<Span>| spans.len() > 1 && seen.insert(spans.clone());
                    found.extend([narrow, whole].into_iter().filter(is_new));
                }
            }
        }
    }
    found
}

/// The fused chains of the whole graph, each along the axis that the one before is not along, where that is possible, in the most tiles that are, up to
/// `tiles`; `None` where it `is_over` before.
fn one_behind_the_other(
    basis: &Basis,
    courses: &mut Courses,
    (mut axes, tiles, mode): ([Axis; 2], u32, Mode),
    options: &SearchOptions<'_>,
    is_over: &dyn Fn() -> bool,
) -> Option<Vec<Span>> {
    let ops = basis.graph.ops.len();
    let mut is_cut = |span: Span| courses.get(span).is_some_and(|course| course.made_before == 0);
    let (mut found, mut first) = (Vec::new(), 0);
    while first < ops {
        if is_over() {
            return None;
        }
        let fewer = || options.tiles.iter().rev().filter(|&&fewer| fewer <= tiles);
        let begun = axes.into_iter().find_map(|axis| {
            let begins = |&tiles: &u32| Span::new((OpId::new(first), OpId::new(first)), tiles, axis, mode);
            fewer().map(begins).find(|&span| is_cut(span))
        });
        let Some(begun) = begun else {
            first += 1;
            continue;
        };
        let to = |step: usize| Span {
            last: OpId::new(first + step),
            ..begun
        };
        // An axis is another one where results have more axes.
        let rank = |op: usize| rank(&basis.graph, OpId::new(op));
        let alike = (first..ops).take(1 + REACH).take_while(|&op| rank(op) == rank(first));
        let span = to(furthest(alike.count() - 1, |step| is_cut(to(step))));
        first = span.last.index() + 1;
        if span.axis == axes[0] {
            axes.swap(0, 1);
        }
        found.push(span);
    }
    Some(found)
}

/// How many axes the first result of an op has.
fn rank(graph: &Graph, op: OpId) -> Option<usize> {
    let result = graph.ops[op].results().next()?;
    Some(graph.tensors[result].ty.known_shape()?.len())
}

/// A tensor is long-lived if so many ops stand between its producer and the op of the peak.
const LONG: usize = 6;

/// The most long-lived tensors that are looked at.
const LONG_LIVED: usize = 3;

/// Sets of fused chains from each op that sums up to the next one, from every such op to the end: what is summed up is in pieces then, and dies piece
/// by piece. Fused chains that are not possible are left out.
pub(super) fn along_sums(
    basis: &Basis,
    courses: &mut Courses,
    axes: &[Axis],
    options: &SearchOptions<'_>,
) -> Vec<Vec<Span>> {
    let graph = &basis.graph;
    let mut found = along_axes(basis, courses, axes, options);
    let ends = summing_up(graph, &[Combine::Moments]);
    let (Some(&first), Some(last)) = (ends.first(), graph.ops.keys().next_back()) else {
        return found;
    };
    let mut pieces: Vec<(OpId, OpId)> = vec![(OpId::new(first.index().saturating_sub(REACH)), first)];
    pieces.extend(ends.windows(2).map(|pair| (OpId::new(pair[0].index() + 1), pair[1])));
    pieces.extend(
        ends.last()
            .filter(|&&end| end < last)
            .map(|&end| (OpId::new(end.index() + 1), last)),
    );
    for &axis in axes.iter().filter(|&&axis| axis == Axis::Rows) {
        for &tiles in &options.tiles {
            for &mode in &options.modes {
                let span = |&(first, last): &(OpId, OpId)| Span::new((first, last), tiles, axis, mode);
                let spans: Vec<Span> = pieces
                    .iter()
                    .map(span)
                    .filter(|&span| courses.get(span).is_some())
                    .collect();
                found.extend((0..spans.len()).map(|from| spans[from..].to_vec()));
            }
        }
    }
    found
}

/// The ops that sum up so what is made before.
fn summing_up(graph: &Graph, combine: &[Combine]) -> Vec<OpId> {
    let sums_up = |&id: &OpId| {
        let op = &graph.ops[id];
        let operand = op.inputs.first().copied().flatten();
        let is_made = operand.is_some_and(|operand| graph.tensors[operand].producer.is_some());
        combine.contains(&operator(&op.domain, &op.op_type).combine) && is_made
    };
    graph.ops.keys().filter(sums_up).collect()
}

/// Sets of fused chains that end with exponentials that are summed up, or with the best of rows, and begin with the first op that runs in tiles then.
fn along_axes(basis: &Basis, courses: &mut Courses, axes: &[Axis], options: &SearchOptions<'_>) -> Vec<Vec<Span>> {
    let ends = summing_up(&basis.graph, &[Combine::Exponentials, Combine::Best]);
    let Some(&mode) = options.modes.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for &axis in axes {
        for &tiles in &options.tiles {
            let mut spans: Vec<Span> = Vec::new();
            for &last in &ends {
                let after = spans.last().map_or(0, |span| span.last.index() + 1);
                let first = OpId::new(last.index().saturating_sub(REACH).max(after));
                let Some(course) = courses.get(Span::new((first, last), tiles, axis, mode)) else {
                    continue;
                };
                let first = course.tiles.iter().flatten().map(|run| run.op).min();
                let span = first.map(|first| Span::new((first, last), tiles, axis, mode));
                spans.extend(span.filter(|&span| courses.get(span).is_some()));
            }
            if !spans.is_empty() {
                found.push(spans);
            }
        }
    }
    found
}

/// Ops that may run earlier, right behind the last but one reader of a large tensor that is alive at the peak and that they are the last to read.
pub(super) fn earlier(basis: &Basis, courses: &Courses, peak: OpId) -> Vec<(OpId, Moved)> {
    let graph = &basis.graph;
    let mut found: Vec<(u64, OpId, OpId)> = Vec::new();
    for life in &basis.lives {
        let root = graph.storages[life.storage].root;
        let (Some(&last), is_alive) = (
            courses.readers(root).last(),
            life.from <= peak.index() && life.to > peak.index(),
        ) else {
            continue;
        };
        let readers = courses.readers(root);
        let Some(&behind) = readers.iter().rev().nth(1) else {
            continue;
        };
        let before = OpId::new(behind.index() + 1);
        if is_alive && last > peak && behind <= peak && before < last && may_move(graph, last, before) {
            found.push((life.bytes, last, before));
        }
    }
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(LONG_LIVED);
    let name = |op: OpId| graph.ops[op].name.clone();
    let moved = |(_, op, before): (u64, OpId, OpId)| {
        let moved = Moved {
            op: name(op),
            before: name(before),
        };
        (op, moved)
    };
    found.into_iter().map(moved).collect()
}

/// Fused chains to run a second time, so that a large tensor that is only alive at the peak is not: they make it again before its first reader
/// after the peak.
pub(super) fn clones(basis: &Basis, courses: &Courses, peak: OpId) -> Vec<Again> {
    let graph = &basis.graph;
    let mut idle: Vec<(u64, TensorId, OpId, OpId)> = Vec::new();
    for (id, tensor) in graph.tensors.iter_enumerated() {
        let storage = &graph.storages[tensor.storage];
        let is_made = storage.class == StorageClass::Intermediate && storage.root == id;
        let (Some(producer), Some(bytes)) = (tensor.producer, storage.bytes) else {
            continue;
        };
        let readers = courses.readers(id);
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

/// Fused chains that lay tiles over clones that stand right before `reader`.
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
    let modes = [Mode::Recompute, Mode::LineBuffer];
    let modes: Vec<Mode> = modes.into_iter().filter(|mode| options.modes.contains(mode)).collect();
    let mut found = Vec::new();
    for &first in starts.iter().rev() {
        for &last in &ends {
            for &axis in axes {
                let span = |&mode: &Mode| Span::new((first, last), tiles, axis, mode);
                found.extend(modes.iter().map(span));
            }
        }
    }
    found
}
