//! Weights in other files: where they may lie, what is checked, what is copied.

use std::fs;
use std::path::Path;

use remat_onnx::proto::{GraphProto, Message};
use remat_onnx::{ImportOptions, OnnxError, OnnxModel};
use tempfile::TempDir;

use crate::common::*;

/// A model with one weight of 8 floats outside.
fn weighted(entries: &[(&str, &str)]) -> GraphProto {
    let mut g = graph(&[("x", vector())], vec![node("Add", &["x", "w"], &["y"])], &["y"]);
    g.initializer = vec![external("w", &[8], entries)];
    g
}

fn write(folder: &Path, graph: GraphProto) -> std::path::PathBuf {
    let path = folder.join("model.onnx");
    fs::write(&path, model(graph).write_to_bytes().unwrap()).unwrap();
    path
}

fn open_at(path: &Path) -> Result<OnnxModel, OnnxError> {
    OnnxModel::open(path, &ImportOptions::default())
}

fn folder_with_data(bytes: usize) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("w.bin"), vec![7; bytes]).unwrap();
    folder
}

#[test]
fn ranges_are_checked_against_the_file() {
    let check = |entries: &[(&str, &str)]| {
        let folder = folder_with_data(40);
        open_at(&write(folder.path(), weighted(entries)))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let at = |offset| [("location", "w.bin"), ("offset", offset), ("length", "32")];
    assert_eq!(check(&at("8")), Ok(()));
    assert_eq!(check(&[("location", "w.bin")]), Ok(()));
    let texts = [
        check(&at("16")).unwrap_err(),
        check(&at("18446744073709551615")).unwrap_err(),
        check(&at("-1")).unwrap_err(),
        check(&[("location", "w.bin"), ("length", "40")]).unwrap_err(),
        check(&[("offset", "0")]).unwrap_err(),
    ];
    insta::assert_snapshot!(texts.join("\n"), @r#"
    external data of `w`: 32 bytes at offset 16 exceed `w.bin` of 40 bytes
    external data of `w`: 32 bytes at offset 18446744073709551615 exceed `w.bin` of 40 bytes
    external data of `w`: offset `-1` is not a number
    external data of `w`: its shape needs 32 bytes, the file entry has 40
    external data of `w`: it names no file
    "#);
}

#[test]
fn only_files_inside_the_folder_are_touched() {
    let outside = folder_with_data(32);
    let folder = folder_with_data(32);
    fs::create_dir(folder.path().join("sub")).unwrap();
    let absolute = outside.path().join("w.bin");
    let up = format!("../{}/w.bin", outside.path().file_name().unwrap().to_str().unwrap());
    for location in [
        absolute.to_str().unwrap(),
        up.as_str(),
        "sub/../../w.bin",
        "",
        "sub",
        "missing.bin",
        "C:\\w.bin",
    ] {
        let result = open_at(&write(folder.path(), weighted(&[("location", location)])));
        assert!(matches!(result, Err(OnnxError::ExternalData { .. })), "{location}");
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_the_folder_are_rejected_and_links_inside_are_not() {
    let outside = folder_with_data(32);
    let folder = folder_with_data(32);
    std::os::unix::fs::symlink(outside.path().join("w.bin"), folder.path().join("out.bin")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink("w.bin", folder.path().join("in.bin")).unwrap();
    let opened = |location: &str| open_at(&write(folder.path(), weighted(&[("location", location)]))).is_ok();
    assert_eq!(["out.bin", "out/w.bin", "in.bin"].map(opened), [false, false, true]);
}

#[test]
fn small_shape_constants_are_read_from_outside() {
    let folder = TempDir::new().unwrap();
    let values: Vec<u8> = [2_i64, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
    fs::write(folder.path().join("s.bin"), values).unwrap();
    let mut shape = external("s", &[2], &[("location", "s.bin")]);
    shape.data_type = INT64;
    let mut g = graph(
        &[("x", tensor_type(FLOAT, "1"))],
        vec![node("Expand", &["x", "s"], &["y"])],
        &["y"],
    );
    g.initializer = vec![shape];
    let model = open_at(&write(folder.path(), g)).unwrap();
    assert_eq!(bytes(model.graph(), "y"), Some(32));
}

#[test]
fn weights_far_larger_than_memory_are_not_read() {
    let folder = TempDir::new().unwrap();
    // A file with a hole: a terabyte long, nothing on disk.
    fs::File::create(folder.path().join("w.bin"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let mut g = weighted(&[("location", "w.bin")]);
    g.initializer[0].dims = vec![1 << 38];
    g.node = vec![node("Gather", &["w", "i"], &["y"])];
    g.input = vec![value("i", Some(tensor_type(INT64, "2")))];
    assert_eq!(bytes(open_at(&write(folder.path(), g)).unwrap().graph(), "y"), Some(8));
}

#[test]
fn saving_beside_the_model_refers_to_the_same_data() {
    let folder = folder_with_data(32);
    let path = write(folder.path(), weighted(&[("location", "w.bin")]));
    let model = open_at(&path).unwrap();
    let out = folder.path().join("out.onnx");
    model.save(model.graph(), &out).unwrap();
    assert_eq!(fs::read(&out).unwrap(), fs::read(&path).unwrap());
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        3,
        "no temporary file is left"
    );
}

#[test]
fn saving_elsewhere_copies_the_data_but_never_over_other_data() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/w.bin"), [7; 32]).unwrap();
    let model = open_at(&write(folder.path(), weighted(&[("location", "data/w.bin")]))).unwrap();
    let elsewhere = TempDir::new().unwrap();
    let out = elsewhere.path().join("model.onnx");
    model.save(model.graph(), &out).unwrap();
    assert_eq!(fs::read(elsewhere.path().join("data/w.bin")).unwrap(), [7; 32]);
    assert!(open_at(&out).is_ok());
    // Equal data is left alone, and the model may be written again.
    model.save(model.graph(), &out).unwrap();
    let before = fs::read(&out).unwrap();
    for other in [&[8; 32][..], &[7; 31]] {
        fs::write(elsewhere.path().join("data/w.bin"), other).unwrap();
        let error = model.save(model.graph(), &out).unwrap_err();
        assert!(error.to_string().contains("exists and differs"), "{error}");
        assert_eq!(fs::read(elsewhere.path().join("data/w.bin")).unwrap(), other);
        assert_eq!(fs::read(&out).unwrap(), before);
    }
}

#[test]
fn the_input_and_its_data_are_never_overwritten() {
    let folder = folder_with_data(32);
    let path = write(folder.path(), weighted(&[("location", "w.bin")]));
    let model = open_at(&path).unwrap();
    let roundabout = folder
        .path()
        .join("./../")
        .join(folder.path().file_name().unwrap())
        .join("model.onnx");
    for out in [path.clone(), roundabout, folder.path().join("w.bin")] {
        assert!(
            matches!(model.save(model.graph(), &out), Err(OnnxError::Output(_))),
            "{}",
            out.display()
        );
    }
    assert!(matches!(
        model.save(model.graph(), &folder.path().join("no/where.onnx")),
        Err(OnnxError::Io { .. })
    ));
}

#[cfg(unix)]
#[test]
fn copies_do_not_follow_links_out_of_the_output_folder() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/w.bin"), [7; 32]).unwrap();
    let model = open_at(&write(folder.path(), weighted(&[("location", "data/w.bin")]))).unwrap();
    let (elsewhere, trap) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::os::unix::fs::symlink(trap.path(), elsewhere.path().join("data")).unwrap();
    let result = model.save(model.graph(), &elsewhere.path().join("model.onnx"));
    assert!(matches!(result, Err(OnnxError::ExternalData { .. })));
    assert_eq!(fs::read_dir(trap.path()).unwrap().count(), 0);
}

#[test]
fn data_that_became_shorter_is_not_copied() {
    let folder = folder_with_data(32);
    let model = open_at(&write(folder.path(), weighted(&[("location", "w.bin")]))).unwrap();
    fs::write(folder.path().join("w.bin"), [7; 31]).unwrap();
    let elsewhere = TempDir::new().unwrap();
    let error = model
        .save(model.graph(), &elsewhere.path().join("model.onnx"))
        .unwrap_err();
    assert!(error.to_string().contains("32 bytes"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A mapped file would end the process here.
#[test]
fn a_model_that_is_truncated_while_it_is_read_is_an_error() {
    let folder = TempDir::new().unwrap();
    let mut g = graph(&[("x", vector())], vec![node("Relu", &["x"], &["y"])], &["y"]);
    let mut weights = tensor("w", 1, &[1 << 20]);
    weights.raw_data = vec![7; 4 << 20];
    g.initializer = vec![weights];
    let path = write(folder.path(), g);
    let whole = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                file.set_len(100).unwrap();
                std::thread::yield_now();
                fs::write(&path, &whole).unwrap();
            }
        });
        for _ in 0..20 {
            let opened = open_at(&path);
            assert!(opened.is_ok() || !opened.unwrap_err().to_string().is_empty());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_file_larger_than_any_model_is_not_read() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("huge.onnx");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = open_at(&path).unwrap_err();
    assert!(error.to_string().contains("1099511627776 bytes"), "{error}");
}
