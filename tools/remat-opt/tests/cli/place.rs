//! `remat-opt place`.

use crate::{Folder, assert_contains_all, remat_opt, stdout_of};

const BUFFERS: &str = "cli/buffers.csv";

#[test]
fn the_lowest_placement_is_found_and_proved() {
    assert_run!("place {BUFFERS}");
    assert_run!("place {BUFFERS} --format json");
}

#[test]
fn blocks_of_given_sizes_are_filled_or_refused() {
    assert_run!("place {BUFFERS} --capacity 256,256");
    assert_run!("place {BUFFERS} --capacity 300");
    assert_run!("place {BUFFERS} --capacity 160,160 --format json");
    assert_run!("place {BUFFERS} --capacity 4,316 --step-limit 1");
}

#[test]
fn offsets_are_written_beside_the_buffers() {
    let folder = Folder::new();
    let out = folder.path("out.csv");
    stdout_of(&mut remat_opt(&format!("place {BUFFERS} -o {}", out.display())));
    let text = folder.read("out.csv");
    assert!(text.starts_with("id,lower,upper,size,offset\n"), "{text}");
    assert_eq!(text.lines().count(), 8);
    // What is written is read, with every offset as it is.
    let again = stdout_of(&mut remat_opt(&format!("place {} -o -", out.display())));
    assert_eq!(again, text);
    let onto_itself = remat_opt(&format!("place {0} -o {0}", out.display()))
        .output()
        .expect("it runs");
    assert_eq!(onto_itself.status.code(), Some(2));
}

#[test]
fn buffers_that_make_no_sense_are_refused_with_their_line() {
    let folder = Folder::new();
    let head = "id,lower,upper,size,alignment,offset";
    for (text, expected) in [
        ("", "line 1: the file is empty"),
        (
            "\u{1b}[2J,lower,upper,size\n",
            "line 1: there is no column `\\u001b[2J`",
        ),
        (
            &format!("{head}\na,0,4,8,1,\nb,0,4,8x,1,\n"),
            "line 3: the size is `8x`, which is not a whole number",
        ),
        (
            &format!("{head}\na,5,4,8,1,\n"),
            "line 2: buffer `a`: its lifetime begins at 5 and ends before, at 4",
        ),
        (
            &format!("{head}\na,0,4,8,8,4\n"),
            "line 2: buffer `a`: it is pinned at 4",
        ),
        (
            &format!("{head}\na,0,4,18446744073709551615,1,\n"),
            "with buffer `a` sizes, alignments and pinned offsets add up",
        ),
        (
            &format!("{head}\na,0,4,8,1,0\nb,0,4,8,1,4\n"),
            "buffers `a` and `b` are pinned to the same bytes at the same time",
        ),
    ] {
        std::fs::write(folder.path("wrong.csv"), text).expect("it can be written");
        let output = remat_opt(&format!("place {}", folder.path("wrong.csv").display()))
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{text}");
        let told = String::from_utf8_lossy(&output.stderr).replace("\n  │ ", " ");
        assert_contains_all(&told, &[expected]);
    }
}
