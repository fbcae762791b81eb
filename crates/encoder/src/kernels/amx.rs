//! Products of bytes on the tiles of AMX, which the kernel `avx512-amx` takes instead of VNNI's.
//!
//! The rows and the panels of a linear layer already have the layout of tiles: four inputs of an output side by side, sixteen
//! outputs in a line of 64 bytes, sixteen lines in a tile. Sums of integers are exact, so the results are those of every other
//! kernel to the bit.

use std::{arch::asm, sync::OnceLock};

use super::{
    lanes::{Bytes, Integers},
    tile::{MAX_ROWS, Rows},
};

/// Words of each row and panel that a tile takes.
pub const WORDS: usize = 16;

/// The panels that are multiplied with the same rows.
const PANELS: usize = 2;

/// Returns whether the processor has AMX for bytes and this process may use it. The first call asks the system for the
/// permission, for all threads of the process.
pub fn is_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| has_amx() && is_permitted())
}

fn has_amx() -> bool {
    const TILES_OF_BYTES: u32 = 0b11 << 24;
    #[allow(unused_unsafe)] // Safe since Rust 1.94.
    // SAFETY: Processors with AVX-512, which `detect_with_amx` looks for first, have this leaf.
    let features = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
    features.edx & TILES_OF_BYTES == TILES_OF_BYTES
}

/// Asks Linux for tiles. It refuses if it cannot save them (before 5.16), if a thread has an alternate signal stack that is too
/// small for them, or if a sandbox does. Without the permission, an instruction on a tile ends the process.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const REQUEST_PERMISSION: libc::c_int = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: The system call takes two integers and touches no memory of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Prepares the tiles of this thread for rows in tiles of `height`: tiles 0 and 1 for sums, 2 for rows and 3 for weights.
///
/// # Safety
/// [`is_usable`] is true, and `height` is 1 to [`MAX_ROWS`].
#[inline(always)]
pub unsafe fn configure(height: usize) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // At most 16.
    let lines = [height, height, height, WORDS].map(|lines| lines as i8);
    // The operand of `ldtilecfg`: palette 1, from byte 16 on the width of each tile in two bytes, and from 48 on its lines.
    let mut configuration = Bytes([0; 64]);
    configuration.0[0] = 1;
    for (tile, lines) in lines.into_iter().enumerate() {
        configuration.0[16 + 2 * tile] = 64;
        configuration.0[48 + tile] = lines;
    }
    // SAFETY: The processor has the instruction, as the caller vouches, and no tile is larger than 16 rows of 64 bytes.
    unsafe {
        asm!(
            "ldtilecfg [{}]", in(reg) &raw const configuration,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags, readonly),
        );
    }
}

/// Releases the tiles of this thread, so that the system does not save them when it switches threads.
///
/// # Safety
/// [`is_usable`] is true.
#[inline(always)]
pub unsafe fn release() {
    // SAFETY: The processor has the instruction, as the caller vouches.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags, nomem),
        );
    }
}

/// Multiplies rows with two panels: see [`super::tile::ByteTiles::multiply_bytes`]. It reads as many rows as the tiles have, also those after the
/// last one.
///
/// # Safety
/// The tiles of this thread are configured.
#[inline(always)]
pub unsafe fn multiply(rows: Rows<i32>, panels: &[Bytes], sums: &mut [Integers]) {
    let depth = rows.depth;
    assert!(depth > 0 && depth.is_multiple_of(WORDS) && rows.row_step == depth && rows.word_step == 1);
    assert!(rows.words.len() >= MAX_ROWS * depth && panels.len() >= PANELS * depth);
    assert!(sums.len() >= PANELS * MAX_ROWS);
    // SAFETY: The tiles are configured, as the caller vouches, for at most `MAX_ROWS` rows. Each of the steps reads `WORDS`
    // words of each row and of each panel, which have `depth` words, and the sums of a panel are `MAX_ROWS` lines.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm2, [{row} + {step}]",
            "tileloadd tmm3, [{first} + {line}]",
            "tdpbusd tmm0, tmm2, tmm3",
            "tileloadd tmm3, [{second} + {line}]",
            "tdpbusd tmm1, tmm2, tmm3",
            "add {row}, 64",
            "add {first}, 1024",
            "add {second}, 1024",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{sums} + {line}], tmm0",
            "tilestored [{sums} + {line} + 1024], tmm1",
            row = inout(reg) rows.words.as_ptr() => _,
            first = inout(reg) panels.as_ptr() => _,
            second = inout(reg) panels[depth..].as_ptr() => _,
            steps = inout(reg) depth / WORDS => _,
            sums = in(reg) sums.as_mut_ptr(),
            step = in(reg) size_of::<i32>() * depth,
            line = in(reg) size_of::<Bytes>(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            options(nostack),
        );
    }
}

const _: () = assert!(MAX_ROWS == 16 && size_of::<Bytes>() == 64);
