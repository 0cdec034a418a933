//! A fused chain worked out: which rows of which op each tile computes, and which rows it hands on.

use std::ops::Range;

use remat_ir::{Graph, OpId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::exact::{grain, keeps_bits};
use crate::layout::Layout;
use crate::rules::{Cut, Need, Reason, split};
use crate::sums::{self, Sum};
use crate::{Exactness, FissionError};
use remat_plan::{Axis, Mode, Within};

/// A fused chain of a graph, by its ops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Span {
    pub(crate) first: OpId,
    pub(crate) last: OpId,
    pub(crate) tiles: u32,
    pub(crate) axis: Axis,
    pub(crate) mode: Mode,
    pub(crate) within: Option<Within>,
}

impl Span {
    /// The ops from the first to the last one, in tiles that are whole.
    pub(crate) fn new((first, last): (OpId, OpId), tiles: u32, axis: Axis, mode: Mode) -> Self {
        Self {
            first,
            last,
            tiles,
            axis,
            mode,
            within: None,
        }
    }
}

/// What a fused chain does.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) span: Span,
    /// Which tiles are permitted.
    pub(crate) exactness: Exactness,
    /// Ops of the fused chain that run whole, before the first tile, since a tile needs all that they make.
    pub(crate) before: Vec<OpId>,
    /// How many of those a run makes.
    pub(crate) made_before: usize,
    /// Ops of the fused chain that run whole, after the last tile: no tile needs what they make of sums.
    pub(crate) after: Vec<OpId>,
    /// By result that is cut: the axis.
    pub(crate) axes: FxHashMap<TensorId, usize>,
    /// By tile, in the order in which ops run.
    pub(crate) tiles: Vec<Vec<Run>>,
}

/// A part of an op.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) op: OpId,
    pub(crate) axis: usize,
    pub(crate) rows: Range<u64>,
    pub(crate) cut: Cut,
    /// What it sums up over these rows, which are rows of operands then.
    pub(crate) sum: Option<Sum>,
    /// Rows that later tiles need and that are sliced off after this run, the last one of its tile to look at the tensor.
    pub(crate) hands_on: Vec<(TensorId, Range<u64>)>,
}

/// An op that is cut.
struct Tiled {
    op: OpId,
    axis: usize,
    extent: u64,
    rank: usize,
    /// Whether every row is computed once.
    carries: bool,
    /// Whether an op of the fused chain reads rows of it.
    is_read: bool,
    leaves: bool,
    /// What it sums up over the rows; they are rows of operands then.
    sum: Option<Sum>,
}

impl Tiled {
    /// What these rows need.
    fn cut(&self, graph: &Graph, rows: &Range<u64>) -> Result<Cut, FissionError> {
        match self.sum {
            Some(sum) => Ok(sum.cut(graph, self.op, rows)),
            None => Ok(split(graph, self.op, self.axis, rows.clone())?),
        }
    }
}

/// How often cuts are tried again at coarser multiples.
const COARSER: usize = 3;

/// Works a fused chain out.
pub(crate) fn course(layout: &Layout<'_>, span: Span, exactness: Exactness) -> Result<Course, FissionError> {
    let mut course = Course {
        span,
        exactness,
        before: Vec::new(),
        made_before: 0,
        after: Vec::new(),
        axes: FxHashMap::default(),
        tiles: Vec::new(),
    };
    let tiled = follow(layout, &mut course)?;
    let mut multiple = 1;
    for _ in 0..COARSER {
        match tiles(layout, &course, &tiled, multiple, exactness) {
            Ok(tiles) => {
                course.tiles = tiles;
                let carried = tiled.iter().filter(|entry| entry.carries);
                let carried = carried.flat_map(|entry| layout.graph.ops[entry.op].results()).collect();
                hand_on(layout, &mut course, &carried);
                return Ok(course);
            }
            Err(FissionError::NotSplit(error)) => match error.reason {
                Reason::Multiple(of) if multiple.checked_mul(of).is_some() => multiple *= of,
                _ => return Err(error.into()),
            },
            Err(error) => return Err(error),
        }
    }
    Err(no_axis(layout, span, span.last))
}

