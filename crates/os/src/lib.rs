//! What the process asks of the operating system: memory given back, a lower priority for its threads, locks on files, and
//! why a file cannot be used.

pub mod file_lock;
pub mod obstacle;

/// Returns freed memory to the system. glibc keeps freed memory that lies between pieces in use, even if these are few and
/// small.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_freed_memory() {
    // SAFETY: the call locks the allocator and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing, because other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}

/// By how much the inference threads stand back behind the event loop when all cores are busy: what is added to their nice value.
/// The event loop then gets 56 % of a core that it shares with one of them, and inference hardly less than other programs.
///
/// Beside programs that keep all cores busy inference gets the less the more it stands back: five short steps in single precision took
/// 24 ms with 0 and 1, 50 with 3 and 85 with 5. The event loop wakes up as soon with all of them: beside two busy threads a timer was
/// late by 3 ms in the 99th percentile and by 8 ms at most (Linux 6.18), because no thread is interrupted within its slice.
#[cfg(target_os = "linux")]
const NICENESS: libc::c_int = 1;

/// Has this thread, and those that it starts, stand back behind the event loop.
#[cfg(target_os = "linux")]
pub fn stand_back() {
    // Not `setpriority`, which sets a value: that of the process may be another than 0.
    // SAFETY: the call touches no memory. On Linux it is about the calling thread alone; if it is refused,
    // nothing changes.
    unsafe {
        libc::nice(NICENESS);
    }
}

/// Elsewhere a nice value is about the whole process.
#[cfg(not(target_os = "linux"))]
pub fn stand_back() {}
