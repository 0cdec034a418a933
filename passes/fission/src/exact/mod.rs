//! Which tiles have the bits of the whole.
//!
//! ONNX Runtime's matrix products (MLAS) sum over the inner dimension `K` in blocks, and choose the length of a block by the number of columns
//! `N` that a thread computes: the pixels of a convolution, the last axis of a product. A tile whose columns give another block adds up in
//! another order; [`partition`] has the rule. It is held against random shapes of every family of operators at both levels of optimization, with
//! 1 to 64 threads, weights constant or fed: of the tiles that it allows, none has other bits.
//!
//! | family | exact tiles |
//! |---|---|
//! | convolutions, products | those of which every number is summed in the same blocks as in the whole, however many threads divide either |
//! | convolutions in blocks of channels | all: each number is summed by itself, point by point of the window and block by block |
//! | channels of images | multiples of 8, since blocked layouts have 8 or 16 channels in a block; of 16 where there are enough |
//! | all products | at least two rows, columns or channels: a single one has a kernel of its own |
//! | elements that are computed in vectors | none: those that fill no vector are computed in another way |
//! | sums over the last axes | those that begin where vectors begin: Eigen adds up to the first aligned element apart; over other axes none |
//! | all others | all |
//!
//! Where a size that the rule looks at may be another one in another run, a tile is exact if it is for all of them.

mod partition;

use std::ops::Range;

use remat_ir::{ElementType, Graph, Op, OpId};
use remat_operators::{Split, operator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forms::is_in_blocks;

use self::partition::{GemmForm, Part, Product, STRIDE, same_sums};
use crate::rules::{Need, Site, operand_axis, reduced_axes, split, terms};

/// Whether tiles must have the bits of the whole in ONNX Runtime on a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exactness {
    /// They must.
    Exact {
        /// With one thread, and with every number of them up to this one.
        threads: u32,
        /// Whether convolutions of known weights run in blocks of channels ([`Self::in_blocks`]).
        #[serde(default)]
        blocks: bool,
    },
    /// No sum is split: kernels that add up each number by itself keep all bits, those of ONNX Runtime may add up in another order.
    WholeSums,
    /// Sums may be split, and added up in another order.
    Close,
}

impl Exactness {
    /// The same where everything is optimized when a model is loaded: on x86-64 convolutions of known weights run in blocks of channels then.
    #[must_use]
    pub fn in_blocks(self) -> Self {
        match self {
            Self::Exact { threads, .. } => Self::Exact {
                threads,
                blocks: cfg!(target_arch = "x86_64"),
            },
            Self::WholeSums | Self::Close => self,
        }
    }

    /// Whether every bit stays in ONNX Runtime.
    #[must_use]
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact { .. })
    }

    /// Whether every bit stays, and convolutions of known weights run in blocks of channels.
    pub(crate) fn has_blocks(self) -> bool {
        matches!(self, Self::Exact { blocks: true, .. })
    }
}

/// Channels in a block of ONNX Runtime's blocked layout, the least of all machines.
const CHANNEL_BLOCK: u64 = 8;

/// The most of all machines.
const WIDEST_BLOCK: u64 = 16;

/// Elements of the widest vector.
const VECTOR: u64 = 16;

/// The multiples at which an axis of a result of `rank` axes and `extent` rows may be cut into `tiles` without another layout of its blocks: channels of
/// images. Where there are enough for tiles of blocks that are whole on every machine, tiles are made of these: what is in blocks stays in blocks when
/// tiles are joined.
pub(crate) fn grain(exactness: Exactness, rank: usize, axis: usize, extent: u64, tiles: u32) -> u64 {
    let is_channels = axis == 1 && rank > 3;
    let has_whole_blocks = extent.is_multiple_of(WIDEST_BLOCK) && extent / WIDEST_BLOCK >= u64::from(tiles);
    match exactness {
        Exactness::Exact { .. } | Exactness::Close if is_channels && has_whole_blocks => WIDEST_BLOCK,
        Exactness::Exact { .. } if is_channels && extent > CHANNEL_BLOCK => CHANNEL_BLOCK,
        Exactness::Exact { .. } | Exactness::WholeSums | Exactness::Close => 1,
    }
}

