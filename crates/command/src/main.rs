//! `kp-score` without Node.js.

mod installed_model;

use std::{
    env,
    ffi::OsString,
    path::PathBuf,
    process::{self, ExitCode},
    sync::LazyLock,
};

use knowledgepulse_command::{Stop, cli::start, error::Exit, host::Host, messages::Messages};
use knowledgepulse_score::engine::{self, Engine, EngineKind};

use installed_model::{dtype_of, installed_model};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// A process of its own.
struct Standalone {
    messages: Messages,
}

impl Host for Standalone {
    fn engine(&self) -> &Engine {
        &ENGINE
    }

    fn configure(&self) {
        let path = |name| variable(name).map(PathBuf::from);
        let (directory, runtime_library) = (
            path("KNOWLEDGEPULSE_MODEL_DIR"),
            path("KNOWLEDGEPULSE_ONNXRUNTIME"),
        );
        let dtype = self.setting("KNOWLEDGEPULSE_DTYPE", "fp32 or q8", dtype_of);
        let model_configured = directory.is_some() || dtype.is_some();
        let program = env::current_exe().unwrap_or_default();
        let model = directory.map_or_else(|| installed_model(&program, dtype), Ok);
        let engines = "auto, builtin or onnxruntime";
        let engine_of = |name: &str| match name {
            "auto" => Some(None),
            name => EngineKind::from_name(name).map(Some),
        };
        let engine = self.setting("KNOWLEDGEPULSE_ENGINE", engines, engine_of);
        let threads = self.setting("KNOWLEDGEPULSE_THREADS", "an integer from 1 to 1024", threads_of);
        ENGINE.configure(engine::EngineOptions {
            engine: engine.unwrap_or_default(),
            model_configured,
            model_advice: model.as_ref().err().cloned(),
            model_directory: model.ok(),
            runtime_configured: runtime_library.is_some(),
            runtime_library,
            threads: threads.unwrap_or_default(),
            ..engine::EngineOptions::default()
        });
    }
}

impl Standalone {
    /// Reads an environment variable; one that makes no sense is ignored with a warning.
    fn setting<T>(&self, name: &str, expected: &str, read: fn(&str) -> Option<T>) -> Option<T> {
        let text = variable(name)?.to_string_lossy().into_owned();
        let value = read(&text);
        if value.is_none() {
            self.messages
                .warning(format!("{name} must be {expected}, got {text:?}; it is ignored"));
        }
        value
    }
}

/// Returns an environment variable; an empty one counts as unset.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn threads_of(text: &str) -> Option<usize> {
    text.parse().ok().filter(|threads| (1..=1024).contains(threads))
}

fn main() -> ExitCode {
    let messages = Messages::default();
    let stop = Stop::default();
    let (told, interrupted) = (messages.clone(), stop.clone());
    let handled = ctrlc::set_handler(move || {
        if !interrupted.interrupt(&told) {
            process::exit(Exit::Interrupted.code().into());
        }
    });
    if let Err(error) = handled {
        messages.warning(format!("signals end the run at once: {error}"));
    }
    let arguments: std::result::Result<Vec<_>, _> = env::args_os()
        .skip(1)
        .map(|argument| argument.into_string())
        .collect();
    let exit = match arguments {
        Ok(arguments) => {
            let host = Standalone {
                messages: messages.clone(),
            };
            start(&arguments, &host, &messages, &stop)
        }
        Err(argument) => {
            messages.failure(format!("{} is not UTF-8", argument.display()));
            Exit::Usage
        }
    };
    exit.code().into()
}
