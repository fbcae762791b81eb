//! The only door to ONNX Runtime: loads the library, once per process, and makes sessions.

use std::{
    ffi::CStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use libloading::{Library, Symbol};
use object::{Architecture, FileKind, Object, ObjectSegment, ReadCache};
use once_cell::sync::OnceCell;
use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{NoSelectedOutputs, RunOptions, Session, builder::SessionBuilder},
};

use knowledgepulse_error::{Code, Error, Result, fault};
use knowledgepulse_os::obstacle::Obstacle;

/// The oldest accepted ONNX Runtime; older ones abort when the process exits on macOS.
pub const MINIMUM_VERSION: &str = "1.24.1";

/// A loaded ONNX Runtime. There is one per process and it is never released: it could not be made again, and releasing it
/// while the process exits crashes.
pub struct Runtime {
    /// The file it was loaded from.
    pub path: PathBuf,
    /// Its version, as in `1.27.0`.
    pub version: String,
    environment: Environment,
    /// Terminates the run in progress when the process exits.
    run_options: RunOptions<NoSelectedOutputs>,
}

static RUNTIME: OnceCell<Runtime> = OnceCell::new();

/// Counts the users of ONNX Runtime, so that the process does not exit under them.
static USERS: Mutex<Users> = Mutex::new(Users {
    active: 0,
    finished: 0,
    stopped: false,
});

static CHANGED: Condvar = Condvar::new();

struct Users {
    /// Threads that load ONNX Runtime or run it.
    active: usize,
    /// The number of finished uses.
    finished: u64,
    /// Set once the process is about to exit; then no new use begins.
    stopped: bool,
}

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for as long as `condition` holds.
fn wait_while(
    users: MutexGuard<'static, Users>,
    condition: impl FnMut(&mut Users) -> bool,
) -> MutexGuard<'static, Users> {
    CHANGED
        .wait_while(users, condition)
        .unwrap_or_else(PoisonError::into_inner)
}

/// Becomes a user until the guard is dropped. Does not return once the process is about to exit.
fn begin_use() -> UserGuard {
    wait_while(users(), |users| users.stopped).active += 1;
    UserGuard
}

struct UserGuard;

impl Drop for UserGuard {
    fn drop(&mut self) {
        let mut users = users();
        users.active -= 1;
        users.finished += 1;
        CHANGED.notify_all();
    }
}

impl Runtime {
    /// Returns the process's ONNX Runtime; the first successful call loads it from `path`.
    ///
    /// # Errors
    /// [`Error::RuntimeNotFound`], or [`Error::Other`] with `ERR_RUNTIME_UNUSABLE`.
    pub fn load(path: &Path) -> Result<&'static Self> {
        RUNTIME.get_or_try_init(|| {
            let _in_use = begin_use();
            fault::point("runtime");
            inspect(path)?;
            // Exit handlers run in reverse order. This is registered twice: for an exit while the library is loaded, and for a later one, before
            // the destructors that the library registers in between.
            stop_at_exit();
            let version = open(path)?;
            stop_at_exit();
            let environment = ort::init_from(path)
                .map_err(|error| unusable(path, error))?
                .with_name("knowledgepulse")
                .with_telemetry(false)
                // Failures are returned as errors, not printed on the user's terminal.
                .with_logger(std::sync::Arc::new(|_, _, _, _, _| {}))
                .build()
                .map_err(|error| unusable(path, error))?;
            environment.set_log_level(LogLevel::Fatal);
            let run_options = RunOptions::new().map_err(|error| unusable(path, error))?;
            Ok(Self {
                path: path.to_owned(),
                version,
                environment,
                run_options,
            })
        })
    }

    /// Makes a session that computes on `threads` threads, which `commit` builds. They spin between the operations of a run, which makes short
    /// texts a fifth faster, but stop when it ends. Memory patterns are off: they take 20 MB and save no time.
    ///
    /// # Errors
    /// ONNX Runtime's own message.
    pub fn session(
        &self,
        threads: usize,
        commit: impl FnOnce(SessionBuilder) -> ort::Result<Session>,
    ) -> ort::Result<Session> {
        let _in_use = begin_use();
        let builder = Session::builder(&self.environment)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            .with_intra_op_spinning(true)?
            .with_config_entry("session.force_spinning_stop", "1")?
            .with_inter_op_spinning(false)?
            .with_memory_pattern(false)?;
        commit(builder)
    }

    /// Runs `work` with the options that let the process stop it before it exits.
    pub fn run<T>(&self, work: impl FnOnce(&RunOptions<NoSelectedOutputs>) -> T) -> T {
        let _in_use = begin_use();
        work(&self.run_options)
    }
}

