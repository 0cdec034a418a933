//! The second memory for programs that move memory of their own, without ONNX Runtime: steps of PyTorch on a CPU.

use std::path::Path;
use std::sync::Arc;

use super::file::default_folder;
use super::slots::{Owner, Ticket};
use super::store::{Moved, Store};

/// The node whose pages these are: kernels count from 1. Pages of runs without identity go when they are released, and not before.
const PROGRAM: Owner = Owner { node: 0, run: 0 };

/// A file without a name, and a thread that writes to it.
#[derive(Clone, Debug)]
pub struct SecondMemory(Arc<Store>);

impl SecondMemory {
    /// That of a folder; of `/var/tmp`, or else the folder for temporary files, without one.
    #[must_use]
    pub fn of(folder: Option<&Path>) -> Self {
        Self(Store::of(folder.unwrap_or(&default_folder())))
    }

    /// Begins to write bytes from an address on, and gives the ticket of their page. They are read until [`Self::wait`] returns; where they are
    /// memory no more by then, that fails.
    ///
    /// # Errors
    /// Where there can be no file; the message names the folder.
    pub fn write(&self, address: usize, bytes: u64) -> Result<Ticket, String> {
        self.0.write(PROGRAM, address, (bytes, Vec::new(), 0))
    }

    /// Returns when a page is written.
    ///
    /// # Errors
    /// Where it could not be written, on a full disk for instance.
    pub fn wait(&self, ticket: Ticket) -> Result<(), String> {
        self.0.wait(ticket)
    }

    /// Begins to read a page ahead.
    pub fn announce(&self, ticket: Ticket) {
        self.0.announce(ticket);
    }

    /// Reads a page, whose bytes have to be as many as there is room for. It stays.
    ///
    /// # Errors
    /// Where there is no such page, or it cannot be read.
    pub fn read(&self, ticket: Ticket, to: &mut [u8]) -> Result<(), String> {
        self.0.read(ticket, to, false)
    }

    /// Nobody needs a page any more.
    pub fn release(&self, ticket: Ticket) {
        self.0.release(ticket);
    }

    /// What was moved.
    #[must_use]
    pub fn moved() -> Moved {
        Store::moved()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_back_as_often_as_it_is_read_until_it_is_released() {
        let memory = SecondMemory::of(Some(&std::env::temp_dir()));
        let bytes: Vec<u8> = (0..100_000u32).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        let ticket = memory.write(bytes.as_ptr().expose_provenance(), length).expect("room");
        memory.wait(ticket).expect("it is written");
        memory.announce(ticket);
        for _ in 0..2 {
            let mut back = vec![0; bytes.len()];
            memory.read(ticket, &mut back).expect("it is there");
            assert_eq!(back, bytes);
        }
        memory.release(ticket);
        let why = memory.read(ticket, &mut []).expect_err("it is gone");
        assert!(why.contains(&format!("page {ticket}")), "{why}");
        assert!(SecondMemory::moved().out >= length);
    }
}
