//! The only door to ONNX Runtime: loads the library, once per process, and makes sessions.

use std::{
    ffi::CStr,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use libloading::{Library, Symbol};
use object::{Architecture, FileKind, Object, ObjectSegment, ReadCache};
use once_cell::sync::OnceCell;
use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{NoSelectedOutputs, RunOptions, Session, builder::SessionBuilder},
    value::{DynValue, Tensor},
};

use knowledgepulse_error::{Error, Result, fault};
use knowledgepulse_os::obstacle::Obstacle;

use crate::{
    file::Identity,
    model::outline::{LARGEST_GRAPH, Outline, Table},
};

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
static USERS: Users = Users {
    state: Mutex::new(UsersState {
        users: 0,
        finished: 0,
        stopped: false,
    }),
    changed: Condvar::new(),
};

struct Users {
    state: Mutex<UsersState>,
    changed: Condvar,
}

struct UsersState {
    /// Threads that load ONNX Runtime or run it.
    users: usize,
    /// The number of finished uses.
    finished: u64,
    /// Set once the process is about to exit; then no new use begins.
    stopped: bool,
}

impl Users {
    /// Becomes a user until the guard is dropped. Does not return once the process is about to exit.
    fn begin(&'static self) -> UserGuard {
        let mut state = self.lock();
        while state.stopped {
            state = self.wait_for_change(state);
        }
        state.users += 1;
        UserGuard
    }

    fn lock(&self) -> MutexGuard<'_, UsersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_change<'s>(&self, state: MutexGuard<'s, UsersState>) -> MutexGuard<'s, UsersState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

struct UserGuard;

impl Drop for UserGuard {
    fn drop(&mut self) {
        let mut state = USERS.lock();
        state.users -= 1;
        state.finished += 1;
        USERS.changed.notify_all();
    }
}

impl Runtime {
    /// Returns the process's ONNX Runtime; the first successful call loads it from `path`.
    ///
    /// # Errors
    /// [`Error::RuntimeNotFound`], [`Error::RuntimeUnreadable`], [`Error::RuntimeUnusable`] or [`Error::RuntimeTooOld`].
    pub fn load(path: &Path) -> Result<&'static Self> {
        RUNTIME.get_or_try_init(|| {
            let _in_use = USERS.begin();
            fault::point("runtime");
            let unusable = |reason: String| Error::RuntimeUnusable {
                path: path.to_owned(),
                reason,
            };
            inspect(path)?;
            // Exit handlers run in reverse order. This is registered twice: for an exit while the library is loaded, and for a later one, before
            // the destructors that the library registers in between.
            stop_at_exit();
            let version = open(path)?;
            stop_at_exit();
            let environment = ort::init_from(path)
                .map_err(|error| unusable(error.to_string()))?
                .with_name("knowledgepulse")
                .with_telemetry(false)
                // Failures are returned as errors, not printed on the user's terminal.
                .with_logger(std::sync::Arc::new(|_, _, _, _, _| {}))
                .build()
                .map_err(|error| unusable(error.to_string()))?;
            environment.set_log_level(LogLevel::Fatal);
            let run_options = RunOptions::new().map_err(|error| unusable(error.to_string()))?;
            Ok(Self {
                path: path.to_owned(),
                version,
                environment,
                run_options,
            })
        })
    }

    /// Makes a session of `network` that computes on `threads` threads. They spin between the operations of a run, which makes short texts a
    /// fifth faster, but stop when it ends. Memory patterns are off: they take 20 MB and save no time.
    ///
    /// # Errors
    /// ONNX Runtime's own message, or that the file has changed since `network` was opened.
    pub fn session(&self, network: &Network, threads: usize) -> std::result::Result<Session, String> {
        let _in_use = USERS.begin();
        network.check_unchanged()?;
        let session = || {
            let builder = Session::builder(&self.environment)?
                .with_intra_threads(threads)?
                .with_inter_threads(1)?
                .with_intra_op_spinning(true)?
                .with_config_entry("session.force_spinning_stop", "1")?
                .with_inter_op_spinning(false)?
                .with_memory_pattern(false)?;
            network.commit(builder)
        };
        session().map_err(|error: ort::Error| error.to_string())
    }

    /// Runs `work` with the options that let the process stop it before it exits.
    pub fn run<T>(&self, work: impl FnOnce(&RunOptions<NoSelectedOutputs>) -> T) -> T {
        let _in_use = USERS.begin();
        work(&self.run_options)
    }
}

/// A network in a file. Its sessions share the weights in other files, except copied ones.
pub struct Network {
    path: PathBuf,
    /// The file, and the files with its weights.
    files: Vec<(PathBuf, Identity)>,
    tables: Vec<(String, Arc<DynValue>)>,
}

impl Network {
    /// Opens the ONNX file in `path`. ONNX Runtime checks its contents.
    ///
    /// # Errors
    /// If there is no such file, or one that holds its weights is missing or too short.
    pub fn open(path: &Path) -> io::Result<Self> {
        // ONNX Runtime refuses weights behind a symbolic link out of the folder.
        let path = if cfg!(unix) {
            path.canonicalize()?
        } else {
            path.to_owned()
        };
        let identified = |path: PathBuf| -> io::Result<_> {
            let identity = Identity::of(&std::fs::metadata(&path)?);
            Ok((path, identity))
        };
        let mut files = vec![identified(path.clone())?];
        let mut tables = Vec::new();
        if std::fs::metadata(&path)?.len() <= LARGEST_GRAPH
            && let Ok(outline) = Outline::read(&std::fs::read(&path)?)
        {
            for name in &outline.files {
                files.push(identified(path.with_file_name(name))?);
            }
            for table in &outline.tables {
                let values = read_table(&path.with_file_name(&table.file), table)?;
                tables.push((table.name.clone(), Arc::new(values)));
            }
        }
        Ok(Self { path, files, tables })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the sizes of the file and of its weights' files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let lengths = self.files.iter().map(|(_, identity)| identity.length);
        lengths.fold(0, u64::saturating_add)
    }

