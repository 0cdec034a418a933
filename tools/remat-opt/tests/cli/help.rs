//! Help: `-h` fits a screen, `--help` has everything, in groups.

use crate::{assert_contains_all, remat_opt, stdout_of};

const COMMANDS: [&str; 10] = [
    "",
    "inspect",
    "sweep",
    "compare",
    "max-batch",
    "check",
    "profile",
    "verify",
    "simulate",
    "place",
];

#[test]
fn short_help_fits_a_screen_and_names_the_long_one() {
    for command in COMMANDS {
        let text = stdout_of(&mut remat_opt(&format!("{command} -h")));
        let lines = text.lines().count();
        assert!(lines <= 53, "{lines} lines: {text}");
        assert!(text.contains("--help"), "{text}");
    }
}

#[test]
fn options_stand_in_groups() {
    let text = stdout_of(&mut remat_opt("--help"));
    let groups = [
        "\nInput:\n",
        "\nGoal:\n",
        "\nSearch:\n",
        "\nOutput:\n",
        "\nONNX Runtime:\n",
        "\nMLIR:\n",
        "\nSecond memory:\n",
        "\nReport:\n",
    ];
    assert_contains_all(&text, &groups);
    let (_, ungrouped) = text.split_once("\nOptions:\n").expect("some have no group");
    let until_next = |line: &&str| line.is_empty() || line.starts_with(' ');
    let names: Vec<_> = ungrouped
        .lines()
        .take_while(until_next)
        .filter(|line| line.trim_start().starts_with('-'))
        .collect();
    assert!(names.len() <= 2, "help and version only: {names:?}");
}