/// Whether these rows of the result of `op` have the bits that they have in the whole. Unknown shapes are not exact.
pub(crate) fn keeps_bits(graph: &Graph, op: OpId, axis: usize, rows: &Range<u64>, exactness: Exactness) -> bool {
    let Exactness::Exact { threads, blocks } = exactness else {
        return true;
    };
    let entry = &graph.ops[op];
    let Ok(site) = Site::new(graph, entry, axis, rows.clone()) else {
        return false;
    };
    if site.length() == site.extent() {
        return true;
    }
    match operator(&entry.domain, &entry.op_type).split {
        Split::ElementwiseInVectors => false,
        Split::Sum => sum(&site).unwrap_or(false),
        Split::Conv if blocks && is_in_blocks(graph, entry) => for_all_sizes(&site, conv_in_blocks),
        Split::Conv => for_all_sizes(&site, |site| conv(site, threads)),
        Split::ConvTranspose => for_all_sizes(&site, |site| conv_transpose(site, op, threads)),
        // Which axes become rows and which columns of a product is found in the run.
        Split::Einsum => site.length() > 1 && !site.has_free_dims() && terms(&site).is_ok_and(|terms| terms <= STRIDE),
        Split::GroupNorm => axis == 0,
        Split::MatMul | Split::Gemm => for_all_sizes(&site, |site| product(site, threads)),
        _ => true,
    }
}

/// Whether fewer threads would permit more tiles: an op that holds at least so many bytes in its operands and results may not be halved along an
/// axis, and might be if there were one thread.
#[must_use]
pub fn is_limited_by_threads(graph: &Graph, exactness: Exactness, bytes: u64) -> bool {
    let Exactness::Exact { threads: 2.., blocks } = exactness else {
        return false;
    };
    let one = Exactness::Exact { threads: 1, blocks };
    let holds = |op: &Op| {
        let sizes = op
            .reads()
            .chain(op.results())
            .filter_map(|tensor| graph.storages[graph.tensors[tensor].storage].bytes);
        sizes.fold(0, u64::saturating_add) >= bytes
    };
    let large = graph.ops.iter_enumerated().filter(|(_, op)| holds(op));
    let mut halves = large.flat_map(|(id, op)| {
        let first = op.results().next();
        let dims = first.and_then(|first| graph.tensors[first].ty.known_shape());
        let extents = dims.into_iter().flatten().enumerate();
        extents.map(move |(axis, extent)| (id, axis, 0..extent / 2))
    });
    halves.any(|(id, axis, rows)| {
        let keeps = |exactness| keeps_bits(graph, id, axis, &rows, exactness);
        !rows.is_empty() && keeps(one) && !keeps(exactness)
    })
}

/// Sizes that free dimensions are given beside those that are planned for: with each other as few rows or columns as there are, and with one
/// that is left over by groups of 16.
const FREE_SIZES: [u64; 9] = [1, 2, 3, 15, 16, 17, 33, 65, 129];

/// Whether a rule of products holds for every size of the free dimensions. Sums that are no longer than a block are added up in one order,
/// whatever the sizes, but where a row or a column is computed alone.
fn for_all_sizes(site: &Site<'_>, rule: impl Fn(&Site<'_>) -> Option<Comparison>) -> bool {
    let is_free = site.has_free_dims();
    let holds = |site: &Site<'_>| {
        rule(site).is_some_and(|comparison| comparison.same && (!is_free || comparison.inner <= STRIDE))
    };
    holds(site) && (!is_free || FREE_SIZES.iter().all(|&size| holds(&site.with_free(size))))
}

/// What a rule says of a tile of a product.
struct Comparison {
    /// Whether every number is summed as in the whole.
    same: bool,
    /// Terms of each sum.
    inner: u64,
}

impl Comparison {
    /// Nothing is summed in the same way.
    const OTHER: Self = Self { same: false, inner: 0 };

