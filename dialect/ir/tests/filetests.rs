//! Runs `test/filetests/ir/*.ir`: a file either is a graph exactly as it prints, or carries `// error: part of the message`
//! on the line where parsing must fail.

use std::fs;
use std::path::Path;

use remat_ir::Graph;

const MARK: &str = "// error: ";

/// What is wrong with the file, if anything.
fn judge(text: &str) -> Result<(), String> {
    let expected = text
        .lines()
        .enumerate()
        .find_map(|(i, line)| Some((i + 1, line.split_once(MARK)?.1.trim())));
    match (Graph::parse(text), expected) {
        (Ok(graph), None) if graph.to_string() == text => Ok(()),
        (Ok(graph), None) => Err(format!("prints differently:\n{graph}")),
        (Ok(_), Some((line, message))) => Err(format!("parses, but line {line} should fail: {message}")),
        (Err(error), None) => Err(error.to_string()),
        (Err(error), Some((line, message))) if error.line == line && error.to_string().contains(message) => Ok(()),
        (Err(error), Some((line, message))) => Err(format!("expected at line {line}: {message}\n  got {error}")),
    }
}

#[test]
fn every_file_behaves_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/filetests/ir");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "ir"));
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    let verdicts = files
        .iter()
        .map(|path| (path, judge(&fs::read_to_string(path).unwrap())));
    let failed: Vec<String> = verdicts
        .filter_map(|(path, verdict)| Some(format!("{}: {}", path.display(), verdict.err()?)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
