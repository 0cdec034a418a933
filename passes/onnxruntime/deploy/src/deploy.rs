//! The states of a deployment, and what leads from one to the next.

mod finishing;
mod judging;
mod opening;
mod planning;
mod tiling;

use remat::{BaselinePeak, Format};
use remat_files::ScratchFolder;
use remat_onnxruntime_lower::OrderHint;
use remat_onnxruntime_run::{Host, RuntimeError};
use remat_solve::SolveControl;

use crate::attempt::Attempt;
use crate::baseline::simulated;
use crate::bodies::Bodies;
use crate::clock::Clock;
use crate::error::{Rejected, Rejection};
use crate::file::{Loader, Planned, Task};
use crate::fission::Tilings;
use crate::measure::{Baseline, Bench, Check};
use crate::open::{open, scratch_folder};
use crate::padding::Padding;
use crate::round::Round;
use crate::{DeployError, DeployRequest, Deployment, Strategy};

/// Where a deployment stands.
enum State<'c, 'a> {
    /// The model of the next strategy is to be opened.
    Open,
    /// A round begins: a plan is to be made.
    Plan(Attempt),
    /// A plan is to be searched for, whose file keeps the budget.
    Search(Attempt, Round<'c, 'a>),
    /// The file of a plan is to be measured with the memory arena off.
    Verify(Attempt, Planned),
    /// The best file is to be measured further.
    Complete(Attempt, Planned, Check),
    /// The strategy does not lead to a good file.
    Reject(Attempt, Rejection),
    /// This is the file.
    Done(Attempt, Planned, Option<Check>),
}

/// What all states share.
struct Machine<'c, 'a, S> {
    request: &'c DeployRequest<'c>,
    clock: &'c Clock<'a>,
    /// The runtime, if one is here.
    bench: Option<Bench<'c, 'a>>,
    /// The model as it came, measured in it; absent where nothing is to be measured.
    baseline: Option<Baseline>,
    scratch: ScratchFolder,
    /// The strategies that are still to be tried.
    strategies: S,
    rejected: Vec<Rejected>,
    /// Whether there were tiles to try.
    had_tiles: bool,
    /// Whether tiles are tried after all else.
    tiles_are_last: bool,
    /// Whether a file was measured: the time of the first one does not count.
    ran: bool,
    /// What a budget in per cent is a share of.
    peak: BaselinePeak,
    /// The file that is closest to the budget, of those that exceed it, with the bytes by which it does.
    closest: Option<(u64, Attempt, Planned, Option<Check>)>,
    /// The file for a layout, with its peak, if it does not run in the order of its plan: the next strategy may give a better one.
    laid_out: Option<(u64, Attempt, Planned, Option<Check>)>,
    /// What may run tile by tile, and was not tried yet.
    tilings: Tilings,
    /// The best file in tiles of those that were measured.
    in_tiles: Option<(Attempt, Planned, Check)>,
    /// The model of a strategy that was rejected, where the next one starts from the same; that whose stretches run tile by tile.
    opened: Option<remat::Model>,
    /// Whether the runtime changes the layout of the model when it loads it.
    lays_out: bool,
    /// What of the model as it came fills the memory in blocks of channels.
    padding: Option<Padding>,
    /// Plans of subgraphs.
    bodies: Bodies,
}

/// Plans, writes, simulates and measures, until a strategy gives a file with the bits of the input.
///
/// The time until the deadline of `control` is for everything but one process each that measures the model as it came and the first file
/// that is made of it. Where dimensions stay free, both also run at other sizes of them before a file is written: that counts, and is never left out. When it is over, the best file that was measured is written; what
/// there was no time for is told ([`Deployment::left_out`]). After a cancellation the same holds, at once.
///
/// # Errors
/// Those of [`Model::open`](remat::Model::open), [`solve`](remat::solve) and [`save`](remat::save); [`DeployError::Runtime`] if the input
/// itself does not run here, [`DeployError::Interrupted`] if the call is cancelled before a file is measured, [`DeployError::AllRejected`] if
/// no strategy gives its bits, and [`DeployError::NoTime`] if the time was over before the last strategy was tried.
pub fn deploy(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    run(request, host, control).map_err(|error| match error {
        DeployError::Runtime(RuntimeError::Cancelled { .. }) => DeployError::Interrupted,
        error => error,
    })
}