fn unusable(path: &Path, reason: impl ToString) -> Error {
    let (path, reason) = (path.display(), reason.to_string());
    let problem = format!("{path} cannot be used as ONNX Runtime: {reason}");
    Error::Other(Code::RuntimeUnusable, problem)
}

/// Refuses files that are no library for this platform, and truncated ones, which would crash the system's loader.
fn inspect(path: &Path) -> Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Err(unopened(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| unopened(path, &error))?;
    if metadata.is_dir() {
        return Err(unusable(path, DIRECTORY));
    }
    let length = metadata.len();
    if length == 0 {
        return Err(unusable(path, "it is empty"));
    }
    let data = ReadCache::new(file);
    let not_a_library = |_| unusable(path, "it is no shared library of this platform");
    let kind = FileKind::parse(&data).map_err(not_a_library)?;
    if matches!(kind, FileKind::MachOFat32 | FileKind::MachOFat64) {
        return Ok(()); // Holds libraries for several architectures; the loader picks one.
    }
    let truncated = || unusable(path, format!("it is truncated: {length} bytes are not all of it"));
    let library = object::File::parse(&data).map_err(|_| truncated())?;
    let expected = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        _ => library.architecture(),
    };
    if library.architecture() != expected {
        return Err(unusable(
            path,
            format!(
                "it is for {:?}, this process is {expected:?}",
                library.architecture()
            ),
        ));
    }
    let whole = library.segments().all(|segment| {
        let (offset, size) = segment.file_range();
        offset.checked_add(size).is_some_and(|end| end <= length)
    });
    if whole { Ok(()) } else { Err(truncated()) }
}

const DIRECTORY: &str = "it is a directory";

/// Returns the error for a library that cannot be opened.
fn unopened(path: &Path, error: &io::Error) -> Error {
    let absent = |what: String| {
        Error::RuntimeNotFound(format!(
            "{} {what}; reinstall @knowledgepulse/native with optional dependencies, or set \
             KNOWLEDGEPULSE_ONNXRUNTIME to a library",
            path.display()
        ))
    };
    match Obstacle::of(path, error) {
        Obstacle::Missing => absent("does not exist".into()),
        Obstacle::Dangling(target) => {
            absent(format!("is a link to {}, which does not exist", target.display()))
        }
        Obstacle::Directory => unusable(path, DIRECTORY),
        Obstacle::Unreadable(reason) => Error::unreadable(Code::RuntimeUnusable, path, &reason),
    }
}

/// Opens the library and returns its version, if supported. `ort` checks only the API level, and cannot be set up again after a failure.
fn open(path: &Path) -> Result<String> {
    // SAFETY: loading a library runs its initialisers. The path is one that the user's installation or
    // environment names, and `inspect` has seen a whole library for this platform there.
    let library = unsafe { Library::new(path) }.map_err(|error| unusable(path, error))?;
    // SAFETY: this is the C signature of the entry point of every ONNX Runtime.
    let entry: Symbol<unsafe extern "C" fn() -> *const ort::sys::OrtApiBase> =
        unsafe { library.get(b"OrtGetApiBase\0") }
            .map_err(|_| unusable(path, "it is no ONNX Runtime: it has no OrtGetApiBase"))?;
    // SAFETY: the entry point takes nothing and returns a static table or null.
    let base = unsafe { entry().as_ref() };
    let base = base.ok_or_else(|| unusable(path, "it has no API table"))?;
    // SAFETY: the function is part of the table, and returns a static string that ends with NUL.
    let version = unsafe { CStr::from_ptr((base.GetVersionString)()) };
    let version = version.to_string_lossy().into_owned();
    // Unloading would run the library's destructors; `ort` opens it again anyway.
    std::mem::forget(library);
    if version_numbers(&version) < version_numbers(MINIMUM_VERSION) {
        let path = path.display();
        let problem = format!("{path} is ONNX Runtime {version}, at least {MINIMUM_VERSION} is needed");
        return Err(Error::Other(Code::RuntimeUnusable, problem));
    }
    Ok(version)
}

