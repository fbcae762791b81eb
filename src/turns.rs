//! The order of one scorer's calls around its batches, which hand in their traces little by little, and of its replies.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    sync::Arc,
};

use knowledgepulse_error::Error;
use knowledgepulse_score::engine::InOrder;

use crate::{error::Result, replies::Ticket};

/// Hands calls on in their order. Calls that come while a batch is open wait until it is closed.
#[derive(Default)]
pub(super) struct Turns {
    /// The number of the open batch.
    open: Cell<Option<u64>>,
    /// The number of the next batch.
    next: Cell<u64>,
    waiting: RefCell<VecDeque<Waiting>>,
    /// How many replies have not been delivered yet.
    awaited: Rc<Cell<usize>>,
}

enum Waiting {
    Call(Box<dyn FnOnce()>),
    Batch(u64, Ticket),
}

impl Turns {
    /// Returns the counter of the replies that have not been delivered yet.
    pub(super) fn awaited(&self) -> &Rc<Cell<usize>> {
        &self.awaited
    }

    /// Returns whether a reply that is known at once would overtake another.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.get() > 0
    }

    /// Returns whether a batch is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.get().is_some()
    }

    /// Hands a call in, once the batches before it are closed.
    pub(super) fn enter(&self, hand_in: impl FnOnce() + 'static) {
        if self.is_open() {
            self.waiting
                .borrow_mut()
                .push_back(Waiting::Call(Box::new(hand_in)));
        } else {
            hand_in();
        }
    }

    /// Begins a batch, and returns its number. If others have to be closed first, it waits for that with a ticket from
    /// `make`, which is settled then.
    pub(super) fn begin(&self, make: impl FnOnce() -> Result<Ticket>) -> Result<u64> {
        let number = self.next.get();
        if self.is_open() {
            let ticket = make()?;
            self.waiting
                .borrow_mut()
                .push_back(Waiting::Batch(number, ticket));
        } else {
            self.open.set(Some(number));
        }
        self.next.set(number + 1);
        Ok(number)
    }

    /// Closes the batch of this number, if it is open, and hands on the calls that have waited for it.
    pub(super) fn close(&self, number: u64) {
        if self.open.get() != Some(number) {
            return;
        }
        self.open.set(None);
        while !self.is_open() {
            // Not borrowed while it is handed in.
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some(Waiting::Call(hand_in)) => hand_in(),
                Some(Waiting::Batch(number, ticket)) => {
                    self.open.set(Some(number));
                    ticket.settle::<_, Error>(Ok(()));
                }
                None => break,
            }
        }
    }
}

/// A reply, which goes out in its turn.
type Leave = Box<dyn FnOnce() + Send>;

/// The order of the replies to one scorer's calls, which is that of the calls.
pub(super) struct Order {
    /// The number of the next call.
    next: Cell<u64>,
    left: Arc<InOrder<Leave>>,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            next: Cell::new(0),
            left: Arc::new(InOrder::new(0)),
        }
    }
}

impl Order {
    /// Takes the last place.
    pub(super) fn take(&self) -> Place {
        let number = self.next.get();
        self.next.set(number + 1);
        Place {
            number: Some(number),
            left: Arc::clone(&self.left),
        }
    }
}

/// The place of a call among the replies. Dropping it leaves it.
pub(super) struct Place {
    /// `None` once it was left.
    number: Option<u64>,
    left: Arc<InOrder<Leave>>,
}

impl Place {
    /// Leaves the place, from any thread, with a reply that goes out after those of all earlier places.
    pub(super) fn leave(mut self, reply: impl FnOnce() + Send + 'static) {
        self.finish(Box::new(reply));
    }

    fn finish(&mut self, reply: Leave) {
        if let Some(number) = self.number.take() {
            self.left.finish(number, reply, |reply| reply());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.finish(Box::new(|| ()));
    }
}
