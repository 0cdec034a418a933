//! Which tiles have the bits of the whole.
//!
//! ONNX Runtime's matrix products (MLAS) sum over the inner dimension `K` in blocks, and choose the length of a block by the number of columns
//! `N`: the pixels of a convolution, the last axis of a product. A tile whose columns give another block adds up in another order. The rule was
//! read in `onnxruntime/core/mlas/lib/sgemm.cpp` (1.31) and held against 36 random shapes per family of operators at both levels of
//! optimization, with one and two threads, weights constant or fed: of the tiles that it allows, none had other bits.
//!
//! | family | exact tiles |
//! |---|---|
//! | convolution, product by columns | those whose blocks are those of the whole, in every part into which threads divide either |
//! | channels, images of a convolution | those of convolutions that all threads compute in one order, since threads divide what there is more of |
//! | channels of images | multiples of 8, since blocked layouts have 8 or 16 channels in a block |
//! | all products | at least two rows, columns or channels: a single one has a kernel of its own |
//! | elements that are computed in vectors | none: those that fill no vector are computed in another way |
//! | sums over the last axes | those that begin where vectors begin: Eigen adds up to the first aligned element apart; over other axes none |
//! | all others | all |
//!
//! Where a size that the rule looks at may be another one in another run, a tile is exact if it is for all of them.

use std::ops::Range;

use remat_ir::{Graph, Op, OpId};
use remat_operators::{Split, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rules::{Site, operand_axis, reduced_axes, terms};

/// Whether tiles must have the bits of the whole in ONNX Runtime on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exactness {
    /// They must.
    Exact {
        /// With one thread, and with every number of them up to this one.
        threads: u32,
    },
    /// Sums may be added up in another order.
    Any,
}

/// Columns and rows of a block that MLAS starts with (`MLAS_SGEMM_STRIDEN`, `MLAS_SGEMM_STRIDEK`).
const STRIDE: u64 = 128;

/// The fewest columns of a block.
const LEAST_COLUMNS: u64 = 16;

/// Threads divide columns at multiples of this number (`MLAS_SGEMM_STRIDEN_THREAD_ALIGN`).
const THREAD_COLUMNS: u64 = 16;

/// Channels in a block of ONNX Runtime's blocked layout, the least of all machines.
const CHANNEL_BLOCK: u64 = 8;

/// Elements of the widest vector.
const VECTOR: u64 = 16;

/// The length of the blocks in which MLAS sums over an inner dimension of `inner`, for `columns` columns; `None`: in one.
fn block(columns: u64, inner: u64) -> Option<u64> {
    let (mut wide, mut deep) = (STRIDE, STRIDE);
    if columns >= inner {
        while deep / 2 >= inner {
            deep /= 2;
        }
    } else {
        while wide > LEAST_COLUMNS && wide / 2 >= columns {
            deep *= 2;
            wide /= 2;
        }
    }
    (deep < inner).then_some(deep)
}

/// Whether all parts into which up to `threads` threads divide a whole and a tile of so many columns add up in one order.
fn same_blocks(whole: u64, tile: u64, inner: u64, threads: u32) -> bool {
    let all = [whole, tile];
    let parts = all
        .iter()
        .flat_map(|&columns| (1..=u64::from(threads.max(1))).flat_map(move |threads| parts(columns, threads)));
    let mut blocks = parts.map(|columns| block(columns, inner));
    let first = blocks.next();
    blocks.all(|other| Some(other) == first)
}

/// The sizes of the parts into which that many threads divide columns: the first ones, and the last one.
fn parts(columns: u64, threads: u64) -> impl Iterator<Item = u64> {
    let each = match threads {
        1 => columns,
        _ => columns.div_ceil(threads).next_multiple_of(THREAD_COLUMNS),
    };
    let each = each.clamp(1, columns.max(1));
    let last = columns % each;
    [each, last].into_iter().filter(|&columns| columns > 0)
}

/// The multiples at which an axis of a result of `rank` axes and `extent` rows may be cut without another layout of its blocks: channels of
/// images.
pub(crate) fn grain(exactness: Exactness, rank: usize, axis: usize, extent: u64) -> u64 {
    let is_channels = axis == 1 && rank > 3;
    if is_channels && extent > CHANNEL_BLOCK && exactness != Exactness::Any {
        CHANNEL_BLOCK
    } else {
        1
    }
}

/// Whether these rows of the result of `op` have the bits that they have in the whole. Unknown shapes are not exact.
pub(crate) fn keeps_bits(graph: &Graph, op: OpId, axis: usize, rows: &Range<u64>, exactness: Exactness) -> bool {
    let Exactness::Exact { threads } = exactness else {
        return true;
    };
    let op = &graph.ops[op];
    let Ok(site) = Site::new(graph, op, axis, rows.clone()) else {
        return false;
    };
    if site.length() == site.extent() {
        return true;
    }
    match operator(&op.domain, &op.op_type).split {
        Split::ElementwiseInVectors => false,
        Split::Sum => sum(&site).unwrap_or(false),
        Split::Conv => conv(&site, threads).unwrap_or(false),
        Split::ConvTranspose => axis == 0 || site.length() > 1,
        // Which axes become rows and which columns of a product is found in the run.
        Split::Einsum => {
            let is_free = (0..op.inputs.len()).any(|place| site.ty(place).has_free_dims());
            site.length() > 1 && !is_free && terms(&site).is_ok_and(|terms| terms <= STRIDE)
        }
        Split::GroupNorm => axis == 0,
        Split::MatMul | Split::Gemm => product(&site, op, threads).unwrap_or(false),
        _ => true,
    }
}

