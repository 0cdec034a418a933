//! Problems in JSON.

use remat_plan::Problem;

use crate::judge;

/// Reads a problem and plans it.
pub(crate) fn body(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(problem) = Problem::from_json(text) else {
        return false;
    };
    assert_eq!(Problem::from_json(&problem.to_json()).as_ref(), Ok(&problem));
    judge::plans(&problem);
    true
}