    /// Fails if a file was changed, which would make a wrong session or crash ONNX Runtime.
    fn check_unchanged(&self) -> std::result::Result<(), String> {
        for (path, identity) in &self.files {
            match std::fs::metadata(path) {
                Ok(metadata) if Identity::of(&metadata) == *identity => {}
                Ok(_) => return Err(format!("{} has changed since it was loaded", path.display())),
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }

    fn commit(&self, mut builder: SessionBuilder) -> ort::Result<Session> {
        for (name, table) in &self.tables {
            builder = builder.with_initializer(name, Arc::clone(table))?;
        }
        builder.commit_from_file(&self.path)
    }
}

/// Reads the values of `table` from `path`.
///
/// # Errors
/// If the file is too short for them, or they are of a kind that no table of ours has.
fn read_table(path: &Path, table: &Table) -> io::Result<DynValue> {
    const FLOAT: i32 = 1;
    const INT8: i32 = 3;
    let unknown = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is of an unknown kind", table.name),
        )
    };
    let values = table.shape.iter().try_fold(1_usize, |product, &length| {
        product.checked_mul(usize::try_from(length).ok()?)
    });
    let values = values.ok_or_else(unknown)?;
    let mut file = File::open(path)?;
    let end = table.offset.checked_add(table.length);
    if end.is_none_or(|end| end > file.metadata().map_or(0, |metadata| metadata.len())) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(table.offset))?;
    let shape = table.shape.as_slice();
    let no_room = || io::Error::from(io::ErrorKind::OutOfMemory);
    let made = match table.data_type {
        FLOAT if Some(table.length) == (values as u64).checked_mul(4) => {
            let mut floats: Vec<f32> = zeros(values).ok_or_else(no_room)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut floats))?;
            Tensor::from_array((shape, floats)).map(Tensor::into_dyn)
        }
        INT8 if table.length == values as u64 => {
            let mut bytes: Vec<i8> = zeros(values).ok_or_else(no_room)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut bytes))?;
            Tensor::from_array((shape, bytes)).map(Tensor::into_dyn)
        }
        _ => return Err(unknown()),
    };
    made.map_err(io::Error::other)
}

/// Returns `None` if there is not enough memory; `vec!` would end the process.
fn zeros<T: Clone + Default>(length: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).ok()?;
    values.resize(length, T::default());
    Some(values)
}