fn no_axis(layout: &Layout<'_>, span: Span, op: OpId) -> FissionError {
    let graph = layout.graph;
    let result = graph.ops[op].results().next();
    FissionError::NoAxis {
        tensor: result.map_or_else(
            || graph.ops[op].name.clone(),
            |result| graph.tensors[result].name.clone(),
        ),
        axis: format!("{:?}", span.axis).to_lowercase(),
        tiles: span.tiles,
    }
}

/// Follows the axis from the results of the fused chain back to its operands. Ops of which a tile needs everything, or along two axes, or that
/// have no rule, run before; those that no tile needs, and that need no rows of it, after.
fn follow(layout: &Layout<'_>, course: &mut Course) -> Result<Vec<Tiled>, FissionError> {
    let (graph, span) = (layout.graph, course.span);
    let is_inside = |tensor: TensorId| is_made(graph, span, tensor);
    let mut needed_whole: FxHashSet<TensorId> = FxHashSet::default();
    let mut tiled = Vec::new();
    // Ops that run after, and why they are not cut.
    let mut refused: Vec<(OpId, FissionError)> = Vec::new();
    for index in (span.first.index()..=span.last.index()).rev() {
        let id = OpId::new(index);
        let op = &graph.ops[id];
        let is_whole = layout.is_outside(id) || op.results().any(|result| needed_whole.contains(&result));
        let entry = match is_whole {
            true => None,
            false => match entry(layout, course, id) {
                Err(error) if layout.is_divisible(id) && reads_inside(layout, span, id) => {
                    refused.push((id, error));
                    continue;
                }
                entry => entry?,
            },
        };
        let Some((tile, cut)) = entry else {
            for result in op.results() {
                course.axes.remove(&result);
            }
            needed_whole.extend(op.reads().filter(|&tensor| is_inside(tensor)));
            course.made_before += usize::from(!layout.is_outside(id));
            course.before.push(id);
            continue;
        };
        let reads_rows = |(after, _): &(OpId, FissionError)| {
            let mut reads = graph.ops[*after].reads();
            tile.sum.is_none() && reads.any(|read| op.results().any(|result| read == result))
        };
        if let Some(place) = refused.iter().position(reads_rows) {
            return Err(refused.swap_remove(place).1);
        }
        if tile.sum.is_none() {
            course.axes.extend(op.results().map(|result| (result, tile.axis)));
        }
        for (operand, need) in op.inputs.iter().zip(&cut.needs) {
            let Some(operand) = operand.filter(|&operand| is_inside(operand)) else {
                continue;
            };
            match *need {
                Need::Rows { axis, .. } if *course.axes.entry(operand).or_insert(axis) == axis => {}
                Need::Rows { .. } | Need::Whole => drop(needed_whole.insert(operand)),
            }
        }
        tiled.push(tile);
    }
    course.before.reverse();
    course.after = refused.into_iter().rev().map(|(id, _)| id).collect();
    tiled.reverse();
    if tiled.len() < 2 && tiled.first().is_none_or(|tile| tile.op != span.last) {
        return Err(no_axis(layout, span, span.last));
    }
    Ok(tiled)
}

/// Whether an op that is not cut reads something that the fused chain makes.
fn reads_inside(layout: &Layout<'_>, span: Span, id: OpId) -> bool {
    let mut reads = layout.graph.ops[id].reads();
    reads.any(|read| is_made(layout.graph, span, read))
}

/// Whether an op of the fused chain makes a tensor.
fn is_made(graph: &Graph, span: Span, tensor: TensorId) -> bool {
    let producer = graph.tensors[tensor].producer;
    producer.is_some_and(|producer| producer >= span.first && producer <= span.last)
}

