//! An embedder on the caller's thread, for WebAssembly, which has no threads: each call is settled when [`Here::settle`] returns.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Shared,
    job::{Job, Settlement, embed_together},
    load::{BoxedLane, EngineOptions, Loaded, load},
};

/// Settles calls on the caller's thread.
pub(super) struct Here {
    embedder: Option<Mutex<(Loaded, BoxedLane)>>,
    shared: Arc<Shared>,
}

impl Here {
    /// Settles calls that need no embedder.
    #[cfg(target_family = "wasm")]
    pub(super) fn without_embedder(shared: &Arc<Shared>) -> Self {
        Self {
            embedder: None,
            shared: Arc::clone(shared),
        }
    }

    /// Loads the embedder, and publishes its state.
    pub(super) fn load(options: &EngineOptions, shared: &Arc<Shared>) -> Self {
        Self {
            embedder: load(options, shared).map(Mutex::new),
            shared: Arc::clone(shared),
        }
    }

    /// Settles a call.
    pub(super) fn settle(&self, job: Job) {
        let settlements = match &self.embedder {
            None => vec![job.without_embedder()],
            Some(embedder) => {
                let (loaded, lane) = &mut *embedder.lock().unwrap_or_else(PoisonError::into_inner);
                embed_together(loaded, &mut **lane, vec![job.prepare(&loaded.embedder)])
            }
        };
        for settlement in settlements {
            settle(&self.shared, settlement);
        }
    }
}

/// Settles a call after the embedding. A panic in a reply does not stop other replies.
fn settle(shared: &Shared, settlement: Settlement) {
    let _ = catch_unwind(AssertUnwindSafe(|| settlement(shared)));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::{EmbedResult, Status, job};
    use super::*;

    #[test]
    fn calls_are_settled_before_they_return() {
        let options = EngineOptions {
            model_directory: Some("/nowhere/model".into()),
            model_configured: true,
            ..EngineOptions::default()
        };
        let shared = Arc::new(Shared::default());
        let here = Here::load(&options, &shared);
        let (sender, statuses) = channel();
        here.settle(job::status(Box::new(move |status: Status| {
            sender.send(status).unwrap()
        })));
        let failure = statuses.try_recv().unwrap().failure.unwrap();
        assert_eq!(failure.code, "ERR_MODEL_NOT_FOUND");
        let (sender, embeddings) = channel();
        let reply = move |embedded: EmbedResult| sender.send(embedded).unwrap();
        here.settle(job::embed("text".into(), None, Box::new(reply)));
        assert_eq!(embeddings.try_recv().unwrap().unwrap_err(), failure);
        assert_eq!(shared.warning.get(), Some(&failure));
    }
}