/// Refuses files that are no library for this platform, and truncated ones, which would crash the system's loader.
fn inspect(path: &Path) -> Result<()> {
    let unusable = |reason: String| Error::RuntimeUnusable {
        path: path.to_owned(),
        reason,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return Err(unopened(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| unopened(path, &error))?;
    if metadata.is_dir() {
        return Err(unusable(DIRECTORY.into()));
    }
    let length = metadata.len();
    if length == 0 {
        return Err(unusable("it is empty".into()));
    }
    let data = ReadCache::new(file);
    let not_a_library = |_| unusable("it is no shared library of this platform".into());
    let kind = FileKind::parse(&data).map_err(not_a_library)?;
    if matches!(kind, FileKind::MachOFat32 | FileKind::MachOFat64) {
        return Ok(()); // Holds libraries for several architectures; the loader picks one.
    }
    let truncated = || unusable(format!("it is truncated: {length} bytes are not all of it"));
    let library = object::File::parse(&data).map_err(|_| truncated())?;
    let expected = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        _ => library.architecture(),
    };
    if library.architecture() != expected {
        return Err(unusable(format!(
            "it is for {:?}, this process is {expected:?}",
            library.architecture()
        )));
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
        Obstacle::Directory => Error::RuntimeUnusable {
            path: path.to_owned(),
            reason: DIRECTORY.into(),
        },
        Obstacle::Unreadable(reason) => Error::RuntimeUnreadable {
            path: path.to_owned(),
            reason,
        },
    }
}

/// Opens the library and returns its version, if supported. `ort` checks only the API level, and cannot be set up again after a failure.
fn open(path: &Path) -> Result<String> {
    let unusable = |reason: String| Error::RuntimeUnusable {
        path: path.to_owned(),
        reason,
    };
    // SAFETY: loading a library runs its initialisers. The path is one that the user's installation or
    // environment names, and `inspect` has seen a whole library for this platform there.
    let library = unsafe { Library::new(path) }.map_err(|error| unusable(error.to_string()))?;
    // SAFETY: this is the C signature of the entry point of every ONNX Runtime.
    let entry: Symbol<unsafe extern "C" fn() -> *const ort::sys::OrtApiBase> =
        unsafe { library.get(b"OrtGetApiBase\0") }
            .map_err(|_| unusable("it is no ONNX Runtime: it has no OrtGetApiBase".into()))?;
    // SAFETY: the entry point takes nothing and returns a static table or null.
    let base = unsafe { entry().as_ref() };
    let base = base.ok_or_else(|| unusable("it has no API table".into()))?;
    // SAFETY: the function is part of the table, and returns a static string that ends with NUL.
    let version = unsafe { CStr::from_ptr((base.GetVersionString)()) };
    let version = version.to_string_lossy().into_owned();
    // Unloading would run the library's destructors; `ort` opens it again anyway.
    std::mem::forget(library);
    if version_numbers(&version) < version_numbers(MINIMUM_VERSION) {
        return Err(Error::RuntimeTooOld {
            path: path.to_owned(),
            found: version,
            minimum: MINIMUM_VERSION,
        });
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
    let mut state = USERS.lock();
    state.stopped = true;
    if let Some(runtime) = RUNTIME.get() {
        // If this fails, waits for the run: tens of milliseconds.
        let _ = runtime.run_options.terminate();
    }
    while state.users > 0 {
        state = USERS.wait_for_change(state);
    }
}

/// Does not return once the process is about to exit, because nothing takes a reply.
pub fn hold_at_exit() {
    let mut state = USERS.lock();
    while state.stopped {
        state = USERS.wait_for_change(state);
    }
}

/// Waits until ONNX Runtime has finished loading or one run.
pub fn wait() {
    let mut state = USERS.lock();
    let finished = state.finished;
    // Does not wait for uses that begin meanwhile.
    while state.users > 0 && state.finished == finished {
        state = USERS.wait_for_change(state);
    }
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

        assert_eq!(refused().code(), "ERR_RUNTIME_NOT_FOUND");

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
            (
                "dangling",
                "nowhere",
                "ERR_RUNTIME_NOT_FOUND",
                "a link to nowhere",
            ),
            ("circle", "circle", "ERR_RUNTIME_UNREADABLE", "permissions"),
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
