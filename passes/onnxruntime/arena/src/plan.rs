//! Plans as text. Every malformed line is refused with its number.
//!
//! ```text
//! remat-arena 1
//! model blake3:0f3a..          the file that the plans are for
//! runtime 1.31.1               ONNX Runtime in which they were recorded
//! level all                    its graph optimization level
//! plan threads 1 block 4096 buffers 3
//! input 4x3x32x32 x            of every input the shape, `-` for a scalar, and the name
//! 1024 0 3 0                   of every buffer size, first and last time, offset
//! 256 1 4 heap                 one that stays outside of the block
//! 512 2 5 1024 output          one that the caller of the run gets
//! ```
//!
//! Any number of plans may follow each other. Sizes and offsets are bytes. Buffers stand in the order in which they are allocated. Times count
//! the allocations and frees of a run; a buffer is live from its first time to just before its last one.

use std::fmt;

/// Every offset is a multiple of this: what the kernels of the runtime expect of an allocation.
pub const ALIGNMENT: u64 = 64;

/// The largest file: about half a million buffers. A larger one is neither written nor read.
pub const MOST_FILE_BYTES: u64 = 16 << 20;

/// What a file begins with.
const HEADER: &str = "remat-arena 1";
/// The largest block.
const MOST_BYTES: u64 = 1 << 44;

/// Plans for one model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArenaPlanFile {
    /// Hash of the model file, as `ALGORITHM:HEX`.
    pub model: String,
    /// Version of the runtime.
    pub runtime: String,
    /// Its graph optimization level.
    pub level: String,
    /// At least one.
    pub plans: Vec<ArenaPlan>,
}

/// The offsets of all buffers of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArenaPlan {
    /// Threads within a node.
    pub threads: usize,
    /// Name and shape of every input.
    pub inputs: Vec<(String, Vec<i64>)>,
    /// Size of the block.
    pub block_bytes: u64,
    /// The buffers in the order of their allocation, at least one.
    pub buffers: Vec<PlannedBuffer>,
}

/// A buffer of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlannedBuffer {
    /// Its size as the runtime asks for it, at least 1.
    pub bytes: u64,
    /// When it is allocated.
    pub first: u64,
    /// When it is freed, after `first`; for an output the end of the run.
    pub last: u64,
    /// Where it lies in the block, if it does.
    pub offset: Option<u64>,
    /// Whether it is still live when the run ends.
    pub is_output: bool,
}

/// What is wrong with a file of plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanFileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for PlanFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for PlanFileError {}

impl fmt::Display for ArenaPlanFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(f, "model {}", self.model)?;
        writeln!(f, "runtime {}", self.runtime)?;
        writeln!(f, "level {}", self.level)?;
        self.plans.iter().try_for_each(|plan| plan.fmt(f))
    }
}

impl fmt::Display for ArenaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (threads, block, buffers) = (self.threads, self.block_bytes, self.buffers.len());
        writeln!(f, "plan threads {threads} block {block} buffers {buffers}")?;
        for (name, shape) in &self.inputs {
            let dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
            let shape = if dims.is_empty() {
                "-".to_owned()
            } else {
                dims.join("x")
            };
            // A name must not end its line.
            let name: String = name
                .chars()
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .collect();
            writeln!(f, "input {shape} {name}")?;
        }
        for buffer in &self.buffers {
            write!(f, "{} {} {} ", buffer.bytes, buffer.first, buffer.last)?;
            match buffer.offset {
                Some(offset) => write!(f, "{offset}")?,
                None => f.write_str("heap")?,
            }
            f.write_str(if buffer.is_output { " output\n" } else { "\n" })?;
        }
        Ok(())
    }
}

impl ArenaPlanFile {
    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`PlanFileError`] with the first line that is not as it should be.
    pub fn parse(text: &str) -> Result<Self, PlanFileError> {
        let mut lines = Lines {
            lines: text.lines(),
            number: 0,
        };
        if lines.next()? != HEADER {
            return Err(lines.wrong(&format!("expected `{HEADER}`")));
        }
        let [model, runtime, level] = ["model", "runtime", "level"].map(|key| lines.field(key));
        let (model, runtime, level) = (model?, runtime?, level?);
        let mut plans = vec![ArenaPlan::parse(&mut lines, text.len())?];
        while !lines.is_at_end() {
            plans.push(ArenaPlan::parse(&mut lines, text.len())?);
        }
        Ok(Self {
            model,
            runtime,
            level,
            plans,
        })
    }
}

