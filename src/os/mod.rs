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

/// How much the inference threads stand back (a nice value) when all cores are busy. The event loop gets more of its core than they
/// do (56 %), and inference hardly less than other programs.
///
/// With 5 it got a quarter of a core beside another program: five short steps then took 1.6 times as long as with transformers.js,
/// which does not stand back, and with 1 they take 0.8 times as long. The event loop wakes up as soon with either: beside two busy
/// threads a timer was late by 3 ms in the 99th percentile and by 8 ms at most (Linux 6.18), because no thread is interrupted within
/// its slice.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 1;

/// Has this thread, and those that it starts, stand back behind the event loop.
#[cfg(target_os = "linux")]
pub fn stand_back() {
    // SAFETY: the call touches no memory. On Linux it is about the calling thread alone; if it is refused,
    // nothing changes.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
    }
}

/// Elsewhere a nice value is about the whole process.
#[cfg(not(target_os = "linux"))]
pub fn stand_back() {}
