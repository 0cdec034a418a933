//! The page.

use bytesize::ByteSize;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use remat_chart::DrawError;

use crate::data::Data;
use crate::run::{Run, Time};
use crate::table;

const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
/// A library for charts; see `third_party/README.md`.
const CHARTS: &str = include_str!("../../../third_party/uplot/uPlot.iife.min.js");
const CHARTS_STYLE: &str = include_str!("../../../third_party/uplot/uPlot.min.css");

/// A plan as a page.
#[derive(Clone, Debug, Default)]
pub struct Page<'a> {
    /// What the page is about.
    pub title: String,
    /// What is said of the plan: a word, and lines about it.
    pub summary: Vec<(String, Vec<String>)>,
    /// Further lines, shown as they are.
    pub text: String,
    /// Runs whose memory is shown, in this order; the last one is the plan.
    pub runs: Vec<Run<'a>>,
    /// What durations count; absent where there are no runs.
    pub time: Option<Time>,
    /// Further charts as SVG, with their headings.
    pub charts: Vec<(String, String)>,
}

impl Page<'_> {
    /// The page as HTML.
    ///
    /// # Errors
    /// [`DrawError`].
    pub fn render(&self) -> Result<String, DrawError> {
        let runs: Vec<&Run<'_>> = self.runs.iter().collect();
        let body = html! {
            h1 { (self.title) }
            (summary(&self.summary))
            @if !self.text.is_empty() { pre { (self.text) } }
            @if let Some(memory) = self.memory()? { (memory) }
            @if let Some(block) = self.block()? { (block) }
            @for (heading, svg) in &self.charts {
                section { h2 { (heading) } figure { (PreEscaped(svg)) } }
            }
            @if let Some(run) = self.runs.last() {
                (self.recomputed(run))
                (moved(run))
            }
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { (self.title) }
                    style { (PreEscaped(CHARTS_STYLE)) (PreEscaped(STYLE)) }
                }
                body {
                    (body)
                    @if !self.runs.is_empty() {
                        script type="application/json" id="data" { (PreEscaped(Data::of(&runs).to_json())) }
                        script { (PreEscaped(CHARTS)) }
                        script { (PreEscaped(SCRIPT)) }
                    }
                }
            }
        };
        Ok(page.into_string())
    }

    /// Memory over the steps of each run.
    fn memory(&self) -> Result<Option<Markup>, DrawError> {
        if self.runs.is_empty() {
            return Ok(None);
        }
        let curves: Vec<remat_chart::StepCurve> = self
            .runs
            .iter()
            .map(|run| remat_chart::StepCurve {
                name: run.name.to_owned(),
                bytes: run.memory(),
            })
            .collect();
        let budget = self.runs.last().and_then(|run| run.problem.budget);
        let drawn = remat_chart::memory_over_steps(&curves, budget)?;
        Ok(Some(html! {
            section {
                h2 { "Memory over the steps" }
                figure.still { (PreEscaped(drawn)) }
                @for (place, run) in self.runs.iter().enumerate() {
                    div.live data-chart="memory" data-run=(place) { h3 { (run.name) } }
                }
                p.hint { "Drag to zoom, double click to see all again; what is in memory at the step pointed at stands beside the chart." }
            }
        }))
    }

    fn block(&self) -> Result<Option<Markup>, DrawError> {
        let last = self.runs.len().saturating_sub(1);
        let Some(block) = self.runs.last().and_then(Run::block) else {
            return Ok(None);
        };
        let drawn = remat_chart::block("offsets over the steps", &block)?;
        Ok(Some(html! {
            section {
                h2 { "The block" }
                p { (bytes(block.bytes)) ", of which at most " (bytes(block.load)) " are taken at one step." }
                figure.still { (PreEscaped(drawn)) }
                div.live data-chart="block" data-run=(last) {}
            }
        }))
    }

    fn recomputed(&self, run: &Run<'_>) -> Markup {
        let rows = table::recomputed(run.problem, run.plan);
        html! {
            section {
                h2 { "Dropped and computed again" }
                @if rows.is_empty() {
                    p { "Nothing is computed twice." }
                } @else {
                    table {
                        thead { tr { th { "op" } th { "makes" } th.number { "bytes" } th.number { "times" } th.number { "adds" } } }
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
                    }
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

fn summary(lines: &[(String, Vec<String>)]) -> Markup {
    html! {
        @if !lines.is_empty() {
            dl {
                @for (word, about) in lines {
                    dt { (word) }
                    @for line in about { dd { (line) } }
                }
            }
        }
    }
}

fn moved(run: &Run<'_>) -> Markup {
    let rows = table::moved(run.problem, run.plan);
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Moved to the second memory" }
                table {
                    thead { tr { th { "tensor" } th.number { "bytes" } th.number { "out" } th.number { "back" } } }
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
                }
            }
        }
    }
}

/// Bytes in the binary unit that fits.
fn bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}