impl ArenaPlan {
    fn parse(lines: &mut Lines<'_>, most: usize) -> Result<Self, PlanFileError> {
        let head: Vec<&str> = lines.next()?.split(' ').collect();
        let ["plan", "threads", threads, "block", block, "buffers", count] = head[..] else {
            return Err(lines.wrong("expected `plan threads N block BYTES buffers N`"));
        };
        let threads = lines.number(threads, "threads", u32::MAX.into())?;
        let block_bytes = lines.number(block, "block", MOST_BYTES)?;
        // A line has more than one byte.
        let count = lines.number(count, "buffers", most as u64)?;
        if count == 0 {
            return Err(lines.wrong("a plan without buffers"));
        }
        let mut inputs = Vec::new();
        while let Some(input) = lines.peek().and_then(|line| line.strip_prefix("input ")) {
            lines.next()?;
            inputs.push(lines.input(input)?);
        }
        let mut buffers: Vec<PlannedBuffer> = Vec::new();
        for _ in 0..count {
            let line = lines.next()?;
            let buffer = lines.buffer(line, block_bytes)?;
            if buffers.last().is_some_and(|before| before.first >= buffer.first) {
                return Err(lines.wrong("its first time is not after that of the buffer before"));
            }
            buffers.push(buffer);
        }
        Ok(Self {
            threads: usize::try_from(threads).unwrap_or(usize::MAX),
            inputs,
            block_bytes,
            buffers,
        })
    }

    /// Bytes that the runtime asks for at most at one time, as whole multiples of the alignment.
    #[must_use]
    pub fn load(&self) -> u64 {
        let mut changes: Vec<(u64, bool, u64)> = Vec::new();
        for buffer in self.buffers.iter().filter(|buffer| buffer.offset.is_some()) {
            let bytes = buffer.bytes.next_multiple_of(ALIGNMENT);
            changes.extend([(buffer.first, true, bytes), (buffer.last, false, bytes)]);
        }
        // What ends makes room for what begins.
        changes.sort_unstable();
        let (mut now, mut most) = (0u64, 0);
        for (_, begins, bytes) in changes {
            now = if begins {
                now.saturating_add(bytes)
            } else {
                now.saturating_sub(bytes)
            };
            most = most.max(now);
        }
        most
    }
}

/// The lines that are left.
struct Lines<'t> {
    lines: std::str::Lines<'t>,
    /// Of the line that was read last.
    number: usize,
}

impl<'t> Lines<'t> {
    fn wrong(&self, why: &str) -> PlanFileError {
        PlanFileError {
            line: self.number,
            why: why.to_owned(),
        }
    }

