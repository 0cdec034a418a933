//! A second memory: a file, who has which bytes of it, and the thread that writes while the run goes on.
//!
//! There is one for each folder, for all sessions of the process. Only the system's memory for files has what was written last, at most
//! [`WINDOW`] beyond what is being written; what is older is on the disk, and read ahead when a run says that it will need it.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::file::Nameless;
use super::slots::{Owner, Slots, Stage, Ticket};
use crate::messages::say;

/// Bytes of pages that may stay in the system's memory for files after they are written.
const WINDOW: u64 = 64 << 20;

/// The folders and their second memories, which last as long as the process.
static STORES: Mutex<BTreeMap<PathBuf, Arc<Store>>> = Mutex::new(BTreeMap::new());

/// What was moved by all second memories of the process, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moved {
    /// Written to them.
    pub out: u64,
    /// Read from them.
    pub back: u64,
    /// In them now.
    pub held: u64,
    /// Most in them at one time.
    pub most: u64,
}

/// What the thread is to do.
#[derive(Debug)]
enum Job {
    /// Memory from this address on is written to a page.
    Write { ticket: Ticket, from: usize },
    /// A page is read ahead.
    Ahead(Ticket),
}

/// What changes.
#[derive(Debug, Default)]
struct State {
    slots: Slots,
    file: Option<Arc<Nameless>>,
    jobs: VecDeque<Job>,
    /// Pages whose bytes the system has in memory, the oldest first.
    warm: VecDeque<Ticket>,
    /// The process whose thread works: that of a parent is not there after a fork.
    runs_in: Option<u32>,
    out: u64,
    back: u64,
}

/// A second memory.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    state: Mutex<State>,
    /// There are jobs.
    asked: Condvar,
    /// A page was written.
    done: Condvar,
}

