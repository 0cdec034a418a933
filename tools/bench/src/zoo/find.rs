//! The models of folders.

use std::fs::File;
use std::path::{Path, PathBuf};

/// A model that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ZooModel {
    /// Name of the folder that was given.
    pub(super) folder: String,
    /// Path from there, without the extension, with `/` between the parts.
    pub(super) name: String,
    /// Where it lies.
    pub(super) path: PathBuf,
}

impl ZooModel {
    /// A message without the folders of this machine: of every absolute path, the last part is left.
    pub(super) fn without_paths(&self, message: &str) -> String {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        let message = message.replace(&*self.path.to_string_lossy(), &file);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '`' | '\'' | '"' | ':' | ',' | ';' | ')');
        let mut left = String::new();
        let mut rest = message.as_str();
        while let Some(at) = rest.find('/') {
            let (before, path) = rest.split_at(at);
            left.push_str(before);
            let path = &path[..path.find(is_end).unwrap_or(path.len())];
            let starts = before
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'));
            let is_path = starts && path[1..].contains('/');
            left.push_str(if is_path {
                path.rsplit('/').next().unwrap_or(path)
            } else {
                path
            });
            rest = &rest[at + path.len()..];
        }
        left + rest
    }
}

/// All `.onnx` files below the folders, in the order of their names. Links to folders are not followed.
///
/// # Errors
/// If a folder cannot be read.
pub(super) fn models(folders: &[PathBuf]) -> anyhow::Result<Vec<ZooModel>> {
    let mut found = Vec::new();
    for folder in folders {
        let resolved = folder.canonicalize()?;
        let label = resolved.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut paths = Vec::new();
        below(&resolved, &mut paths)?;
        paths.sort();
        for path in paths {
            let inside = path.strip_prefix(&resolved)?.with_extension("");
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            found.push(ZooModel {
                folder: label.clone(),
                name: parts.join("/"),
                path,
            });
        }
    }
    Ok(found)
}

fn below(folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            below(&path, paths)?;
        } else if path.is_file() && path.extension().is_some_and(|extension| extension == "onnx") {
            paths.push(path);
        }
    }
    Ok(())
}

/// A hash of the model's file; of weights in other files it has the names.
///
/// # Errors
/// If it cannot be read.
pub(super) fn hash(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_at_any_depth_and_named_from_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("zoo");
        std::fs::create_dir_all(inside.join("b/data")).expect("it can be made");
        for name in ["z.onnx", "b/data/model.onnx", "b/notes.txt"] {
            std::fs::write(inside.join(name), name).expect("it can be written");
        }
        let found = models(&[inside]).expect("it can be read");
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.folder.as_str(), one.name.as_str()))
            .collect();
        assert_eq!(names, [("zoo", "b/data/model"), ("zoo", "z")]);
        assert_ne!(hash(&found[0].path).ok(), hash(&found[1].path).ok());
    }

    #[test]
    fn messages_lose_the_folders_of_the_machine() {
        let one = ZooModel {
            folder: "zoo".to_owned(),
            name: "a/model".to_owned(),
            path: "/data/zoo/a/model.onnx".into(),
        };
        let message =
            "cannot load `/data/zoo/a/model.onnx`: /src/core/graph.cc:12 says 1/2, /x and onnx/data, see (/a/b/c)";
        let expected = "cannot load `model.onnx`: graph.cc:12 says 1/2, /x and onnx/data, see (c)";
        assert_eq!(one.without_paths(message), expected);
    }
}
