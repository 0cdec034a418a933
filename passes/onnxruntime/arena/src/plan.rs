//! Plans as text. Every malformed line is refused with its number.
//!
//! ```text
//! remat-arena 2
//! model blake3:0f3a..          the file that the plans are for
//! runtime 1.31.1               ONNX Runtime in which they were recorded
//! level all                    its graph optimization level
//! pages                        it moves results to a second memory ([`paging`](crate::paging)), so that sessions need the operators
//! dim 1 64 batch               d0: smallest and largest size of an open dimension, and its name
//! let floor d0+1 2             d1: (d0 + 1) / 2, rounded down; `max` and `min` of two formulas likewise
//! weights weights.data         the file of the weights, where runs read them from one; no other line of this kind
//! use 0 16777216               of every weight that a run reads offset and bytes ([`uses`](crate::uses))
//! plan buffers 3 orders 1 first 0
//! input d0,3,32,32 x           of every input the shape, `-` for a scalar, and the name
//! 1024*d0 0 3 0                of every buffer size, first and last time, rank
//! <=256*d1 1 4 heap            at most so large; one that stays outside of the block
//! 512 2 5 1 output             one that the caller of the run gets
//! ```
//!
//! Any number of plans may follow each other. Sizes are bytes. Buffers stand in the order in which they are allocated. Times count
//! the allocations and frees of a run; a buffer is live from its first time to just before its last one. The ranks, one for each order with
//! commas between them, say in which order buffers get their offsets ([`placement`](crate::placement)). The `first` buffers get theirs
//! before all others: those that a run allocates before its sizes have told the open dimensions.

use std::fmt;

use crate::formula::{Derived, Formula, MOST_VARIABLES, OpenDim};
use crate::lines::{Lines, MOST_BYTES, PlanFileError};
use crate::uses::PlannedWeights;

/// Every offset is a multiple of this: what the kernels of the runtime expect of an allocation.
pub const ALIGNMENT: u64 = 64;

/// The same in the memory of a CUDA device: that of `cudaMalloc`.
pub const CUDA_ALIGNMENT: u64 = 256;

/// The largest file: about half a million buffers. A larger one is neither written nor read.
pub const MOST_FILE_BYTES: u64 = 16 << 20;

/// The name of the open dimension that is the number of threads within a node: that of the runtime's option.
pub const THREADS: &str = "intra_op_num_threads";

/// How plans of runs, and of loading, begin.
const PLAN: &str = "plan";
const LOAD: &str = "load";
/// Where the requests of a plan for the CUDA provider are from.
const RECORDED: &str = "recorded";
const PREDICTED: &str = "predicted";

/// What a file begins with.
const HEADER: &str = "remat-arena 2";
/// Most orders of a plan.
const MOST_ORDERS: u64 = 16;
/// Most open dimensions.
const MOST_DIMS: usize = 16;

/// Plans for one model; without any by default.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ArenaPlanFile {
    /// Hash of the model file, as `ALGORITHM:HEX`.
    pub model: String,
    /// Version of the runtime.
    pub runtime: String,
    /// Its graph optimization level.
    pub level: String,
    /// Whether the model moves results to a second memory.
    pub is_paged: bool,
    /// What is said of the CUDA provider, for whose memory the plans are then; those without it are for that of the processor.
    pub cuda: Option<CudaPlan>,
    /// The open dimensions: the first variables of all formulas.
    pub dims: Vec<OpenDim>,
    /// The variables that follow from these.
    pub derived: Vec<Derived>,
    /// The weights that every run reads from a file, where that is known.
    pub weights: Option<PlannedWeights>,
    /// At least one.
    pub plans: Vec<ArenaPlan>,
}

/// What plans for the CUDA provider have besides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CudaPlan {
    /// Whether the requests were recorded on a device; else they are predicted.
    pub is_recorded: bool,
    /// What a session requests while it loads, its weights above all: those that stay are its outputs. Sizes are constants.
    pub load: Option<ArenaPlan>,
}

/// The buffers of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ArenaPlan {
    /// Name and shape of every input.
    pub inputs: Vec<(String, Vec<Formula>)>,
    /// How many orders there are, in which buffers can get their offsets.
    pub orders: usize,
    /// How many buffers get their offsets before all others, in the order of their allocation.
    pub first: usize,
    /// The buffers in the order of their allocation, at least one.
    pub buffers: Vec<PlannedBuffer>,
}

/// A buffer of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBuffer {
    /// Its size as the runtime asks for it.
    pub size: Formula,
    /// Whether the runtime asks for exactly that; else at most for that.
    pub is_exact: bool,
    /// When it is allocated.
    pub first: u64,
    /// When it is freed, after `first`; for an output the end of the run.
    pub last: u64,
    /// Its place in each order; none if it stays outside of the block.
    pub ranks: Option<Vec<u32>>,
    /// Whether it is still live when the run ends.
    pub is_output: bool,
}

