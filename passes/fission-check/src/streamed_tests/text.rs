//! An original and what fission could have made of it, in the textual form.

use remat_ir::Graph;

use super::super::values::Rows;

/// An original and a graph in tiles, line by line.
#[derive(Default)]
pub(super) struct Text {
    original: Vec<String>,
    tiled: Vec<String>,
    /// Ops of the original.
    pub(super) ops: usize,
}

impl Text {
    pub(super) fn both(&mut self, line: &str) {
        self.original.push(line.to_owned());
        self.tiled.push(line.to_owned());
    }

    pub(super) fn op(&mut self, result: &str, call: &str) {
        let source = self.ops;
        self.ops += 1;
        self.original
            .push(format!("{result} = compute @op{source} {call} source {source}"));
    }

    pub(super) fn tile(&mut self, result: &str, part: &str, call: &str) {
        let op = self.tiled.len();
        self.tiled
            .push(format!("{result} part {part} = compute @tile{op} {call}"));
    }

    /// Rows of a tensor of the tiled graph, under a name.
    pub(super) fn slice(&mut self, name: &str, [from, of]: [&str; 2], rows: &[Rows], axis: usize) {
        let bounds = format!("%k{}, %k{}, %k{axis}", rows[axis].start, rows[axis].end);
        let result = format!("%{name} : {}", f32s(&extents(rows)));
        self.tile(
            &result,
            &format!("of {of}{}", shown(rows)),
            &format!("Slice(%{from}, {bounds})"),
        );
    }

    pub(super) fn parse(mut self) -> (Graph, Graph) {
        let is_read = |k: &u32| {
            let ends = [format!("%k{k},"), format!("%k{k})")];
            self.tiled.iter().any(|line| ends.iter().any(|end| line.contains(end)))
        };
        let read: Vec<u32> = (0..40).filter(is_read).collect();
        let constants = read.into_iter().map(|k| format!("const %k{k} : i64[1] values [{k}]"));
        self.tiled.splice(0..0, constants);
        // Outputs stand last.
        self.tiled.sort_by_key(|line| line.starts_with("output"));
        let parse = |lines: Vec<String>| {
            let text = format!("graph \"g\" {{\n{}\n}}", lines.join("\n"));
            Graph::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        (parse(self.original), parse(self.tiled))
    }
}

pub(super) fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

pub(super) fn f32s(dims: &[u64]) -> String {
    format!("f32{}", list(dims))
}

pub(super) fn extents(rows: &[Rows]) -> Vec<u64> {
    rows.iter().map(|rows| rows.end - rows.start).collect()
}

pub(super) fn shown(rows: &[Rows]) -> String {
    let rows: Vec<String> = rows.iter().map(|rows| format!("{}:{}", rows.start, rows.end)).collect();
    format!("[{}]", rows.join(", "))
}

pub(super) fn whole(dims: &[u64]) -> Vec<Rows> {
    dims.iter().map(|&dim| 0..dim).collect()
}
