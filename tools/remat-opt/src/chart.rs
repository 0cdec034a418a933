//! A timeline of memory in a terminal: one column of block characters per slice of time.

/// Levels of a block character, an eighth each.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns for time at least, however narrow the terminal is.
const LEAST_COLUMNS: usize = 10;
/// Most numbers beside the vertical axis, zero apart.
const MOST_TICKS: u64 = 4;
/// Ticks of the horizontal axis.
const STEP_TICKS: usize = 4;

/// Memory over the steps of a plan.
pub(crate) struct Timeline<'a> {
    /// Bytes at each step.
    pub(crate) values: &'a [u64],
    /// The step of the peak.
    pub(crate) peak: usize,
    /// Writes a number of bytes.
    pub(crate) bytes: &'a dyn Fn(u64) -> String,
    /// Name of the op that runs at a step; empty for other steps.
    pub(crate) name: &'a dyn Fn(usize) -> &'a str,
}

/// How wide a report may be: what the terminal or `COLUMNS` says, else 80.
pub(crate) fn terminal_width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    told.or_else(seen).filter(|&width| width > 0).unwrap_or(80)
}

impl Timeline<'_> {
    /// Draws the timeline `width` characters wide, `height` of them bars, with both axes and a mark at the peak. A column shows the
    /// largest of the values it stands for, so that no peak is lost; where there is room, a step takes several columns.
    pub(crate) fn draw(&self, width: usize, height: usize) -> String {
        let Some(&top) = self.values.get(self.peak) else {
            return String::new();
        };
        let labels = self.ticks(top, height);
        let texts = labels.iter().map(|(_, text)| text.chars().count());
        let margin = texts.max().unwrap_or(0);
        let room = width.saturating_sub(margin + 2).max(LEAST_COLUMNS);
        let columns = Columns::new(self.values.len(), room);
        let eighths = (height * 8) as u128;
        let level = |value: u64| {
            (u128::from(value) * eighths)
                .div_ceil(u128::from(top.max(1)))
                .min(eighths) as usize
        };
        let levels: Vec<usize> = (0..columns.count)
            .map(|column| level(self.values[columns.steps(column)].iter().copied().max().unwrap_or(0)))
            .collect();
        let mut lines = Vec::with_capacity(height + 4);
        for row in (0..height).rev() {
            let label = labels.iter().find(|&&(at, _)| at == row + 1);
            let (text, axis) = label.map_or(("", '│'), |(_, text)| (text, '┤'));
            let cells = levels.iter().map(|level| BLOCKS[level.saturating_sub(row * 8).min(8)]);
            lines.push(format!(
                "{text:>margin$} {axis}{}",
                cells.collect::<String>().trim_end()
            ));
        }
        let zero = labels.iter().find(|&&(at, _)| at == 0).map_or("", |(_, text)| text);
        let (axis, numbers) = columns.axis();
        lines.push(format!("{zero:>margin$} └{axis}"));
        lines.push(format!("{}{numbers}", " ".repeat(margin + 2)));
        lines.push(self.peak_mark(&columns, margin + 2));
        lines.join("\n")
    }

    /// Rows with a number beside them, counted from the axis, each once: the peak, zero, and round figures between them.
    fn ticks(&self, top: u64, height: usize) -> Vec<(usize, String)> {
        let mut ticks = vec![(height, (self.bytes)(top)), (0, (self.bytes)(0))];
        let Some(step) = round_step(top) else { return ticks };
        for value in (1..=top / step).map(|n| n * step) {
            let row = (u128::from(value) * height as u128 / u128::from(top)) as usize;
            if ticks.iter().all(|&(at, _)| at != row) && row + 1 < height {
                ticks.push((row, (self.bytes)(value)));
            }
        }
        ticks
    }

    /// An arrow under the peak, with what it is on the side with more room: as much of it as fits.
    fn peak_mark(&self, columns: &Columns, margin: usize) -> String {
        let arrow = margin + columns.column(self.peak);
        let (before, after) = (arrow, (margin + columns.count).saturating_sub(arrow + 1));
        let room = before.max(after).saturating_sub(1);
        let peak = format!("peak {}", (self.bytes)(self.values[self.peak]));
        let step = format!("{peak} at step {}", self.peak);
        let mut texts = vec![step.clone(), peak];
        let name = remat_files::line((self.name)(self.peak));
        if !name.is_empty() {
            let around = step.chars().count() + " (`…`)".chars().count();
            let short: String = name.chars().take(room.saturating_sub(around)).collect();
            texts.insert(0, format!("{step} (`{short}…`)"));
            texts.insert(0, format!("{step} (`{name}`)"));
        }
        let fits = |text: &&String| text.chars().count() <= room;
        let text = texts.iter().find(fits).map_or("", String::as_str);
        if after >= before {
            format!("{}▲ {text}", " ".repeat(arrow))
        } else {
            format!("{text:>width$} ▲", width = arrow - 1)
        }
    }
}