impl fmt::Display for ArenaPlanFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(f, "model {}", self.model)?;
        writeln!(f, "runtime {}", self.runtime)?;
        writeln!(f, "level {}", self.level)?;
        if self.is_paged {
            writeln!(f, "pages")?;
        }
        if let Some(cuda) = &self.cuda {
            writeln!(f, "cuda {}", if cuda.is_recorded { RECORDED } else { PREDICTED })?;
            cuda.load.iter().try_for_each(|load| load.write(f, LOAD))?;
        }
        for OpenDim { name, least, most } in &self.dims {
            writeln!(f, "dim {least} {most} {}", printable(name))?;
        }
        for derived in &self.derived {
            match derived {
                Derived::Quotient(of, by) => writeln!(f, "let floor {of} {by}")?,
                Derived::Max(one, other) => writeln!(f, "let max {one} {other}")?,
                Derived::Min(one, other) => writeln!(f, "let min {one} {other}")?,
            }
        }
        self.weights.iter().try_for_each(|weights| weights.fmt(f))?;
        self.plans.iter().try_for_each(|plan| plan.fmt(f))
    }
}

/// A name that does not end its line.
fn printable(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

impl fmt::Display for ArenaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, PLAN)
    }
}

impl ArenaPlan {
    fn write(&self, f: &mut fmt::Formatter<'_>, kind: &str) -> fmt::Result {
        let (buffers, orders, first) = (self.buffers.len(), self.orders, self.first);
        writeln!(f, "{kind} buffers {buffers} orders {orders} first {first}")?;
        for (name, shape) in &self.inputs {
            let shape = if shape.is_empty() {
                "-".to_owned()
            } else {
                joined(shape)
            };
            writeln!(f, "input {shape} {}", printable(name))?;
        }
        for buffer in &self.buffers {
            f.write_str(if buffer.is_exact { "" } else { "<=" })?;
            write!(f, "{} {} {} ", buffer.size, buffer.first, buffer.last)?;
            f.write_str(
                &buffer
                    .ranks
                    .as_ref()
                    .map_or_else(|| "heap".to_owned(), |ranks| joined(ranks)),
            )?;
            f.write_str(if buffer.is_output { " output\n" } else { "\n" })?;
        }
        Ok(())
    }
}

fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl ArenaPlanFile {
    /// Every offset is a multiple of this.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        if self.cuda.is_some() { CUDA_ALIGNMENT } else { ALIGNMENT }
    }

    /// The file with what a session requests while it loads in the place of runs; `None` where it says nothing of that.
    #[must_use]
    pub fn of_load(&self) -> Option<Self> {
        let load = self.cuda.as_ref()?.load.clone()?;
        Some(Self {
            dims: Vec::new(),
            derived: Vec::new(),
            weights: None,
            plans: vec![load],
            ..self.clone()
        })
    }

    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`PlanFileError`] with the first line that is not as it should be.
    pub fn parse(text: &str) -> Result<Self, PlanFileError> {
        let mut lines = Lines::of(text);
        if lines.next()? != HEADER {
            return Err(lines.wrong(&format!("expected `{HEADER}`")));
        }
        let [model, runtime, level] = ["model", "runtime", "level"].map(|key| lines.field(key));
        let (model, runtime, level) = (model?, runtime?, level?);
        let is_paged = match lines.after("pages") {
            None => false,
            Some("") => true,
            Some(_) => return Err(lines.wrong("expected `pages`")),
        };
        let cuda = match lines.after("cuda ") {
            None => None,
            Some(requests @ (RECORDED | PREDICTED)) => Some(CudaPlan {
                is_recorded: requests == RECORDED,
                load: match lines.is_next("load ") {
                    true => Some(ArenaPlan::parse(&mut lines, text.len(), LOAD)?),
                    false => None,
                },
            }),
            Some(_) => return Err(lines.wrong("expected `cuda recorded` or `cuda predicted`")),
        };
        let mut dims = Vec::new();
        while let Some(dim) = lines.after("dim ") {
            dims.push(lines.dim(dim)?);
            lines.variables += 1;
            if dims.len() > MOST_DIMS {
                return Err(lines.wrong(&format!("more than {MOST_DIMS} open dimensions")));
            }
        }
        let mut derived = Vec::new();
        while let Some(one) = lines.after("let ") {
            derived.push(lines.derived(one)?);
            lines.variables += 1;
            if lines.variables > MOST_VARIABLES {
                return Err(lines.wrong(&format!("more than {MOST_VARIABLES} variables")));
            }
        }
        let weights = PlannedWeights::parse(&mut lines)?;
        let mut plans = vec![ArenaPlan::parse(&mut lines, text.len(), PLAN)?];
        while !lines.is_at_end() {
            plans.push(ArenaPlan::parse(&mut lines, text.len(), PLAN)?);
        }
        Ok(Self {
            model,
            runtime,
            level,
            is_paged,
            cuda,
            dims,
            derived,
            weights,
            plans,
        })
    }
}

