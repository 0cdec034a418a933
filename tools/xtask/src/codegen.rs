//! What is generated from the code and committed: the manual.

use std::path::Path;

use anyhow::{Context, Result};
use clap_mangen::Man;

use crate::workspace::Finding;

/// Where the pages of the manual lie.
const MANUAL: &str = "docs/man";

/// Path from the root and text of a page for the program and one for each of its commands.
fn manual() -> Result<Vec<(String, String)>> {
    let mut whole = remat_opt::command();
    whole.build();
    let page = |command: clap::Command| {
        let mut text = Vec::new();
        let name = command
            .get_display_name()
            .unwrap_or_else(|| command.get_name())
            .to_owned();
        // Without a date, which would change the files every day.
        Man::new(command).date("").render(&mut text)?;
        Ok((format!("{MANUAL}/{name}.1"), String::from_utf8(text)?))
    };
    let commands: Vec<_> = whole
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned()
        .collect();
    let commands = commands.into_iter().filter(|command| command.get_name() != "help");
    std::iter::once(whole.clone()).chain(commands).map(page).collect()
}

/// Writes the generated files.
pub(crate) fn write(root: &Path) -> Result<()> {
    std::fs::create_dir_all(root.join(MANUAL)).with_context(|| format!("cannot create `{MANUAL}`"))?;
    for (path, text) in manual()? {
        remat_files::write(root.join(&path), text).with_context(|| format!("cannot write `{path}`"))?;
    }
    Ok(())
}

/// The generated files that differ from what would be written now.
pub(crate) fn stale(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in manual()? {
        let found = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
        if found != text {
            let differing = found.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
            findings.push(Finding {
                path,
                line: differing + 1,
                message: "not current: run `cargo run -p xtask -- codegen`".to_owned(),
            });
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use remat_plan::PlanFile;

    use super::*;

    #[test]
    fn committed_files_are_current() {
        assert_eq!(stale(&crate::workspace::root()).unwrap(), []);
    }

    #[test]
    fn a_missing_or_changed_page_is_stale() {
        let root = std::env::temp_dir().join(format!("remat-xtask-{}", std::process::id()));
        assert_eq!(stale(&root).unwrap().len(), manual().unwrap().len());
        write(&root).unwrap();
        assert_eq!(stale(&root).unwrap(), []);
        let page = root.join(MANUAL).join("remat-opt-place.1");
        let text = std::fs::read_to_string(&page).unwrap();
        std::fs::write(&page, text.replacen("place", "other", 1)).unwrap();
        let findings = stale(&root).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].to_string().starts_with("docs/man/remat-opt-place.1:"),
            "{}",
            findings[0]
        );
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let pages = manual().unwrap();
        let page = |name: &str| {
            let path = format!("{MANUAL}/{name}.1");
            pages
                .iter()
                .find(|(found, _)| *found == path)
                .map(|(_, text)| text.as_str())
        };
        assert!(page("remat-opt").is_some_and(|text| text.contains("max\\-overhead")));
        assert!(page("remat-opt-sweep").is_some_and(|text| text.contains("total\\-time\\-limit")));
        assert!(page("remat-opt-measure-child").is_none(), "it is for the program alone");
    }

    #[test]
    fn the_example_of_the_plan_page_is_a_plan() {
        let page = std::fs::read_to_string(crate::workspace::root().join("docs/plan-format.md")).unwrap();
        let (_, rest) = page.split_once("```json\n").expect("an example");
        let (example, _) = rest.split_once("```").expect("its end");
        let file = PlanFile::from_json(example).unwrap();
        assert_eq!(PlanFile::from_json(&file.to_json()), Ok(file));
    }
}
