//! The textual form: a graph that a person can read, write by hand and diff.
//!
//! ```text
//! // Comments run to the end of the line.
//! graph "example" {
//!   input %x : f32[1, 3, H, ?]
//!   const %w : f32[64, 3, 7, 7]
//!   %y : f32[..] bytes 4096 = compute @conv Conv(%x, %w, _) {kernel_shape = [7, 7], alpha = 0.5} source 0
//!   %v : f32[64, 16] view of %y = compute @flat Flatten(%y)
//!   (%a : f32[2], _, %b : sequence<i64[?]>) = compute @split com.example::Split(%v) captures(%w) stateful
//!   dealloc %y
//!   %y.1 : f32[..] bytes 4096 = recompute @conv.1 of @conv Conv(%x, %w, _) {kernel_shape = [7, 7], alpha = 0.5}
//!   output %y.1
//! }
//! ```
//!
//! # Grammar
//! ```text
//! graph     = "graph" STRING "{" statement* "}"
//! statement = "block" WORD "align" WORD
//!           | "input" TENSOR ":" type bytes?
//!           | "const" TENSOR ":" type bytes? values?
//!           | (results "=")? "compute" OP call
//!           | (results "=")? "recompute" OP "of" OP call
//!           | ("dealloc" | "page_out" | "page_in") OP? TENSOR at?
//!           | "output" TENSOR
//! results   = result | "(" list(result) ")"
//! result    = "_" | TENSOR ":" type ("view" "of" TENSOR | "const"? bytes? values? at?) part?
//! bytes     = "bytes" (WORD | "unknown")
//! values    = "values" "[" list(WORD) "]"
//! at        = "at" WORD
//! part      = "part" "of" name "[" list(WORD ":" WORD) "]" ("spare" WORD "before" WORD "after" WORD)?
//! call      = (name "::")? name "(" list("_" | TENSOR) ")" attributes? captures? effect? ("source" WORD)? ("workspace" WORD at)?
//! captures  = "captures" "(" list(TENSOR) ")"
//! effect    = "random" | "stateful" | "control_flow"
//! attributes = "{" list(name "=" attribute) "}"
//! attribute = WORD | STRING | BYTES | "nan" "(" WORD ")" | "opaque" STRING
//!           | "[" list(attribute of one kind) "]" | ("ints" | "floats" | "strings") "[" "]"
//! type      = ELEMENT shape | "sparse" "<" ELEMENT shape ">" | "sequence" "<" type ">" | "optional" "<" type ">"
//!           | "map" "<" ELEMENT "," type ">" | "unknown"
//! shape     = "[" (".." | list(WORD | (WORD | STRING | "?") ("=" WORD)?)) "]"
//! name      = WORD | STRING          TENSOR = "%" name          OP = "@" name
//! ```
//! A `WORD` is a run of `A-Z a-z 0-9 _ . / -` without `//`; every other name is a `STRING` in quotes, with the escapes
//! `\n \r \t \0 \\ \" \'` and `\u{hex}`. `BYTES` is `b"…"`, a byte string that is not UTF-8, with `\xNN` for its bytes.
//! Line breaks are spaces. A name is defined above the line that uses it.
//!
//! - A dimension is a number, a symbol or `?`; the shape `[..]` leaves even the rank open. Symbols that do not start with
//!   a letter or `_` stand in quotes. `n=512` and `?=512` are dimensions that the model leaves open, at the size that was given.
//! - A result lives in memory of its own unless it is a `view of` something the op reads, or `const`: evaluated once, when
//!   the model is loaded.
//! - `bytes` states the size of a storage where it is not the size that its type gives.
//! - `values` are the elements of an integer constant, in row-major order.
//! - `part of y[0:1, 8:16]` says that the result is the part of tensor `y` of the graph before fission that begins at row 0 of axis 0 and 8 of
//!   axis 1 and ends before rows 1 and 16. `spare 1 before 2 after 1` says that on axis 1 two rows before the part and one after it are
//!   none of the tensor.
//! - An attribute is a float if its number has a point or an exponent; `inf`, `-inf` and `nan` are floats too, and
//!   `nan(0x7fc00001)` gives the bits of one that is not the default.
//! - `page_out` moves the storage of a tensor to the second memory, `page_in` brings it back with all its tensors.
//! - `block` stands before all that lies in it: its size, and what all offsets are multiples of. `at` is the first byte of a result, of what a
//!   `page_in` brings back, or of the workspace of an op, which takes so many bytes.
//! - `dealloc`, `page_out` and `page_in` carry a name of their own only if it is not the one that [`crate::GraphBuilder`] gives.
//!
//! # Guarantees
//! Text that parses is a valid graph, and printing that graph and parsing it again gives an equal one, ids included.
//!
//! The same holds for every valid graph in *canonical order*, the order in which [`crate::GraphBuilder`] numbers things:
//! 1. `inputs` lists the graph inputs by ascending id;
//! 2. the results of an op have consecutive ids in the order of the results, ops in reference order;
//! 3. graph inputs and constants stand anywhere between those runs, before the ops that read them;
//! 4. storages are numbered in the order of the tensors that root them;
//! 5. a `dealloc`, `page_out` or `page_in` op is what [`crate::GraphBuilder`] makes, up to its name;
//! 6. types nest at most [`MAX_TYPE_DEPTH`] deep, and the type of a root has a size that fits 64 bits;
//! 7. ops have no bodies, and the graph no formulas, which are not printed.
//!
//! A valid graph that breaks only rules 1 to 4 comes back with other ids and is otherwise the same.

mod cursor;
mod error;
mod lexer;
mod name;
mod parse;
mod print;
mod value;

pub use error::{ParseError, ParseErrorKind};
pub(crate) use name::Name;
pub use value::MAX_TYPE_DEPTH;