impl Store {
    /// That of a folder.
    pub(crate) fn of(folder: &Path) -> Arc<Self> {
        let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(folder.to_owned());
        Arc::clone(store.or_insert_with(|| Arc::new(Self::new(folder))))
    }

    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            state: Mutex::default(),
            asked: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// What was moved by all of them.
    pub(crate) fn moved() -> Moved {
        let stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Moved::default();
        for state in stores.values().map(|store| store.state()) {
            sum.out += state.out;
            sum.back += state.back;
            sum.held += state.slots.held();
            sum.most += state.slots.most();
        }
        sum
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to write a tensor that lies at an address; the caller keeps it there until [`Self::wait`] returns.
    pub(crate) fn write(
        self: &Arc<Self>,
        owner: Owner,
        from: usize,
        (bytes, dims, element): (u64, Vec<i64>, i32),
    ) -> Result<Ticket, String> {
        let mut state = self.state();
        let file = self.file(&mut state)?;
        state.slots.begins(owner);
        let ticket = state.slots.take(owner, bytes, dims, element);
        if self.has_thread(&mut state) {
            state.jobs.push_back(Job::Write { ticket, from });
            self.asked.notify_one();
            return Ok(ticket);
        }
        // Without a thread the run writes itself.
        drop(state);
        self.write_now(&file, ticket, from);
        Ok(ticket)
    }

    /// Returns when the page is written.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<(), String> {
        let mut state = self.state();
        loop {
            let page = state.slots.page(ticket).ok_or_else(|| unknown(ticket))?;
            match &page.stage {
                Stage::Out => return Ok(()),
                Stage::Failed(why) => return Err(why.clone()),
                Stage::Leaving => {}
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Begins to read a page ahead.
    pub(crate) fn announce(self: &Arc<Self>, ticket: Ticket) {
        let mut state = self.state();
        if self.has_thread(&mut state) {
            state.jobs.push_front(Job::Ahead(ticket));
            self.asked.notify_one();
        }
    }

    /// The bytes, the extents and the type of the elements of a page.
    pub(crate) fn shape(&self, ticket: Ticket) -> Result<(u64, Vec<i64>, i32), String> {
        let state = self.state();
        let page = state.slots.page(ticket).ok_or_else(|| unknown(ticket))?;
        Ok((page.bytes, page.dims.clone(), page.element))
    }

    /// Reads a page that is written; where it is the last time, it goes.
    pub(crate) fn read(&self, ticket: Ticket, to: &mut [u8], is_last: bool) -> Result<(), String> {
        self.wait(ticket)?;
        let mut state = self.state();
        let page = state.slots.page(ticket).ok_or_else(|| unknown(ticket))?;
        let (offset, bytes) = (page.offset, page.bytes);
        if u64::try_from(to.len()) != Ok(bytes) {
            return Err(format!(
                "page {ticket} has {bytes} bytes, and there is room for {}",
                to.len()
            ));
        }
        let file = self.file(&mut state)?;
        drop(state);
        file.read(to, offset).map_err(|error| self.failed("read", &error))?;
        let mut state = self.state();
        state.back += bytes;
        if is_last {
            state.slots.release(ticket);
            if state.slots.end() > WINDOW {
                file.is_done_with(offset, bytes);
            }
        }
        Ok(())
    }

    /// Nobody needs a page any more.
    pub(crate) fn release(&self, ticket: Ticket) {
        self.state().slots.release(ticket);
    }

    /// A node is gone, and its pages. The file keeps its length until then: the next run finds its bytes in the system's memory for files, where it
    /// would have to wait for new ones.
    pub(crate) fn forget_node(&self, node: usize) {
        let mut state = self.state();
        state.slots.forget_node(node);
        if let Some(file) = &state.file {
            file.cut(state.slots.end());
        }
    }

    fn file(&self, state: &mut State) -> Result<Arc<Nameless>, String> {
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        let file = Nameless::create(&self.folder).map_err(|error| self.failed("create a file", &error))?;
        let file = Arc::new(file);
        if file.lies_in_memory() {
            let folder = self.folder.display();
            say(&format!(
                "{folder} lies in memory: what runs move there saves nothing; name a folder on a disk (remat.paging.folder)"
            ));
        }
        state.file = Some(Arc::clone(&file));
        Ok(file)
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> String {
        format!("second memory in {}: cannot {what}: {error}", self.folder.display())
    }

    /// Whether there is a thread that works, after starting one where there is none.
    fn has_thread(self: &Arc<Self>, state: &mut State) -> bool {
        let this = Some(std::process::id());
        if state.runs_in == this {
            return true;
        }
        let store = Arc::clone(self);
        let started = std::thread::Builder::new()
            .name("remat-pages".to_owned())
            .spawn(move || store.work());
        if started.is_ok() {
            state.runs_in = this;
        }
        started.is_ok()
    }

    /// Writes a page to the end.
    fn write_now(&self, file: &Nameless, ticket: Ticket, from: usize) {
        let page = self.state().slots.place(ticket);
        let Some((offset, bytes)) = page else { return };
        let written = file
            .write(from, bytes, offset)
            .map_err(|error| self.failed("write", &error));
        let mut state = self.state();
        state.out += bytes;
        state.warm.push_back(ticket);
        state.slots.has_left(ticket, written);
        self.done.notify_all();
    }

    /// What the thread does, for ever: jobs as they come, and between them what is no longer needed in memory goes to the disk.
    fn work(&self) {
        let mut state = self.state();
        loop {
            let file = state.file.clone();
            let Some(file) = file else {
                state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let job = match too_warm(&mut state) {
                // Twice the window is more than may wait for a pause.
                Some((_, warm)) if warm > 2 * WINDOW => None,
                _ => state.jobs.pop_front(),
            };
            match job {
                Some(Job::Write { ticket, from }) => {
                    drop(state);
                    self.write_now(&file, ticket, from);
                    state = self.state();
                }
                Some(Job::Ahead(ticket)) => {
                    let place = state.slots.place(ticket).filter(|_| !state.warm.contains(&ticket));
                    if let Some((offset, bytes)) = place {
                        state.warm.push_back(ticket);
                        drop(state);
                        file.read_ahead(offset, bytes);
                        state = self.state();
                    }
                }
                None => match too_warm(&mut state) {
                    Some(((offset, bytes), _)) => {
                        state.warm.pop_front();
                        drop(state);
                        file.drop_from_memory(offset, bytes);
                        state = self.state();
                    }
                    None => state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner),
                },
            }
        }
    }
}

/// Where the page lies that is in memory for longest, where there are more than may be, and how many bytes are.
fn too_warm(state: &mut State) -> Option<((u64, u64), u64)> {
    let State { slots, warm, .. } = state;
    warm.retain(|&ticket| slots.page(ticket).is_some());
    let bytes = warm
        .iter()
        .filter_map(|&ticket| slots.place(ticket))
        .map(|(_, bytes)| bytes);
    let sum: u64 = bytes.sum();
    let oldest = warm.front().and_then(|&ticket| slots.place(ticket))?;
    (sum > WINDOW).then_some((oldest, sum))
}

fn unknown(ticket: Ticket) -> String {
    format!("page {ticket} is not in the second memory: the nodes ran in another order, or twice")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(run: usize) -> Owner {
        Owner { node: 1, run }
    }

    #[test]
    fn pages_of_several_runs_come_back_as_they_went() {
        let store = Arc::new(Store::new(&std::env::temp_dir()));
        let runs: Vec<_> = (1..=4usize)
            .map(|run| {
                let store = Arc::clone(&store);
                std::thread::spawn(move || {
                    for round in 0..8u8 {
                        let bytes = vec![round ^ u8::try_from(run).unwrap_or(0); 70_000 * run];
                        let length = u64::try_from(bytes.len()).unwrap_or(0);
                        let from = bytes.as_ptr().expose_provenance();
                        let ticket = store.write(owner(run), from, (length, vec![2, -1], 3)).expect("room");
                        store.wait(ticket).expect("it is written");
                        store.announce(ticket);
                        assert_eq!(store.shape(ticket), Ok((length, vec![2, -1], 3)));
                        let mut back = vec![0u8; bytes.len()];
                        store.read(ticket, &mut back, true).expect("it is there");
                        assert_eq!(back, bytes);
                        assert!(store.shape(ticket).is_err());
                    }
                })
            })
            .collect();
        runs.into_iter().for_each(|run| run.join().expect("no run fails"));
        assert_eq!(store.state().slots.held(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_that_names_it() {
        let store = Arc::new(Store::new(Path::new("/nonexistent/pages")));
        let why = store
            .write(owner(1), 0, (1, vec![], 1))
            .expect_err("there is no such folder");
        assert!(why.contains("/nonexistent/pages"), "{why}");
    }

    #[test]
    fn what_cannot_be_written_is_said_when_it_is_waited_for() {
        let store = Arc::new(Store::new(&std::env::temp_dir()));
        let ticket = store.write(owner(1), 16, (4096, vec![], 1)).expect("a page");
        let why = store.wait(ticket).expect_err("there is no memory at 16");
        assert!(why.contains("cannot write"), "{why}");
        store.forget_node(1);
        assert_eq!(store.state().slots.held(), 0);
    }
}
