//! The page.

use bytesize::ByteSize;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use remat_chart::DrawError;
use serde::Deserialize;

use crate::data::{Data, in_element};
use crate::names::Names;
use crate::recorded::Recorded;
use crate::run::{Run, Time};
use crate::table;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = concat!(
    include_str!("../assets/data.js"),
    include_str!("../assets/colors.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/search.js"),
    include_str!("../assets/files.js"),
    include_str!("../assets/page.js"),
);
/// Whatever a name of a model holds, the page asks for nothing from anywhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// One of the large figures at the top.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// What it is of, `Memory` for instance.
    pub name: String,
    /// The figure: `31.2 -> 11.7 MiB`.
    pub value: String,
    /// What changes, `-63 %`, and whether that is a gain.
    pub change: Option<(String, bool)>,
    /// Before and after, for two bars.
    pub bars: Option<(u64, u64)>,
    /// How it was found.
    pub about: String,
}

/// Rows of figures under a heading.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub struct Table {
    /// What it is of.
    pub heading: String,
    /// How its figures were found.
    pub about: String,
    /// Heads of the columns; those after the first one are of figures.
    pub head: Vec<String>,
    /// The rows, a text for each column.
    pub rows: Vec<Vec<String>>,
}

/// A plan as a page.
#[derive(Clone, Debug, Default)]
pub struct Page<'a> {
    /// What the page is about.
    pub title: String,
    /// The large figures.
    pub figures: Vec<Figure>,
    /// What is said of the plan: a word, and lines about it.
    pub summary: Vec<(String, Vec<String>)>,
    /// Further lines, shown as they are.
    pub text: String,
    /// Runs whose memory is shown: before, then as planned; or one alone.
    pub runs: Vec<Run<'a>>,
    /// What a program did that has no plan, instead of runs.
    pub recorded: Option<Recorded>,
    /// Further tables.
    pub tables: Vec<Table>,
    /// What durations count; absent where there are no runs.
    pub time: Option<Time>,
    /// Further charts as SVG, with their headings.
    pub charts: Vec<(String, String)>,
    /// The report as JSON, which the page offers as a file; empty where there is none.
    pub report: String,
}

/// What a page of a recorded program is made of, as JSON.
#[derive(Deserialize)]
struct Document {
    title: String,
    figures: Vec<Figure>,
    tables: Vec<Table>,
    recorded: Recorded,
    summary: Vec<(String, Vec<String>)>,
    report: String,
}

