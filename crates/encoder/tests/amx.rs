//! The kernel `avx512-amx` and the permission that it needs from Linux, which a process cannot give back. So most tests run in
//! processes of their own: each is an ignored test that another one starts.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(clippy::unwrap_used)] // A test fails by a panic.

#[path = "../src/fixtures/weights.rs"]
mod weights;

use std::{
    process::Command,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use knowledgepulse_encoder::{Encoder, Error, Kernel, Model, Options, Shape, Source};
use weights::{file, int8_file, tensors};

const SHAPE: Shape = Shape {
    layers: 1,
    hidden: 64,
    inner: 128,
    positions: 512,
    vocabulary: 50,
};

fn model(write: impl Fn(&weights::Tensors) -> Vec<u8>) -> Arc<Model> {
    Arc::new(Model::load(Source::memory(write(&tensors(SHAPE))), 1).unwrap())
}

fn encoder(model: &Arc<Model>, kernel: Option<Kernel>, threads: usize) -> Result<Encoder, Error> {
    let mut options = Options::default();
    options.kernel = kernel;
    options.threads = threads;
    Encoder::new(Arc::clone(model), options)
}

fn text(tokens: usize) -> Vec<u32> {
    (0..tokens).map(|index| (index * index % 50) as u32).collect()
}

/// Embeds a text with VNNI, or with AMX.
fn embed(kernel: Kernel, tokens: usize) -> Vec<f32> {
    encoder(&model(int8_file), Some(kernel), 1)
        .unwrap()
        .embed(&text(tokens))
        .unwrap()
}

/// Returns whether this process may use tiles: Linux knows without granting it.
fn is_permitted() -> bool {
    const GET_PERMISSION: libc::c_int = 0x1022;
    const TILE_DATA: u64 = 1 << 18;
    let mut features = 0_u64;
    // SAFETY: The system call writes one integer.
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, GET_PERMISSION, &raw mut features) };
    result == 0 && features & TILE_DATA != 0
}

/// Runs an ignored test of this file in a process of its own, which must write nothing to its standard error. Returns false, and says
/// so, where tiles cannot be used.
fn alone(test: &str) -> bool {
    if Kernel::available().next() != Some(Kernel::Avx512Amx) {
        eprintln!("skipped {test}: no AMX, or Linux does not permit it");
        return false;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    let output = command.env_remove("KNOWLEDGEPULSE_KERNEL").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    true
}

#[test]
fn all_lengths_threads_and_batches_give_the_bits_of_vnni() {
    if Kernel::available().next() != Some(Kernel::Avx512Amx) {
        eprintln!("skipped: no AMX, or Linux does not permit it");
        return;
    }
    let model = model(int8_file);
    let texts: Vec<Vec<u32>> = (1..=512).map(text).collect();
    let mut vnni = encoder(&model, Some(Kernel::Avx512Vnni), 1).unwrap();
    let expected: Vec<_> = texts.iter().map(|text| vnni.embed(text).unwrap()).collect();
    for threads in 1..=8 {
        let mut amx = encoder(&model, Some(Kernel::Avx512Amx), threads).unwrap();
        let alone: Vec<_> = texts.iter().map(|text| amx.embed(text).unwrap()).collect();
        assert!(alone == expected, "{threads} threads");
        assert!(
            amx.embed_batch(&texts).unwrap() == expected,
            "{threads} threads, in a batch"
        );
    }
}

#[test]
fn permission_is_asked_for_when_an_int8_encoder_is_made() {
    alone("asks_for_permission");
}

#[test]
#[ignore = "needs a process of its own"]
fn asks_for_permission() {
    let kernel = encoder(&model(file), None, 2).unwrap().kernel();
    assert_eq!((kernel, is_permitted()), (Kernel::Avx512Vnni, false));
    let kernel = encoder(&model(int8_file), None, 2).unwrap().kernel();
    assert_eq!((kernel, is_permitted()), (Kernel::Avx512Amx, true));
}

#[test]
fn a_refused_permission_leaves_vnni_without_a_word() {
    alone("is_refused_with_eperm");
    alone("is_refused_with_enosys");
    alone("is_refused_beside_a_small_signal_stack");
}

#[test]
#[ignore = "needs a process of its own"]
fn is_refused_with_eperm() {
    refuse(libc::EPERM);
    uses_vnni();
}

#[test]
#[ignore = "needs a process of its own"]
fn is_refused_with_enosys() {
    refuse(libc::ENOSYS);
    uses_vnni();
}

#[test]
#[ignore = "needs a process of its own"]
fn is_refused_beside_a_small_signal_stack() {
    let (end, ended) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    let other = thread::spawn(move || {
        let mut stack = vec![0_u8; 8192];
        let small = libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: stack.len(),
        };
        let mut before = small;
        // SAFETY: The stack is there until the one before is back.
        let results = unsafe {
            let set = libc::sigaltstack(&raw const small, &raw mut before);
            ready.send(()).unwrap();
            let _ = ended.recv();
            (set, libc::sigaltstack(&raw const before, ptr::null_mut()))
        };
        assert_eq!(results, (0, 0));
    });
    is_ready.recv().unwrap();
    uses_vnni();
    drop(end);
    other.join().unwrap();
}

