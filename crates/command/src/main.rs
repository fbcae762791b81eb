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
use knowledgepulse_score::engine::{Engine, EngineOptions};

use installed_model::installed_model;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// A process of its own.
struct Standalone;

impl Host for Standalone {
    fn engine(&self) -> &Engine {
        &ENGINE
    }

    fn configure(&self) {
        let path = |name| {
            env::var_os(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let directory = path("KNOWLEDGEPULSE_MODEL_DIR");
        let runtime_library = path("KNOWLEDGEPULSE_ONNXRUNTIME");
        let model_configured = directory.is_some();
        let program = env::current_exe().unwrap_or_default();
        let model = directory.map_or_else(|| installed_model(&program), Ok);
        ENGINE.configure(EngineOptions {
            model_configured,
            model_advice: model.as_ref().err().cloned(),
            model_directory: model.ok(),
            runtime_configured: runtime_library.is_some(),
            runtime_library,
            ..EngineOptions::default()
        });
    }
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
    let arguments = env::args_os().skip(1).map(OsString::into_string);
    let Ok(arguments) = arguments.collect::<Result<Vec<_>, _>>() else {
        messages.failure("an argument is not UTF-8");
        return Exit::Usage.code().into();
    };
    start(&arguments, &Standalone, &messages, &stop).code().into()
}