    fn of(whole: &Product, tile: &Product, part: &Part, threads: u32) -> Self {
        Self {
            same: same_sums(whole, tile, part, threads),
            inner: whole.inner,
        }
    }
}

/// A convolution whose image gives so many pixels, with so many filters for each group.
fn convolution(site: &Site<'_>, weights: &[u64], images: u64, groups: u64, (filters, pixels): (u64, u64)) -> Product {
    let is_one = |name: &'static str| {
        site.extents(name, weights.len() - 2, 1)
            .is_ok_and(|all| all.iter().all(|&one| one == 1))
    };
    let is_pointwise = weights[2..].iter().all(|&points| points == 1) && is_one("strides");
    let is_several = images.saturating_mul(groups) > 1;
    let way = match (is_pointwise, filters > pixels, is_several) {
        (true, _, true) => GemmForm::Undivided,
        (true, _, false) | (false, true, _) => GemmForm::Divided,
        (false, false, true) => GemmForm::Window,
        (false, false, false) => GemmForm::Segments,
    };
    Product {
        stack: 1,
        rows: filters,
        columns: pixels,
        inner: weights[1..].iter().product(),
        way,
    }
}

/// Whether a tile of channels has whole blocks of them, or there are too few for one.
fn has_whole_channels(site: &Site<'_>) -> bool {
    let is_whole = |row: u64| row.is_multiple_of(CHANNEL_BLOCK) || row == site.extent();
    site.extent() <= CHANNEL_BLOCK || is_whole(site.rows.start) && is_whole(site.rows.end)
}

/// In blocks of channels the kernels compute each point of an image by itself, in the same order wherever it is.
fn conv_in_blocks(site: &Site<'_>) -> Option<Comparison> {
    let same = site.axis != 1 || has_whole_channels(site);
    Some(Comparison { same, inner: 0 })
}

fn conv(site: &Site<'_>, threads: u32) -> Option<Comparison> {
    let weights = site.dims(1).ok()?;
    let groups = u64::try_from(site.int("group", 1)).ok()?;
    let filters = weights.first()?.checked_div(groups)?;
    let (images, pixels) = (*site.out.first()?, site.out.get(2..)?.iter().product());
    // A pointwise convolution of a padded image, and a window as large as the image, are computed in other ways.
    let is_padded = site.ints("pads").is_some_and(|pads| pads.iter().any(|&pad| pad != 0));
    let is_long = weights.get(1..)?.iter().product::<u64>() > STRIDE;
    if is_long && (weights[1] == 1 || (is_padded && weights[2..].iter().all(|&points| points == 1))) {
        return Some(Comparison::OTHER);
    }
    let product = |images, groups, of| convolution(site, &weights, images, groups, of);
    let whole = product(images, groups, (filters, pixels));
    let (tile, part) = match site.axis {
        0 => (product(site.length(), groups, (filters, pixels)), Part::Stack),
        1 => {
            if site.length() < 2 || !has_whole_channels(site) {
                return Some(Comparison::OTHER);
            }
            if groups == 1 {
                (
                    product(images, 1, (site.length(), pixels)),
                    Part::Rows(site.rows.clone()),
                )
            } else {
                (
                    product(images, site.length() / filters.max(1), (filters, pixels)),
                    Part::Stack,
                )
            }
        }
        axis => {
            if site.length() < 2 {
                return Some(Comparison::OTHER);
            }
            let each: u64 = site.out[axis + 1..].iter().product();
            let part = if site.out[2..axis].iter().all(|&outer| outer == 1) {
                Part::Columns(site.rows.start * each..site.rows.end * each)
            } else {
                Part::SomeColumns
            };
            let tile = pixels / site.extent() * site.length();
            (product(images, groups, (filters, tile)), part)
        }
    };
    Some(Comparison::of(&whole, &tile, &part, threads))
}

