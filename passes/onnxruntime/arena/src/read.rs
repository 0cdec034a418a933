//! Files of plans.

use std::io::Read;

use crate::{ArenaPlanFile, MOST_FILE_BYTES, PlanFileError};

/// The plans in a file, or why there are none.
pub(crate) fn read_plan(path: &str) -> Result<ArenaPlanFile, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("this is not a regular file".to_owned());
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    // It may grow while it is read.
    let read = file.take(MOST_FILE_BYTES + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| error.to_string())?;
    if bytes as u64 > MOST_FILE_BYTES {
        let bytes = metadata.len().max(bytes as u64);
        return Err(format!("{bytes} bytes; a file of plans has at most {MOST_FILE_BYTES}"));
    }
    ArenaPlanFile::parse(&text).map_err(|error: PlanFileError| error.to_string())
}
