//! The order of one scorer's calls around its batches, which hand in their traces little by little.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

use knowledgepulse_error::Error;

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
