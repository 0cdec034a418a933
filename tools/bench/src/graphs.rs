//! The graphs that are measured, and how they are read.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use remat::plan::OrderMode;
use remat::{LoadOptions, Model};

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

/// The graph, or those of a folder, small ones first.
pub(crate) fn graphs(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort_by_key(|path| (std::fs::metadata(path).map_or(0, |data| data.len()), path.clone()));
    ensure!(!paths.is_empty(), "there is no graph in `{}`", path.display());
    Ok(paths)
}
