//! Writing files safely, showing text from files safely, and finding libraries safely.
//!
//! | question | answer |
//! |---|---|
//! | how is a file written? | [`write()`], or [`OutputFile`] for content that is too large for memory |
//! | how is a folder written? | [`OutputFolder`] |
//! | may this path be written at all? | [`Outputs`] knows what a command reads and writes, and refuses what would destroy an input |
//! | how is a JSON document with a version read and written? | [`document`] |
//! | where may a library lie that is loaded at run time? | [`Surroundings::candidates`] |
//! | where do temporary files lie? | in a [`ScratchFolder`] |
//! | how is a name from a file shown? | [`shown`], and [`lines()`] for whole texts |
//!
//! # Guarantees
//! - A file appears under its name whole or not at all. It is written under a random name beside its place, which nobody else can
//!   have opened (`O_EXCL`), flushed to the disk, and renamed. A run that fails removes it; a program that ends in the
//!   middle of a run calls [`remove_pending`] first.
//! - Only regular files are written: a folder, a device, a pipe or a socket is refused.
//! - A link keeps pointing where it points: the file that it leads to is replaced. Another name of that file (a hard link) keeps the old
//!   content.
//! - A file that is replaced keeps its permissions, and its owner where the process may set it; a file that the process may not write
//!   stays. A new file has the permissions that the process gives to new files.

pub mod document;
mod escape;
mod folder;
mod libraries;
mod outputs;
mod pending;
mod scratch;
mod write;

pub use document::DocumentError;
pub use escape::{Shown, line, lines, shown};
pub use folder::OutputFolder;
pub use libraries::{NO_LIBRARY, SharedLibrary, Surroundings};
pub use outputs::{OutputError, Outputs};
pub use pending::remove_pending;
pub use scratch::{LOCK, ScratchFolder};
pub use write::{OutputFile, write};