/// Goes from state to state.
fn run(
    request: &DeployRequest<'_>,
    host: Option<&Host>,
    control: &SolveControl<'_>,
) -> Result<Deployment, DeployError> {
    if Format::of(request.input)? != Format::Onnx {
        return Err(request.refused());
    }
    let clock = &Clock::start(control);
    let scratch = scratch_folder()?;
    let bench = host.map(|host| Bench {
        host,
        clock,
        input: request.input,
        dims: &request.load.dims,
        fixed_dims: &request.load.fixed_dims,
        level: request.level,
        expected: request.expected,
        exact_threads: request.exact_threads(),
    });
    let measuring = bench.as_ref().filter(|_| request.measure);
    let baseline = measuring.map(Bench::baseline).transpose()?;
    let measured = baseline.as_ref().and_then(Baseline::peak);
    let (peak, opened) = match request
        .baseline
        .or(measured.filter(|_| request.order == OrderHint::Any))
    {
        Some(peak) => (peak, None),
        None => {
            let model = open(request, bench.as_ref(), false, clock, scratch.path())?;
            (simulated(&model, request.order)?.into(), Some(model))
        }
    };
    let mut machine = Machine {
        request,
        clock,
        bench,
        baseline,
        scratch,
        strategies: Strategy::all().filter(|&strategy| request.allows(strategy, peak, host.is_some())),
        rejected: Vec::new(),
        had_tiles: false,
        tiles_are_last: false,
        ran: false,
        peak,
        closest: None,
        laid_out: None,
        tilings: Tilings::default(),
        in_tiles: None,
        opened,
        lays_out: false,
        padding: None,
        bodies: Bodies::default(),
    };
    let mut state = State::Open;
    loop {
        clock.has_result(machine.has_result(&state));
        state = match state {
            State::Open if clock.is_cancelled() && machine.baseline.is_some() => machine.interrupted()?,
            State::Plan(attempt) | State::Search(attempt, _) if clock.is_cancelled() && machine.baseline.is_some() => {
                machine.settle(attempt, DeployError::Interrupted)?
            }
            State::Open => machine.open()?,
            State::Plan(attempt) => machine.plan(attempt)?,
            State::Search(attempt, round) => machine.search(attempt, round)?,
            State::Verify(attempt, planned) => machine.verify(attempt, planned)?,
            State::Complete(attempt, planned, check) => machine.complete(attempt, planned, check)?,
            State::Reject(attempt, rejection) => machine.reject(attempt, rejection),
            State::Done(attempt, planned, check) => return machine.finish(attempt, planned, check),
        };
    }
}

/// What follows a file that was found good.
fn settled<'c, 'a>(attempt: Attempt, planned: Planned, check: Option<Check>) -> State<'c, 'a> {
    match check {
        Some(check) => State::Complete(attempt, planned, check),
        None => State::Done(attempt, planned, None),
    }
}

impl<'c, 'a, S: Iterator<Item = Strategy>> Machine<'c, 'a, S> {
    /// Whether a file was measured that is written if everything ends now.
    fn has_result(&self, state: &State<'c, 'a>) -> bool {
        let has_best = match state {
            State::Open => false,
            State::Plan(attempt)
            | State::Search(attempt, _)
            | State::Verify(attempt, _)
            | State::Reject(attempt, _) => attempt.best.is_some(),
            State::Complete(..) => true,
            State::Done(_, _, check) => check.is_some(),
        };
        has_best || self.in_tiles.is_some() || self.laid_out.is_some()
    }

    /// What follows where no strategy is on its way and everything is to end: the best file that was measured.
    fn interrupted(&mut self) -> Result<State<'c, 'a>, DeployError> {
        let closest = self.closest.take_if(|_| self.request.force);
        let closest = closest.map(|(_, attempt, planned, check)| (attempt, planned, check));
        let laid_out = || {
            self.laid_out
                .take()
                .map(|(_, attempt, planned, check)| (attempt, planned, check))
        };
        let (attempt, planned, check) = closest.or_else(laid_out).ok_or(DeployError::Interrupted)?;
        Ok(settled(attempt, planned, check))
    }

    /// What the files of an attempt are made of.
    fn task<'t>(&'t self, attempt: &'t Attempt) -> Task<'t> {
        let bench = self.bench.as_ref().filter(|_| self.lays_out);
        let loader = bench.map(|bench| Loader {
            bench,
            scratch: self.scratch.path(),
        });
        Task {
            has_other: attempt.best.is_some() || self.in_tiles.is_some() || self.laid_out.is_some(),
            ..attempt.task(self.request, loader)
        }
    }
}
