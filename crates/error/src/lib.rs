//! Errors, each with a stable code; panics as errors; cancelled calls; and injected faults for tests.

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
    path::{Path, PathBuf},
};

/// The errors of the core. Their codes are part of the public interface; messages are for people. What a part of the core or JavaScript tells
/// apart has a variant of its own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value has the wrong type, or could not be read: a `TypeError` in JavaScript.
    #[error("{1}")]
    WrongType(Code, String),
    /// A value is outside its range: a `RangeError` in JavaScript.
    #[error("{1}")]
    OutOfRange(Code, String),
    /// Something else is wrong that a caller can mend.
    #[error("{1}")]
    Other(Code, String),
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
    /// There was no memory for a vector of so many dimensions.
    #[error("out of memory: no room for a vector of {0} dimensions")]
    OutOfMemory(usize),
    /// The model does not exist.
    #[error("no embedding model found: {0}")]
    ModelNotFound(String),
    /// The ONNX Runtime library does not exist.
    #[error("no ONNX Runtime found: {0}")]
    RuntimeNotFound(String),
    /// The tokenizer's files are malformed or of another kind.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The engine failed to run the model.
    #[error("inference failed: {0}")]
    Inference(String),
    /// The caller has cancelled the call. Users never see it, because the caller rejects with the signal's reason.
    #[error("the call was aborted")]
    Aborted,
    /// A bug in this library: a panic that was caught.
    #[error("internal error: {0}; please report it")]
    Internal(String),
}

impl Error {
    /// Returns the name of the error's [`Code`].
    #[must_use]
    pub fn code(&self) -> &'static str {
        let code = match self {
            Self::WrongType(code, _) | Self::OutOfRange(code, _) | Self::Other(code, _) => *code,
            Self::NotFinite { .. } => Code::InvalidInput,
            Self::Io { .. } => Code::Io,
            Self::OutOfMemory(_) => Code::OutOfMemory,
            Self::ModelNotFound(_) => Code::ModelNotFound,
            Self::Tokenizer(_) => Code::ModelUnusable,
            Self::RuntimeNotFound(_) | Self::Inference(_) => Code::RuntimeUnusable,
            Self::Aborted => return "ERR_ABORTED",
            Self::Internal(_) => Code::Internal,
        };
        code.name()
    }

    /// Returns the error of a file of a model or of ONNX Runtime that the system refuses to read.
    #[must_use]
    pub fn unreadable(code: Code, path: &Path, reason: &str) -> Self {
        let path = path.display();
        let remedy = "look at its permissions, at those of the directories that it is in, and at the disk";
        Self::Other(code, format!("{path} cannot be read: {reason}; {remedy}"))
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
        let error = Error::NotFinite {
            name: "query",
            index: 3,
            found: f64::NEG_INFINITY,
        };
        assert_eq!(
            error.to_string(),
            "query[3] must be a finite number, got -Infinity"
        );
        assert_eq!(error.code(), "ERR_INVALID_INPUT");
        let path = Path::new("model/config.json");
        let error = Error::unreadable(Code::ModelUnusable, path, "permission denied");
        assert!(
            error
                .to_string()
                .starts_with("model/config.json cannot be read: permission denied; look at")
        );
        assert_eq!(error.code(), "ERR_MODEL_UNUSABLE");
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
