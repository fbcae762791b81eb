//! What a process owes its system.

pub mod file_lock;
pub mod obstacle;

/// Gives freed memory back to the system: glibc would keep what lies between pieces that are in use, and these may be
/// few and small.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn return_freed_memory() {
    // SAFETY: the call locks the allocator and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}
