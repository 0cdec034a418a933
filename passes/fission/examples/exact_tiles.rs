//! Tiles whole models as the exactness rule permits, for tests that run both in ONNX Runtime.
//!
//! Reads lines `MODEL AXIS TILES MODE THREADS BLOCKS OUT` and writes one line each: `yes` where the rule permits these tiles of all ops, which are
//! then in `OUT`, else `no` and the reason. `BLOCKS`: `true` where convolutions run in blocks of channels, else `false`.

use std::error::Error;
use std::io::{self, BufRead};
use std::path::Path;

use remat_fission::{Axis, Exactness, FusedChain, Mode, Tiling, apply};
use remat_onnx::{ImportOptions, OnnxModel};

#[expect(clippy::print_stdout, reason = "the answers are what this program is for")]
fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [model, axis, tiles, mode, threads, blocks, out] = words[..] else {
            return Err(format!("seven words are needed: {line}").into());
        };
        let axis: Axis = serde_json::from_str(&format!("{axis:?}"))?;
        let mode: Mode = serde_json::from_str(&format!("{mode:?}"))?;
        let (tiles, exactness) = (
            tiles.parse()?,
            Exactness::Exact {
                threads: threads.parse()?,
                blocks: blocks.parse()?,
            },
        );
        match tile(Path::new(model), (axis, tiles, mode), exactness, Path::new(out)) {
            Ok(()) => println!("yes"),
            Err(reason) => println!("no {reason}"),
        }
    }
    Ok(())
}

fn tile(
    model: &Path,
    (axis, tiles, mode): (Axis, u32, Mode),
    exactness: Exactness,
    out: &Path,
) -> Result<(), Box<dyn Error>> {
    let options = ImportOptions::default();
    let model = OnnxModel::open_for_run(model, &options)?;
    let graph = model.graph_with_integers(&options)?;
    let (Some(first), Some(last)) = (graph.ops.first(), graph.ops.last()) else {
        return Err("the model has no nodes".into());
    };
    let tiling = Tiling {
        fused_chains: vec![FusedChain {
            first: first.name.clone(),
            last: last.name.clone(),
            tiles,
            axis,
            mode,
            within: None,
        }],
        ..Tiling::default()
    };
    let tiled = apply(&graph, &tiling, exactness)?;
    remat_fission_check::check_fission(&graph, &tiled)?;
    let rewritten = model.rewritten(&tiled, &options)?;
    Ok(rewritten.save_proto(rewritten.proto(), out)?)
}
