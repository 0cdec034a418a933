//! The planner in a browser.
//!
//! A page gives a file, of which only the graph is read ([`remat::onnx::outline`]), and gets JSON, pages and the pieces of a rewritten file.
//! All of it runs in a worker of the page, on one thread; OR-Tools and ONNX Runtime are not there, so nothing is proved by them, and
//! nothing is measured.
//!
//! | module | concept |
//! |---|---|
//! | `network` | a model that was opened, and its plans |
//! | `planned` | a plan that was found |
//! | `failure` | why there is no answer |
//! | `answer` | what the page is told, as JSON |
//! | `report` | the page of a plan |
//! | `bindings` | the same for JavaScript, only there |
//! | `file` | a file of the browser as one to read from, only there |
//! | `assets/index.html`, `assets/app.css`, `assets/app.js` | the page |
//! | `assets/worker.js` | the worker |

mod answer;
mod failure;
mod network;
mod planned;
mod report;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod bindings;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod file;

pub use answer::{Found, Question, Summary};
pub use failure::Failure;
pub use network::Network;
