//! The files that are measured: those that are named, and those of folders that are named.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use remat::plan::OrderMode;
use remat::{LoadOptions, Model};

/// The file, or those of a folder whose names end like that, by name.
///
/// # Errors
/// If the folder cannot be read, or has none.
pub(crate) fn files(path: &Path, ends: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let found = any_files(path, ends)?;
    let ends = ends.join("` or `");
    ensure!(
        !found.is_empty(),
        "`{}` has no file that ends in `{ends}`",
        path.display()
    );
    Ok(found)
}

/// The same, which may be none.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn any_files(path: &Path, ends: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut found: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    found.retain(|path| ends.iter().any(|end| path.to_string_lossy().ends_with(end)));
    found.sort();
    Ok(found)
}

/// Graphs, small ones first.
///
/// # Errors
/// As of [`files`].
pub(crate) fn graphs(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = files(path, &[".json"])?;
    paths.sort_by_key(|path| std::fs::metadata(path).map_or(0, |data| data.len()));
    Ok(paths)
}

/// Models.
///
/// # Errors
/// As of [`any_files`].
pub(crate) fn models(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let all: Vec<_> = named
        .iter()
        .map(|path| any_files(path, &[".onnx"]))
        .collect::<anyhow::Result<_>>()?;
    Ok(all.concat())
}

/// The name of a file without folder and extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether first computes follow the order of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Order {
    Free,
    Fixed,
}

impl Order {
    /// Opens a graph under this order.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn open(self, path: &Path) -> Result<Model, remat::Error> {
        let order = match self {
            Self::Free => OrderMode::Free,
            Self::Fixed => OrderMode::Fixed,
        };
        let options = LoadOptions {
            order: Some(order),
            ..LoadOptions::default()
        };
        Model::open(path, &options)
    }

    /// The word on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Fixed => "fixed",
        }
    }
}
