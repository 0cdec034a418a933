//! A second memory for plans that move results out of memory and back: operators of this library, in a domain of their own.
//!
//! | operator | what it does |
//! |---|---|
//! | `PageOut(x) -> ticket` | begins to write `x` |
//! | `PageOutEnd(ticket, x) -> ticket` | waits for that; `x` lives until then |
//! | `PageInBegin(ticket) -> ticket` | begins to read ahead |
//! | `PageIn(ticket, like) -> (y, ticket)` | makes `y`, of the extents and the bits of `x`; with the attribute `last` the page goes |
//!
//! A ticket is one 64-bit integer. `like` is a tensor without elements: the runtime learns the type of `y` from it. What has to happen at the same
//! time as computation, the way to the disk and back, is done by a thread of the library and by the system; what a run waits for is a copy from the
//! system's memory for files into `y`. Nothing of a run is written to by another thread, so a run may end at any time.
//!
//! | file | what it holds |
//! |---|---|
//! | `slots` | who has which bytes of the file |
//! | `file` | the file |
//! | `store` | both, and the thread |
//! | `kind` | the operators |
//! | `operators` | what the runtime knows of them |
//! | `kernels` | what they do |
//! | `direct` | the same for programs without ONNX Runtime |

mod direct;
#[expect(unsafe_code, reason = "functions of the C library")]
mod file;
#[expect(unsafe_code, reason = "memory of runs, and functions that the runtime calls")]
mod kernels;
mod kind;
#[expect(unsafe_code, reason = "functions that the runtime calls")]
mod operators;
mod slots;
mod store;

pub use direct::SecondMemory;
pub(crate) use operators::register;
pub use store::Moved;
pub(crate) use store::Store;
