//! One block of memory for the runs of several sessions: those of this process, or those of all processes that name the same file.
//!
//! Each session maps the same bytes. A run takes its turn before it has a buffer there, and leaves when none of its buffers there is live; outputs lie
//! elsewhere. Turns of processes are locks of the file that they name, so the system ends that of a process that is gone. The file says
//! where processes have the memory open; who joins opens it there. When the last one is gone, the memory is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::account::Turn;
use crate::address_space::{self, PAGE, SHARED};
use crate::ledger::Thread;

/// Sessions of this process only, as the entry says it.
pub(crate) const PROCESS: &str = "process";
/// Address space of the block: more than any machine has, and nothing is there that was not written.
const LENGTH: u64 = 1 << 40;
/// Most bytes of the file that processes name.
const MOST_TEXT: u64 = 1 << 20;

/// A run that has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    /// The session, a number of its own.
    pub(crate) session: usize,
    pub(crate) thread: Thread,
}

/// The block.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The file that processes name; `None` for those of this process.
    name: Option<PathBuf>,
    /// The same, open: its lock is the turn of this process.
    turns: Option<File>,
    memory: File,
    /// The process that opened them. A child has the lock of its parent, so it has no turns.
    process: u32,
    holder: Mutex<Option<Holder>>,
    left: Condvar,
    /// How many mappings of it there are.
    mapped: AtomicUsize,
}

static ALL: Mutex<Vec<&Shared>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// That of this process, or of all processes that name this file.
    pub(crate) fn find(entry: &str) -> Result<&'static Self, String> {
        let name = match entry {
            PROCESS => None,
            path if path.starts_with('/') => Some(PathBuf::from(path)),
            other => {
                return Err(format!(
                    "remat: remat.arena.share: `{other}` is neither `{PROCESS}` nor an absolute path"
                ));
            }
        };
        let mut all = locked(&ALL);
        let process = std::process::id();
        if let Some(known) = all.iter().find(|one| one.name == name && one.process == process) {
            return Ok(known);
        }
        let failed = |error: io::Error| format!("remat: remat.arena.share: {entry}: {error}");
        let shared: &Self = Box::leak(Box::new(Self::open(name, process).map_err(failed)?));
        all.push(shared);
        Ok(shared)
    }

    fn open(name: Option<PathBuf>, process: u32) -> io::Result<Self> {
        let (turns, memory) = match &name {
            None => (None, new_memory("remat-block")?),
            Some(path) => {
                let (turns, memory) = join(path, process)?;
                (Some(turns), memory)
            }
        };
        Ok(Self {
            name,
            turns,
            memory,
            process,
            holder: Mutex::new(None),
            left: Condvar::new(),
            mapped: AtomicUsize::new(0),
        })
    }

    /// The bytes of all blocks of this process that sessions share.
    pub(crate) fn all_bytes() -> u64 {
        locked(&ALL).iter().map(|one| one.bytes()).sum()
    }

    /// What is in memory of the block.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.metadata().map_or(0, |metadata| metadata.blocks() * 512)
    }

    /// Waits for the turn of a run, unless it may never come: runs of one session at one time, and a run within another one, do not wait for each other.
    pub(crate) fn take(&self, who: Holder, waits: bool) -> Turn {
        if self.process != std::process::id() {
            return Turn::Refused;
        }
        let mut holder = locked(&self.holder);
        while let Some(other) = *holder {
            if !waits || other.session == who.session || other.thread == who.thread {
                return Turn::Refused;
            }
            holder = self.left.wait(holder).unwrap_or_else(PoisonError::into_inner);
        }
        *holder = Some(who);
        drop(holder);
        let is_locked = self.turns.as_ref().map_or(Ok(()), |turns| match waits {
            true => turns.lock(),
            false => turns.try_lock().map_err(io::Error::from),
        });
        if is_locked.is_err() {
            self.end();
            return Turn::Refused;
        }
        Turn::Taken
    }

    /// The turn is over.
    pub(crate) fn leave(&self) {
        if let Some(turns) = &self.turns {
            let _ = turns.unlock();
        }
        self.end();
    }

    fn end(&self) {
        *locked(&self.holder) = None;
        self.left.notify_all();
    }

    /// Maps the first bytes.
    pub(crate) fn map(&self, bytes: usize) -> Option<usize> {
        if bytes as u64 > LENGTH {
            return None;
        }
        let address = address_space::map(bytes.next_multiple_of(PAGE), SHARED, Some(&self.memory), 0)?;
        self.mapped.fetch_add(1, Ordering::Relaxed);
        Some(address)
    }

    /// Gives a mapping back, and with the last one the memory, if nobody has a turn.
    pub(crate) fn unmap(&self, address: usize, bytes: usize) {
        address_space::unmap(address, bytes.next_multiple_of(PAGE));
        if self.mapped.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.trim();
        }
    }

    /// Gives the memory back if nobody has a turn; how many bytes.
    pub(crate) fn trim(&self) -> u64 {
        let nobody = Holder { session: 0, thread: 0 };
        if self.take(nobody, false) == Turn::Refused {
            return 0;
        }
        let before = self.bytes();
        address_space::empty(&self.memory, LENGTH);
        let after = self.bytes();
        self.leave();
        before.saturating_sub(after)
    }

    /// All that this process knows give their memory back; how many bytes.
    pub(crate) fn trim_all() -> u64 {
        let all = locked(&ALL).clone();
        all.iter().map(|one| one.trim()).sum()
    }
}