impl Page<'_> {
    /// The page of a recorded program: an object with `title`, `figures`, `tables`, `recorded`, `summary` and `report`.
    ///
    /// # Errors
    /// If the text is no such object.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let document: Document = serde_json::from_str(text)?;
        Ok(Self {
            title: document.title,
            figures: document.figures,
            tables: document.tables,
            recorded: Some(document.recorded),
            summary: document.summary,
            report: document.report,
            ..Self::default()
        })
    }

    /// The page as HTML.
    ///
    /// # Errors
    /// [`DrawError`].
    pub fn render(&self) -> Result<String, DrawError> {
        let has_steps = self
            .recorded
            .as_ref()
            .is_some_and(|recorded| !recorded.steps.is_empty())
            || self.runs.iter().any(|run| !run.memory().is_empty());
        let memory = if has_steps { Some(self.memory()?) } else { None };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    title { (self.title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    header {
                        h1 { (self.title) }
                        @if has_steps { div.group.live { (self.files()) button #theme type="button" title="light or dark" { "Theme" } } }
                    }
                    main {
                        (self.figures())
                        @for (heading, svg) in &self.charts {
                            section { h2 { (heading) } figure { (PreEscaped(svg)) } }
                        }
                        @if !self.text.is_empty() { section { pre { (self.text) } } }
                        @if let Some(memory) = memory { (memory) (peak()) }
                        @for table in &self.tables { (table.markup()) }
                        @if let (Some(model), Some(run)) = (self.runs.first(), self.runs.last()) {
                            @let names = Names::of(model.problem);
                            (self.recomputed(run, &names))
                            (moved(run, &names))
                        }
                        (self.details())
                    }
                    @if has_steps {
                        script type="application/json" id="data" { (PreEscaped(self.data().to_json())) }
                        @if !self.report.is_empty() {
                            script type="application/json" id="report" { (PreEscaped(in_element(&self.report))) }
                        }
                        script { (PreEscaped(SCRIPT)) }
                    }
                }
            }
        };
        Ok(page.into_string())
    }

    fn data(&self) -> Data<'_> {
        match &self.recorded {
            Some(recorded) => Data::of_recorded(&self.title, recorded),
            None => Data::of(&self.title, &self.runs),
        }
    }

    /// Buttons that save something.
    fn files(&self) -> Markup {
        html! {
            button #png type="button" title="save the chart as a picture" { "PNG" }
            button #csv type="button" title="save the table of tensors" { "CSV" }
            @if !self.report.is_empty() { button #json type="button" title="save the report" { "JSON" } }
        }
    }

    fn figures(&self) -> Markup {
        html! {
            @if !self.figures.is_empty() {
                div.figures {
                    @for figure in &self.figures {
                        div.figure {
                            h2 { (figure.name) }
                            div.value {
                                (figure.value)
                                @if let Some((change, is_gain)) = &figure.change {
                                    " " span.change.good[*is_gain] { (change) }
                                }
                            }
                            @if let Some((before, after)) = figure.bars {
                                div.bars aria-hidden="true" {
                                    @for part in [before, after] { i style=(width(part, before.max(after))) {} }
                                }
                            }
                            p { (figure.about) }
                        }
                    }
                }
            }
        }
    }

    /// Memory over the steps of each run.
    fn memory(&self) -> Result<Markup, DrawError> {
        let recorded = self.recorded.iter().map(|one| (one.name.clone(), one.memory()));
        let runs = self.runs.iter().map(|run| (run.name.to_owned(), run.memory()));
        let curves = recorded
            .chain(runs)
            .map(|(name, bytes)| remat_chart::StepCurve { name, bytes });
        let curves: Vec<_> = curves.collect();
        let budget = self.runs.last().and_then(|run| run.problem.budget);
        let counts = if self.recorded.is_some() {
            " tensors and workspace"
        } else {
            " as the plan counts it"
        };
        let drawn = remat_chart::memory_over_steps(&curves, budget)?;
        Ok(html! {
            section aria-labelledby="chart-heading" {
                div.bar {
                    h2 #chart-heading { "Memory over the steps" span.about { (counts) } }
                    (self.views())
                    div.group.live {
                        button #peak type="button" { "Peak" }
                        button #wider type="button" aria-label="zoom out" { "−" }
                        button #closer type="button" aria-label="zoom in" { "+" }
                        button #all type="button" { "All" }
                    }
                    div.search.live {
                        input #search type="search" role="combobox" placeholder="Find an op: name or type" autocomplete="off"
                            aria-label="find an op by name or type" aria-expanded="false" aria-controls="found";
                        ul #found role="listbox" aria-label="ops that were found" hidden {}
                    }
                }
                figure.still { (PreEscaped(drawn)) }
                div.chart.live {
                    div {
                        div.canvas {
                            canvas #chart {}
                            canvas #over tabindex="0" role="application" aria-roledescription="chart" aria-describedby="said"
                                aria-label="Memory over the steps: arrows left and right move by a step, up and down choose a tensor" {}
                            div #range {}
                        }
                        div #legend {}
                        p #said aria-live="polite" {}
                        p.hint {
                            kbd { "←" } " " kbd { "→" } " step, " kbd { "↑" } " " kbd { "↓" } " tensor, " kbd { "+" } " " kbd { "−" } " or a drag zoom, "
                            kbd { "0" } " all, " kbd { "p" } " peak, " kbd { "/" } " search, " kbd { "Esc" } " lets a tensor go"
                        }
                    }
                    div #about {}
                }
            }
        })
    }

    /// What the chart can show.
    fn views(&self) -> Markup {
        let mut views: Vec<&str> = self.runs.iter().map(|run| run.name).collect();
        views.extend(self.recorded.as_ref().map(|recorded| recorded.name.as_str()));
        let chosen = views.last().copied();
        views.extend((self.runs.len() > 1).then_some("both"));
        let is_placed = self.runs.last().is_some_and(|run| run.placement.is_some());
        views.extend(is_placed.then_some("block"));
        html! {
            fieldset.live hidden[views.len() < 2] aria-label="what the chart shows" {
                @for view in &views {
                    label { input type="radio" name="view" value=(view) checked[chosen == Some(*view)]; span { (view) } }
                }
            }
        }
    }

    fn details(&self) -> Markup {
        html! {
            @if !self.summary.is_empty() {
                details open[self.figures.is_empty()] {
                    summary { "Details" }
                    dl {
                        @for (word, about) in &self.summary {
                            dt { (word) }
                            @for line in about { dd { (line) } }
                        }
                    }
                }
            }
        }
    }

    fn recomputed<'a>(&self, run: &Run<'a>, names: &Names<'a>) -> Markup {
        let rows = table::recomputed(run.problem, run.plan, names);
        html! {
            section {
                h2 { "Dropped and computed again" }
                @if rows.is_empty() {
                    p { "Nothing is computed twice." }
                } @else {
                    div.table.recomputed { table {
                        thead { tr { th { "Op" } th { "Makes" } th.number { "Bytes" } th.number { "Times" } th.number { "Adds" } } }
                        tbody {
                            @for row in &rows {
                                tr {
                                    td { (row.op) }
                                    td { (row.tensors.join(", ")) }
                                    td.number { (bytes(row.bytes)) }
                                    td.number { (row.times) }
                                    td.number { (self.duration(row.duration)) }
                                }
                            }
                        }
                    } }
                }
            }
        }
    }

    fn duration(&self, duration: u64) -> String {
        match self.time {
            Some(Time::Nanoseconds) => format!("{:.3} ms", duration as f64 / 1e6),
            _ => duration.to_string(),
        }
    }
}

