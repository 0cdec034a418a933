//! From recorded runs to the weights that every run reads.

use std::collections::BTreeSet;
use std::path::Path;

use remat_onnxruntime_arena::{PlannedWeights, WeightUse};
use remat_onnxruntime_run::RecordedWeight;

use super::fit::Recordings;

/// The weights that all recorded runs read from this file, in the order of the first shape; `None` where they do not all read the same ones, or
/// read none.
pub(super) fn planned(file: &Path, recorded: &[Recordings]) -> Option<PlannedWeights> {
    let name = file.file_name()?.to_str()?;
    let mut all = recorded.iter().flat_map(|recordings| &recordings.shapes);
    let first = &all.next()?.weights;
    let parts = |weights: &[RecordedWeight]| weights.iter().copied().collect::<BTreeSet<_>>();
    let expected = parts(first);
    let is_same = !first.is_empty() && all.all(|shape| parts(&shape.weights) == expected);
    (is_same && PlannedWeights::is_name(name)).then(|| PlannedWeights {
        file: name.to_owned(),
        uses: first
            .iter()
            .map(|&RecordedWeight { offset, bytes }| WeightUse { offset, bytes })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use remat_onnxruntime_run::Recording;

    use super::*;

    fn recordings(shapes: &[&[u64]]) -> Recordings {
        let shape = |offsets: &&[u64]| Recording {
            dims: BTreeMap::new(),
            inputs: Vec::new(),
            runs: Vec::new(),
            weights: offsets
                .iter()
                .map(|&offset| RecordedWeight { offset, bytes: 8 })
                .collect(),
        };
        Recordings {
            threads: 1,
            shapes: shapes.iter().map(shape).collect(),
        }
    }

    #[test]
    fn runs_of_all_shapes_read_the_same_weights_or_nothing_is_known() {
        let file = Path::new("folder/w.data");
        let uses = |shapes: &[&[u64]]| {
            let planned = planned(file, &[recordings(shapes), recordings(&shapes[..1])])?;
            Some((
                planned.file,
                planned.uses.iter().map(|part| part.offset).collect::<Vec<_>>(),
            ))
        };
        assert_eq!(uses(&[&[8, 0], &[0, 8]]), Some(("w.data".to_owned(), vec![8, 0])));
        assert_eq!(uses(&[&[8, 0], &[8]]), None);
        assert_eq!(uses(&[&[]]), None);
    }
}
