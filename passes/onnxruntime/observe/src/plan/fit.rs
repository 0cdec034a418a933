//! From recorded runs to plans: runs with the same order of allocations and frees are one plan, and the sizes of its k-th buffers become a
//! formula.

use std::collections::BTreeMap;

use remat_formula::{Fit, Formula, OpenDim};
use remat_onnxruntime_arena::{ArenaPlan, ArenaPlanFile, PlannedBuffer, THREADS};
use remat_onnxruntime_run::{RecordedRun, Recording};

use super::inferred::{InferredSizes, TensorSizes};

/// Runs of a session with so many threads within a node.
pub(super) struct Recordings {
    pub(super) threads: u64,
    pub(super) shapes: Vec<Recording>,
}

/// A run, and the sizes of the open dimensions in it.
struct Sample<'r> {
    dims: Vec<u64>,
    inputs: &'r [(String, Vec<i64>)],
    run: &'r RecordedRun,
}

/// Plans without orders for these runs, in the order in which their kinds of runs were seen first. Sizes depend on the open dimensions and, where
/// that is seen, on the number of threads, of which the open dimensions say which range they have.
pub(super) fn plans(
    file: ArenaPlanFile,
    open: Vec<OpenDim>,
    threads: OpenDim,
    recorded: &[Recordings],
    inferred: &InferredSizes,
) -> ArenaPlanFile {
    let is_shared = !depends_on_threads(recorded);
    let dims: Vec<OpenDim> = open.into_iter().chain((!is_shared).then_some(threads)).collect();
    let mut groups: Vec<Vec<Sample<'_>>> = Vec::new();
    for recordings in recorded {
        for recording in &recordings.shapes {
            let size = |dim: &OpenDim| match dim.name.as_str() {
                THREADS => recordings.threads,
                name => recording.dims.get(name).copied().unwrap_or(1),
            };
            let sizes: Vec<u64> = dims.iter().map(size).collect();
            for run in &recording.runs {
                let sample = Sample {
                    dims: sizes.clone(),
                    inputs: &recording.inputs,
                    run,
                };
                match groups
                    .iter_mut()
                    .find(|group| group.first().is_some_and(|first| is_alike(first.run, run)))
                {
                    Some(group) => group.push(sample),
                    None => groups.push(vec![sample]),
                }
            }
        }
    }
    let (mut derived, mut plans) = (file.derived.clone(), Vec::new());
    for group in &groups {
        let mut fit = Fit::new(group.iter().map(|sample| sample.dims.clone()).collect(), derived);
        if !is_shared {
            fit = fit.capped(dims.len() - 1);
        }
        plans.extend(plan(
            group,
            &mut fit,
            &inferred.in_samples(&dims, group.iter().map(|sample| sample.dims.as_slice())),
        ));
        derived = fit.derived().to_vec();
    }
    ArenaPlanFile {
        dims,
        derived,
        plans,
        ..file
    }
}

/// Whether runs of one shape differ where the number of threads does.
pub(super) fn depends_on_threads(recorded: &[Recordings]) -> bool {
    let mut seen: BTreeMap<&BTreeMap<String, u64>, &RecordedRun> = BTreeMap::new();
    let all = recorded.iter().flat_map(|recordings| &recordings.shapes);
    let mut lasts = all.filter_map(|recording| Some((&recording.dims, recording.runs.last()?)));
    lasts.any(|(dims, run)| *seen.entry(dims).or_insert(run) != run)
}

/// Whether two runs allocate and free in the same order.
fn is_alike(one: &RecordedRun, other: &RecordedRun) -> bool {
    let lives = |run: &RecordedRun| {
        run.buffers
            .iter()
            .map(|buffer| (buffer.first, buffer.last))
            .collect::<Vec<_>>()
    };
    one.end == other.end && one.buffers.len() == other.buffers.len() && lives(one) == lives(other)
}

/// Whether a run allocates and frees in the order of a plan.
pub(super) fn is_of(plan: &ArenaPlan, run: &RecordedRun) -> bool {
    let lives = run
        .buffers
        .iter()
        .map(|buffer| (buffer.first, buffer.last.unwrap_or(run.end)));
    plan.buffers.iter().map(|buffer| (buffer.first, buffer.last)).eq(lives)
}