/// The distance of round figures on an axis up to `top`, a power of two or ten of them; `None` where there are no whole ones.
fn round_step(top: u64) -> Option<u64> {
    let mut unit = 1u64;
    while unit.checked_mul(1024)? <= top {
        unit *= 1024;
    }
    // From the unit that the figures are written in; a fraction of it is no round figure.
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500].map(|n: u64| n.saturating_mul(unit));
    steps
        .into_iter()
        .find(|&step| top / step <= MOST_TICKS)
        .filter(|&step| step <= top)
}

/// How steps are shared out among columns.
struct Columns {
    /// Number of columns.
    count: usize,
    /// Number of steps.
    steps: usize,
}

impl Columns {
    fn new(steps: usize, count: usize) -> Self {
        Self { count, steps }
    }

    /// The steps that a column stands for: several where there are more steps than columns, else one, which other columns show too.
    fn steps(&self, column: usize) -> std::ops::Range<usize> {
        let first = column * self.steps / self.count;
        first..((column + 1) * self.steps / self.count).max(first + 1)
    }

    /// The first column that stands for a step.
    fn column(&self, step: usize) -> usize {
        if self.steps < self.count {
            (step * self.count).div_ceil(self.steps.max(1))
        } else {
            ((step + 1) * self.count).div_ceil(self.steps) - 1
        }
    }

    /// The horizontal axis, and the numbers of the steps below it.
    fn axis(&self) -> (String, String) {
        let mut axis = vec!['─'; self.count];
        let mut numbers = String::new();
        let mut written = 0;
        let last = self.steps.saturating_sub(1);
        for tick in 0..=STEP_TICKS {
            let step = last * tick / STEP_TICKS;
            let column = self.column(step);
            let text = if tick == 0 {
                format!("step {step}")
            } else {
                step.to_string()
            };
            let width = text.chars().count();
            // The last number ends where the axis ends, and none touches the one before.
            let start = column.min(self.count.saturating_sub(width));
            if tick > 0 && start < written + 1 {
                continue;
            }
            axis[column] = '┬';
            numbers.extend(std::iter::repeat_n(' ', start - written));
            numbers += &text;
            written = start + width;
        }
        (axis.into_iter().collect(), numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(values: &[u64], width: usize) -> String {
        let peak = values
            .iter()
            .enumerate()
            .max_by_key(|&(step, &value)| (value, std::cmp::Reverse(step)));
        let timeline = Timeline {
            values,
            peak: peak.map_or(0, |(step, _)| step),
            bytes: &|bytes| bytes.to_string(),
            name: &|step| if step == 0 { "" } else { "conv" },
        };
        timeline.draw(width, 4)
    }

    #[test]
    fn a_column_shows_the_largest_value_it_stands_for() {
        insta::assert_snapshot!(draw(&[0, 8, 0, 0, 16, 0, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3], 14));
    }

    #[test]
    fn few_steps_are_drawn_wide() {
        insta::assert_snapshot!(draw(&[1, 3, 2], 40));
    }

    #[test]
    fn the_mark_of_a_late_peak_stands_before_it() {
        let values: Vec<u64> = (0..300).collect();
        insta::assert_snapshot!(draw(&values, 60));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_peak_is_always_marked() {
        for steps in [1, 2, 7, 39, 40, 41, 199, 1000] {
            for width in [40, 41, 80, 133, 200] {
                for peak in [0, steps / 3, steps / 2, steps - 1] {
                    let mut values = vec![1 << 20; steps];
                    values[peak] = 7 << 20;
                    let chart = draw(&values, width);
                    let widest = chart.lines().map(|line| line.chars().count()).max();
                    assert!(widest <= Some(width), "{steps} steps, {width} columns:\n{chart}");
                    assert_eq!(chart.matches('▲').count(), 1);
                    let place = |line: &str, mark: char| line.chars().position(|c| c == mark);
                    let arrow = chart.lines().find_map(|line| place(line, '▲'));
                    let bar = chart.lines().next().and_then(|line| place(line, '█'));
                    assert_eq!(arrow, bar, "{steps} steps, {width} columns:\n{chart}");
                }
            }
        }
    }

    #[test]
    fn no_values_draw_nothing() {
        assert_eq!(draw(&[], 10), "");
    }
}
