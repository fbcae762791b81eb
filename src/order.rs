//! The order of one scorer's replies.

use std::{cell::Cell, sync::Arc};

use knowledgepulse_score::engine::InOrder;

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