fn new_memory(name: &str) -> io::Result<File> {
    let memory = address_space::create(name)?;
    memory.set_len(LENGTH)?;
    Ok(memory)
}

/// Opens the file and the memory that processes have which named it before, or makes it; the file lists this process, too, and no longer those that
/// are gone.
fn join(path: &Path, process: u32) -> io::Result<(File, File)> {
    let mut turns = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    turns.lock()?;
    let name = format!("remat-block-{}", turns.metadata()?.ino());
    let mut text = String::new();
    Read::by_ref(&mut turns).take(MOST_TEXT).read_to_string(&mut text)?;
    let is_there = |line: &&str| {
        let link = std::fs::read_link(line).unwrap_or_default();
        link.to_string_lossy().starts_with(&format!("/memfd:{name} "))
    };
    let mut lines: Vec<String> = text.lines().filter(is_there).map(str::to_owned).collect();
    let opened = lines
        .iter()
        .find_map(|line| File::options().read(true).write(true).open(line).ok());
    let memory = opened.map_or_else(|| new_memory(&name), Ok)?;
    lines.push(format!("/proc/{process}/fd/{}", memory.as_raw_fd()));
    turns.set_len(0)?;
    turns.seek(SeekFrom::Start(0))?;
    for line in &lines {
        writeln!(turns, "{line}")?;
    }
    turns.unlock()?;
    Ok((turns, memory))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn of(session: usize, thread: Thread) -> Holder {
        Holder { session, thread }
    }

    #[test]
    fn one_run_at_a_time_has_its_turn_and_none_waits_for_itself() {
        let shared = Shared::open(None, std::process::id()).expect("there is memory");
        assert_eq!(shared.take(of(1, 1), true), Turn::Taken);
        assert_eq!(shared.take(of(1, 2), true), Turn::Refused, "the same session");
        assert_eq!(
            shared.take(of(2, 1), true),
            Turn::Refused,
            "within the run of another one"
        );
        assert_eq!(shared.take(of(2, 2), false), Turn::Refused, "it does not wait");
        shared.leave();
        let shared = Arc::new(shared);
        let (inside, turns) = (Arc::new(AtomicU64::new(0)), 200);
        let threads: Vec<_> = (1..=8)
            .map(|number| {
                let (shared, inside) = (Arc::clone(&shared), Arc::clone(&inside));
                std::thread::spawn(move || {
                    for _ in 0..turns {
                        assert_eq!(shared.take(of(number, number as Thread), true), Turn::Taken);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        shared.leave();
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    }

    #[test]
    fn who_names_the_same_file_has_the_same_memory_and_waits_for_the_other() {
        let path = std::env::temp_dir().join(format!("remat-share-{}", std::process::id()));
        // A line of a process that is gone, and one of another file.
        std::fs::write(&path, "/proc/1/fd/999999\n/dev/null\n").expect("there is space");
        let open = || Shared::open(Some(path.clone()), std::process::id()).expect("it is there");
        let (one, other) = (open(), open());
        let lines = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(lines.lines().count(), 2, "{lines}");
        let id = |shared: &Shared| shared.memory.metadata().expect("it is open").ino();
        assert_eq!(id(&one), id(&other));
        assert_eq!(one.take(of(1, 1), true), Turn::Taken);
        assert_eq!(other.take(of(1, 1), false), Turn::Refused);
        let address = one.map(1 << 20).expect("there is address space");
        assert_eq!((one.bytes(), one.trim()), (0, 0), "its run goes on");
        one.leave();
        assert_eq!(other.take(of(1, 1), true), Turn::Taken);
        other.leave();
        one.unmap(address, 1 << 20);
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn an_entry_names_this_process_or_a_file() {
        let found = |entry| std::ptr::from_ref(Shared::find(entry).expect("there is memory"));
        assert_eq!(found(PROCESS), found(PROCESS));
        assert!(Shared::find("here").is_err_and(|why| why.contains("neither `process` nor")));
        assert!(Shared::find("/there/is/no/folder").is_err_and(|why| why.contains("/there/is/no/folder")));
    }
}
