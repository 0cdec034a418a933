//! The three large figures of a page: what the report says of memory, time and outputs.

use remat_page::Figure;

use super::document::Report;

pub(super) fn of(report: &Report) -> Vec<Figure> {
    let bytes = report.memory.most;
    let figures = ["Memory", "Time", "Outputs"].into_iter().filter_map(|name| {
        let entry = report.summary.iter().find(|entry| entry.name == name)?;
        let figure = match name {
            "Memory" => Figure {
                bars: Some((bytes.before_bytes, bytes.after_bytes)),
                ..of_memory(&entry.lines, bytes.after_bytes < bytes.before_bytes)
            },
            "Time" => of_line(entry.lines.first()?, &[" %"]),
            _ => of_line(entry.lines.first()?, &[", ", ": "]),
        };
        let name = name.to_owned();
        Some(Figure { name, ..figure })
    });
    figures.collect()
}

/// Before and after, the change, and what both are; a line without a change is a sentence.
fn of_memory(lines: &[String], is_gain: bool) -> Figure {
    let first = lines.first().map_or("", String::as_str);
    let parts: Vec<&str> = first.split("   ").collect();
    let [value, change, about] = parts[..] else {
        return of_line(first, &[": "]);
    };
    let more = lines[1..].iter().map(|line| format!("; {line}"));
    Figure {
        value: value.replace("->", "→"),
        change: Some((change.replace('-', "−"), is_gain)),
        about: std::iter::once(about.to_owned())
            .chain(more)
            .collect::<String>()
            .replace("->", "→"),
        ..Figure::default()
    }
}

/// A line up to the first of these marks, and what stands after it; a mark that ends in no space belongs to what is before it.
fn of_line(line: &str, marks: &[&str]) -> Figure {
    let found = marks.iter().filter_map(|mark| Some((line.find(mark)?, *mark))).min();
    let (value, about) = match found {
        Some((at, mark)) if mark.ends_with(' ') => (&line[..at], &line[at + mark.len()..]),
        Some((at, mark)) => line.split_at(at + mark.len()),
        None => (line, ""),
    };
    Figure {
        value: value.replace('-', "−").replace("bit−", "bit-"),
        about: about.trim().to_owned(),
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_beginning_of_its_line() {
        let memory = [
            "31.2 -> 11.7 MiB   -63 %   growth of the process",
            "first run 18.7 -> 11.5 MiB",
        ];
        let memory = of_memory(&memory.map(str::to_owned), true);
        assert_eq!(memory.value, "31.2 → 11.7 MiB");
        assert_eq!(memory.change, Some(("−63 %".to_owned(), true)));
        assert_eq!(memory.about, "growth of the process; first run 18.7 → 11.5 MiB");
        let nothing = of_memory(&["nothing gained: the original takes 3.0 MiB".to_owned()], false);
        assert_eq!(
            (nothing.value.as_str(), nothing.about.as_str()),
            ("nothing gained", "the original takes 3.0 MiB")
        );
        let time = of_line("-0.1 % measured (+3.7 % estimated)", &[" %"]);
        assert_eq!(
            (time.value.as_str(), time.about.as_str()),
            ("−0.1 %", "measured (+3.7 % estimated)")
        );
        let outputs = of_line("bit-identical, with batch=3, too", &[", ", ": "]);
        assert_eq!(
            (outputs.value.as_str(), outputs.about.as_str()),
            ("bit-identical", "with batch=3, too")
        );
    }
}
