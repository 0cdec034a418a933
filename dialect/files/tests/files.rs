//! What happens to the files around an output.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use remat_files::{OutputError, OutputFile, Outputs, write};

/// A folder with a file `there` that holds `old`.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let there = folder.path().join("there");
    fs::write(&there, "old").expect("it can be written");
    (folder, there)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").permissions().mode() & 0o777
}

#[test]
fn a_file_is_written_whole_and_nothing_else_is_left() {
    let (folder, there) = folder();
    write(&there, "new").unwrap();
    write(folder.path().join("fresh"), "fresh").unwrap();
    assert_eq!(fs::read(&there).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["fresh", "there"]);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let (folder, there) = folder();
    let mut file = OutputFile::create(&there).unwrap();
    file.write_all(b"half").unwrap();
    file.flush().unwrap();
    drop(file);
    assert_eq!(fs::read(&there).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["there"]);
}

#[test]
fn the_name_of_a_file_on_its_way_cannot_be_foreseen() {
    let (folder, there) = folder();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let _file = OutputFile::create(&there).unwrap();
        seen.extend(names(folder.path()).into_iter().filter(|name| name != "there"));
    }
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn files_of_other_users_of_the_folder_are_not_touched() {
    let (folder, there) = folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.path().join("there.partial")).unwrap();
    write(&there, "new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["there", "there.partial", "victim"]);
}

#[test]
fn a_new_file_has_the_permissions_of_any_new_file_and_a_replaced_one_keeps_its_own() {
    let (folder, there) = folder();
    let (fresh, plain) = (folder.path().join("fresh"), folder.path().join("plain"));
    write(&fresh, "").unwrap();
    File::create(&plain).unwrap();
    assert_eq!(mode(&fresh), mode(&plain));
    fs::set_permissions(&there, fs::Permissions::from_mode(0o640)).unwrap();
    write(&there, "new").unwrap();
    assert_eq!(mode(&there), 0o640);
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_written() {
    let (folder, there) = folder();
    let (link, chain, dangling) = (
        folder.path().join("link"),
        folder.path().join("chain"),
        folder.path().join("dangling"),
    );
    symlink("there", &link).unwrap();
    symlink("link", &chain).unwrap();
    write(&chain, "new").unwrap();
    assert_eq!(fs::read(&there).unwrap(), b"new");
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("there"));
    symlink("later", &dangling).unwrap();
    write(&dangling, "new").unwrap();
    assert_eq!(fs::read(folder.path().join("later")).unwrap(), b"new");
    assert!(dangling.symlink_metadata().unwrap().is_symlink());
    let knot = folder.path().join("knot");
    symlink("knot", &knot).unwrap();
    assert!(write(&knot, "new").is_err());
}

#[test]
fn a_library_may_write_the_file_on_its_way() {
    let (folder, there) = folder();
    let file = OutputFile::create(&there).unwrap();
    fs::write(file.temporary_path(), "new").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&there).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["there"]);
}

#[test]
fn another_name_of_the_file_keeps_the_old_content() {
    let (folder, there) = folder();
    let other = folder.path().join("other");
    fs::hard_link(&there, &other).unwrap();
    write(&there, "new").unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"old");
}

#[test]
fn only_regular_files_are_written() {
    let (folder, _) = folder();
    let pipe = folder.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let slash = PathBuf::from(format!("{}/new/", folder.path().display()));
    for (path, what) in [
        (pipe.as_path(), "a pipe"),
        (&socket, "a socket"),
        (Path::new("/dev/null"), "a device"),
        (folder.path(), "a folder"),
        (&slash, "it names no file"),
    ] {
        let error = write(path, "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{what}");
        assert!(error.to_string().contains(what), "{error}");
    }
    let missing = write(folder.path().join("no/such"), "x").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_new_file_does_not_take_the_place_of_one_that_came_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let mut file = OutputFile::create(&path).unwrap();
    file.write_all(b"ours").unwrap();
    fs::write(&path, "theirs").unwrap();
    assert_eq!(file.commit_new().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    assert_eq!(names(folder.path()), ["data"]);
}

#[test]
fn an_input_is_refused_under_every_name() {
    let (folder, there) = folder();
    let at = |name: &str| folder.path().join(name);
    symlink("there", at("link")).unwrap();
    fs::hard_link(&there, at("hard")).unwrap();
    fs::create_dir(at("sub")).unwrap();
    for name in ["there", "./there", "link", "hard", "sub/../there"] {
        let mut files = Outputs::default();
        files.reads("the model", &there).unwrap();
        let error = files.writes("the plan", &at(name)).unwrap_err();
        assert!(matches!(error, OutputError::IsInput { .. }), "{name}: {error}");
        let mut files = Outputs::default();
        files.writes("the plan", &at(name)).unwrap();
        assert!(files.reads("the model", &there).is_err(), "{name}");
    }
    let mut files = Outputs::default();
    files.reads("the model", &there).unwrap();
    files.reads("the profile", &at("missing")).unwrap();
    files.writes("the plan", &at("new")).unwrap();
}

#[test]
fn two_outputs_must_differ_even_before_they_exist() {
    let (folder, there) = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    symlink("new", at("dangling")).unwrap();
    fs::hard_link(&there, at("hard")).unwrap();
    for (first, second) in [
        ("new", "./new"),
        ("new", "sub/../new"),
        ("new", "dangling"),
        ("there", "hard"),
    ] {
        let mut files = Outputs::default();
        files.writes("the plan", &at(first)).unwrap();
        let error = files.writes("the chart", &at(second)).unwrap_err();
        assert!(matches!(error, OutputError::Twice { .. }), "{second}: {error}");
    }
    let mut files = Outputs::default();
    files.writes("the plan", &at("new")).unwrap();
    files.writes("the chart", &at("newer")).unwrap();
    let error = files.writes("the report", folder.path()).unwrap_err();
    assert!(error.to_string().contains("a folder"), "{error}");
}
