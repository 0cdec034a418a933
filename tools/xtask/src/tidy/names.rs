//! A crate is called as its folder, with or without `remat-` before it; in a room of several crates the room's name may come first.

use crate::workspace::{Finding, Source};

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let Some(folder) = source.path.strip_suffix("/Cargo.toml").and(source.crate_folder()) else {
        return Vec::new();
    };
    let (_, room) = folder.split_once('/').unwrap_or(("", folder));
    let joined = room.replace('/', "-");
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    let lines = source.text.lines().enumerate();
    let named = lines.filter_map(|(index, line)| Some((index + 1, line.strip_prefix("name = \"")?.strip_suffix('"')?)));
    let Some((line, name)) = named.into_iter().next() else {
        return vec![Finding::new(source, 1, "the manifest gives no `name`")];
    };
    let bare = name.strip_prefix("remat-").unwrap_or(name);
    if name == folder || bare == folder || bare == joined {
        return Vec::new();
    }
    vec![Finding::new(
        source,
        line,
        format!("crate `{name}` lies in folder `{folder}`: expected `remat-{joined}`"),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::source;

    #[test]
    fn a_crate_in_a_folder_of_another_name_is_found() {
        let found = check(&source("passes/plan/Cargo.toml", "[package]\nname = \"remat-solve\"\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert_eq!(check(&source("passes/plan/Cargo.toml", "[package]\n")).len(), 1);
    }

    #[test]
    fn the_ways_to_name_a_crate_pass() {
        for (folder, name) in [
            ("passes/plan", "remat-plan"),
            ("passes/remat", "remat"),
            ("tools/remat-opt", "remat-opt"),
            ("passes/onnxruntime/run", "remat-onnxruntime-run"),
            ("passes/mlir/plugin", "remat-plugin"),
        ] {
            let manifest = format!("[package]\nname = \"{name}\"\n");
            assert!(
                check(&source(&format!("{folder}/Cargo.toml"), &manifest)).is_empty(),
                "{name}"
            );
        }
        assert!(check(&source("Cargo.toml", "[workspace]\n")).is_empty());
    }
}
