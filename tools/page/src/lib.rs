//! A plan as one page for a browser: a file of HTML without references to others.
//!
//! The page says in words what the plan gains, and shows memory over the steps before and after, the block with its offsets where the plan
//! has one, and in tables what is computed again and what moves to the second memory and back. Charts stand in it as SVG. Where scripts run,
//! the same charts can be zoomed, and pointing at a step names what is in memory there.
//!
//! | module | concept |
//! |---|---|
//! | `run` | what a plan does step by step, and what takes bytes from when to when |
//! | `table` | recomputes and transfers, one row each |
//! | `data` | runs as JSON for the script |
//! | `page` | the page |

mod data;
mod page;
mod run;
mod table;

pub use page::Page;
pub use run::{Run, Taken, Time, taken};