impl Table {
    fn markup(&self) -> Markup {
        let is_figure = |column: usize| column > 0;
        html! {
            section {
                h2 { (self.heading) }
                @if !self.about.is_empty() { p.about { (self.about) } }
                div.table.facts { table {
                    thead { tr { @for (column, name) in self.head.iter().enumerate() { th.number[is_figure(column)] { (name) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr { @for (column, value) in row.iter().enumerate() { td.number[is_figure(column)] { (value) } } }
                        }
                    }
                } }
            }
        }
    }
}

/// The table of tensors, which the script fills.
fn peak() -> Markup {
    html! {
        section.live aria-labelledby="tensors-heading" {
            h2 #tensors-heading { "Largest tensors at the peak" }
            p #tensors-about .about {}
            div #tensors .table {}
        }
    }
}

/// Style of a bar that is `part` of `whole` wide.
fn width(part: u64, whole: u64) -> String {
    format!("width:{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

fn moved<'a>(run: &Run<'a>, names: &Names<'a>) -> Markup {
    let rows = table::moved(run.problem, run.plan, names);
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Moved to the second memory" }
                div.table { table {
                    thead { tr { th { "Tensor" } th.number { "Bytes" } th.number { "Out" } th.number { "Back" } } }
                    tbody {
                        @for row in &rows {
                            tr {
                                td { (row.tensor) }
                                td.number { (bytes(row.bytes)) }
                                td.number { (row.out) }
                                td.number { (row.back) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// Bytes in the binary unit that fits.
fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}