/// How an op is cut; `None` if it has to run whole.
fn entry(layout: &Layout<'_>, course: &Course, id: OpId) -> Result<Option<(Tiled, Cut)>, FissionError> {
    let (graph, span) = (layout.graph, course.span);
    let op = &graph.ops[id];
    let Some(first) = op.results().next() else {
        return Ok(None);
    };
    let mut wanted = op.results().filter_map(|result| course.axes.get(&result).copied());
    let known = wanted.next();
    if wanted.any(|axis| Some(axis) != known) {
        return Ok(None);
    }
    if known.is_none()
        && layout.is_divisible(id)
        && let Some(sum) = sums::along(graph, id, span.axis, course.exactness, |tensor| {
            is_made(graph, span, tensor)
        })
        && sum.extent / u64::from(span.tiles) >= sum.least
        && span.within.is_none()
    {
        let tile = Tiled {
            op: id,
            axis: 0,
            extent: sum.extent,
            rank: 0,
            carries: false,
            is_read: false,
            leaves: true,
            sum: Some(sum),
        };
        let cut = sum.cut(graph, id, &(0..sum.extent));
        return Ok(Some((tile, cut)));
    }
    let refused = |error: FissionError| if known.is_some() { Ok(None) } else { Err(error) };
    if !layout.is_divisible(id) {
        return refused(FissionError::RunsOnce(op.name.clone()));
    }
    let Some(dims) = graph.tensors[first].ty.known_shape() else {
        return refused(no_axis(layout, span, id));
    };
    let axis = known.or_else(|| span.axis.of_rank(dims.len()));
    let axis = axis.filter(|&axis| dims.get(axis).is_some_and(|&extent| extent >= u64::from(span.tiles)));
    let Some(axis) = axis else {
        return refused(no_axis(layout, span, id));
    };
    let cut = match split(graph, id, axis, 0..dims[axis]) {
        Ok(cut) => cut,
        Err(error) => return refused(error.into()),
    };
    let tile = Tiled {
        op: id,
        carries: match span.mode {
            Mode::LineBuffer => true,
            Mode::Recompute => false,
            Mode::Hybrid => is_bottleneck(graph, id, &cut),
        },
        axis,
        extent: dims[axis],
        rank: dims.len(),
        is_read: known.is_some(),
        leaves: op.results().any(|result| layout.leaves(result, span.last)),
        sum: None,
    };
    Ok(Some((tile, cut)))
}

/// Whether the results of an op are smaller than the operands of which rows give rows of them.
fn is_bottleneck(graph: &Graph, id: OpId, cut: &Cut) -> bool {
    let op = &graph.ops[id];
    let bytes = |tensor: TensorId| graph.storages[graph.tensors[tensor].storage].bytes.unwrap_or(0);
    let read = op.inputs.iter().zip(&cut.needs);
    let read = read.filter_map(|(operand, need)| operand.filter(|_| *need != Need::Whole));
    let read = read.map(bytes).fold(0, u64::saturating_add);
    op.results().map(bytes).fold(0, u64::saturating_add) < read
}

/// Where tile `tile` of `extent` rows begins.
fn bound(extent: u64, tile: u32, tiles: u32, multiple: u64) -> u64 {
    if tile == tiles {
        return extent;
    }
    let exact = u128::from(extent) * u128::from(tile) / u128::from(tiles.max(1));
    let exact = u64::try_from(exact).unwrap_or(extent);
    ((exact + multiple / 2) / multiple * multiple).min(extent)
}

