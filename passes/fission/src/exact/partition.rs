//! How ONNX Runtime's matrix products (MLAS) divide their work, since that decides in which order a number is summed.
//!
//! A product of `rows x inner` by `inner x columns` is divided among threads along one axis, and each part sums over `inner` in blocks whose
//! length follows from the columns of that part. Read in `onnxruntime/core/mlas/lib/{sgemm,convolve}.cpp` and held against the runtime (1.31)
//! with 1 to 64 threads:
//!
//! | what | rule |
//! |---|---|
//! | parts of a product | as many as threads, but no more than [`MULTIPLIES_PER_PART`] allow; of columns in groups of 16 where there are more columns than rows, else of rows; sizes differ by one group |
//! | parts of a convolution of one image and one group | the same of pixels, at most 16, all but the last of the same size |
//! | more images or groups | not divided: a thread computes whole ones |
//! | a lone row | is summed in one go by a kernel of its own |
//! | a lone column | rows are summed by fours, those that are left over by themselves |
//! | weights that are packed when the model is loaded | blocks of 256, whatever the columns |
//! | the left matrix is transposed | few columns do not lengthen the blocks |

use std::ops::Range;

/// Columns and rows of a block that MLAS starts with (`MLAS_SGEMM_STRIDEN`, `MLAS_SGEMM_STRIDEK`).
pub(super) const STRIDE: u64 = 128;

/// The fewest columns of a block.
const LEAST_COLUMNS: u64 = 16;

/// The length of blocks of packed matrices (`MLAS_SGEMM_PACKED_STRIDEK`).
const PACKED_STRIDE: u64 = 256;

/// Columns are divided at multiples of this number (`MLAS_SGEMM_STRIDEN_THREAD_ALIGN`).
const COLUMN_GROUP: u64 = 16;

/// Multiplies for which another thread takes part (`MLAS_SGEMM_THREAD_COMPLEXITY`).
const MULTIPLIES_PER_PART: u64 = 64 * 1024;

/// Parts of one convolution (`MLAS_MAXIMUM_THREAD_COUNT`).
const MOST_SEGMENTS: u64 = 16;

/// Products of one size that an op computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Product {
    /// How many: heads and images.
    pub(super) stack: u64,
    /// Rows of the left matrix and of the result: of a convolution its filters.
    pub(super) rows: u64,
    /// Columns of the result: of a convolution its pixels.
    pub(super) columns: u64,
    /// Terms of each sum.
    pub(super) inner: u64,
    pub(super) way: GemmForm,
}

/// How a product is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GemmForm {
    /// By one thread.
    Undivided,
    /// Rows or columns are divided among threads.
    Divided,
    /// The same; the left matrix is transposed.
    Transposed,
    /// The same; the right matrix was packed before.
    Packed,
    /// Pixels of a convolution, whose windows are laid out block by block, by one thread.
    Window,
    /// The same, in segments among threads.
    Segments,
}

/// Which part of a whole product a tile computes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Whole products, fewer of them.
    Stack,
    /// Rows next to each other.
    Rows(Range<u64>),
    /// Rows here and there.
    SomeRows,
    /// Columns next to each other.
    Columns(Range<u64>),
    /// Columns here and there.
    SomeColumns,
}

/// How one number is summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sum {
    /// In a row by itself.
    LoneRow,
    /// In a column by itself: the rows of the product and its parts decide which rows are left over.
    LoneColumn { rows: u64, parts: u64 },
    /// In blocks of so many terms; `None`: in one.
    Blocks { is_lone_row: bool, length: Option<u64> },
}

/// How all numbers of a product are summed: fused chains of columns or of rows, each up to the given one.
#[derive(PartialEq, Eq, Debug)]
struct Division {
    is_of_columns: bool,
    fused_chains: Vec<(u64, Sum)>,
}

/// Whether a tile, which computes `part` of `whole` as `tile`, sums every number as the whole does, with every number of threads up to this one. On
/// processors with two kinds of cores the runtime makes four parts for each thread (`TaskGranularityFactor`): there each counts as four.
pub(super) fn same_sums(whole: &Product, tile: &Product, part: &Part, threads: u32) -> bool {
    if whole == tile && *part == Part::Stack {
        return true;
    }
    let threads = u64::from(threads.max(1));
    let mut last = None;
    (1..=threads).all(|threads| {
        let parts = (whole.parts(threads), tile.parts(threads));
        let is_known = last.replace(parts) == Some(parts);
        is_known || agree(whole, tile, part, threads)
    })
}

/// The same with this number of threads.
fn agree(whole: &Product, tile: &Product, part: &Part, threads: u64) -> bool {
    let division = |product: &Product| product.division(product.parts(threads));
    division(whole).agrees(&division(tile), part)
}

