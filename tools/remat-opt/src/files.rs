//! The files of a command: what it reads, and what it writes in the end.

use std::path::Path;

use anyhow::Context;
use remat::{Error, Model};
use remat_files::Outputs;

/// What a command reads and writes. Whatever it writes is told before it starts to work, so that an output that would destroy an input or
/// another output ends it at once.
#[derive(Debug, Default)]
pub(crate) struct Files(Outputs);

impl Files {
    /// Adds a file that is read, `the plan` for instance.
    ///
    /// # Errors
    /// If it is one of the outputs.
    pub(crate) fn reads<'p>(&mut self, what: &str, paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
        for path in paths {
            self.0.reads(what, path)?;
        }
        Ok(())
    }

    /// Adds files that will be written, `the chart (--svg)` for instance.
    ///
    /// # Errors
    /// If one is an input or another output, or no regular file.
    pub(crate) fn writes<'p>(&mut self, what: &str, paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
        for path in paths {
            self.0.writes(what, path)?;
        }
        Ok(())
    }

    /// Adds the data files of a model, which is known only when it has been read.
    ///
    /// # Errors
    /// If one of them is one of the outputs.
    pub(crate) fn reads_data_of(&mut self, model: &Model) -> Result<(), Error> {
        let files = model.onnx().map(remat::onnx::OnnxModel::files).unwrap_or_default();
        self.reads("a data file of the model", files.iter().map(AsRef::as_ref))
    }

    /// Adds the data files that came with a written model, so that nothing that is written later takes their place.
    ///
    /// # Errors
    /// If one of them is one of the outputs.
    pub(crate) fn keeps_data_of(&mut self, model: &Model, written: Option<&Path>) -> Result<(), Error> {
        let Some((onnx, written)) = model.onnx().zip(written) else {
            return Ok(());
        };
        let data = onnx
            .data_locations()
            .into_iter()
            .map(|name| written.with_file_name(name));
        for path in data {
            self.0.reads("a data file of the written model", &path)?;
        }
        Ok(())
    }
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// If it cannot be written; the old file is still there then.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    remat_files::write(path, content).with_context(|| format!("cannot write `{}`", path.display()))
}