/// Asserts that an encoder uses VNNI, and that the kernel which is named all the same is an error.
fn uses_vnni() {
    let model = model(int8_file);
    let mut encoder_of_choice = encoder(&model, None, 2).unwrap();
    assert_eq!(encoder_of_choice.kernel(), Kernel::Avx512Vnni);
    assert_eq!(encoder_of_choice.embed(&text(40)).unwrap().len(), SHAPE.hidden);
    let named = encoder(&model, Some(Kernel::Avx512Amx), 1);
    assert!(matches!(named, Err(Error::KernelUnavailable(Kernel::Avx512Amx))));
}

/// Has Linux refuse `arch_prctl` to this thread and those that it starts, as a sandbox may.
fn refuse(error: libc::c_int) {
    let statement = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_arch_prctl as u32,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | error as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: Linux copies the filter.
    let results = unsafe {
        (
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ),
        )
    };
    assert_eq!(results, (0, 0));
}

#[test]
fn older_threads_and_children_use_tiles() {
    alone("tiles_in_older_threads_and_children");
}

#[test]
#[ignore = "needs a process of its own"]
fn tiles_in_older_threads_and_children() {
    let (work, works) = mpsc::channel::<Encoder>();
    let older = thread::spawn(move || works.recv().unwrap().embed(&text(100)).unwrap());
    let expected = embed(Kernel::Avx512Vnni, 100);
    let chosen = encoder(&model(int8_file), None, 1).unwrap();
    assert_eq!(chosen.kernel(), Kernel::Avx512Amx);
    work.send(chosen).unwrap();
    assert_eq!(older.join().unwrap(), expected);
    // SAFETY: The child only computes, and ends without the parent's handlers.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(embed(Kernel::Avx512Amx, 100) != expected));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0);
    }
}

#[test]
fn signal_handlers_with_tiles_of_their_own_change_no_bits() {
    alone("signals_between_products");
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

/// Configures tiles of another shape, fills them and releases them.
extern "C" fn handle(_: libc::c_int) {
    #[repr(align(64))]
    struct Aligned([u8; 64]);
    let mut configuration = Aligned([0; 64]);
    configuration.0[0] = 1;
    for tile in 0..8 {
        configuration.0[16 + 2 * tile] = 32;
        configuration.0[48 + tile] = 3;
    }
    let noise = Aligned([0x55; 64]);
    // SAFETY: The process is permitted to use tiles, which are of three rows of 32 bytes, all of them those of `noise`.
    unsafe {
        std::arch::asm!(
            "ldtilecfg [{configuration}]",
            "tileloadd tmm0, [{noise} + {step}]",
            "tileloadd tmm1, [{noise} + {step}]",
            "tileloadd tmm2, [{noise} + {step}]",
            "tileloadd tmm3, [{noise} + {step}]",
            "tilerelease",
            configuration = in(reg) &raw const configuration,
            noise = in(reg) &raw const noise,
            step = in(reg) 0_usize,
            options(nostack, readonly),
        );
    }
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
#[ignore = "needs a process of its own"]
fn signals_between_products() {
    let expected = embed(Kernel::Avx512Vnni, 300);
    let mut amx = encoder(&model(int8_file), Some(Kernel::Avx512Amx), 1).unwrap();
    // SAFETY: The handler only uses tiles and counts.
    unsafe {
        libc::signal(libc::SIGUSR1, handle as *const () as libc::sighandler_t);
    }
    // SAFETY: The call has no arguments.
    let thread = unsafe { libc::pthread_self() };
    let (end, ended) = mpsc::channel::<()>();
    let sender = thread::spawn(move || {
        while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
            // SAFETY: The thread waits for this one.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            thread::yield_now();
        }
    });
    while HANDLED.load(Ordering::Relaxed) < 2_000 {
        assert_eq!(amx.embed(&text(300)).unwrap(), expected);
    }
    drop(end);
    sender.join().unwrap();
}
