//! What the libraries say on the way: on stderr, and, where it is a warning, in the report too.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt as print;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The warnings of a command so far, in the order in which they came.
type Kept = Arc<Mutex<Vec<String>>>;

/// Events of the libraries go to stderr; `REMAT_LOG` filters them finer than `-v` does. Warnings are kept, whatever is shown.
pub(crate) fn start_tracing(quiet: bool, verbose: u8) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::TRACE,
    };
    let named = std::env::var("REMAT_LOG").ok().filter(|named| !named.is_empty());
    let named: Option<Targets> = named.and_then(|named| named.parse().ok());
    let filter = named.unwrap_or_else(|| Targets::new().with_default(level));
    // Its colors would be shown as text: no event may change a terminal.
    let shown = print::layer().with_ansi(false).with_writer(|| EventLine).without_time();
    // Of several command lines in one process, the first decides.
    _ = tracing_subscriber::registry()
        .with(shown.with_filter(filter))
        .with(Keep::default().with_filter(LevelFilter::WARN))
        .try_init();
}

/// Does `work` of which only the warnings are kept: nothing is printed. Threads that it starts have to take its dispatcher along.
pub(crate) fn keeping<T>(work: impl FnOnce() -> T) -> T {
    let kept = tracing_subscriber::registry().with(Keep::default().with_filter(LevelFilter::WARN));
    tracing::subscriber::with_default(kept, work)
}

/// The warnings so far of the command that runs in this thread.
pub(crate) fn so_far() -> Vec<String> {
    let kept =
        tracing::dispatcher::get_default(|dispatch| dispatch.downcast_ref::<Keep>().map(|keep| Arc::clone(&keep.0)));
    kept.map_or_else(Vec::new, |kept| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    })
}

/// Writes an event to stderr, in one line whatever names it holds. That stderr is gone is no error.
struct EventLine;

impl std::io::Write for EventLine {
    /// The formatter writes an event at once.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        super::write_stderr(&(remat_files::line(text) + "\n"));
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Keeps every event.
#[derive(Default)]
struct Keep(Kept);

impl<S: Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(line.text());
    }
}

/// An event as one line: its message, then its fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, ", {}: {value:?}", field.name())
        };
    }
}