impl ArenaPlan {
    fn parse(lines: &mut Lines<'_>, most: usize, kind: &str) -> Result<Self, PlanFileError> {
        let head: Vec<&str> = lines.next()?.split(' ').collect();
        let (count, orders, first) = match head[..] {
            [found, "buffers", count, "orders", orders, "first", first] if found == kind => (count, orders, first),
            _ => return Err(lines.wrong(&format!("expected `{kind} buffers N orders N first N`"))),
        };
        // A line has more than one byte.
        let count = lines.number(count, "buffers", most as u64)?;
        if count == 0 {
            return Err(lines.wrong("a plan without buffers"));
        }
        let orders = lines.number(orders, "orders", MOST_ORDERS)?;
        let first = lines.number(first, "first", count)?;
        let mut inputs = Vec::new();
        while let Some(input) = lines.after("input ") {
            inputs.push(lines.input(input)?);
        }
        let mut buffers: Vec<PlannedBuffer> = Vec::new();
        for _ in 0..count {
            let line = lines.next()?;
            let buffer = PlannedBuffer::parse(lines, line, orders)?;
            if buffers.last().is_some_and(|before| before.first >= buffer.first) {
                return Err(lines.wrong("its first time is not after that of the buffer before"));
            }
            buffers.push(buffer);
        }
        let [orders, first] = [orders, first].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok(Self {
            inputs,
            orders,
            first,
            buffers,
        })
    }
}

impl PlannedBuffer {
    fn parse(lines: &Lines<'_>, line: &str, orders: u64) -> Result<Self, PlanFileError> {
        let fields: Vec<&str> = line.split(' ').collect();
        let (size, first, last, ranks, is_output) = match fields[..] {
            [size, first, last, ranks] => (size, first, last, ranks, false),
            [size, first, last, ranks, "output"] => (size, first, last, ranks, true),
            _ => return Err(lines.wrong("expected `SIZE FIRST LAST RANK` and perhaps `output`")),
        };
        let (size, is_exact) = size.strip_prefix("<=").map_or((size, true), |size| (size, false));
        let size = lines.formula(size)?;
        if size
            .as_constant()
            .is_some_and(|bytes| !(1..=MOST_BYTES.cast_signed()).contains(&bytes))
        {
            return Err(lines.wrong(&format!("a buffer of {size} bytes")));
        }
        let first = lines.number(first, "first time", u64::MAX)?;
        let last = lines.number(last, "last time", u64::MAX)?;
        if first >= last {
            return Err(lines.wrong("its last time is not after its first one"));
        }
        let ranks = match ranks {
            "heap" => None,
            ranks => Some(
                ranks
                    .split(',')
                    .map(|rank| rank_of(lines, rank))
                    .collect::<Result<Vec<u32>, _>>()?,
            ),
        };
        if let Some(ranks) = ranks.as_ref().filter(|ranks| ranks.len() as u64 != orders) {
            return Err(lines.wrong(&format!("{} ranks, and there are {orders} orders", ranks.len())));
        }
        Ok(Self {
            size,
            is_exact,
            first,
            last,
            ranks,
            is_output,
        })
    }
}

