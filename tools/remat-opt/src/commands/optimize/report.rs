//! The report of the main job: the object, with the lines that people read of it.

use remat::{Model, Solution};
use remat_onnxruntime_deploy::{ArenaPlanned, Deployment, ProcessWritten, SettingsTried};
use remat_onnxruntime_run::Closeness;

use super::args::{OptimizeArgs, is_model};
use super::document::{About, OutputsCompared, Report};
use super::in_runtime::InRuntime;
use super::memory::{Memory, Session};
use super::{details, less, settings, summary};
use crate::document::Body;
use crate::ledgers::ProcessRecord;
use crate::lines::{self, Entry};
use crate::range::RangeRecord;

impl Body for Report {
    const FORMAT: &'static str = "remat-report/2";

    fn text(&self) -> String {
        let mut text = lines::text(&self.summary, summary::WIDTH);
        if self.is_verbose {
            text += "\n";
            text += &lines::text(&details::entries(self), details::WIDTH);
        }
        let settings = self.in_runtime.as_ref().and_then(|runtime| runtime.settings.as_ref());
        for line in settings.into_iter().flat_map(settings::lines) {
            text += &(line + "\n");
        }
        text
    }
}

impl Report {
    /// A plan as such; `before`: what the model took before anything was done to it, as plans count it.
    pub(super) fn of_plan(
        about: About<'_>,
        before: u64,
        (model, solution): (&Model, &Solution),
        is_without_runtime: bool,
    ) -> Self {
        let mut report = Self::new(about, (model, solution), Memory::of_plan(before, solution));
        report.is_without_runtime = is_without_runtime;
        report.finished(about.args)
    }

    /// A model that was made for ONNX Runtime.
    pub(super) fn of_file(
        about: About<'_>,
        before: u64,
        found: &Deployment,
        (arena, settings): (&Result<ArenaPlanned, String>, Option<&SettingsTried>),
        (form, process): (Option<ProcessWritten>, Option<ProcessRecord>),
    ) -> Self {
        let args = about.args;
        let session = Session {
            arena: args.target.arena,
            plan: arena.as_ref().ok(),
            settings,
        };
        let memory = Memory::of_file(before, found, session);
        let runtime = InRuntime::of(args, found, arena, settings);
        let plan = Self::new(about, (&found.model, &found.solution), memory);
        let outputs = OutputsCompared::of(found.check.as_ref());
        let closeness = found.check.as_ref().and_then(|check| check.closeness.as_ref());
        let closeness = closeness.filter(|_| outputs == OutputsCompared::Close);
        let report = Self {
            // In which shapes it is missed is said of all of them.
            missed: found
                .missed
                .filter(|_| !(found.is_written && about.range.is_some_and(RangeRecord::judges_budget))),
            budget_bytes: found.budget.or(plan.budget_bytes),
            measured_overhead_percent: runtime.measured_overhead_percent(),
            allowed_overhead_percent: found.most_overhead.map(|millionths| millionths as f64 / 10_000.0),
            relative_difference: closeness.map(Closeness::relative_difference),
            psnr_db: closeness.and_then(Closeness::psnr_db),
            outputs,
            is_written: found.is_written,
            output: plan
                .output
                .clone()
                .filter(|output| found.is_written || !is_model(output)),
            in_runtime: Some(runtime),
            form,
            process,
            ..plan
        };
        report.finished(args)
    }

    /// The report with what people read of it.
    fn finished(mut self, args: &OptimizeArgs) -> Self {
        self.less = less::hints(&self, args);
        self.summary = summary::entries(&self);
        self
    }

    /// All that the report says, for a page.
    pub(super) fn all_entries(&self) -> impl Iterator<Item = Entry> {
        self.summary.iter().cloned().chain(details::entries(self))
    }
}
