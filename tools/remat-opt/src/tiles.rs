//! Stretches that run tile by tile, in words.

use remat::plan::Tiling;
use remat_files::shown;

/// A line for each stretch that runs again or in tiles.
pub(crate) fn lines(tiling: &Tiling) -> Vec<String> {
    let again = tiling.again.iter().map(|again| {
        let [first, last, before] = [&again.first, &again.last, &again.before].map(shown);
        format!("`{first}` .. `{last}` run again before `{before}`")
    });
    let stretches = tiling.stretches.iter().map(|stretch| {
        let [first, last] = [&stretch.first, &stretch.last].map(shown);
        let (axis, mode) = (words(&stretch.axis), words(&stretch.mode));
        let within = stretch.within.as_ref().map_or_else(String::new, |within| {
            let (axis, mode) = (words(&within.axis), words(&within.mode));
            format!(", each in {} along {axis} ({mode})", within.tiles)
        });
        format!(
            "`{first}` .. `{last}` in {} tiles along {axis} ({mode}){within}",
            stretch.tiles
        )
    });
    again.chain(stretches).collect()
}

/// A name as files have it.
fn words(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