fn rank_of(lines: &Lines<'_>, text: &str) -> Result<u32, PlanFileError> {
    Ok(u32::try_from(lines.number(text, "rank", u32::MAX.into())?).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "remat-arena 2\nmodel blake3:00\nruntime 1.31.1\nlevel all\ndim 1 64 batch size\nlet floor d0+1 2\n\
                        plan buffers 3 orders 2 first 1\ninput d0,3 x y\ninput - t\n1024*d0 0 3 0,1\n<=256*d1 1 4 heap\n\
                        500 2 5 1,0 output\nplan buffers 1 orders 1 first 0\n64 0 1 0\n";

    #[test]
    fn what_is_written_is_what_was_read() {
        let file = ArenaPlanFile::parse(TEXT).expect("it is well-formed");
        assert_eq!(file.to_string(), TEXT);
        assert_eq!(
            file.dims[0],
            OpenDim {
                name: "batch size".to_owned(),
                least: 1,
                most: 64
            }
        );
        assert_eq!(
            file.plans[0].inputs[0],
            ("x y".to_owned(), vec![Formula::variable(0), Formula::constant(3)])
        );
        assert!(file.plans[0].buffers[2].is_output && !file.plans[0].buffers[1].is_exact);
        let paged = TEXT.replace("level all\n", "level all\npages\n");
        let file = ArenaPlanFile::parse(&paged).expect("it is well-formed");
        assert!(file.is_paged && file.to_string() == paged);
        for load in ["", "load buffers 2 orders 1 first 0\n100 0 3 0 output\n64 1 2 1\n"] {
            let cuda = TEXT.replace("level all\n", &format!("level all\ncuda recorded\n{load}"));
            let file = ArenaPlanFile::parse(&cuda).expect("it is well-formed");
            assert_eq!((file.to_string(), file.alignment()), (cuda, CUDA_ALIGNMENT));
            assert_eq!(file.of_load().is_some(), !load.is_empty());
        }
    }

    #[test]
    fn a_malformed_line_is_refused_with_its_number() {
        let cases = [
            (1, "remat-arena 2", "remat-arena 1", "expected `remat-arena 2`"),
            (2, "model blake3:00", "model ", "expected `model ..`"),
            (4, "level all", "levels all", "expected `level ..`"),
            (5, "dim 1 64", "pages 1\ndim 1 64", "expected `pages`"),
            (5, "dim 1 64", "cuda guessed\ndim 1 64", "expected `cuda recorded`"),
            (
                6,
                "dim 1 64",
                "cuda predicted\nload buffers 1 orders 1 first 1 \ndim 1 64",
                "expected `load buffers",
            ),
            (
                7,
                "dim 1 64",
                "cuda predicted\nload buffers 1 orders 1 first 1\nd0 0 1 0\ndim 1 64",
                "`d0` is not a formula in 0",
            ),
            (5, "dim 1 64", "dim 1 x", "size: `x`"),
            (5, "dim 1 64", "dim 9 8", "there is no size"),
            (
                6,
                "floor d0+1 2",
                "floor d1+1 2",
                "`d1+1` is not a formula in 1 variables",
            ),
            (6, "floor d0+1 2", "floor d0+1 0", "a quotient by 0"),
            (6, "let floor d0+1 2", "let root d0 2", "expected `let"),
            (7, "plan buffers 3", "plan buffer 3", "expected `plan"),
            (7, "buffers 3", "buffers 0", "without buffers"),
            (7, "buffers 3", "buffers 99999999", "buffers:"),
            (7, "orders 2", "orders 17", "orders:"),
            (7, "first 1", "first 4", "first:"),
            (8, "input d0,3 x", "input d0,d7 x", "`d7` is not a formula"),
            (10, "1024*d0 0", "0 0", "a buffer of 0 bytes"),
            (10, "1024*d0 0", "1024*d0 3", "not after its first"),
            (
                10,
                "1024*d0 0 3 0,1",
                "1024*d0 0 3 0",
                "1 ranks, and there are 2 orders",
            ),
            (10, "1024*d0 0 3 0,1", "1024*d0 0 3 0,1 kept", "expected `SIZE"),
            (10, "1024*d0 0 3", "1024*d0  0 3", "expected `SIZE"),
            (10, "1024*d0 0 3", "+1024 0 3", "`+1024` is not a formula"),
            (11, "<=256*d1 1", "<=256*d1 0", "not after that of the buffer before"),
            (13, "plan buffers 1", "500 6 7 0\nplan buffers 1", "expected `plan"),
            (15, "64 0 1 0\n", "", "ends too early"),
        ];
        for (line, from, to, why) in cases {
            // The last occurrence of the short line, the first of the others.
            let text = if to.is_empty() {
                TEXT.strip_suffix(from).expect("it ends so").to_owned()
            } else {
                TEXT.replacen(from, to, 1)
            };
            let line = if to.is_empty() { 14 } else { line };
            let error = ArenaPlanFile::parse(&text).expect_err(to);
            assert_eq!(error.line, line, "{to}: {error}");
            assert!(error.why.contains(why), "{to}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(remat-arena 2\n)?[a-z0-9 \n]{0,200}") {
            let _ = ArenaPlanFile::parse(&text);
        }

        #[test]
        fn a_line_that_is_cut_or_changed_is_read_or_refused_with_a_line_of_the_file(at in 0..TEXT.len(), byte in 32u8..127) {
            let mut bytes = TEXT.as_bytes().to_vec();
            bytes[at] = byte;
            let text = String::from_utf8(bytes).expect("it is ASCII");
            if let Err(error) = ArenaPlanFile::parse(&text) {
                proptest::prop_assert!((1..=text.lines().count() + 1).contains(&error.line));
            }
        }
    }
}
