//! Spellings of options and names of solvers that an earlier release had. They are understood for one release more, and leave no trace in
//! the help.

use std::ffi::{OsStr, OsString};

/// The command line in today's spellings, and a sentence about each that is not: `--no-arena` is `--arena off`, `--arena` and
/// `--pattern` alone mean `on`, and `--solver` and `--solvers` take [today's names](remat::renamed).
pub(crate) fn modernized(arguments: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut notes = Vec::new();
    let mut modern: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            modern.push(argument);
            modern.extend(rest);
            break;
        }
        let names = argument.to_str().and_then(|text| match text.split_once('=') {
            Some(("--solver" | "--solvers", names)) => Some(names),
            _ => modern
                .last()
                .is_some_and(|option| takes_solvers(option))
                .then_some(text),
        });
        if let Some((names, today)) = names.and_then(|names| Some((names, today(names)?))) {
            notes.push(format!("`{names}` is an old name: write `{today}`"));
            modern.push(argument.to_string_lossy().replace(names, &today).into());
            continue;
        }
        let has_value = rest.peek().is_some_and(|next| is_switch(next));
        let replacement = match argument.to_str() {
            Some("--no-arena") => "--arena=off",
            Some("--arena") if !has_value => "--arena=on",
            Some("--pattern") if !has_value => "--pattern=on",
            _ => {
                modern.push(argument);
                continue;
            }
        };
        notes.push(format!(
            "`{}` is an old spelling: write `{}`",
            argument.to_string_lossy(),
            replacement.replace('=', " ")
        ));
        modern.push(replacement.into());
    }
    (modern, notes)
}

fn takes_solvers(option: &OsStr) -> bool {
    option == "--solver" || option == "--solvers"
}

/// Solvers, separated by commas, by today's names; absent where they are that already.
fn today(names: &str) -> Option<String> {
    let today: Vec<_> = names
        .split(',')
        .map(|name| remat::renamed(name).unwrap_or(name))
        .collect();
    let today = today.join(",");
    (today != names).then_some(today)
}

fn is_switch(argument: &OsStr) -> bool {
    argument == "on" || argument == "off"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modern(line: &str) -> String {
        let (words, _) = modernized(line.split(' ').map(OsString::from).collect());
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn old_spellings_mean_what_they_meant() {
        assert_eq!(
            modern("in.onnx --no-arena -o out.onnx"),
            "in.onnx --arena=off -o out.onnx"
        );
        assert_eq!(
            modern("verify --arena a.onnx b.onnx"),
            "verify --arena=on a.onnx b.onnx"
        );
        assert_eq!(
            modern("verify a.onnx b.onnx --pattern"),
            "verify a.onnx b.onnx --pattern=on"
        );
        assert_eq!(
            modern("in.onnx --solver chen-sqrt -o a.onnx"),
            "in.onnx --solver chen:sqrt -o a.onnx"
        );
        assert_eq!(
            modern("compare in.onnx --solvers=auto,dtr:dtr-eq,gap-scip"),
            "compare in.onnx --solvers=auto,dtr:eq,gap:scip"
        );
    }

    #[test]
    fn todays_spellings_stay() {
        for line in [
            "verify --arena off a.onnx b.onnx --pattern=on",
            "in.onnx --arena on",
            "in.onnx -- --no-arena",
            "chen-sqrt --solver chen:sqrt",
        ] {
            assert_eq!(modern(line), line);
            let (_, notes) = modernized(line.split(' ').map(OsString::from).collect());
            assert_eq!(notes, Vec::<String>::new());
        }
    }
}
