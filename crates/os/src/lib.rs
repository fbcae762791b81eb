//! Services of the operating system: cores, work on several threads, returning memory, thread priority, temporary files, and reasons why a file is unusable.

use std::{env, num::NonZero, path::PathBuf, sync::LazyLock, thread};

pub mod links;
pub mod obstacle;
pub mod parallel;
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

/// Returns the home folder of the user. In WebAssembly the standard library knows none; the environment of Node.js does.
#[must_use]
pub fn home_folder() -> Option<PathBuf> {
    let named = || ["HOME", "USERPROFILE"].into_iter().find_map(env::var_os);
    env::home_dir()
        .or_else(|| named().map(PathBuf::from))
        .filter(|folder| !folder.as_os_str().is_empty())
}

/// Returns freed memory to the system. glibc keeps freed memory between pieces in use, however small these are; other allocators return it.
pub fn return_freed_memory() {
    // SAFETY: the call locks the allocator and touches only memory that is free.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Lowers the priority of this thread and of the threads that it starts. Only on Linux: elsewhere the nice value belongs to the whole process.
pub fn stand_back() {
    // With 1 the event loop gets 56 % of a core that it shares with an inference thread. Larger values slow inference beside busy programs
    // (24 ms with 1, 50 with 3, 85 with 5) without waking the event loop earlier. `setpriority` is absolute, and the nice value of the process
    // may not be 0.
    // SAFETY: the call touches no memory. On Linux it is about the calling thread alone; if it is refused,
    // nothing changes.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::nice(1);
    }
}

/// Returns the number of the processor that this thread runs on at the moment; 0 where the system does not tell.
#[must_use]
pub fn processor() -> usize {
    // SAFETY: the call has no arguments and touches no memory.
    #[cfg(target_os = "linux")]
    let processor = unsafe { libc::sched_getcpu() };
    #[cfg(not(target_os = "linux"))]
    let processor = 0;
    usize::try_from(processor).unwrap_or(0)
}

/// Moves this thread to another processor if it runs on `processor` and may run on others. Linux likes to wake a thread on the processor
/// of the thread that wakes it, though another one is idle, and leaves both there for milliseconds. Does nothing elsewhere.
pub fn leave(processor: usize) {
    if self::processor() == processor {
        // SAFETY: a set of processors is plain bits, for which zeros are the empty set, and the calls are told its size. The number comes from
        // the system, and `CPU_CLR` checks that it is within the set. The thread may run where it could before: if the second call were refused,
        // it would lose one of several.
        #[cfg(target_os = "linux")]
        unsafe {
            let size = size_of::<libc::cpu_set_t>();
            let mut allowed = std::mem::zeroed::<libc::cpu_set_t>();
            if libc::sched_getaffinity(0, size, &raw mut allowed) != 0 || libc::CPU_COUNT(&allowed) < 2 {
                return;
            }
            let mut others = allowed;
            libc::CPU_CLR(processor, &mut others);
            if libc::sched_setaffinity(0, size, &raw const others) == 0 {
                libc::sched_setaffinity(0, size, &raw const allowed);
            }
        }
    }
}