/// The length of the blocks of a sum over `inner` terms for so many columns; `None`: in one.
fn block(columns: u64, inner: u64, is_transposed: bool) -> Option<u64> {
    let (mut wide, mut deep) = (STRIDE, STRIDE);
    if columns >= inner {
        while deep / 2 >= inner {
            deep /= 2;
        }
    } else if !is_transposed {
        while wide > LEAST_COLUMNS && wide / 2 >= columns {
            deep *= 2;
            wide /= 2;
        }
    }
    (deep < inner).then_some(deep)
}

impl Product {
    /// Into how many parts so many threads divide it.
    fn parts(&self, threads: u64) -> u64 {
        let multiplies = self.rows.saturating_mul(self.columns).saturating_mul(self.inner);
        let wanted = (multiplies / MULTIPLIES_PER_PART + 1).min(threads);
        match self.way {
            GemmForm::Undivided | GemmForm::Window => 1,
            GemmForm::Segments => wanted.min(MOST_SEGMENTS),
            GemmForm::Divided | GemmForm::Transposed | GemmForm::Packed => {
                let of_each = wanted.div_ceil(self.stack.max(1));
                of_each.min(self.groups()).max(1)
            }
        }
    }

    fn divides_columns(&self) -> bool {
        matches!(self.way, GemmForm::Window | GemmForm::Segments) || self.columns > self.rows
    }

    /// What is divided: groups of columns, or rows.
    fn groups(&self) -> u64 {
        if self.divides_columns() {
            self.columns.div_ceil(COLUMN_GROUP)
        } else {
            self.rows
        }
    }

    /// How a part is summed that has so many rows and columns.
    fn sum(&self, rows: u64, columns: u64, parts: u64) -> Sum {
        match self.way {
            GemmForm::Window | GemmForm::Segments => Sum::Blocks {
                is_lone_row: rows == 1,
                length: block(columns, self.inner, false),
            },
            GemmForm::Packed => Sum::Blocks {
                is_lone_row: false,
                length: (self.inner > PACKED_STRIDE).then_some(PACKED_STRIDE),
            },
            _ if self.columns == 1 => Sum::LoneColumn { rows: self.rows, parts },
            GemmForm::Undivided | GemmForm::Divided if rows == 1 => Sum::LoneRow,
            _ => Sum::Blocks {
                is_lone_row: false,
                length: block(columns, self.inner, self.way == GemmForm::Transposed),
            },
        }
    }

    /// How it is summed in so many parts.
    fn division(&self, parts: u64) -> Division {
        let is_of_columns = self.divides_columns();
        let extent = if is_of_columns { self.columns } else { self.rows };
        let mut division = Division {
            is_of_columns,
            fused_chains: Vec::with_capacity(3),
        };
        // Parts of one size, up to which row or column they reach.
        let mut take = |end: u64, size: u64| {
            let begin = division.fused_chains.last().map_or(0, |&(end, _)| end);
            if size == 0 || end <= begin {
                return;
            }
            let sum = if is_of_columns {
                self.sum(self.rows, size, parts)
            } else {
                self.sum(size, self.columns, parts)
            };
            match division.fused_chains.last_mut() {
                Some((last, of)) if *of == sum => *last = end,
                _ => division.fused_chains.push((end, sum)),
            }
        };
        if matches!(self.way, GemmForm::Window | GemmForm::Segments) {
            let each = match parts {
                1 => extent,
                _ => extent.div_ceil(parts).next_multiple_of(COLUMN_GROUP).min(extent),
            };
            let last = extent % each.max(1);
            take(extent - last, each);
            take(extent, last);
            return division;
        }
        let group = if is_of_columns { COLUMN_GROUP } else { 1 };
        let (each, more) = (self.groups() / parts, self.groups() % parts);
        let begin_of_last = (self.groups() - each) * group;
        take((each + 1) * group * more, (each + 1) * group);
        take(begin_of_last, each * group);
        take(extent, extent - begin_of_last);
        division
    }
}

impl Division {
    /// The fused chains of a range, counted from its begin.
    fn within(&self, range: &Range<u64>) -> Vec<(u64, Sum)> {
        let ends = self.fused_chains.iter().filter(|(end, _)| *end > range.start);
        let mut within: Vec<(u64, Sum)> = Vec::with_capacity(self.fused_chains.len());
        for &(end, sum) in ends {
            within.push((end.min(range.end) - range.start, sum));
            if end >= range.end {
                break;
            }
        }
        within
    }

