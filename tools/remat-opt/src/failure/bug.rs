//! What is saved of a plan of ours that the checker rejected.

use std::path::{Path, PathBuf};

use remat::RejectedPlan;
use remat::plan::PlanFile;

/// Writes problem and plan where the bug can be reported from; returns a line for the user.
pub(super) fn save_rejected(rejected: &RejectedPlan, folder: &Path) -> String {
    let stem = format!("remat-bug-{}", rejected.problem.digest());
    let steps = PlanFile::records(&rejected.problem, &rejected.plan);
    let lines: Vec<_> = steps
        .iter()
        .map(|step| serde_json::to_string(step).unwrap_or_default())
        .collect();
    let files: [(PathBuf, String); 3] = [
        (folder.join(format!("{stem}.problem.json")), rejected.problem.to_json()),
        (
            folder.join(format!("{stem}.steps.json")),
            format!("[\n{}\n]\n", lines.join(",\n")),
        ),
        (
            folder.join(format!("{stem}.violations.txt")),
            rejected.rejection.to_string(),
        ),
    ];
    for (path, text) in &files {
        if let Err(error) = remat_files::write(path, text) {
            return format!("the problem could not be saved to `{}`: {error}", path.display());
        }
    }
    let names: Vec<_> = files.iter().map(|(path, _)| format!("`{}`", path.display())).collect();
    format!("please report it with the files {}", names.join(", "))
}
