//! One file per command.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod max_batch;
pub(crate) mod measure_child;
pub(crate) mod optimize;
pub(crate) mod profile;
pub(crate) mod reduce;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod verify;
pub(crate) mod verify_models;

/// How many threads to search with: two unless told, one where there is one core.
pub(crate) fn threads(wanted: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    wanted.unwrap_or_else(|| cores().min(2))
}

/// Reads a plan file.
pub(crate) fn read_plan(path: &std::path::Path) -> anyhow::Result<remat::plan::PlanFile> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Ok(remat::plan::PlanFile::from_json(&text).map_err(remat::Error::from)?)
}

/// The bytes of a file.
pub(crate) fn read(path: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    Ok(std::fs::read(path).map_err(|source| remat::Error::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?)
}
