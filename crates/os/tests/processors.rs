//! The processors that a thread runs on.
#![cfg(target_os = "linux")]

use knowledgepulse_os::{leave, processor};

/// The processors that this thread may run on.
fn allowed() -> Vec<usize> {
    // SAFETY: a set of processors is plain bits, for which zeros are the empty set; the numbers are within the set.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        assert_eq!(
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set),
            0
        );
        (0..libc::CPU_SETSIZE as usize)
            .filter(|number| libc::CPU_ISSET(*number, &set))
            .collect()
    }
}

#[test]
fn a_thread_that_leaves_a_processor_may_still_return_to_it() {
    let before = allowed();
    assert!(before.contains(&processor()));
    for processor in before.iter().copied().chain([usize::MAX]) {
        leave(processor);
        assert_eq!(allowed(), before);
    }
}
