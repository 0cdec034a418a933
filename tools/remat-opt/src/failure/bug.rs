//! What is saved of an answer of ours that the checker rejected.

use std::path::{Path, PathBuf};

use remat::BugReport;
use remat::plan::PlanFile;

/// Writes problem, plan and claims where the bug can be reported from; returns a line for the user.
pub(super) fn save(bug: &BugReport, folder: &Path) -> String {
    let files = files(bug, folder);
    for (path, text) in &files {
        if let Err(error) = remat_files::write(path, text) {
            return format!("the problem could not be saved to `{}`: {error}", path.display());
        }
    }
    let names: Vec<_> = files.iter().map(|(path, _)| format!("`{}`", path.display())).collect();
    format!("please report it with the files {}", names.join(", "))
}

fn files(bug: &BugReport, folder: &Path) -> Vec<(PathBuf, String)> {
    let stem = format!("remat-bug-{}", bug.problem.digest());
    let file = |what: &str, text: String| (folder.join(format!("{stem}.{what}")), text);
    let mut files = vec![file("problem.json", bug.problem.to_json())];
    if let Some(plan) = &bug.plan {
        let steps = PlanFile::records(&bug.problem, plan);
        let lines: Vec<_> = steps
            .iter()
            .map(|step| serde_json::to_string(step).unwrap_or_default())
            .collect();
        files.push(file("steps.json", format!("[\n{}\n]\n", lines.join(",\n"))));
    }
    if !bug.certificates.is_empty() {
        let text = serde_json::to_string_pretty(&bug.certificates).unwrap_or_default();
        files.push(file("certificates.json", text + "\n"));
    }
    files.push(file("violations.txt", bug.rejection.to_string()));
    files
}