/// The leading numbers of a version: `1.27.0-rc1` gives 1, 27, 0.
fn version_numbers(version: &str) -> Vec<u32> {
    version
        .split(['.', '-', '+'])
        .map_while(|part| part.parse().ok())
        .collect()
}

/// Stops the embedder before the process exits: waits until ONNX Runtime has finished loading or cancelled its run, and prevents further
/// runs. Otherwise the library's destructors would run under the inference thread. The built-in engine has no destructors.
pub fn stop() {
    let mut users = users();
    users.stopped = true;
    if let Some(runtime) = RUNTIME.get() {
        // If this fails, waits for the run: tens of milliseconds.
        let _ = runtime.run_options.terminate();
    }
    drop(wait_while(users, |users| users.active > 0));
}

/// Does not return once the process is about to exit, because nothing takes a reply.
pub fn hold_at_exit() {
    drop(wait_while(users(), |users| users.stopped));
}

/// Waits until ONNX Runtime has finished loading or one run.
pub fn wait() {
    let users = users();
    let finished = users.finished;
    // Does not wait for uses that begin meanwhile.
    drop(wait_while(users, |users| {
        users.active > 0 && users.finished == finished
    }));
}

/// Registers [`stop`] as an exit handler.
#[cfg(unix)]
pub(super) fn stop_at_exit() {
    extern "C" fn handler() {
        stop();
    }
    // SAFETY: the handler does not unwind (a poisoned lock is no panic there), and it stays loaded: napi pins
    // the addon's image in memory.
    unsafe {
        libc::atexit(handler);
    }
}

/// Windows ends all other threads before the library's destructors run, so there is nobody to wait for.
#[cfg(not(unix))]
pub(super) fn stop_at_exit() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(version_numbers("1.24.1") >= version_numbers(MINIMUM_VERSION));
        assert!(version_numbers("1.100.0") > version_numbers(MINIMUM_VERSION));
        assert!(version_numbers("1.9.9") < version_numbers(MINIMUM_VERSION));
        assert_eq!(version_numbers("1.27.0-dev.1"), [1, 27, 0]);
        assert!(version_numbers("").is_empty());
    }

    #[test]
    fn invalid_runtime_is_refused_with_a_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("library");
        let refused = || Runtime::load(&path).err().unwrap();

        assert_eq!(refused().code(), "ERR_RUNTIME_UNUSABLE");

        for contents in ["", "this is text", "version https://git-lfs.example/spec"] {
            std::fs::write(&path, contents).unwrap();
            assert_eq!(refused().code(), "ERR_RUNTIME_UNUSABLE");
        }

        // A real program is not a library with our entry point; half of it is not even loadable.
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        std::fs::write(&path, &program[..program.len() / 2]).unwrap();
        let error = refused();
        assert_eq!(error.code(), "ERR_RUNTIME_UNUSABLE");
        assert!(error.to_string().contains("truncated"), "{error}");

        let error = Runtime::load(directory.path()).err().unwrap();
        assert_eq!(error.code(), "ERR_RUNTIME_UNUSABLE");
        assert!(error.to_string().contains("it is a directory"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_nowhere_or_in_a_circle_are_told_apart() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        for (name, target, code, reason) in [
            ("dangling", "nowhere", "ERR_RUNTIME_UNUSABLE", "a link to nowhere"),
            ("circle", "circle", "ERR_RUNTIME_UNUSABLE", "permissions"),
        ] {
            let path = directory.path().join(name);
            symlink(target, &path).unwrap();
            let error = Runtime::load(&path).err().unwrap();
            assert_eq!(error.code(), code);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_architecture_and_a_foreign_library_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("library");
        let mut program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        program[18] = 243; // The ELF header's machine: RISC-V.
        std::fs::write(&path, &program).unwrap();
        let error = Runtime::load(&path).err().unwrap();
        assert!(error.to_string().contains("it is for Riscv64"), "{error}");

        // A static program has loaded no library, and cannot load one.
        if cfg!(target_feature = "crt-static") {
            return;
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let foreign = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("libc.so") || path.contains("libc-"))
            .unwrap();
        let error = Runtime::load(Path::new(foreign)).err().unwrap();
        assert!(error.to_string().contains("no ONNX Runtime"), "{error}");
    }
}