fn conv(site: &Site<'_>, threads: u32) -> Option<bool> {
    let weights = site.dims(1).ok()?;
    let inner: u64 = weights.get(1..)?.iter().product();
    let is_depthwise = *weights.get(1)? == 1 && site.int("group", 1) > 1;
    let pixels: u64 = site.out[2..].iter().product();
    // However many pixels there are, sums that are no longer than a block are added up in one order.
    let same_blocks = |whole, tile| match site.has_free(2..site.out.len()) {
        true => inner <= STRIDE,
        false => same_blocks(whole, tile, inner, threads),
    };
    // Threads divide images, channels or pixels, by what there is more of.
    let is_divided_alike = is_depthwise || same_blocks(pixels, pixels);
    if site.axis == 0 {
        return Some(is_divided_alike);
    }
    let whole_channels = |row: u64| row.is_multiple_of(CHANNEL_BLOCK) || row == site.extent();
    if site.length() < 2 {
        return Some(false);
    }
    if site.axis == 1 {
        let few = site.extent() <= CHANNEL_BLOCK;
        let is_aligned = few || (whole_channels(site.rows.start) && whole_channels(site.rows.end));
        return Some(is_divided_alike && is_aligned);
    }
    let tile = pixels / site.extent() * site.length();
    Some(is_depthwise || same_blocks(pixels, tile))
}

/// Every row is summed by itself where the reduced axes are the last ones; its order depends on where in memory it begins.
fn sum(site: &Site<'_>) -> Option<bool> {
    let dims = site.dims(0).ok()?;
    let reduced = reduced_axes(site).ok()?;
    let first = *reduced.iter().min()?;
    let axis = operand_axis(site, &reduced, dims.len())?;
    let is_last = reduced.len() == dims.len() - first && axis < first;
    if !is_last {
        return Some(false);
    }
    let ty = site.ty(0);
    if (0..axis).any(|axis| ty.is_free(axis)) {
        return Some(false);
    }
    let outer: u64 = dims[..axis].iter().product();
    // A free axis has one row at least.
    let least = |axes: Range<usize>| -> u64 { axes.filter(|&axis| !ty.is_free(axis)).map(|axis| dims[axis]).product() };
    let inner = least(axis + 1..dims.len());
    let rows = site.length() * least(axis + 1..first);
    let begins_aligned = (site.rows.start * inner).is_multiple_of(VECTOR);
    Some(outer == 1 && rows > 1 && begins_aligned)
}

fn product(site: &Site<'_>, op: &Op, threads: u32) -> Option<bool> {
    let rank = site.out.len();
    let left = site.dims(0).ok()?;
    let transposed = op.attributes.contains_key("transA") && site.int("transA", 0) != 0;
    let summed = left.len().checked_sub(if transposed { 2 } else { 1 })?;
    let inner = *left.get(summed)?;
    let is_free = |back: usize| rank >= back && site.has_free(rank - back..rank - back + 1);
    // However many columns there are, sums that are no longer than a block are added up in one order; how long others are must be known.
    if site.ty(0).is_free(summed) {
        return Some(false);
    }
    let same_blocks = |whole, tile| match is_free(1) {
        true => inner <= STRIDE,
        false => same_blocks(whole, tile, inner, threads),
    };
    if site.axis + 1 == rank {
        return Some(site.length() > 1 && same_blocks(site.extent(), site.length()));
    }
    // Threads divide columns where there are more of them than rows, else rows.
    let columns = site.out[rank - 1];
    let has_rows = |rows: u64| columns <= rows && !is_free(1) && !is_free(2);
    let is_divided_alike = |rows: u64| has_rows(rows) || same_blocks(columns, columns);
    if site.axis + 2 == rank {
        return Some(site.length() > 1 && is_divided_alike(site.length()));
    }
    // A product with one matrix on the right has the rows of all batches as its rows.
    let rows = site.length() * if is_free(2) { 1 } else { site.out[rank - 2] };
    Some(rows > 1 && is_divided_alike(site.out[rank - 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_library() {
        // As wide as deep: one block up to 128, then blocks of 128.
        assert_eq!(block(128, 128), None);
        assert_eq!(block(300, 200), Some(128));
        // Short sums get wider blocks, narrow results get deeper ones.
        assert_eq!(block(4096, 30), None);
        assert_eq!(block(49, 300), Some(256));
        assert_eq!(block(16, 1000), None);
        assert_eq!(block(16, 2000), Some(1024));
    }

    #[test]
    fn tiles_of_deep_layers_are_not_exact_and_those_of_wide_ones_are() {
        // 16x16 pixels, 3x3 of 256 channels, in two: 128 columns are as 256; in four: 64 columns get deeper blocks.
        assert!(same_blocks(256, 128, 2304, 1));
        assert!(!same_blocks(256, 64, 2304, 1));
        assert!(same_blocks(112 * 112, 14 * 112, 576, 2));
        // With four threads the last of them has 56 of 392 columns, too few for blocks of 128.
        assert!(same_blocks(56 * 56, 7 * 56, 1152, 3));
        assert!(!same_blocks(56 * 56, 7 * 56, 1152, 4));
        assert!(!same_blocks(256, 128, 2304, 2));
        assert!(same_blocks(256, 16, 128, 4));
    }
}
