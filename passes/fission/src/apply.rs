//! A tiling applied to a graph.

use remat_ir::{Graph, OpId};
use typed_index_collections::TiVec;

use crate::course::{Course, Span, course};
use crate::forms::Forms;
use crate::layout::Layout;
use crate::moved::moved;
use crate::names::{Names, find};
use crate::pieces::Writer;
use crate::repeat::repeat;
use crate::stated::stated;
use crate::streamed::stream;
use crate::transfer::Transfer;
use crate::{Exactness, FissionError};
use remat_plan::{FusedChain, Tiling};

/// The graph with its fused chains in tiles, in the order to run in.
///
/// Ops outside of fused chains, and graph inputs, constants and outputs, stay as they are; a tensor of which only pieces are left is joined under its
/// own name where somebody needs all of it. Kernels that write over operands are not told apart: every result that is no view has a storage of
/// its own.
///
/// # Errors
/// [`FissionError`], which names the op: the tiling does not fit the graph, an op has no rule for what is asked, or a tile would have other bits
/// than `exactness` permits.
pub fn apply(graph: &Graph, tiling: &Tiling, exactness: Exactness) -> Result<Graph, FissionError> {
    let repeated = prepare(graph, tiling)?;
    let layout = Layout::of(&repeated, exactness)?;
    let spans = resolve(&repeated, &tiling.fused_chains)?;
    let courses = spans.into_iter().map(|span| course(&layout, span, exactness));
    let courses = courses.collect::<Result<Vec<Course>, FissionError>>()?;
    let courses: Vec<&Course> = courses.iter().collect();
    let tiled = write(&layout, &courses)?.0;
    if exactness.is_exact()
        && let Some(op) = Forms::of(graph).and_then(|forms| forms.differing(&tiled))
    {
        return Err(FissionError::OtherForm(tiled.ops[op].name.clone()));
    }
    Ok(tiled)
}

/// The graph of which fused chains are tiled: after all that a tiling changes before.
pub(crate) fn prepare(graph: &Graph, tiling: &Tiling) -> Result<Graph, FissionError> {
    let graph = stated(graph)?;
    repeat(&moved(stream(&graph, &tiling.streamed)?, &tiling.moved)?, &tiling.again)
}

/// The fused chains by their ops, in order.
pub(crate) fn resolve(graph: &Graph, fused_chains: &[FusedChain]) -> Result<Vec<Span>, FissionError> {
    let span = |fused_chain: &FusedChain| {
        let (first, last) = (find(graph, &fused_chain.first)?, find(graph, &fused_chain.last)?);
        if last < first {
            return Err(FissionError::Backwards {
                first: fused_chain.first.clone(),
                last: fused_chain.last.clone(),
            });
        }
        if fused_chain.tiles < 2 {
            return Err(FissionError::FewTiles {
                first: fused_chain.first.clone(),
                tiles: fused_chain.tiles,
            });
        }
        if let Some(within) = fused_chain
            .within
            .filter(|within| within.tiles < 2 || within.axis == fused_chain.axis)
        {
            return Err(FissionError::FewTiles {
                first: fused_chain.first.clone(),
                tiles: within.tiles,
            });
        }
        Ok(Span {
            first,
            last,
            tiles: fused_chain.tiles,
            axis: fused_chain.axis,
            mode: fused_chain.mode,
            within: fused_chain.within,
        })
    };
    let mut spans = fused_chains.iter().map(span).collect::<Result<Vec<Span>, _>>()?;
    spans.sort_unstable();
    if let Some(pair) = spans.windows(2).find(|pair| pair[1].first <= pair[0].last) {
        return Err(FissionError::Overlap(graph.ops[pair[1].first].name.clone()));
    }
    Ok(spans)
}

/// Writes the graph with these fused chains, which are in order and do not overlap; for each of its ops, the op that it is there for.
///
/// Where tiles run in tiles themselves, each of them is a fused chain of the graph that is written first.
pub(crate) fn write(layout: &Layout<'_>, courses: &[&Course]) -> Result<(Graph, TiVec<OpId, OpId>), FissionError> {
    write_with(Names::of, layout, courses)
}

/// The same for who only estimates: what is new has no name.
pub(crate) fn write_unnamed(
    layout: &Layout<'_>,
    courses: &[&Course],
) -> Result<(Graph, TiVec<OpId, OpId>), FissionError> {
    write_with(|_| Names::none(), layout, courses)
}

fn write_with(
    names: fn(&Graph) -> Names,
    layout: &Layout<'_>,
    courses: &[&Course],
) -> Result<(Graph, TiVec<OpId, OpId>), FissionError> {
    let mut inner = Vec::new();
    let (graph, origin) = write_tiles(names, layout, courses, &mut inner)?;
    if inner.is_empty() {
        return Ok((graph, origin));
    }
    let layout = layout.of_tiles(&graph)?;
    let courses = inner
        .into_iter()
        .map(|(span, exactness)| course(&layout, span, exactness));
    let courses = courses.collect::<Result<Vec<Course>, FissionError>>()?;
    let courses: Vec<&Course> = courses.iter().collect();
    let (tiled, own) = write_tiles(names, &layout, &courses, &mut Vec::new())?;
    Ok((tiled, own.into_iter().map(|op| origin[op]).collect()))
}

/// The same without tiles of tiles; those are added to `inner`.
fn write_tiles(
    names: fn(&Graph) -> Names,
    layout: &Layout<'_>,
    courses: &[&Course],
    inner: &mut Vec<(Span, Exactness)>,
) -> Result<(Graph, TiVec<OpId, OpId>), FissionError> {
    let mut writer = Writer::new(Transfer::new(layout.graph)?, names(layout.graph), layout.blocks());
    let mut courses = courses.iter().peekable();
    let mut next = 0;
    while next < layout.graph.ops.len() {
        let id = OpId::new(next);
        let Some(course) = courses.next_if(|course| course.span.first == id) else {
            writer.copy(id)?;
            next += 1;
            continue;
        };
        write_chain(&mut writer, course, inner)?;
        next = course.span.last.index() + 1;
    }
    writer.finish()
}

/// Writes a fused chain; tiles of its tiles are added to `inner`.
pub(crate) fn write_chain(
    writer: &mut Writer<'_>,
    course: &Course,
    inner: &mut Vec<(Span, Exactness)>,
) -> Result<(), FissionError> {
    for &op in &course.before {
        writer.copy(op)?;
    }
    for (tile, runs) in course.tiles.iter().enumerate() {
        writer.begin_tile();
        let first = writer.ops();
        for run in runs {
            match run.sum {
                Some(sum) => writer.sum_up(run, sum, tile)?,
                None => writer.run(run, tile)?,
            }
        }
        if let (Some(within), Some(last)) = (course.span.within, writer.ops().checked_sub(1)) {
            let span = Span::new(
                (OpId::new(first), OpId::new(last)),
                within.tiles,
                within.axis,
                within.mode,
            );
            inner.push((span, course.exactness));
        }
    }
    for &op in &course.after {
        writer.copy(op)?;
    }
    Ok(())
}
