//! Errors about settings, in the words of the command line: libraries name no options.

use remat::{Error, PlanError, Setting};

/// The message where it is about an option; `None` where the library's own says all.
pub(super) fn message(error: &Error) -> Option<String> {
    match error {
        Error::Plan(PlanError::Contradiction { setting, given, plan }) => {
            let flag = flag(*setting);
            Some(format!(
                "`{flag} {given}` contradicts the plan, which was made with {plan}: leave `{flag}` out"
            ))
        }
        _ => None,
    }
}

/// The option of the command line that makes a setting.
pub(super) fn flag(setting: Setting) -> &'static str {
    match setting {
        Setting::Accounting => "--accounting",
        Setting::Order => "--order",
        Setting::MaxComputes => "--max-computes",
        Setting::Device => "--device",
        Setting::DeviceFile => "--device-file",
        Setting::Dim => "--dim",
        Setting::Size => "--size",
        Setting::Paging => "--paging",
        Setting::Objective => "--objective",
        Setting::Deadline => "--deadline",
        Setting::OrderHint => "--order-hint",
    }
}
