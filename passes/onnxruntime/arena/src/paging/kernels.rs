//! What the operators do: moving one tensor from and to memory of the run.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::kind::{INT64, Kind};
use super::slots::{Owner, Ticket};
use super::store::Store;
use crate::api::{Api, Status};

/// The attribute of a `PageIn` after which nobody needs the page.
const LAST: &CStr = c"last";

/// A node of a session.
#[derive(Debug)]
pub(crate) struct Kernel {
    api: Api,
    kind: Kind,
    store: Arc<Store>,
    /// A number that no other node has.
    node: usize,
    /// Whether the page goes when it is read.
    is_last: bool,
}

impl Kernel {
    /// The node that `info` describes.
    pub(crate) fn new(api: Api, kind: Kind, store: &Arc<Store>, info: *const c_void) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Self {
            api,
            kind,
            store: Arc::clone(store),
            node: NEXT.fetch_add(1, Ordering::Relaxed),
            is_last: api.attribute(info, LAST) == Some(1),
        }
    }

    /// Runs the node.
    ///
    /// # Errors
    /// Where an operand is not what it should be, or a copy fails.
    pub(crate) fn compute(&self, context: *mut c_void) -> Result<(), Status> {
        match self.kind {
            Kind::Out => self.page_out(context),
            Kind::OutEnd => self.with_ticket(context, |ticket| self.store.wait(ticket)),
            Kind::InBegin => self.with_ticket(context, |ticket| {
                self.store.announce(ticket);
                Ok(())
            }),
            Kind::In => self.page_in(context),
        }
    }

    fn page_out(&self, context: *mut c_void) -> Result<(), Status> {
        let operand = self.api.operand(context, 0)?;
        let (dims, element) = self.api.dims_and_element(operand)?;
        let bytes = bytes(&dims, element).ok_or_else(|| {
            let why = format!("PageOut: elements of type {element} and extents {dims:?} cannot be moved");
            self.error(&why)
        })?;
        let from = self.api.data(operand)?.expose_provenance();
        let owner = Owner {
            node: self.node,
            run: self.api.run(context),
        };
        let ticket = self.store.write(owner, from, (bytes, dims, element));
        self.answer(context, 0, ticket.map_err(|why| self.error(&why))?)
    }

    fn page_in(&self, context: *mut c_void) -> Result<(), Status> {
        let ticket = self.ticket(context)?;
        let (bytes, dims, element) = self.store.shape(ticket).map_err(|why| self.error(&why))?;
        let (_, like) = self.api.dims_and_element(self.api.operand(context, 1)?)?;
        if like != element {
            let why = format!("PageIn: page {ticket} has elements of type {element}, the node says {like}");
            return Err(self.error(&why));
        }
        let result = self.api.result(context, 0, &dims)?;
        let to = self.api.data(result)?;
        let room = usize::try_from(bytes).ok().filter(|&room| room > 0);
        let room = match room {
            // SAFETY: the runtime made a tensor of these extents and this type, which has so many bytes, and nobody has it yet.
            Some(room) => unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), room) },
            None => &mut [],
        };
        let read = self.store.read(ticket, room, self.is_last);
        read.map_err(|why| self.error(&why))?;
        self.answer(context, 1, ticket)
    }

    fn with_ticket(&self, context: *mut c_void, act: impl Fn(Ticket) -> Result<(), String>) -> Result<(), Status> {
        let ticket = self.ticket(context)?;
        act(ticket).map_err(|why| self.error(&why))?;
        self.answer(context, 0, ticket)
    }

    /// The ticket that the node reads.
    fn ticket(&self, context: *mut c_void) -> Result<Ticket, Status> {
        let operand = self.api.operand(context, 0)?;
        let (dims, element) = self.api.dims_and_element(operand)?;
        if dims != [1] || element != INT64 {
            return Err(self.error(&format!(
                "a ticket is one 64-bit integer, not {dims:?} of type {element}"
            )));
        }
        let data = self.api.data(operand)?.cast::<u64>();
        // SAFETY: one integer of 64 bits, whose alignment the runtime keeps.
        Ok(unsafe { *data })
    }

    /// Makes a ticket a result.
    fn answer(&self, context: *mut c_void, place: usize, ticket: Ticket) -> Result<(), Status> {
        let data = self.api.data(self.api.result(context, place, &[1])?)?.cast::<u64>();
        // SAFETY: the runtime made a tensor of one integer of 64 bits.
        unsafe { *data = ticket };
        Ok(())
    }

    fn error(&self, why: &str) -> Status {
        self.api.error(&format!("remat: {why}"))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.store.forget_node(self.node);
    }
}

/// The bytes of a tensor; `None` where its bits do not lie in its own memory, or elements are smaller than a byte.
fn bytes(dims: &[i64], element: c_int) -> Option<u64> {
    let each: u64 = match element {
        2 | 3 | 9 | 17..=20 => 1,
        4 | 5 | 10 | 16 => 2,
        1 | 6 | 12 => 4,
        7 | 11 | 13 | 14 => 8,
        15 => 16,
        _ => return None,
    };
    dims.iter()
        .try_fold(each, |bytes, &extent| bytes.checked_mul(u64::try_from(extent).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_tensors() {
        assert_eq!(bytes(&[2, 3], 1), Some(24));
        assert_eq!(bytes(&[], 11), Some(8));
        assert_eq!(bytes(&[0, 7], 7), Some(0));
        assert_eq!(bytes(&[2], 8), None);
        assert_eq!(bytes(&[-1], 1), None);
        assert_eq!(bytes(&[i64::MAX, 3], 1), None);
    }
}
