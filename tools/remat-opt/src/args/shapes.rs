//! The shapes of the runs that a model is planned for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use remat::LoadOptions;
use remat_files::shown;
use remat_formula::Ranges;

use super::INPUT;

/// Shapes of runs; the same for every command that plans for several.
#[derive(Debug, Args)]
pub(crate) struct ShapeArgs {
    /// Sizes of symbolic dimensions in runs: `batch=1..64,sequence=1..512`, `height=64..1024:32`, `batch=1,4,8`.
    ///
    /// One file serves all of them. It is planned for the largest, unless `--dim` or `--weights` says otherwise.
    #[arg(long, value_name = "NAME=SIZES,..", help_heading = INPUT, hide_short_help = true)]
    shapes: Option<Ranges>,
    /// Shapes that were seen in runs, and how often: lines `batch=4,sequence=128 17`.
    ///
    /// The most frequent are planned for first. Without `--shapes`, all sizes between those that were seen are planned for.
    #[arg(long, value_name = "FILE", help_heading = INPUT, hide_short_help = true)]
    weights: Option<PathBuf>,
}

/// Sizes of the open dimensions of a run.
pub(crate) type Dims = remat_formula::Shape;

/// The shapes of runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    /// All of them.
    pub(crate) ranges: Ranges,
    /// Those that are frequent, with how often they were seen.
    pub(crate) frequent: Vec<(Dims, u64)>,
}

impl ShapeArgs {
    /// The file of weights.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        self.weights.as_ref()
    }

    /// Says that nothing comes of shapes for an input that has none.
    ///
    /// # Errors
    /// If shapes are stated.
    pub(crate) fn refuse(&self, input: &str) -> anyhow::Result<()> {
        if self.shapes.is_some() || self.weights.is_some() {
            bail!("`--shapes` and `--weights` are for ONNX models, and the input is {input}");
        }
        Ok(())
    }

    /// The options, as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let shapes = self
            .shapes
            .iter()
            .flat_map(|ranges| ["--shapes".to_owned(), ranges.to_string()]);
        let weights = self.weights.iter();
        let weights = weights.flat_map(|path| ["--weights".to_owned(), path.display().to_string()]);
        shapes.chain(weights).collect()
    }

    /// What the options say.
    ///
    /// # Errors
    /// If the file cannot be read, or has a shape outside of the ranges.
    pub(crate) fn read(&self) -> anyhow::Result<Shapes> {
        let frequent = match &self.weights {
            Some(path) => {
                let text = remat::read_text(path)?;
                weights(&text).with_context(|| format!("cannot read the shapes in `{}`", shown(path.display())))?
            }
            None => Vec::new(),
        };
        let ranges = match &self.shapes {
            Some(ranges) => ranges.clone(),
            None => Ranges::around(frequent.iter().map(|(dims, _)| dims)),
        };
        if let Some((dims, _)) = frequent.iter().find(|(dims, _)| !ranges.contains(dims)) {
            bail!(
                "the shape {} of `--weights` is none of `--shapes {}`",
                shown(remat_onnxruntime_run::dims_text(dims)),
                shown(&ranges)
            );
        }
        Ok(Shapes { ranges, frequent })
    }
}

impl Shapes {
    /// Whether any are stated.
    pub(crate) fn are_stated(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The sizes of a model that is to fit in every shape: those of `--dim`, else the largest.
    pub(crate) fn complete_with_largest(&self, load: &mut LoadOptions) {
        given(self.ranges.largest(), load);
    }

    /// The sizes at which a model is planned: those of `--dim`, else those of the most frequent shape, else the largest.
    pub(crate) fn complete(&self, load: &mut LoadOptions) {
        let most = self.frequent.iter().rev().max_by_key(|(_, weight)| *weight);
        let sizes = most.map_or_else(|| self.ranges.largest(), |(dims, _)| dims.clone());
        given(sizes, load);
    }
}

/// Gives dimensions their sizes, where none is given.
fn given(sizes: Dims, load: &mut LoadOptions) {
    for (name, size) in sizes {
        load.dims.entry(name).or_insert(size);
    }
}

/// Lines of shapes and how often they were seen, once if that is not said.
fn weights(text: &str) -> anyhow::Result<Vec<(Dims, u64)>> {
    let mut all: BTreeMap<Dims, u64> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || format!("line {number}: expected `NAME=SIZE,.. COUNT`, found `{}`", shown(line));
        let (shape, count) = match line.rsplit_once(char::is_whitespace) {
            Some((shape, count)) => (shape.trim_end(), count.parse().ok()),
            None => (line, Some(1)),
        };
        let ranges: Ranges = shape.parse().with_context(wrong)?;
        let count: u64 = count.with_context(wrong)?;
        if ranges.names().any(|name| ranges.count(name) != 1) {
            bail!(wrong());
        }
        let total = all.entry(ranges.largest()).or_default();
        *total = total.saturating_add(count);
    }
    Ok(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_counted() {
        let text = "# seen on Monday\nbatch=4,n=128 17\n\nn=64,batch=1\nbatch=4,n=128 3\n";
        let dims = |batch, n| BTreeMap::from([("batch".to_owned(), batch), ("n".to_owned(), n)]);
        let found = weights(text).expect("they are shapes");
        assert_eq!(found, [(dims(1, 64), 1), (dims(4, 128), 20)]);
        let shapes = Shapes {
            ranges: Ranges::around(found.iter().map(|(dims, _)| dims)),
            frequent: found,
        };
        let mut load = LoadOptions::default();
        load.dims.insert("batch".to_owned(), 2);
        shapes.complete(&mut load);
        assert_eq!(load.dims, dims(2, 128));
    }

    #[test]
    fn a_line_that_is_no_shape_is_said() {
        for text in ["n=1..4 3", "n=1 x", "n", "n=1 -3"] {
            let error = format!("{:#}", weights(text).expect_err(text));
            assert!(error.starts_with("line 1: expected `NAME=SIZE,.. COUNT`"), "{error}");
        }
    }
}