/// The plan of runs that are alike; `None` where they allocate nothing.
fn plan(group: &[Sample<'_>], fit: &mut Fit, tensors: &TensorSizes<'_>) -> Option<ArenaPlan> {
    let first = group.first()?;
    // Many buffers have the same sizes.
    let mut known: BTreeMap<Vec<u64>, (Formula, bool)> = BTreeMap::new();
    let mut buffers = Vec::new();
    for (place, buffer) in first.run.buffers.iter().enumerate() {
        let sizes: Vec<u64> = group.iter().map(|sample| sample.run.buffers[place].bytes).collect();
        let (size, is_exact) = known.entry(sizes).or_insert_with_key(|sizes| {
            match tensors.formula(sizes, fit).or_else(|| fit.exact(sizes)) {
                Some(formula) => (formula, true),
                None => (fit.bound(sizes), false),
            }
        });
        buffers.push(PlannedBuffer {
            size: size.clone(),
            is_exact: *is_exact,
            first: buffer.first,
            last: buffer.last.unwrap_or(first.run.end),
            ranks: None,
            is_output: buffer.last.is_none(),
        });
    }
    let mut inputs = Vec::new();
    for (place, (name, shape)) in first.inputs.iter().enumerate() {
        let mut dims = Vec::new();
        for axis in 0..shape.len() {
            let size = |sample: &Sample<'_>| sample.inputs.get(place).and_then(|(_, shape)| shape.get(axis).copied());
            let sizes = group
                .iter()
                .map(|sample| size(sample).and_then(|size| u64::try_from(size).ok()).unwrap_or(0));
            let sizes: Vec<u64> = sizes.collect();
            dims.push(fit.exact(&sizes).unwrap_or_else(|| fit.bound(&sizes)));
        }
        inputs.push((name.clone(), dims));
    }
    (!buffers.is_empty()).then_some(ArenaPlan {
        inputs,
        orders: 0,
        first: 0,
        buffers,
    })
}

#[cfg(test)]
mod tests {
    use remat_formula::Variables;
    use remat_onnxruntime_run::RecordedBuffer;

    use super::*;

    fn recording(n: u64, buffers: &[(u64, u64, Option<u64>)]) -> Recording {
        let buffer = |&(bytes, first, last)| RecordedBuffer { bytes, first, last };
        Recording {
            dims: BTreeMap::from([("n".to_owned(), n)]),
            inputs: vec![("x".to_owned(), vec![i64::try_from(n).unwrap_or(0), 3])],
            runs: vec![RecordedRun {
                buffers: buffers.iter().map(buffer).collect(),
                end: 4,
                threads: 1,
            }],
            weights: Vec::new(),
        }
    }

    fn dim(name: &str) -> OpenDim {
        OpenDim {
            name: name.to_owned(),
            least: 1,
            most: 8,
        }
    }

    fn planned(recorded: &[Recordings]) -> String {
        planned_with(recorded, &InferredSizes::default())
    }

    fn planned_with(recorded: &[Recordings], inferred: &InferredSizes) -> String {
        let text = plans(
            ArenaPlanFile::default(),
            vec![dim("n")],
            dim(THREADS),
            recorded,
            inferred,
        )
        .to_string();
        text.lines().skip(4).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn sizes_become_formulas_of_dimensions() {
        let shapes = (1..12).map(|n| {
            recording(
                n,
                &[(256 * n, 0, Some(2)), (64 * n.div_ceil(2), 1, Some(3)), (8, 2, None)],
            )
        });
        let recorded = [Recordings {
            threads: 1,
            shapes: shapes.collect(),
        }];
        insta::assert_snapshot!(planned(&recorded), @r"
        dim 1 8 n
        let floor d0+1 2
        plan buffers 3 orders 0 first 0
        input d0,3 x
        256*d0 0 2 heap
        64*d1 1 3 heap
        8 2 4 heap output
        ");
    }

    #[test]
    fn few_sizes_are_enough_where_they_are_those_of_a_tensor() {
        let shapes = [1, 4, 5, 8, 9, 12].map(|n| recording(n, &[(64 * n.div_ceil(4), 0, Some(2))]));
        let recorded = [Recordings {
            threads: 1,
            shapes: shapes.to_vec(),
        }];
        let quarters = |dims: &[&str]| {
            let mut variables = Variables::new(dims.iter().map(|name| dim(name)).collect());
            let quarter = variables
                .ceil(&Formula::variable(dims.len() - 1), 4)
                .expect("a quotient");
            let bytes = vec![quarter.times(&Formula::constant(64)).expect("a product")];
            InferredSizes { variables, bytes }
        };
        // So few sizes are those of several formulas; a dimension that no run has says nothing of these.
        let guessed = planned(&recorded);
        assert!(!guessed.contains("let floor d0+3 4"), "{guessed}");
        assert_eq!(planned_with(&recorded, &quarters(&["other", "n"])), guessed);
        insta::assert_snapshot!(planned_with(&recorded, &quarters(&["n"])), @r"
        dim 1 8 n
        let floor d0+3 4
        plan buffers 1 orders 0 first 0
        input d0,3 x
        64*d1 0 2 heap
        ");
    }

    #[test]
    fn a_dimension_that_is_the_same_in_all_runs_is_in_no_size() {
        let mut shapes = [1, 4, 5, 8, 9, 12].map(|n| recording(n, &[(3 * 64 * n.div_ceil(4), 0, Some(2))]));
        for shape in &mut shapes {
            shape.dims.insert("channels".to_owned(), 3);
        }
        let recorded = [Recordings {
            threads: 1,
            shapes: shapes.to_vec(),
        }];
        let dims = vec![dim("channels"), dim("n")];
        let mut variables = Variables::new(dims.clone());
        let [channels, n] = [0, 1].map(Formula::variable);
        let quarter = variables.ceil(&n, 4).expect("a quotient");
        // Of the channels alone, so a number.
        let pairs = variables.ceil(&channels, 2).expect("a quotient");
        let factors = [&channels, &pairs, &Formula::constant(32)];
        let bytes = factors
            .iter()
            .try_fold(quarter, |product, factor| product.times(factor));
        let inferred = InferredSizes {
            variables,
            bytes: vec![bytes.expect("a product")],
        };
        let file = plans(ArenaPlanFile::default(), dims, dim(THREADS), &recorded, &inferred);
        let text = file.to_string();
        insta::assert_snapshot!(text.lines().skip(4).collect::<Vec<_>>().join("\n"), @r"
        dim 1 8 channels
        dim 1 8 n
        let floor d1+3 4
        plan buffers 1 orders 0 first 0
        input d1,3 x
        192*d2 0 2 heap
        ");
    }

    #[test]
    fn threads_are_a_dimension_where_sizes_depend_on_them() {
        let of = |threads: u64| Recordings {
            threads,
            shapes: (1..4)
                .map(|n| recording(n, &[(256 * n, 0, Some(2)), (512 * threads.min(3), 1, Some(3))]))
                .collect(),
        };
        insta::assert_snapshot!(planned(&[1, 2, 4, 8].map(of)), @r"
        dim 1 8 n
        dim 1 8 intra_op_num_threads
        let min d1 3
        plan buffers 2 orders 0 first 0
        input d0,3 x
        256*d0 0 2 heap
        512*d2 1 3 heap
        ");
        insta::assert_snapshot!(planned(&[of(1)]), @r"
        dim 1 8 n
        plan buffers 2 orders 0 first 0
        input d0,3 x
        256*d0 0 2 heap
        512 1 3 heap
        ");
    }

    #[test]
    fn runs_of_another_order_are_another_plan() {
        let mut shapes: Vec<Recording> = (1..5).map(|n| recording(n, &[(256 * n, 0, Some(2))])).collect();
        shapes[0]
            .runs
            .insert(0, recording(1, &[(256, 0, Some(2)), (64, 1, None)]).runs[0].clone());
        let recorded = [Recordings { threads: 1, shapes }];
        insta::assert_snapshot!(planned(&recorded), @r"
        dim 1 8 n
        plan buffers 2 orders 0 first 0
        input 1,3 x
        256 0 2 heap
        64 1 4 heap output
        plan buffers 1 orders 0 first 0
        input d0,3 x
        256*d0 0 2 heap
        ");
    }
}
