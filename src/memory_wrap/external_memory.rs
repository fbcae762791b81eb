//! Tells the JavaScript engine how large a cache is. The engine does not see that memory, and would collect too seldom.

use std::sync::atomic::{AtomicUsize, Ordering};

use napi::Env;

use crate::error::Result;

/// By how many bytes a cache grows before the engine is told. Telling it for every vector would cost more than adding one.
const WORTH_TELLING: usize = 1024 * 1024;

/// The bytes of a cache that the JavaScript engine knows to be held by an object, so that it collects garbage in time. Only
/// the thread of the engine changes it.
#[derive(Default)]
pub(crate) struct ExternalMemory(AtomicUsize);

/// The bytes of a [`ExternalMemory`] whose object was collected.
const COLLECTED: usize = usize::MAX;

impl ExternalMemory {
    /// Reports to the engine how many bytes are held, if that differs by at least [`WORTH_TELLING`] from the last report.
    pub(crate) fn tell(&self, env: Env, bytes: usize) -> Result<()> {
        let told = self.0.load(Ordering::Relaxed);
        // A call may end after the object was collected.
        if told != COLLECTED && (bytes == 0 || bytes.abs_diff(told) >= WORTH_TELLING) {
            self.replace(env, told, bytes)?;
        }
        Ok(())
    }

    /// Tells the engine that the object is gone, and with it the cache.
    pub(crate) fn forget(&self, env: Env) -> Result<()> {
        self.replace(env, self.0.load(Ordering::Relaxed), 0)?;
        self.0.store(COLLECTED, Ordering::Relaxed);
        Ok(())
    }

    #[allow(clippy::cast_possible_wrap)] // No memory has 2^63 bytes.
    fn replace(&self, env: Env, told: usize, bytes: usize) -> Result<()> {
        env.adjust_external_memory(bytes as i64 - told as i64)?;
        self.0.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}
