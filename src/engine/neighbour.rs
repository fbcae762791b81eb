//! What the inference thread owes the rest of its process.

pub(super) use crate::os::return_freed_memory;

/// How much the inference threads stand back (a nice value) when all cores are busy: so much that the event loop
/// wakes up at once, and so little that inference still gets its share beside other programs.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Has this thread, and those that it starts, stand back behind the event loop.
#[cfg(target_os = "linux")]
pub(super) fn stand_back() {
    // SAFETY: the call touches no memory. On Linux it is about the calling thread alone; if it is refused,
    // nothing changes.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS);
    }
}

/// Elsewhere a nice value is about the whole process.
#[cfg(not(target_os = "linux"))]
pub(super) fn stand_back() {}
