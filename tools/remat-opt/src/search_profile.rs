//! Where the time of searches went, as a table.

use remat::solver::Profile;

use crate::console;

/// A line for each kind of round; `None` where nothing was noted.
pub(crate) fn table(profile: &Profile) -> Option<String> {
    let rounds = profile.rounds();
    if rounds.is_empty() {
        return None;
    }
    let whole: f64 = rounds.iter().map(|(_, spent)| spent.time.as_secs_f64()).sum();
    let headings = [
        "search",
        "rounds",
        "steps",
        "seconds",
        "share",
        "better plans",
        "time saved",
    ];
    let mut table = console::table(headings, 1..headings.len());
    for (round, spent) in rounds {
        let seconds = spent.time.as_secs_f64();
        table.add_row([
            round.to_string(),
            spent.rounds.to_string(),
            spent.steps.to_string(),
            format!("{seconds:.2}"),
            format!("{:.0} %", 100.0 * seconds / whole.max(f64::MIN_POSITIVE)),
            spent.improvements.to_string(),
            spent.gain.to_string(),
        ]);
    }
    Some(format!("{table}\n"))
}
