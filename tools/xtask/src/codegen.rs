//! The JSON schemas of what other tools may read and write.

use std::path::Path;

use anyhow::{Context, Result};
use remat_plan::{PlanFile, Problem};
use remat_profile::ProfileFile;
use schemars::schema_for;

use crate::workspace::Finding;

/// Where the schemas lie.
const FOLDER: &str = "docs/schema";

/// Name and text of every generated file.
fn files() -> Result<Vec<(String, String)>> {
    let mut schemas = vec![
        ("plan".to_owned(), schema_for!(PlanFile)),
        ("problem".to_owned(), schema_for!(Problem)),
        ("profile".to_owned(), schema_for!(ProfileFile)),
    ];
    // `remat-sweep/1` is `sweep` here.
    let short = |format: &str| {
        let name = format.strip_prefix("remat-").unwrap_or(format);
        name.split('/').next().unwrap_or_default().to_owned()
    };
    let reports = remat_opt::schemas().into_iter();
    schemas.extend(reports.map(|(format, schema)| (short(format), schema)));
    let text = |(name, schema): (String, schemars::Schema)| {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        Ok((format!("{name}.schema.json"), text))
    };
    schemas.into_iter().map(text).collect()
}

/// Writes the generated files.
pub(crate) fn write(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{FOLDER}`"))?;
    for (name, text) in files()? {
        remat_files::write(folder.join(&name), text).with_context(|| format!("cannot write `{FOLDER}/{name}`"))?;
    }
    Ok(())
}

/// The generated files that differ from what would be written now.
pub(crate) fn stale(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (name, text) in files()? {
        let path = format!("{FOLDER}/{name}");
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
    fn committed_schemas_are_current() {
        assert_eq!(stale(&crate::workspace::root()).unwrap(), []);
    }

    #[test]
    fn a_missing_or_changed_schema_is_stale() {
        let root = std::env::temp_dir().join(format!("remat-xtask-{}", std::process::id()));
        assert_eq!(stale(&root).unwrap().len(), files().unwrap().len());
        write(&root).unwrap();
        assert_eq!(stale(&root).unwrap(), []);
        let plan = root.join(FOLDER).join("plan.schema.json");
        let text = std::fs::read_to_string(&plan).unwrap();
        std::fs::write(&plan, text.replacen("PlanFile", "Other", 1)).unwrap();
        let findings = stale(&root).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0]
                .to_string()
                .starts_with("docs/schema/plan.schema.json:3: not current")
        );
        std::fs::remove_dir_all(&root).unwrap();
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
