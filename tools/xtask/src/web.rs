//! The page of `tools/web`: a folder of files that any server of files can serve.

use std::path::Path;

use anyhow::Context;
use wasm_bindgen_cli_support::Bindgen;

/// The model that is shown to who has none at hand.
const EXAMPLE: &str = "unet_tiny_train.onnx";

/// Puts the page together in `out`.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn assemble(root: &Path, library: &Path, out: &Path) -> anyhow::Result<()> {
    let mut bindgen = Bindgen::new();
    // A worker loads it as a script: modules in workers are younger than what they are needed for.
    bindgen
        .input_path(library)
        .out_name("remat")
        .no_modules(true)?
        .typescript(false);
    std::fs::create_dir_all(out).with_context(|| format!("cannot make `{}`", out.display()))?;
    bindgen.generate(out)?;
    let assets = root.join("tools/web/assets");
    for entry in std::fs::read_dir(&assets).with_context(|| format!("cannot read `{}`", assets.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?;
        copy(&path, &out.join(name))?;
    }
    copy(&root.join("test/models").join(EXAMPLE), &out.join("example.onnx"))?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(from).with_context(|| format!("cannot read `{}`", from.display()))?;
    remat_files::write(to, bytes).with_context(|| format!("cannot write `{}`", to.display()))
}
