//! What one model takes, beside limits and what it took before.

use schemars::JsonSchema;
use serde::Serialize;

use super::baseline::{Basis, Record};
use crate::failure::OverLimit;
use crate::resident::Resident;
use crate::units;

/// How many tensors at the peak are named.
const NAMED: usize = 4;

/// What one model takes.
#[derive(Serialize, JsonSchema)]
pub(super) struct Checked {
    /// What a baseline would keep.
    #[serde(flatten)]
    pub(super) now: Record,
    /// What is in memory at the peak, the largest first.
    pub(super) resident_at_peak: Vec<Resident>,
    /// The limits that there are, each by the option that sets it.
    pub(super) limits: Vec<Limit>,
    /// What changed since the baseline; absent where that does not have the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Difference>,
}

/// A limit, and how the model compares with it.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(super) struct Limit {
    /// The option that sets it.
    pub(super) by: LimitOption,
    /// The limit.
    pub(super) limit_bytes: u64,
    /// What is held against it.
    pub(super) bytes: u64,
    /// Where that is from.
    pub(super) of: Basis,
    /// Whether the model takes no more.
    pub(super) holds: bool,
}

/// An option that sets a limit.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LimitOption {
    /// `--limit`.
    Limit,
    /// `--max-growth`.
    MaxGrowth,
}

/// What changed since the baseline.
#[derive(Serialize, JsonSchema)]
pub(super) struct Difference {
    /// Where both figures are from: measured, where that was done for both.
    pub(super) of: Basis,
    /// What the model took.
    pub(super) before_bytes: u64,
    /// What it takes now.
    pub(super) after_bytes: u64,
    /// The change, in per cent; absent where it took nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percent: Option<f64>,
    /// What the baseline says.
    pub(super) before: Record,
}

impl Limit {
    pub(super) fn new(by: LimitOption, limit_bytes: u64, (bytes, of): (u64, Basis)) -> Self {
        let holds = bytes <= limit_bytes;
        Self {
            by,
            limit_bytes,
            bytes,
            of,
            holds,
        }
    }

    /// How the model compares with it, in words.
    pub(super) fn text(&self) -> String {
        let option = match self.by {
            LimitOption::Limit => "--limit",
            LimitOption::MaxGrowth => "--max-growth",
        };
        let limit = units::bytes(self.limit_bytes);
        match self.bytes.checked_sub(self.limit_bytes) {
            Some(over) if !self.holds => {
                let (over, bytes) = (units::bytes(over), units::bytes(self.bytes));
                format!("{over} over the limit of {limit} ({option}): {bytes} {}", self.of)
            }
            _ => format!(
                "{limit} ({option}): {} are left",
                units::bytes(self.limit_bytes - self.bytes)
            ),
        }
    }
}

impl Difference {
    /// What changed since `before`.
    pub(super) fn new(before: &Record, now: &Record) -> Self {
        let both = |of: Basis| Some((of, of.of(before)?, of.of(now)?));
        let (of, before_bytes, after_bytes) =
            both(Basis::Measured).unwrap_or((Basis::Predicted, before.predicted_bytes, now.predicted_bytes));
        Self {
            of,
            before_bytes,
            after_bytes,
            percent: (before_bytes > 0).then(|| units::percent(after_bytes, before_bytes) - 100.0),
            before: before.clone(),
        }
    }

    /// `+3.4 MiB, +12 %`.
    pub(super) fn text(&self) -> String {
        let bytes = units::bytes(self.after_bytes.abs_diff(self.before_bytes));
        let sign = if self.after_bytes < self.before_bytes { '-' } else { '+' };
        let change = self.percent.map(|percent| format!(", {}", units::added(percent)));
        format!("{sign}{bytes}{}", change.unwrap_or_default())
    }
}

impl Checked {
    pub(super) fn name(&self) -> &str {
        &self.now.model
    }

    /// The op at the peak.
    pub(super) fn op(&self) -> &str {
        &self.now.peak_op
    }

    /// The op that was there before, where it was another one.
    pub(super) fn op_before(&self) -> Option<&str> {
        let before = &self.since.as_ref()?.before.peak_op;
        (before != self.op()).then_some(before)
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.now.bytes().0
    }

    /// The limit that leaves least.
    fn tightest(&self) -> Option<&Limit> {
        self.limits
            .iter()
            .min_by_key(|limit| i128::from(limit.limit_bytes) - i128::from(limit.bytes))
    }

    /// The bytes of the limit that leaves least, where there is one.
    pub(super) fn limit(&self) -> Option<u64> {
        self.tightest().map(|limit| limit.limit_bytes)
    }

    /// Whether it takes more than a limit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.limits.iter().any(|limit| !limit.holds)
    }

    /// By how much it exceeds the limits that it exceeds, in words.
    pub(super) fn exceeded(&self) -> String {
        let exceeded = self.limits.iter().filter(|limit| !limit.holds);
        exceeded.map(Limit::text).collect::<Vec<_>>().join("; ")
    }

    /// The largest tensors at the peak, as `quoted` writes names, and how many others there are.
    pub(super) fn largest(&self, quoted: fn(&str) -> String) -> Vec<String> {
        let resident = &self.resident_at_peak;
        let one = |resident: &Resident| format!("{} {}", quoted(&resident.tensor), units::bytes(resident.bytes));
        let others = resident.len().saturating_sub(NAMED);
        let others = (others > 0).then(|| units::count(others, "other"));
        resident.iter().take(NAMED).map(one).chain(others).collect()
    }

    /// Why the command fails, if it is for this model.
    pub(super) fn over(&self) -> Option<OverLimit> {
        let limit = self.tightest().filter(|limit| !limit.holds)?;
        Some(OverLimit {
            model: self.name().to_owned(),
            bytes: limit.bytes,
            limit_bytes: limit.limit_bytes,
            op: self.op().to_owned(),
        })
    }
}
