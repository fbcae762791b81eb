//! The command `kp-score` for JavaScript: a run on a thread of its own, and its questions about things that only JavaScript
//! has.

use std::{
    collections::{HashMap, VecDeque},
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
};

use napi::{Env, bindgen_prelude::Object};
use napi_derive::napi;

use knowledgepulse_command::{
    breakdown::breakdown_of,
    cli::start,
    error::{Exit, Failure},
    host::{Host, NotScored, Outcome, Store, StoreRequest},
    json_object,
    messages::Messages,
    report::described,
    stop::Stop,
};
use knowledgepulse_error::Error;
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_score::engine::Engine;

use crate::{
    engine::ENGINE,
    error::Result,
    replies::{Replies, Ticket},
};

/// A run's question to JavaScript.
#[napi(object, object_from_js = false)]
pub struct NativeQuestion {
    /// The number by which `answer` and `fail` name the question.
    pub number: f64,
    /// The kind of question. `end` tells the exit code and wants no answer.
    #[napi(ts_type = "'configure' | 'connect' | 'explain' | 'size' | 'close' | 'end'")]
    pub kind: &'static str,
    /// The question's subject, in JSON.
    pub about: String,
}

/// A run of the command.
#[napi]
pub struct NativeCommand {
    questions: Arc<Questions>,
    messages: Messages,
    stop: Stop,
    /// The run, if it has not begun, where there are no threads.
    #[cfg(target_family = "wasm")]
    run: std::cell::Cell<Option<Box<dyn FnOnce()>>>,
}

#[napi]
impl NativeCommand {
    /// Starts a run with these arguments, without the name of the program.
    #[napi(constructor, catch_unwind)]
    pub fn new(arguments: Vec<String>, machine: String) -> Self {
        let command = Self {
            questions: Arc::default(),
            messages: Messages::default(),
            stop: Stop::default(),
            #[cfg(target_family = "wasm")]
            run: std::cell::Cell::default(),
        };
        let host = JavaScript {
            machine,
            questions: Arc::clone(&command.questions),
        };
        let (messages, stop) = (command.messages.clone(), command.stop.clone());
        #[cfg(target_family = "wasm")]
        let needs_model = knowledgepulse_command::cli::needs_model(&arguments);
        let run = move || {
            let exit = start(&arguments, &host, &messages, &stop);
            host.questions.ask("end", &f64::from(exit.code()).into());
        };
        // Without threads a run cannot wait for JavaScript, so it begins when its question is answered.
        #[cfg(target_family = "wasm")]
        {
            // WASI starts in the root directory.
            if let Ok(directory) = std::env::var("PWD") {
                drop(std::env::set_current_dir(directory));
            }
            ENGINE.embed_here();
            if needs_model {
                command.questions.ask_ahead(CONFIGURE, &Value::Null);
                command.run.set(Some(Box::new(run)));
            } else {
                run();
            }
        }
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = std::thread::Builder::new().name("kp-score".into()).spawn(run) {
            command.messages.failure(format!("no thread to run on: {error}"));
            command.questions.ask("end", &f64::from(Exit::File.code()).into());
        }
        command
    }

    /// Resolves with the next question; call it again then.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeQuestion>")]
    pub fn question<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        let (ticket, promise) = Replies::of(env)?.promise(env, &Rc::default())?;
        let mut pending = self.questions.lock();
        pending.waiting = Some(ticket);
        pending.hand_over();
        Ok(promise)
    }

    /// Answers a question, in JSON.
    #[napi(catch_unwind)]
    pub fn answer(&self, question: f64, answer: String) {
        self.settle(question, Ok(answer));
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
        self.settle(question, Err(Failure { exit, message }));
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

impl NativeCommand {
    fn settle(&self, question: f64, answer: Answer) {
        self.questions.settle(question, answer);
        #[cfg(target_family = "wasm")]
        if let Some(run) = self.run.take() {
            run();
        }
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

/// The questions of a run, which JavaScript takes one after the other.
#[derive(Default)]
struct Questions(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    /// Questions that were asked and that JavaScript has not taken.
    asked: VecDeque<NativeQuestion>,
    /// Who waits for the next one.
    waiting: Option<Ticket>,
    /// Where the answers go.
    answers: HashMap<u64, Sender<Answer>>,
    /// What was asked before the run began, and its answer.
    ahead: Option<(&'static str, Receiver<Answer>)>,
    next: u64,
}

impl Pending {
    fn hand_over(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        if let Some(ticket) = self.waiting.take()
            && let Some(question) = self.asked.pop_front()
        {
            ticket.settle::<_, Error>(Ok(question));
        }
    }
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; the answer comes to the receiver.
    #[allow(clippy::cast_precision_loss)] // No run asks 2^53 questions.
    fn ask(&self, kind: &'static str, about: &Value) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        let mut pending = self.lock();
        let number = pending.next;
        pending.next += 1;
        pending.answers.insert(number, sender);
        pending.asked.push_back(NativeQuestion {
            number: number as f64,
            kind,
            about: about.to_json(),
        });
        pending.hand_over();
        receiver
    }

    /// Asks what the run is going to ask.
    #[cfg(target_family = "wasm")]
    fn ask_ahead(&self, kind: &'static str, about: &Value) {
        let answer = self.ask(kind, about);
        self.lock().ahead = Some((kind, answer));
    }

    /// Asks, unless that was done ahead, and waits for the answer.
    fn answer_to(&self, kind: &'static str, about: &Value) -> Answer {
        let ahead = self.lock().ahead.take_if(|(asked, _)| *asked == kind);
        let answer = match ahead {
            Some((_, answer)) => answer,
            None if cfg!(target_family = "wasm") => {
                let message = "--store needs threads, which WebAssembly does not have: use --memory, or another platform";
                return Err(Failure::usage(message));
            }
            None => self.ask(kind, about),
        };
        let lost = || {
            Err(Failure::file(
                "a question to JavaScript was not answered: this is a bug, please report it",
            ))
        };
        answer.recv().unwrap_or_else(|_| lost())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is the number of a question.
    fn settle(&self, question: f64, answer: Answer) {
        let sender = self.lock().answers.remove(&(question as u64));
        // The run may have ended meanwhile.
        drop(sender.map(|sender| sender.send(answer)));
    }
}

/// The question for the packages of the embedder.
const CONFIGURE: &str = "configure";

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

    /// Asks JavaScript, which finds the packages and configures the engine.
    fn configure(&self) -> std::result::Result<(), Failure> {
        self.questions.answer_to(CONFIGURE, &Value::Null).map(drop)
    }

    fn connect(&self, request: &StoreRequest) -> std::result::Result<Box<dyn Store>, Failure> {
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
