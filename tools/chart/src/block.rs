//! A block of memory over time: which bytes are taken by what, from which step to which.

use std::fmt::Write;

use plotters::prelude::*;

use crate::legend::{self, Area, HEAD, LABELS, MARGIN, Sample};
use crate::{DrawError, DrawResult, svg};

/// Width and height in pixels.
const SIZE: (u32, u32) = (1200, 640);
/// Height of the letters of a name.
const FONT: i32 = 11;
/// Width of a letter at most, as far as it can be known without the font of the reader.
const LETTER: i32 = 7;
/// A name of which fewer letters fit is left to the tooltip.
const LEAST_LETTERS: usize = 4;

/// What takes bytes of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TakenBy {
    /// A result of a first run.
    Result,
    /// A result that stays to the end.
    Output,
    /// A result that was computed again.
    Again,
    /// A result that came back from the second memory.
    Back,
    /// What a kernel works with while it runs.
    Workspace,
}

/// Bytes that are taken for a while.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    /// By what.
    pub by: TakenBy,
    /// Its name.
    pub name: String,
    /// The first step and the first one after the last.
    pub steps: (usize, usize),
    /// Offset and size in bytes.
    pub bytes: (u64, u64),
}

/// A block over the steps of a plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockChart {
    /// Size of the block in bytes.
    pub bytes: u64,
    /// The most bytes that are taken at one step.
    pub load: u64,
    /// How many steps there are.
    pub steps: usize,
    /// What takes bytes.
    pub taken: Vec<Taken>,
}

impl TakenBy {
    /// Every kind.
    const ALL: [Self; 5] = [Self::Result, Self::Output, Self::Again, Self::Back, Self::Workspace];

    /// What the legend calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Result => "first run",
            Self::Output => "output",
            Self::Again => "recompute",
            Self::Back => "page in",
            Self::Workspace => "workspace",
        }
    }

    fn color(self) -> RGBColor {
        match self {
            Self::Result => RGBColor(70, 110, 170),
            Self::Output => RGBColor(60, 140, 100),
            Self::Again => RGBColor(200, 90, 60),
            Self::Back => RGBColor(180, 140, 50),
            Self::Workspace => RGBColor(140, 140, 140),
        }
    }
}

/// Where the corners of the block are, in pixels.
#[derive(Clone, Copy, Default)]
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Draws a block as SVG: offsets over steps. What takes bytes is a box with its name, where there is room for that, and with a tooltip that
/// has name, bytes and steps.
///
/// # Errors
/// [`DrawError`].
pub fn block(title: &str, block: &BlockChart) -> Result<String, DrawError> {
    let mut frame = Frame::default();
    let axes = svg(SIZE, |area| {
        frame = draw(area, title, block)?;
        Ok(())
    })?;
    let boxes: String = block.taken.iter().map(|taken| shape(block, taken, frame)).collect();
    Ok(match axes.rfind("</svg>") {
        Some(end) => format!(
            "{}<g font-family=\"sans-serif\" stroke=\"white\" stroke-width=\"0.5\">\n{boxes}</g>\n{}",
            &axes[..end],
            &axes[end..]
        ),
        None => axes,
    })
}

/// The title, the names of what there is, and the axes; returns where the block is.
fn draw(area: &Area<'_>, title: &str, block: &BlockChart) -> Result<Frame, Box<dyn std::error::Error>> {
    let (head, body) = area.split_vertically(HEAD);
    draw_head(&head, title, block)?;
    let (unit, scale) = legend::unit(block.bytes);
    let (right, top) = (block.steps.max(1) as f64, block.bytes.max(1) as f64 / scale as f64);
    let names = ("step", &*format!("offset in the block, {unit}"));
    let chart = legend::axes(&body, (right, top), names)?;
    let (left, bottom) = chart.backend_coord(&(0.0, 0.0));
    let (end, upper) = chart.backend_coord(&(right, top));
    Ok(Frame {
        left: f64::from(left),
        top: f64::from(upper),
        width: f64::from(end - left),
        height: f64::from(bottom - upper),
    })
}

fn draw_head(area: &Area<'_>, title: &str, block: &BlockChart) -> DrawResult {
    legend::title(area, title, SIZE.0)?;
    let mut x = i32::try_from(LABELS + MARGIN)?;
    for by in TakenBy::ALL {
        if block.taken.iter().any(|taken| taken.by == by) {
            legend::entry(area, (x, 54), by.name(), Sample::Box(by.color()))?;
            x += legend::width(by.name());
        }
    }
    let figures = format!("block of {} bytes, load {} bytes", block.bytes, block.load);
    area.draw(&Text::new(figures, (x, 47), ("sans-serif", 14)))?;
    Ok(())
}

