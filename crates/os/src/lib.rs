//! Services of the operating system: cores, returning memory, thread priority, temporary files, and reasons why a file is unusable.

use std::{num::NonZero, sync::LazyLock, thread};

mod abandoned;
pub mod links;
pub mod obstacle;
pub mod temporary;

/// Returns the number of threads to use: `given`, or one for each core that the process may use if that is 0. Affinity and cgroup limits
/// count, which the system is asked for once.
#[must_use]
pub fn threads(given: usize) -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    match given {
        _ if cfg!(target_family = "wasm") => 1,
        0 => *CORES,
        given => given,
    }
}

/// Returns freed memory to the system. glibc keeps freed memory between pieces in use, however small these are.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_freed_memory() {
    // SAFETY: the call locks the allocator and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: other allocators return freed memory.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}

/// The increase of the inference threads' nice value: with 1 the event loop gets 56 % of a core that it shares with one of them. Larger
/// values slow inference beside busy programs (24 ms with 1, 50 with 3, 85 with 5) without waking the event loop earlier.
#[cfg(target_os = "linux")]
const NICENESS: libc::c_int = 1;

/// Lowers the priority of this thread and of the threads that it starts.
#[cfg(target_os = "linux")]
pub fn stand_back() {
    // Not `setpriority`, which is absolute: the nice value of the process may not be 0.
    // SAFETY: the call touches no memory. On Linux it is about the calling thread alone; if it is refused,
    // nothing changes.
    unsafe {
        libc::nice(NICENESS);
    }
}

/// Does nothing: elsewhere the nice value belongs to the whole process.
#[cfg(not(target_os = "linux"))]
pub fn stand_back() {}
