//! The command `kp-score` for JavaScript: a run on a thread of its own.

use std::sync::Arc;

use napi::{
    Status,
    bindgen_prelude::Function,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use knowledgepulse_command::{Stop, cli, error::Exit, host::Host, messages::Messages};
use knowledgepulse_score::engine::Engine;

use crate::{engine::ENGINE, error::Result};

/// Returns whether a run with these arguments needs the model, which JavaScript then has to configure before.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
pub fn needs_model(arguments: Vec<String>) -> bool {
    cli::needs_model(&arguments)
}

/// A run of the command.
#[napi]
pub struct NativeCommand {
    messages: Messages,
    stop: Stop,
}

/// The function of JavaScript that is called with the exit code.
type OnEnd = ThreadsafeFunction<u32, (), u32, Status, false>;

#[napi]
impl NativeCommand {
    /// Starts a run with these arguments, without the name of the program. Calls `on_end` with the exit code.
    #[napi(constructor, catch_unwind)]
    pub fn new(arguments: Vec<String>, on_end: Function<u32, ()>) -> Result<Self> {
        let on_end: Arc<OnEnd> = Arc::new(on_end.build_threadsafe_function().build()?);
        let end = move |exit: Exit| {
            on_end.call(exit.code().into(), ThreadsafeFunctionCallMode::NonBlocking);
        };
        let (messages, stop) = (Messages::default(), Stop::default());
        let command = Self {
            messages: messages.clone(),
            stop: stop.clone(),
        };
        #[cfg(target_family = "wasm")]
        {
            // WASI starts in the root directory.
            if let Ok(directory) = std::env::var("PWD") {
                drop(std::env::set_current_dir(directory));
            }
            end(cli::start(&arguments, &JavaScript, &messages, &stop));
        }
        #[cfg(not(target_family = "wasm"))]
        {
            let fail = end.clone();
            let run = move || end(cli::start(&arguments, &JavaScript, &messages, &stop));
            if let Err(error) = std::thread::Builder::new().name("kp-score".into()).spawn(run) {
                command.messages.failure(format!("no thread to run on: {error}"));
                fail(Exit::File);
            }
        }
        Ok(command)
    }

    /// Shows a warning.
    #[napi(catch_unwind)]
    pub fn warn(&self, message: String) {
        self.messages.warning(message);
    }

    /// Ends the run early and finishes open work. Returns whether this is the first call. After the second, the process must
    /// end at once.
    #[napi(catch_unwind)]
    pub fn interrupt(&self) -> bool {
        self.stop.interrupt(&self.messages)
    }
}

/// The program around the command: the addon, and the package that it is a part of. JavaScript has found the model's package, and configured
/// the engine, before the run began.
struct JavaScript;

impl Host for JavaScript {
    fn engine(&self) -> &Engine {
        &ENGINE
    }
}
