//! Fused chains that run tile by tile, in words.

use remat::plan::Tiling;
use remat_files::shown;

/// A line for each fused chain that runs again or in tiles.
pub(crate) fn lines(tiling: &Tiling) -> Vec<String> {
    let again = tiling.again.iter().map(|again| {
        let [first, last, before] = [&again.first, &again.last, &again.before].map(shown);
        format!("`{first}` .. `{last}` run again before `{before}`")
    });
    let fused_chains = tiling.fused_chains.iter().map(|fused_chain| {
        let [first, last] = [&fused_chain.first, &fused_chain.last].map(shown);
        let (axis, mode) = (words(&fused_chain.axis), words(&fused_chain.mode));
        let within = fused_chain.within.as_ref().map_or_else(String::new, |within| {
            let (axis, mode) = (words(&within.axis), words(&within.mode));
            format!(", each in {} along {axis} ({mode})", within.tiles)
        });
        format!(
            "`{first}` .. `{last}` in {} tiles along {axis} ({mode}){within}",
            fused_chain.tiles
        )
    });
    again.chain(fused_chains).collect()
}

/// A name as files have it.
fn words(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
