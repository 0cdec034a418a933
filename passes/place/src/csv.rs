//! Buffers and placements in MiniMalloc's form: a line per buffer, columns by name.
//!
//! | column | meaning |
//! |---|---|
//! | `id`, `buffer`, `buffer_id` | a name, unique |
//! | `lower`, `start`, `begin` | the first time at which it takes its bytes |
//! | `upper` | the first time at which it takes them no more; or `end`, the last time at which it does |
//! | `size` | its bytes |
//! | `alignment` | its offset is a multiple of this; 1 where it is empty or absent |
//! | `gaps` | times at which it takes nothing, `7-9 12-15`; their ends are like those of the lifetime |
//! | `offset` | the offset that it has to have, in the first block; empty where it may lie anywhere |
//! | `hint` | an offset to start from |
//!
//! A placement has the columns `lower`, `upper`, `size` and those that say something, then `block` where there are several, and `offset`.

use std::fmt::Write;
use std::ops::Range;

use remat_files::shown;
use remat_plan::{Buffer, BufferId, Place, Placement};
use rustc_hash::FxHashMap;
use thiserror::Error;
use typed_index_collections::{TiSlice, TiVec};

/// Why a text is no list of buffers. Lines count from 1.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {}", shown(.why))]
pub struct CsvError {
    /// The line that is wrong.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
}

/// What a file of buffers holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferFile {
    /// The buffers, in the order of the lines.
    pub buffers: TiVec<BufferId, Buffer>,
    /// Where the hints say that they lie; `None` without a column of hints.
    pub hints: Option<Placement>,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Id,
    Lower,
    Upper,
    End,
    Size,
    Alignment,
    Gaps,
    Offset,
    Hint,
}

/// The columns by their names.
const COLUMNS: [(&str, Column); 13] = [
    ("id", Column::Id),
    ("buffer", Column::Id),
    ("buffer_id", Column::Id),
    ("lower", Column::Lower),
    ("start", Column::Lower),
    ("begin", Column::Lower),
    ("upper", Column::Upper),
    ("end", Column::End),
    ("size", Column::Size),
    ("alignment", Column::Alignment),
    ("gaps", Column::Gaps),
    ("offset", Column::Offset),
    ("hint", Column::Hint),
];

/// Reads buffers. Empty lines count as lines and hold nothing.
///
/// # Errors
/// [`CsvError`] with the first line that is wrong.
pub fn read_csv(text: &str) -> Result<BufferFile, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_end()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty());
    let Some((line, header)) = lines.next() else {
        let why = "the file is empty, a line with the names of the columns is expected".to_owned();
        return Err(CsvError { line: 1, why });
    };
    let columns = columns(header).map_err(|why| CsvError { line, why })?;
    let mut file = BufferFile {
        buffers: TiVec::new(),
        hints: columns.contains(&Column::Hint).then(Placement::default),
    };
    let mut first_lines: FxHashMap<String, usize> = FxHashMap::default();
    for (line, text) in lines {
        let fault = |why| CsvError { line, why };
        let (buffer, hint) = record(&columns, text).map_err(fault)?;
        if let Some(first) = first_lines.insert(buffer.name.clone(), line) {
            return Err(fault(format!(
                "buffer `{}` stands on line {first} as well",
                buffer.name
            )));
        }
        buffer.validate().map_err(|error| fault(error.to_string()))?;
        file.buffers.push(buffer);
        if let Some(hints) = &mut file.hints {
            hints.places.push(hint.map(|offset| Place { block: 0, offset }));
        }
    }
    Ok(file)
}

fn columns(header: &str) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let Some(&(_, column)) = COLUMNS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = COLUMNS.iter().map(|(known, _)| *known).collect();
            return Err(format!(
                "there is no column `{name}`, known are `{}`",
                known.join("`, `")
            ));
        };
        if columns.contains(&column) {
            return Err(format!("column `{name}` says what another one says already"));
        }
        columns.push(column);
    }
    let has = |column| columns.contains(&column);
    if has(Column::Upper) && has(Column::End) {
        return Err("`upper` and `end` say the same, one after the other: name one of them".to_owned());
    }
    let needed = [
        ("id", has(Column::Id)),
        ("lower", has(Column::Lower)),
        ("upper", has(Column::Upper) || has(Column::End)),
        ("size", has(Column::Size)),
    ];
    match needed.iter().find(|(_, is_there)| !is_there) {
        Some((missing, _)) => Err(format!("column `{missing}` is missing")),
        None => Ok(columns),
    }
}

