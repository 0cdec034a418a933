//! Per-op time and memory of a graph, and the scheduling problem built from them.
//!
//! [`analytic`] gives every op a cost on a [`Device`] by the roofline model: the larger of arithmetic time and memory time,
//! plus the time to start a kernel. [`Profile::apply_file`] replaces modelled by measured times. [`problem()`] turns graph and
//! profile into the [`remat_plan::Problem`] that solvers see; [`paper_problem`] does so for graphs that state durations.
//! [`SizeFormulas`] has the sizes of a problem for other sizes of the dimensions that the model leaves open.
//!
//! What rematerialization decides on is the *ratio* of times within one model, so the model is fitted for ratios; figures
//! in nanoseconds are of the right order only. `docs/cost-model.md` says how it was fitted and how far it is off.
//!
//!
//! The way of an op through the modules: its row in `remat-operators` names the formulas, `formula` counts operations and bytes
//! ([`KernelClass`] says which efficiency applies), `time` turns them into nanoseconds, `workspace` adds kernel memory.

mod class;
mod device;
mod file;
mod formula;
mod operands;
mod problem;
mod profile;
mod sizes;
mod time;
mod work;
mod workspace;

pub use class::KernelClass;
pub use device::{Device, DeviceTableError, Efficiency, Energy, Peak};
pub use file::{Applied, OpRecord, OutputRecord, PROFILE_FORMAT, ProfileError, ProfileFile, RunRecord};
pub use problem::{ProblemBuildError, ProblemOptions, paper_problem, problem};
pub use profile::{OpCost, Profile, Provenance, analytic, analytic_cost};
pub use sizes::{Load, SizeFormulas};
pub use workspace::{BodyBytes, kernel_bytes, no_bodies};

/// The first names of a list that may be long, for messages.
fn list_names(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let escaped = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", remat_files::shown(name)));
    let shown: Vec<String> = escaped.collect();
    let more = names.len().saturating_sub(SHOWN);
    let tail = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("{}{tail}", shown.join(", "))
}