/// The rows of every op in every tile, from the last op back.
fn tiles(
    layout: &Layout<'_>,
    course: &Course,
    tiled: &[Tiled],
    multiple: u64,
    exactness: Exactness,
) -> Result<Vec<Vec<Run>>, FissionError> {
    let (graph, span) = (layout.graph, course.span);
    // By op that is cut: the end of the rows that earlier tiles computed.
    let mut done: Vec<u64> = vec![0; tiled.len()];
    let mut all = Vec::with_capacity(span.tiles as usize);
    for tile in 0..span.tiles {
        let mut wanted: FxHashMap<TensorId, Range<u64>> = FxHashMap::default();
        let mut runs = Vec::with_capacity(tiled.len());
        for (place, entry) in tiled.iter().enumerate().rev() {
            let op = &graph.ops[entry.op];
            let grain = grain(exactness, entry.rank, entry.axis, entry.extent, span.tiles);
            let own = {
                let at = |tile| bound(entry.extent, tile, span.tiles, grain.max(1) * multiple);
                at(tile)..at(tile + 1)
            };
            let mut rows = entry.extent..0;
            for wanted in op.results().filter_map(|result| wanted.get(&result)) {
                rows = rows.start.min(wanted.start)..rows.end.max(wanted.end);
            }
            if !entry.is_read {
                let least = entry.sum.map_or(1, |sum| sum.least);
                if own.end.saturating_sub(own.start) < least {
                    return Err(no_axis(layout, span, entry.op));
                }
                rows = own;
            } else if !entry.carries && entry.leaves {
                rows = rows.start.min(own.start)..rows.end.max(own.end);
            }
            if entry.carries {
                let end = if tile + 1 == span.tiles && entry.leaves {
                    entry.extent
                } else {
                    rows.end.max(done[place])
                };
                rows = done[place]..end;
                done[place] = end;
            }
            if rows.is_empty() {
                continue;
            }
            let cut = entry.cut(graph, &rows)?;
            if entry.sum.is_none() && !keeps_bits(graph, entry.op, entry.axis, &rows, exactness) {
                return Err(FissionError::OtherBits {
                    op: op.name.clone(),
                    axis: entry.axis,
                    rows: rows.end - rows.start,
                });
            }
            for (operand, need) in op.inputs.iter().zip(&cut.needs) {
                if let (Some(operand), Need::Rows { rows, .. }) = (operand, need)
                    && course.axes.contains_key(operand)
                {
                    let hull = wanted.entry(*operand).or_insert_with(|| rows.clone());
                    *hull = hull.start.min(rows.start)..hull.end.max(rows.end);
                }
            }
            runs.push(Run {
                op: entry.op,
                axis: entry.axis,
                rows,
                cut,
                sum: entry.sum,
                hands_on: Vec::new(),
            });
        }
        runs.reverse();
        all.push(runs);
    }
    Ok(all)
}

/// What later tiles need of a tensor whose rows are computed once is sliced off by the last run of a tile that looks at it. What somebody needs
/// after the fused chain stays as it is.
fn hand_on(layout: &Layout<'_>, course: &mut Course, carried: &FxHashSet<TensorId>) {
    if carried.is_empty() {
        return;
    }
    let (graph, last) = (layout.graph, course.span.last);
    // By tensor: where the rows end that are there after each tile.
    let mut ends: Vec<FxHashMap<TensorId, u64>> = Vec::with_capacity(course.tiles.len());
    let mut have: FxHashMap<TensorId, u64> = FxHashMap::default();
    for runs in &course.tiles {
        for run in runs {
            have.extend(graph.ops[run.op].results().map(|result| (result, run.rows.end)));
        }
        ends.push(have.clone());
    }
    let mut least: FxHashMap<TensorId, u64> = FxHashMap::default();
    for (runs, ends) in course.tiles.iter_mut().zip(ends).rev() {
        let mut seen: FxHashSet<TensorId> = FxHashSet::default();
        let mut begins: Vec<(TensorId, u64)> = Vec::new();
        for run in runs.iter_mut().rev() {
            let op = &graph.ops[run.op];
            for (operand, need) in op.inputs.iter().zip(&run.cut.needs) {
                if let (&Some(operand), Need::Rows { rows, .. }) = (operand, need)
                    && course.axes.contains_key(&operand)
                {
                    begins.push((operand, rows.start));
                }
            }
            let looks_at = op.inputs.iter().flatten().copied().chain(op.results());
            for tensor in looks_at {
                let is_candidate = carried.contains(&tensor) && !layout.leaves(tensor, last);
                if !is_candidate || !seen.insert(tensor) {
                    continue;
                }
                if let (Some(&begin), Some(&end)) = (least.get(&tensor), ends.get(&tensor))
                    && begin < end
                {
                    run.hands_on.push((tensor, begin..end));
                }
            }
        }
        for (tensor, begin) in begins {
            let least = least.entry(tensor).or_insert(begin);
            *least = begin.min(*least);
        }
    }
}
