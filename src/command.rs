//! The command `kp-score` for JavaScript: a run on a thread of its own, and its questions about things that only JavaScript
//! has.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use napi::{
    Status,
    bindgen_prelude::Function,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;

use knowledgepulse_command::{
    breakdown::breakdown_of,
    cli,
    error::{Exit, Failure},
    host::{Host, NotScored, Outcome, Store, StoreRequest},
    json_object,
    messages::Messages,
    report::described,
    stop::Stop,
};
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_score::engine::Engine;

use crate::{background::locked, engine::ENGINE, error::Result};

/// A run's question to JavaScript.
#[napi(object, object_from_js = false)]
pub struct NativeQuestion {
    /// The number by which `answer` and `fail` name the question.
    pub number: f64,
    /// The kind of question. `end` tells the exit code and wants no answer.
    #[napi(ts_type = "'connect' | 'explain' | 'size' | 'close' | 'end'")]
    pub kind: &'static str,
    /// The question's subject, in JSON.
    pub about: String,
}

/// Returns whether a run with these arguments needs the model, which JavaScript then has to configure before.
#[napi(catch_unwind)]
#[allow(clippy::needless_pass_by_value)] // Values that JavaScript hands over are owned.
pub fn needs_model(arguments: Vec<String>) -> bool {
    cli::needs_model(&arguments)
}

/// A run of the command.
#[napi]
pub struct NativeCommand {
    questions: Arc<Questions>,
    messages: Messages,
    stop: Stop,
}

#[napi]
impl NativeCommand {
    /// Starts a run with these arguments, without the name of the program. `ask` gets its questions.
    #[napi(constructor, catch_unwind)]
    pub fn new(arguments: Vec<String>, machine: String, ask: Function<NativeQuestion, ()>) -> Result<Self> {
        let questions = Arc::new(Questions {
            ask: ask.build_threadsafe_function().build()?,
            asked: Mutex::default(),
        });
        let (messages, stop) = (Messages::default(), Stop::default());
        let command = Self {
            questions: Arc::clone(&questions),
            messages: messages.clone(),
            stop: stop.clone(),
        };
        let run = move || {
            let host = JavaScript { machine, questions };
            let exit = cli::start(&arguments, &host, &messages, &stop);
            host.questions.end(exit);
        };
        #[cfg(target_family = "wasm")]
        {
            // WASI starts in the root directory.
            if let Ok(directory) = std::env::var("PWD") {
                drop(std::env::set_current_dir(directory));
            }
            ENGINE.embed_here();
            run();
        }
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = std::thread::Builder::new().name("kp-score".into()).spawn(run) {
            command.messages.failure(format!("no thread to run on: {error}"));
            command.questions.end(Exit::File);
        }
        Ok(command)
    }

    /// Answers a question, in JSON.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: f64, answer: String) {
        self.questions.settle(question, Ok(answer));
    }

    /// Says why a question has no answer: the exit code of the run and its message.
    #[napi(catch_unwind)]
    pub fn fail(&self, question: f64, exit: u32, reason: String) {
        let exit = match exit {
            1 => Exit::BadLines,
            2 => Exit::Usage,
            _ => Exit::File,
        };
        let message = reason;
        self.questions.settle(question, Err(Failure { exit, message }));
    }

    /// Shows a warning.
    #[napi(catch_unwind)]
    pub fn warn(&self, message: String) {
        self.messages.warning(message);
    }

    /// Ends the run early and finishes open work. Returns whether this is the first call. After the second, the process must
    /// end at once, and everything that the run would leave behind is removed.
    #[napi(catch_unwind)]
    pub fn interrupt(&self) -> bool {
        self.stop.interrupt(&self.messages)
    }
}

/// Returns the figures of a report in JSON, for a page that shows them: of a run that text describes, as
/// [`knowledgepulse_command::report::described`] reads it.
#[napi(catch_unwind)]
pub fn report_figures(run: String) -> Result<String> {
    let (report, run) = described(&run).map_err(napi::Error::from_reason)?;
    Ok(report.summary(&run).to_json())
}

