//! What is read as a log, and what is refused.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use remat_dtr::{LogErrorKind, SimulateOptions, read_log, simulate};

use crate::support::folder;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(every_broken_log_is_refused_with_its_line_and_reason),
        trial!(a_compressed_log_is_the_log),
        trial!(a_truncated_archive_is_refused),
        trial!(an_archive_that_unpacks_without_end_is_refused),
        trial!(ops_that_take_no_time_do_not_keep_the_simulator_busy_for_ever),
    ]
}

fn every_broken_log_is_refused_with_its_line_and_reason() {
    let files = std::fs::read_dir(folder().join("invalid")).expect("the folder is in the repository");
    let mut files: Vec<_> = files.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let refusals = files.iter().map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let error = read_log(&std::fs::read(path).expect("readable")).expect_err(&name);
        format!("{name}: {error}\n")
    });
    insta::assert_snapshot!(refusals.collect::<String>());
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(text)
        .and_then(|()| encoder.finish())
        .expect("memory is enough")
}

fn sample() -> Vec<u8> {
    std::fs::read(folder().join("training_step.log")).expect("the log is in the repository")
}

fn a_compressed_log_is_the_log() {
    let (plain, packed) = (read_log(&sample()).unwrap(), read_log(&compressed(&sample())).unwrap());
    let figures = |trace| simulate(trace, &SimulateOptions::default());
    assert_eq!(figures(&plain), figures(&packed));
}

fn a_truncated_archive_is_refused() {
    let packed = compressed(&sample());
    let error = read_log(&packed[..packed.len() / 2]).unwrap_err();
    assert!(matches!(error.kind, LogErrorKind::Unreadable(_)), "{error}");
}

fn an_archive_that_unpacks_without_end_is_refused() {
    let line = [b' '; 1 << 20];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..257 {
        encoder.write_all(&line).unwrap();
        encoder.write_all(b"\n").unwrap();
    }
    let error = read_log(&encoder.finish().unwrap()).unwrap_err();
    assert!(matches!(error.kind, LogErrorKind::TooLong { .. }), "{error}");
}

fn ops_that_take_no_time_do_not_keep_the_simulator_busy_for_ever() {
    let text = String::from_utf8(sample()).unwrap();
    let timeless: Vec<String> = text
        .lines()
        .map(|line| {
            let Some((head, _)) = line.split_once("\"TIME\":") else {
                return line.to_owned();
            };
            format!("{head}\"TIME\":\"0\"}}")
        })
        .collect();
    let trace = read_log(timeless.join("\n").as_bytes()).unwrap();
    let budget = Some(trace.constant_bytes() + trace.bottleneck() + 300);
    let result = simulate(
        &trace,
        &SimulateOptions {
            budget,
            ..SimulateOptions::default()
        },
    );
    assert!((result.overhead - 1.0).abs() < 1e-12 && result.recompute_ns == 0);
}