/// The box of something, with its name and tooltip.
fn shape(block: &BlockChart, taken: &Taken, frame: Frame) -> String {
    let (from, to) = taken.steps;
    let (offset, bytes) = taken.bytes;
    let across = frame.width / block.steps.max(1) as f64;
    let up = frame.height / block.bytes.max(1) as f64;
    let x = frame.left + from as f64 * across;
    let y = frame.top + frame.height - offset.saturating_add(bytes) as f64 * up;
    let (width, height) = (to.saturating_sub(from) as f64 * across, bytes as f64 * up);
    let RGBColor(red, green, blue) = taken.by.color();
    let name = escaped(&taken.name);
    let last = to.saturating_sub(1);
    let mut text = String::new();
    // Writing to a string does not fail.
    _ = write!(
        text,
        "<g><title>{name}: {bytes} bytes at {offset}, steps {from} to {last}</title><rect x=\"{x:.2}\" y=\"{y:.2}\" \
         width=\"{width:.2}\" height=\"{height:.2}\" fill=\"#{red:02X}{green:02X}{blue:02X}\"/>"
    );
    if let Some(label) = label(&taken.name, width, height) {
        _ = write!(
            text,
            "<text x=\"{:.2}\" y=\"{:.2}\" font-size=\"{FONT}\" fill=\"white\" stroke=\"none\">{}</text>",
            x + 3.0,
            y + height / 2.0 + f64::from(FONT) / 3.0,
            escaped(&label)
        );
    }
    text + "</g>\n"
}

/// As much of a name as fits into a box.
fn label(name: &str, width: f64, height: f64) -> Option<String> {
    let fit = ((width - 6.0) / f64::from(LETTER)).max(0.0) as usize;
    let letters = name.chars().count();
    if height < f64::from(FONT) + 2.0 || fit < LEAST_LETTERS.min(letters) || letters == 0 {
        return None;
    }
    if letters <= fit {
        return Some(name.to_owned());
    }
    Some(name.chars().take(fit - 1).chain(['…']).collect())
}

/// Text as XML has it; what it cannot have is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() => out.extend(control.escape_default()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(by: TakenBy, name: &str, steps: (usize, usize), bytes: (u64, u64)) -> Taken {
        let name = name.to_owned();
        Taken { by, name, steps, bytes }
    }

    fn chart() -> BlockChart {
        BlockChart {
            bytes: 4096,
            load: 4096,
            steps: 10,
            taken: vec![
                taken(TakenBy::Result, "conv_1", (0, 4), (0, 1024)),
                taken(TakenBy::Output, "a<b&\"c\"\u{7}", (3, 10), (1024, 1024)),
                taken(TakenBy::Again, "a name that is too long for its box", (5, 7), (0, 1024)),
                taken(TakenBy::Workspace, "workspace of conv_1", (0, 1), (4095, 1)),
            ],
        }
    }

    #[test]
    fn everything_has_a_box_in_its_color_with_name_and_tooltip() {
        let svg = block("net", &chart()).unwrap();
        for words in [
            "net",
            "step",
            "offset in the block, bytes",
            "block of 4096 bytes, load 4096 bytes",
            "<title>conv_1: 1024 bytes at 0, steps 0 to 3</title>",
            "<title>a&lt;b&amp;&quot;c&quot;\\u{7}: 1024 bytes at 1024, steps 3 to 9</title>",
            ">conv_1</text>",
            ">a name that is too long f",
        ] {
            assert!(svg.contains(words), "`{words}` is not in the chart: {svg}");
        }
        assert!(!svg.contains(">workspace of conv_1</text>"), "there is no room for it");
        assert_eq!(svg.matches("<title>").count(), 4);
        for by in [TakenBy::Result, TakenBy::Output, TakenBy::Again, TakenBy::Workspace] {
            let RGBColor(red, green, blue) = by.color();
            let color = format!("#{red:02X}{green:02X}{blue:02X}");
            assert_eq!(
                svg.matches(&color).count(),
                2,
                "{by:?}: its box, and its sample in the legend"
            );
        }
        assert!(!svg.contains("page in"), "nothing came back");
    }

    #[test]
    fn boxes_lie_within_the_frame_and_the_first_byte_is_at_the_bottom() {
        let frame = Frame {
            left: 100.0,
            top: 50.0,
            width: 1000.0,
            height: 400.0,
        };
        let all = chart();
        let first = shape(&all, &all.taken[0], frame);
        assert!(
            first.contains("x=\"100.00\" y=\"350.00\" width=\"400.00\" height=\"100.00\""),
            "{first}"
        );
        let last = shape(&all, &all.taken[1], frame);
        assert!(
            last.contains("x=\"400.00\" y=\"250.00\" width=\"700.00\" height=\"100.00\""),
            "{last}"
        );
    }

    #[test]
    fn an_empty_block_is_drawn_too() {
        assert!(block("empty", &BlockChart::default()).is_ok());
    }
}
