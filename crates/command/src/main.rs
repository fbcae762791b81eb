//! `kp-score` without Node.js.

use std::{
    env,
    path::PathBuf,
    process::{self, ExitCode},
    sync::LazyLock,
};

use knowledgepulse_command::{
    error::{Exit, Failure, Result},
    host::{Host, Store, StoreRequest},
    messages::Messages,
    options::EmbedderChoice,
    start::{Stop, start},
};
use knowledgepulse_score::engine::{self, Engine};

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);

/// A process of its own.
struct Standalone;

impl Host for Standalone {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn machine(&self) -> String {
        let named = ["HOSTNAME", "COMPUTERNAME"]
            .into_iter()
            .find_map(|name| env::var(name).ok());
        named.unwrap_or_else(|| "this machine".into())
    }

    fn engine(&self) -> &Engine {
        &ENGINE
    }

    fn configure(&self, choice: &EmbedderChoice) -> Result<()> {
        if choice.dtype.is_some() {
            let message = "--dtype chooses between packages of npm; here --model-dir names the model";
            return Err(Failure::usage(message));
        }
        let variable = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let named = choice.model_directory.as_ref().map(PathBuf::from);
        let model_directory = named.or_else(|| variable("KNOWLEDGEPULSE_MODEL_DIR"));
        let runtime_library = variable("KNOWLEDGEPULSE_ONNXRUNTIME");
        ENGINE.configure(engine::Options {
            engine: choice.engine.unwrap_or_default(),
            model_configured: model_directory.is_some(),
            model_directory,
            runtime_configured: runtime_library.is_some(),
            runtime_library,
            threads: choice.threads,
            ..engine::Options::default()
        });
        Ok(())
    }

    fn connect(&self, _: &StoreRequest) -> Result<Box<dyn Store>> {
        let message = "--store needs Node.js: npx -p @knowledgepulse/native -p pg kp-score";
        Err(Failure::usage(message))
    }
}

fn main() -> ExitCode {
    let messages = Messages::new();
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
        Ok(arguments) => start(&arguments, &Standalone, &messages, &stop),
        Err(argument) => {
            messages.failure(format!("{} is not UTF-8", argument.display()));
            Exit::Usage
        }
    };
    exit.code().into()
}