    fn peek(&self) -> Option<&'t str> {
        self.lines.clone().next()
    }

    fn is_at_end(&self) -> bool {
        self.peek().is_none()
    }

    fn next(&mut self) -> Result<&'t str, PlanFileError> {
        self.number += 1;
        self.lines.next().ok_or_else(|| self.wrong("the file ends too early"))
    }

    fn field(&mut self, key: &str) -> Result<String, PlanFileError> {
        let value = self.next()?.strip_prefix(key).and_then(|rest| rest.strip_prefix(' '));
        let value = value.filter(|value| !value.is_empty() && !value.contains(char::is_control));
        value
            .map(str::to_owned)
            .ok_or_else(|| self.wrong(&format!("expected `{key} ..`")))
    }

    fn number(&self, text: &str, what: &str, most: u64) -> Result<u64, PlanFileError> {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = text.parse().ok().filter(|&value: &u64| is_plain && value <= most);
        value.ok_or_else(|| self.wrong(&format!("{what}: `{text}` is not a number from 0 to {most}")))
    }

    fn input(&self, text: &str) -> Result<(String, Vec<i64>), PlanFileError> {
        let named = text
            .split_once(' ')
            .filter(|(_, name)| !name.contains(char::is_control));
        let (shape, name) = named.ok_or_else(|| self.wrong("expected `input SHAPE NAME`"))?;
        if shape == "-" {
            return Ok((name.to_owned(), Vec::new()));
        }
        let dim = |text| {
            let dim = self.number(text, "dimension", i64::MAX as u64)?;
            Ok(i64::try_from(dim).unwrap_or(i64::MAX))
        };
        let dims: Result<Vec<i64>, PlanFileError> = shape.split('x').map(dim).collect();
        Ok((name.to_owned(), dims?))
    }

    fn buffer(&self, line: &str, block: u64) -> Result<PlannedBuffer, PlanFileError> {
        let fields: Vec<&str> = line.split(' ').collect();
        let (bytes, first, last, offset, is_output) = match fields[..] {
            [bytes, first, last, offset] => (bytes, first, last, offset, false),
            [bytes, first, last, offset, "output"] => (bytes, first, last, offset, true),
            _ => return Err(self.wrong("expected `SIZE FIRST LAST OFFSET` and perhaps `output`")),
        };
        let bytes = self.number(bytes, "size", MOST_BYTES)?;
        if bytes == 0 {
            return Err(self.wrong("a buffer without bytes"));
        }
        let first = self.number(first, "first time", u64::MAX)?;
        let last = self.number(last, "last time", u64::MAX)?;
        if first >= last {
            return Err(self.wrong("its last time is not after its first one"));
        }
        let offset = match offset {
            "heap" => None,
            offset => Some(self.number(offset, "offset", MOST_BYTES)?),
        };
        if let Some(offset) = offset {
            if !offset.is_multiple_of(ALIGNMENT) {
                return Err(self.wrong(&format!("offset {offset} is not a multiple of {ALIGNMENT}")));
            }
            if offset + bytes > block {
                return Err(self.wrong(&format!("it ends at {}, the block at {block}", offset + bytes)));
            }
        }
        Ok(PlannedBuffer {
            bytes,
            first,
            last,
            offset,
            is_output,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "remat-arena 1\nmodel blake3:00\nruntime 1.31.1\nlevel all\nplan threads 1 block 4096 buffers 3\n\
                        input 4x3 x y\ninput - t\n1024 0 3 0\n256 1 4 heap\n500 2 5 1024 output\n\
                        plan threads 4 block 64 buffers 1\n64 0 1 0\n";

    #[test]
    fn what_is_written_is_what_was_read() {
        let file = ArenaPlanFile::parse(TEXT).expect("it is well-formed");
        assert_eq!(file.to_string(), TEXT);
        assert_eq!(file.plans[0].inputs[0], ("x y".to_owned(), vec![4, 3]));
        assert_eq!(file.plans[0].load(), 1024 + 512);
        assert!(file.plans[0].buffers[2].is_output);
        assert_eq!(file.plans[1].threads, 4);
    }

    #[test]
    fn a_malformed_line_is_refused_with_its_number() {
        let cases = [
            (1, "remat-arena 1", "remat-arena 2", "expected `remat-arena 1`"),
            (2, "model blake3:00", "model ", "expected `model ..`"),
            (4, "level all", "levels all", "expected `level ..`"),
            (5, "plan threads 1", "plan threads x", "threads: `x`"),
            (5, "block 4096", "block 99999999999999999999", "block:"),
            (5, "buffers 3", "buffers 0", "without buffers"),
            (5, "buffers 3", "buffers 99999999", "buffers:"),
            (6, "input 4x3 x", "input 4x-3 x", "dimension: `-3`"),
            (8, "1024 0 3 0", "0 0 3 0", "without bytes"),
            (8, "1024 0 3 0", "1024 3 3 0", "not after its first"),
            (8, "1024 0 3 0", "1024 0 3 32", "not a multiple of 64"),
            (8, "1024 0 3 0", "1024 0 3 4032", "it ends at 5056"),
            (8, "1024 0 3 0", "1024 0 3 0 kept", "expected `SIZE"),
            (8, "1024 0 3 0", "1024  0 3 0", "expected `SIZE"),
            (8, "1024 0 3 0", "+1024 0 3 0", "size: `+1024`"),
            (9, "256 1 4 heap", "256 0 4 heap", "not after that of the buffer before"),
            (11, "plan threads 4", "500 6 7 0\nplan threads 4", "expected `plan"),
            (13, "64 0 1 0\n", "", "ends too early"),
        ];
        for (line, from, to, why) in cases {
            // The last occurrence of the short line, the first of the others.
            let text = if to.is_empty() {
                TEXT.strip_suffix(from).expect("it ends so").to_owned()
            } else {
                TEXT.replacen(from, to, 1)
            };
            let line = if to.is_empty() { 12 } else { line };
            let error = ArenaPlanFile::parse(&text).expect_err(to);
            assert_eq!(error.line, line, "{to}: {error}");
            assert!(error.why.contains(why), "{to}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(remat-arena 1\n)?[a-z0-9 \n]{0,200}") {
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