    /// Whether a tile that is divided as `tile` sums the numbers of this part as this whole does.
    fn agrees(&self, tile: &Self, part: &Part) -> bool {
        let (within, is_here_and_there) = match part {
            Part::Rows(range) if !self.is_of_columns => (self.within(range), false),
            Part::Columns(range) if self.is_of_columns => (self.within(range), false),
            Part::SomeRows => (self.fused_chains.clone(), !self.is_of_columns),
            Part::SomeColumns => (self.fused_chains.clone(), self.is_of_columns),
            _ => (self.fused_chains.clone(), false),
        };
        if let ([(_, whole)], [(_, tile)]) = (&within[..], &tile.fused_chains[..]) {
            return whole == tile;
        }
        !is_here_and_there && self.is_of_columns == tile.is_of_columns && within == tile.fused_chains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(rows: u64, columns: u64, inner: u64, way: GemmForm) -> Product {
        Product {
            stack: 1,
            rows,
            columns,
            inner,
            way,
        }
    }

    /// Whether rows of an image of so many pixels in a row are summed alike with this number of threads.
    fn rows_agree(whole: &Product, rows: Range<u64>, width: u64, threads: u64) -> bool {
        let part = rows.start * width..rows.end * width;
        let tile = Product {
            columns: part.end - part.start,
            ..*whole
        };
        agree(whole, &tile, &Part::Columns(part), threads)
    }

    #[test]
    fn blocks_are_those_of_the_library() {
        let block = |columns, inner| block(columns, inner, false);
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
        let deep = product(64, 256, 2304, GemmForm::Segments);
        assert!(rows_agree(&deep, 0..8, 16, 1));
        assert!(!rows_agree(&deep, 0..4, 16, 1));
        assert!(!rows_agree(&deep, 0..8, 16, 2));
        // Of sums of up to 128 terms no thread makes blocks.
        assert!(rows_agree(&product(64, 256, 128, GemmForm::Segments), 0..1, 16, 64));
        let wide = product(64, 112 * 112, 576, GemmForm::Segments);
        assert!(rows_agree(&wide, 0..14, 112, 2));
    }

    #[test]
    fn the_last_segment_of_a_tile_must_not_be_short() {
        // 10 rows of 131 pixels: 13 of 14 threads compute 96 each, the last one 62, for which blocks are deeper.
        let whole = product(29, 157 * 131, 549, GemmForm::Segments);
        assert!(rows_agree(&whole, 0..10, 131, 8));
        assert!(!rows_agree(&whole, 0..10, 131, 14));
        // Threads beyond 16 change nothing of a convolution.
        assert!((1..=64).all(|threads| rows_agree(&whole, 0..39, 131, threads)));
    }

    #[test]
    fn rows_of_a_product_are_exact_where_rows_are_divided() {
        let whole = product(3136, 384, 192, GemmForm::Divided);
        let tile = |rows, threads, way| {
            let of = Product { rows, way, ..whole };
            agree(&Product { way, ..whole }, &of, &Part::Rows(0..rows), threads)
        };
        assert!(tile(784, 64, GemmForm::Divided));
        // Of 196 rows columns are divided: the last of five threads has 64, for which blocks are deeper.
        assert!(tile(196, 4, GemmForm::Divided));
        assert!(!tile(196, 5, GemmForm::Divided));
        // Packed weights have blocks of their own.
        assert!(tile(196, 64, GemmForm::Packed));
    }

    #[test]
    fn a_lone_row_of_a_thread_is_summed_by_itself() {
        // 64 threads have two rows of the whole or one each, and columns of the tile.
        let whole = product(100, 96, 700, GemmForm::Divided);
        let tile = Product {
            rows: 50,
            columns: 96,
            ..whole
        };
        assert!(!same_sums(&whole, &tile, &Part::Rows(0..50), 64));
        let column = product(64, 1, 100, GemmForm::Divided);
        let tile = Product { rows: 32, ..column };
        assert!(!same_sums(&column, &tile, &Part::Rows(0..32), 1));
    }

    #[test]
    fn divisions_cover_what_they_divide() {
        for (rows, columns) in [(1, 1), (1, 17), (5, 100), (100, 5), (33, 33), (7, 4096), (700, 33)] {
            for way in [
                GemmForm::Undivided,
                GemmForm::Divided,
                GemmForm::Packed,
                GemmForm::Window,
                GemmForm::Segments,
            ] {
                let product = product(rows, columns, 700, way);
                for threads in 1..=70 {
                    let division = product.division(product.parts(threads));
                    let extent = if division.is_of_columns { columns } else { rows };
                    let ends: Vec<u64> = division.fused_chains.iter().map(|&(end, _)| end).collect();
                    assert_eq!(ends.last(), Some(&extent), "{product:?} with {threads} threads");
                    assert!(ends.is_sorted());
                }
            }
        }
    }
}