/// A buffer, and the offset that its hint names.
fn record(columns: &[Column], text: &str) -> Result<(Buffer, Option<u64>), String> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!("{} fields, the first line has {}", fields.len(), columns.len()));
    }
    let mut buffer = Buffer::new("", 0, 0..0);
    let (mut gaps, mut hint) = ("", None);
    for (&column, &field) in columns.iter().zip(&fields) {
        match column {
            Column::Id if field.is_empty() => return Err("the id is empty".to_owned()),
            Column::Id => field.clone_into(&mut buffer.name),
            Column::Lower => buffer.lifetime.start = number("the first time", field)?,
            Column::Upper => buffer.lifetime.end = number("the end of the lifetime", field)?,
            Column::End => buffer.lifetime.end = behind(number("the last time", field)?)?,
            Column::Size => buffer.size = number("the size", field)?,
            Column::Alignment if field.is_empty() => {}
            Column::Alignment => buffer.alignment = number("the alignment", field)?,
            Column::Gaps => gaps = field,
            Column::Offset if field.is_empty() => {}
            Column::Offset => buffer.pinned = Some(number("the offset", field)?),
            Column::Hint if field.is_empty() => {}
            Column::Hint => hint = Some(number("the hint", field)?),
        }
    }
    let is_last = columns.contains(&Column::End);
    for text in gaps.split_ascii_whitespace() {
        buffer.gaps.push(gap(text, is_last)?);
    }
    buffer.gaps.sort_by_key(|gap| gap.start);
    Ok((buffer, hint))
}

fn gap(text: &str, is_last: bool) -> Result<Range<u64>, String> {
    if text.contains('@') {
        return Err(format!(
            "the gap `{text}` is one of some bytes of the buffer only, which is not supported"
        ));
    }
    let Some((start, end)) = text.split_once('-') else {
        return Err(format!("`{text}` is not a gap, `7-9` is expected"));
    };
    let (start, end) = (number("the start of a gap", start)?, number("the end of a gap", end)?);
    Ok(start..if is_last { behind(end)? } else { end })
}

fn behind(last: u64) -> Result<u64, String> {
    last.checked_add(1).ok_or_else(|| format!("time {last} is too large"))
}

fn number(what: &str, text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Err(match text {
        "" => format!("{what} is empty"),
        _ if is_whole && digits.len() < text.len() => format!("{what} is {text}, which is below 0"),
        _ if is_whole => format!("{what} is {text}, which 64 bits do not hold"),
        _ => format!("{what} is `{text}`, which is not a whole number"),
    })
}

