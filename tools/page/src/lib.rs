//! A plan as one page for a browser: a file of HTML without references to others.
//!
//! The page has three large figures, memory over the steps before and after, the tensors behind it, the block with its offsets where the plan has
//! one, and in tables what is largest at the peak, what is computed again and what moves to the second memory and back. Without scripts the
//! figures, a chart as SVG and the tables of the plan are there; with them the chart is looked into, step by step and tensor by tensor.
//!
//! | module | concept |
//! |---|---|
//! | `run` | what a plan does step by step |
//! | `table` | recomputes and transfers, one row each |
//! | `names` | ops and tensors as the model calls them |
//! | `recorded` | what a program did that has no plan |
//! | `data` | runs as JSON for the script: what takes bytes from when to when |
//! | `page` | the page |
//! | `assets/data.js` | the runs, and what can be asked of them |
//! | `assets/colors.js` | colors of both themes, and hatching |
//! | `assets/chart.js` | the chart |
//! | `assets/table.js` | the table of the largest tensors |
//! | `assets/search.js` | search for ops |
//! | `assets/files.js` | chart, table and report as files |
//! | `assets/page.js` | what keys, pointers and buttons do |

mod data;
mod names;
mod page;
mod recorded;
mod run;
mod table;

pub use page::{Figure, Page, Table};
pub use recorded::{Life, Recorded};
pub use run::{Run, Time};