/// Its product has the pixels of the image as columns, and for each point of the window a row of each channel of the result. Weights that are
/// constant are transposed when the model is loaded.
fn conv_transpose(site: &Site<'_>, op: OpId, threads: u32) -> Option<Comparison> {
    if site.axis == 0 {
        // Images are computed one by one.
        return Some(Comparison { same: true, inner: 0 });
    }
    if site.length() < 2 {
        return Some(Comparison::OTHER);
    }
    let (image, weights) = (site.dims(0).ok()?, site.dims(1).ok()?);
    let groups = u64::try_from(site.int("group", 1)).ok()?;
    let points: u64 = weights.get(2..)?.iter().product();
    let whole = Product {
        stack: 1,
        rows: weights[1] * points,
        columns: image.get(2..)?.iter().product(),
        inner: weights[0].checked_div(groups)?,
        way: if site.is_constant(1) {
            GemmForm::Divided
        } else {
            GemmForm::Transposed
        },
    };
    let mut tile = whole;
    let part = if site.axis == 1 {
        tile.rows = site.length() * points;
        Part::Rows(site.rows.start * points..site.rows.end * points)
    } else {
        let cut = split(site.graph, op, site.axis, site.rows.clone()).ok()?;
        let Some(Need::Rows { rows, .. }) = cut.needs.into_iter().next() else {
            return Some(Comparison::OTHER);
        };
        let each: u64 = image[site.axis + 1..].iter().product();
        tile.columns = whole.columns / image[site.axis].max(1) * (rows.end - rows.start);
        if image[2..site.axis].iter().all(|&outer| outer == 1) {
            Part::Columns(rows.start * each..rows.end * each)
        } else {
            Part::SomeColumns
        }
    };
    Some(Comparison::of(&whole, &tile, &part, threads))
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

fn product(site: &Site<'_>, threads: u32) -> Option<Comparison> {
    let element = site.element(0)?;
    let rank = site.out.len();
    let (left, right) = (site.dims(0).ok()?, site.dims(1).ok()?);
    let is_transposed = site.int("transA", 0) != 0;
    let summed = left.len().checked_sub(if is_transposed { 2 } else { 1 })?;
    if site.ty(0).is_free(summed) {
        return Some(Comparison::OTHER);
    }
    let inner = *left.get(summed)?;
    let (rows, columns) = (site.out[rank.checked_sub(2)?], site.out[rank - 1]);
    let stack: u64 = site.out[..rank - 2].iter().product();
    // With one matrix on the right the rows of all on the left are those of one product.
    let is_one = !is_transposed && right.iter().product::<u64>() == inner.checked_mul(columns)?;
    let is_packed = right.len() == 2 && site.is_constant(1) && element == ElementType::Float32;
    let way = match (is_packed, is_transposed) {
        (true, _) => GemmForm::Packed,
        (false, true) => GemmForm::Transposed,
        (false, false) => GemmForm::Divided,
    };
    let whole = Product {
        stack: if is_one { 1 } else { stack },
        rows: if is_one { stack.checked_mul(rows)? } else { rows },
        columns,
        inner,
        way,
    };
    let (mut tile, range) = (whole, site.rows.clone());
    let part = if site.axis + 1 == rank {
        tile.columns = site.length();
        Part::Columns(range)
    } else if site.axis + 2 < rank && !is_one {
        tile.stack = stack / site.extent() * site.length();
        Part::Stack
    } else {
        tile.rows = whole.rows / site.extent() * site.length();
        let each = if is_one {
            site.out[site.axis + 1..rank - 1].iter().product()
        } else {
            1
        };
        if !is_one || site.out[..site.axis].iter().all(|&outer| outer == 1) {
            Part::Rows(range.start * each..range.end * each)
        } else {
            Part::SomeRows
        }
    };
    let is_single = tile.rows < 2 && whole.rows > 1 || tile.columns < 2 && whole.columns > 1;
    // In double precision blocks have other sizes.
    let is_known = element != ElementType::Float64 || inner <= STRIDE;
    if is_single || !is_known {
        return Some(Comparison::OTHER);
    }
    Some(Comparison::of(&whole, &tile, &part, threads))
}
