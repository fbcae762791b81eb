//! Any bytes as an ONNX file: an error or an outline, and memory in proportion to the file.

#![no_main]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use knowledgepulse_embed::model::outline::Outline;
use libfuzzer_sys::fuzz_target;

/// What reading may take for each byte of the file. The most costly field is a weight without contents: two bytes in
/// the file, and a record of 150 here.
const MOST_PER_BYTE: usize = 250;

/// What reading may take in any case: the buffers.
const MOST_IN_ANY_CASE: usize = 64 * 1024;

/// Counts what is allocated at a time, and the most of it.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(live, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|bytes: &[u8]| {
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    let outline = Outline::read(bytes);
    let taken = MOST.load(Relaxed) - before;
    let most = MOST_IN_ANY_CASE + MOST_PER_BYTE * bytes.len();
    assert!(taken <= most, "{taken} bytes for a file of {}", bytes.len());

    let Ok(outline) = outline else { return };
    for table in &outline.tables {
        assert!(outline.files.contains(&table.file));
        assert!(!table.file.contains('/'));
    }
});
