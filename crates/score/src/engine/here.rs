//! An embedder on the caller's thread: each call is settled when [`Here::settle`] returns. It suits a program that has nothing else to do, on
//! a platform without threads.

use std::sync::{Arc, Mutex, PoisonError, atomic::Ordering};

use super::{
    Engine, Shared,
    job::{Job, embed_together},
    load::{BoxedLane, EngineOptions, Loaded, load},
    remote::settle,
};

/// Settles calls on the caller's thread.
pub(super) struct Here {
    embedder: Option<Mutex<(Loaded, BoxedLane)>>,
    shared: Arc<Shared>,
}

impl Here {
    /// Settles calls that need no embedder.
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

impl Engine {
    /// Embeds on the caller's thread, instead of with a courier. Has no effect after the first call that needs the embedder.
    pub fn embed_here(&self) {
        self.is_here.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::{EmbedResult, Status};
    use super::*;

    #[test]
    fn calls_are_settled_before_they_return() {
        let engine = Engine::default();
        assert!(engine.configure(EngineOptions {
            model_directory: Some("/nowhere/model".into()),
            model_configured: true,
            ..EngineOptions::default()
        }));
        engine.embed_here();
        let (sender, statuses) = channel();
        engine.status(Box::new(move |status: Status| sender.send(status).unwrap()));
        let failure = statuses.try_recv().unwrap().failure.unwrap();
        assert_eq!(failure.code, "ERR_MODEL_NOT_FOUND");
        let (sender, embeddings) = channel();
        let reply = move |embedded: EmbedResult| sender.send(embedded).unwrap();
        engine.embed("text".into(), None, Box::new(reply));
        assert_eq!(embeddings.try_recv().unwrap().unwrap_err(), failure);
        assert_eq!(engine.take_warning(), Some(failure));
    }
}
