//! What depends on the operating system: memory that is returned to it, locks of files, and why a file cannot be read.

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