type Answer = std::result::Result<String, Failure>;

/// The questions of a run.
struct Questions {
    ask: ThreadsafeFunction<NativeQuestion, (), NativeQuestion, Status, false>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    /// Where the answers go.
    answers: HashMap<u64, Sender<Answer>>,
    next: u64,
}

impl Questions {
    /// Asks; the answer comes to the receiver.
    #[allow(clippy::cast_precision_loss)] // No run asks 2^53 questions.
    fn ask(&self, kind: &'static str, about: &Value) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        let mut asked = locked(&self.asked);
        let number = asked.next;
        asked.next += 1;
        asked.answers.insert(number, sender);
        let question = NativeQuestion {
            number: number as f64,
            kind,
            about: about.to_json(),
        };
        self.ask.call(question, ThreadsafeFunctionCallMode::NonBlocking);
        receiver
    }

    /// Tells that the run has ended.
    fn end(&self, exit: Exit) {
        self.ask("end", &f64::from(exit.code()).into());
    }

    /// Asks, and waits for the answer.
    fn answer_to(&self, kind: &'static str, about: &Value) -> Answer {
        let lost = || {
            Err(Failure::file(
                "a question to JavaScript was not answered: this is a bug, please report it",
            ))
        };
        self.ask(kind, about).recv().unwrap_or_else(|_| lost())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is the number of a question.
    fn settle(&self, question: f64, answer: Answer) {
        let sender = locked(&self.asked).answers.remove(&(question as u64));
        // The run may have ended meanwhile.
        drop(sender.map(|sender| sender.send(answer)));
    }
}

/// The program around the command: the addon, and the package that it is a part of.
struct JavaScript {
    machine: String,
    questions: Arc<Questions>,
}

impl Host for JavaScript {
    fn machine(&self) -> String {
        self.machine.clone()
    }

    fn engine(&self) -> &Engine {
        &ENGINE
    }

    /// JavaScript has found the packages, and configured the engine, before the run began.
    fn configure(&self) -> std::result::Result<(), Failure> {
        Ok(())
    }

    fn connect(&self, request: &StoreRequest) -> std::result::Result<Box<dyn Store>, Failure> {
        // Without threads a run cannot wait for JavaScript.
        if cfg!(target_family = "wasm") {
            let message =
                "--store needs threads, which WebAssembly does not have: use --memory, or another platform";
            return Err(Failure::usage(message));
        }
        let about = json_object! {
            "url": request.url.as_str(),
            "table": request.table.as_deref(),
            "maxElements": request.most_traces,
            "novelty": request.novelty.name(),
            "weights": request.weights.as_deref(),
        };
        self.questions.answer_to("connect", &about)?;
        let questions = Arc::clone(&self.questions);
        Ok(Box::new(JavaScriptStore { questions }))
    }
}

/// A store that JavaScript has connected to.
struct JavaScriptStore {
    questions: Arc<Questions>,
}

impl Store for JavaScriptStore {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a count.
    fn size(&self) -> Option<u64> {
        let size = self.questions.answer_to("size", &Value::Null).ok()?;
        Some(parse_str(&size).ok()?.as_number()? as u64)
    }

    fn explain(&self, trace: String, remember: bool) -> Box<dyn FnOnce() -> Outcome + Send> {
        let about = json_object! { "trace": trace, "remember": remember };
        let answer = self.questions.ask("explain", &about);
        Box::new(move || {
            let lost = || NotScored::Trace("the store gave no score: this is a bug, please report it".into());
            let breakdown = answer
                .recv()
                .map_err(|_| lost())?
                .map_err(|failure| match failure.exit {
                    Exit::BadLines => NotScored::Trace(failure.message),
                    _ => NotScored::Store(failure.message),
                })?;
            parse_str(&breakdown)
                .ok()
                .and_then(|breakdown| breakdown_of(&breakdown))
                .ok_or_else(lost)
        })
    }
}

impl Drop for JavaScriptStore {
    fn drop(&mut self) {
        drop(self.questions.answer_to("close", &Value::Null));
    }
}
