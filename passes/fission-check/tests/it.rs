//! Tiled graphs written by hand: `test/filetests/fission/*.ir`, and the examples of the long texts.
//!
//! A file holds a graph, a line `// tiled`, and what fission made of it. `// error: CODE: part of the message` stands on the line of the op that
//! breaks a rule, on the first line of the tiled graph where it is the graph as a whole.
#![cfg(test)]

use std::path::Path;

use remat_fission_check::check_fission;
use remat_ir::{Dim, Graph, ValueType};
use remat_testing::{Numbers, evaluate, evaluate_numbers};
use remat_verify::{Code, Rejection};

const MARK: &str = "// error: ";
const BREAK: &str = "// tiled\n";

/// What stands in a file of the folder: original, tiled graph.
fn read(text: &str) -> (Graph, Graph) {
    let (original, tiled) = text.split_once(BREAK).expect("a line `// tiled`");
    let parse = |text| Graph::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (parse(original), parse(tiled))
}

/// The lines of the tiled graph with their codes, as the checker finds them.
fn found(tiled: &Graph, text: &str, rejection: &Rejection) -> Vec<(usize, String)> {
    let violations = rejection.violations.iter().map(|violation| {
        let op = violation.step.and_then(|step| tiled.ops.iter().nth(step));
        let line = op.and_then(|op| text.lines().position(|line| line.contains(&format!("@{} ", op.name))));
        (line.unwrap_or(0), violation.to_string())
    });
    let mut found: Vec<_> = violations.collect();
    found.sort();
    found
}

/// In integers; where sums are split, in double precision.
fn computes_the_same(original: &Graph, tiled: &Graph) -> bool {
    let splits_sums = tiled
        .ops
        .iter()
        .flat_map(|op| &op.parts)
        .flatten()
        .any(|part| part.is_sum);
    if !splits_sums {
        return evaluate(tiled) == evaluate(original);
    }
    let given = |name: &str, dims: &[usize]| {
        let mut number = name.len() as f64;
        Numbers::from_fn(dims, |_| {
            number = (number * 1.7 + 0.3) % 5.0;
            number - 2.0
        })
    };
    let (before, after) = (evaluate_numbers(original, given), evaluate_numbers(tiled, given));
    let mut names = original.outputs.iter().map(|&output| &original.tensors[output].name);
    names.all(|name| {
        before[name]
            .data
            .iter()
            .zip(&after[name].data)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    })
}

fn judge(text: &str) -> Result<(), String> {
    let (original, tiled) = read(text);
    let after = text.split_once(BREAK).map_or("", |(_, after)| after);
    let expected: Vec<(usize, &str)> = after
        .lines()
        .enumerate()
        .filter_map(|(line, text)| Some((line, text.split_once(MARK)?.1.trim())))
        .collect();
    match check_fission(&original, &tiled) {
        Ok(()) if expected.is_empty() => {
            assert!(
                computes_the_same(&original, &tiled),
                "accepted, and computes something else"
            );
            Ok(())
        }
        Ok(()) => Err("is accepted".to_owned()),
        Err(rejection) => {
            let found = found(&tiled, after, &rejection);
            let agree = found.len() == expected.len()
                && found.iter().zip(&expected).all(|((line, message), (at, part))| {
                    let (code, part) = part.split_once(": ").unwrap_or((part, ""));
                    line == at && message.starts_with(code) && message.contains(part)
                });
            if agree {
                Ok(())
            } else {
                Err(format!("expected {expected:#?}\nfound {found:#?}"))
            }
        }
    }
}

#[test]
fn every_file_behaves_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/filetests/fission");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    let failed: Vec<String> = files
        .iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let why = judge(&text).err()?;
            Some(format!("{}: {why}", path.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// The original of a text, and the tiled graph with the lines of one sign.
fn example(code: Code, sign: char) -> (String, String) {
    let lines = || code.explain().lines().filter_map(|line| line.strip_prefix("    "));
    let original = lines().filter(|line| !line.starts_with([' ', '-', '+']));
    let tiled = lines().filter_map(|line| line.strip_prefix([' ', sign])?.strip_prefix(' '));
    let graph = |lines: Vec<&str>| format!("graph \"g\" {{\n{}\n}}", lines.join("\n"));
    (graph(original.collect()), graph(tiled.collect()))
}

#[test]
fn the_wrong_example_of_every_text_breaks_its_rule_and_the_repaired_one_is_valid() {
    for &code in Code::ALL.iter().filter(|code| code.is_about_fission()) {
        let check = |sign| {
            let (original, tiled) = example(code, sign);
            let original = Graph::parse(&original).unwrap_or_else(|error| panic!("{code}: {error}"));
            Graph::parse(&tiled).map(|tiled| check_fission(&original, &tiled))
        };
        match check('-') {
            Err(_) => assert_eq!(code, Code::F013, "only a graph that is not valid cannot be read"),
            Ok(judged) => assert_eq!(judged.unwrap_err().codes(), [code]),
        }
        let repaired = check('+').unwrap_or_else(|error| panic!("{code}: {error}"));
        assert!(repaired.is_ok(), "{code}: {}", repaired.unwrap_err());
    }
}

#[test]
fn a_graph_that_is_not_valid_is_rejected() {
    let (original, tiled) = example(Code::F013, '+');
    let original = Graph::parse(&original).unwrap();
    let mut tiled = Graph::parse(&tiled).unwrap();
    tiled.ops.last_mut().unwrap().parts.clear();
    tiled.ops.first_mut().unwrap().parts.push(None);
    let rejection = check_fission(&original, &tiled).unwrap_err();
    assert_eq!(rejection.codes(), [Code::F013]);
    assert!(
        rejection
            .to_string()
            .starts_with("tiled graph rejected with 1 violation\n  F013: "),
        "{rejection}"
    );
}

#[test]
fn sizes_that_are_free_are_neither_counted_nor_summed_over() {
    for name in [
        "valid_groups_normalized_between_reshapes",
        "valid_terms_of_a_product_summed_up",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../test/filetests/fission/{name}.ir"));
        let (mut original, mut tiled) = read(&std::fs::read_to_string(path).unwrap());
        assert_eq!(check_fission(&original, &tiled), Ok(()));
        for graph in [&mut original, &mut tiled] {
            let input = graph.inputs[0];
            let ValueType::Tensor { shape: Some(dims), .. } = &mut graph.tensors[input].ty else {
                panic!("`{name}` has no tensor as its input");
            };
            let last = dims.last_mut().unwrap();
            let size = last.size().unwrap();
            *last = Dim::Free { size, name: None };
        }
        let rejection = check_fission(&original, &tiled).unwrap_err();
        let codes = rejection.codes();
        assert!(
            codes.contains(&Code::F014) || codes.contains(&Code::F004),
            "{rejection}"
        );
    }
}