/// Writes buffers and where they lie. Commas and line breaks in names become `_`.
#[must_use]
pub fn write_csv(buffers: &TiSlice<BufferId, Buffer>, placement: &Placement) -> String {
    let has_alignment = buffers.iter().any(|buffer| buffer.alignment != 1);
    let has_gaps = buffers.iter().any(|buffer| !buffer.gaps.is_empty());
    let has_blocks = placement.places.iter().flatten().any(|place| place.block > 0);
    let mut text = "id,lower,upper,size".to_owned();
    for (column, is_there) in [
        (",alignment", has_alignment),
        (",gaps", has_gaps),
        (",block", has_blocks),
        (",offset", true),
    ] {
        text += if is_there { column } else { "" };
    }
    text.push('\n');
    for (id, buffer) in buffers.iter_enumerated() {
        let name = buffer.name.replace([',', '\n', '\r'], "_");
        let Range { start, end } = buffer.lifetime;
        _ = write!(text, "{name},{start},{end},{}", buffer.size);
        if has_alignment {
            _ = write!(text, ",{}", buffer.alignment);
        }
        if has_gaps {
            let gaps = buffer.gaps.iter().map(|gap| format!("{}-{}", gap.start, gap.end));
            _ = write!(text, ",{}", gaps.collect::<Vec<_>>().join(" "));
        }
        let place = placement.places.get(id).copied().flatten();
        let field = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        if has_blocks {
            _ = write!(text, ",{}", field(place.map(|place| place.block as u64)));
        }
        _ = writeln!(text, ",{}", field(place.map(|place| place.offset)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_any_of_their_names_and_in_any_order() {
        let file = read_csv("size, buffer_id,start,end\n8,a,0,4\n\n16,b,5,5\n").unwrap();
        let b = Buffer::new("b", 16, 5..6);
        assert_eq!(file.buffers.raw, [Buffer::new("a", 8, 0..5), b]);
        assert_eq!(file.hints, None);
    }

    #[test]
    fn alignment_gaps_offsets_and_hints_may_be_empty() {
        let text = "id,lower,upper,size,alignment,gaps,offset,hint\r\na,0,9,8,4,5-6 2-3,16,\r\nb,0,9,8,,,,32\r\n";
        let file = read_csv(text).unwrap();
        let a = &file.buffers[BufferId::new(0)];
        assert_eq!((a.alignment, a.pinned), (4, Some(16)));
        assert_eq!(a.gaps, [2..3, 5..6]);
        assert_eq!(file.buffers[BufferId::new(1)], Buffer::new("b", 8, 0..9));
        let hint = Place { block: 0, offset: 32 };
        assert_eq!(file.hints.unwrap().places.raw, [None, Some(hint)]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let head = "id,lower,upper,size";
        for (text, expected) in [
            (String::new(), "line 1: the file is empty"),
            ("id,lower,upper\n".to_owned(), "line 1: column `size` is missing"),
            (format!("{head},color\n"), "line 1: there is no column `color`"),
            (format!("{head},end\n"), "line 1: `upper` and `end` say the same"),
            (
                format!("{head},start\n"),
                "line 1: column `start` says what another one says already",
            ),
            (format!("{head}\na,0,1\n"), "line 2: 3 fields, the first line has 4"),
            (
                format!("{head}\na,0,1,8\n\na,0,1,8\n"),
                "line 4: buffer `a` stands on line 2 as well",
            ),
            (format!("{head}\n,0,1,8\n"), "line 2: the id is empty"),
            (
                format!("{head}\na,0,1,-8\n"),
                "line 2: the size is -8, which is below 0",
            ),
            (
                format!("{head}\na,0,1,1e3\n"),
                "line 2: the size is `1e3`, which is not a whole number",
            ),
            (
                format!("{head}\na,0,1,99999999999999999999\n"),
                "which 64 bits do not hold",
            ),
            (
                format!("{head}\na,4,4,8\n"),
                "line 2: buffer `a`: its lifetime begins at 4 and ends before",
            ),
            (format!("{head},gaps\na,0,9,8,3\n"), "line 2: `3` is not a gap"),
            (format!("{head},gaps\na,0,9,8,3-5@0:4\n"), "is not supported"),
            (
                format!("{head},gaps\na,0,9,8,3-12\n"),
                "line 2: buffer `a`: its gap 3-12 does not lie inside",
            ),
            (
                format!("{head},alignment\na,0,9,8,0\n"),
                "line 2: buffer `a`: its alignment is 0",
            ),
            (format!("{head},offset\na,0,9,8,x\n"), "line 2: the offset is `x`"),
            (
                "id,lower,end,size\na,0,18446744073709551615,8\n".to_owned(),
                "is too large",
            ),
        ] {
            let error = read_csv(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_placement_has_the_columns_that_say_something() {
        let mut buffers: TiVec<BufferId, Buffer> =
            TiVec::from(vec![Buffer::new("a,b", 8, 0..4), Buffer::new("c", 8, 1..6)]);
        let place = |block, offset| Some(Place { block, offset });
        let mut placement = Placement {
            places: TiVec::from(vec![place(0, 0), place(0, 8)]),
        };
        let text = write_csv(&buffers, &placement);
        assert_eq!(text, "id,lower,upper,size,offset\na_b,0,4,8,0\nc,1,6,8,8\n");
        buffers[BufferId::new(1)].gaps = vec![2..3, 4..5];
        placement.places[BufferId::new(1)] = place(1, 0);
        let text = write_csv(&buffers, &placement);
        assert_eq!(
            text,
            "id,lower,upper,size,gaps,block,offset\na_b,0,4,8,,0,0\nc,1,6,8,2-3 4-5,1,0\n"
        );
    }
}
