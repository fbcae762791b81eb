//! The command as a whole: arguments in, exit code out.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
};

use knowledgepulse_error::guarded;

use crate::{
    clean,
    compare::compare,
    error::{Exit, Failure, Result},
    folders::expand,
    host::Host,
    leftovers::remove_leftovers,
    messages::Messages,
    options::{Request, read_options},
    output_file::StandardOutput,
    reading::Event,
    run::run,
};

const USAGE: &str = include_str!("usage.txt");

/// Ends a run before it has read everything. Traces in flight are still scored and written.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_set: AtomicBool,
    is_interrupted: AtomicBool,
    /// Wakes a run that waits for input.
    wakes: Mutex<Option<SyncSender<Event>>>,
}

impl Stop {
    /// Ends the run as a signal does. Returns whether this is the first time: at the second, the process must end at once, and all that
    /// the run would leave behind is removed.
    pub fn interrupt(&self, messages: &Messages) -> bool {
        if self.0.is_interrupted.swap(true, Ordering::SeqCst) {
            messages.stop_progress();
            remove_leftovers();
            return false;
        }
        self.end_reading();
        if let Some(events) = &*self.0.wakes.lock().unwrap_or_else(PoisonError::into_inner) {
            // A run whose events are full does not wait for one.
            drop(events.try_send(Event::Interrupted));
        }
        messages.warning("interrupted: finishing the traces that were begun; once more to end at once");
        true
    }

    pub(crate) fn end_reading(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Returns whether to go on.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.is_set() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.0.is_interrupted.load(Ordering::SeqCst)
    }

    pub(crate) fn wakes(&self, events: SyncSender<Event>) {
        *self.0.wakes.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
    }
}

/// Runs the command with these arguments, without the name of the program. Returns the exit code. A panic, which is a bug, ends the run with
/// a message.
pub fn start(arguments: &[String], host: &dyn Host, messages: &Messages, stop: &Stop) -> Exit {
    let attempt = || Ok(attempt(arguments, host, messages, stop));
    let result = guarded(attempt).unwrap_or_else(|panic| Err(Failure::file(panic.to_string())));
    result.unwrap_or_else(|failure| {
        messages.stop_progress();
        messages.failure(failure.message);
        failure.exit
    })
}

fn attempt(arguments: &[String], host: &dyn Host, messages: &Messages, stop: &Stop) -> Result<Exit> {
    if let [first, rest @ ..] = arguments
        && first == "clean"
    {
        return match clean::run(rest, host, messages, stop)? {
            Some(exit) => Ok(exit),
            None => print(USAGE.trim_end()),
        };
    }
    match read_options(arguments)? {
        Request::Help => print(USAGE.trim_end()),
        Request::Version => print(host.version()),
        Request::Run(mut options) => {
            messages.set_quiet(options.quiet);
            if options.compare {
                return compare(&options, messages);
            }
            expand(&mut options, messages)?;
            run(*options, host, messages, stop.clone())
        }
    }
}

fn print(text: &str) -> Result<Exit> {
    StandardOutput::print(format!("{text}\n").as_bytes())?;
    Ok(Exit::Ok)
}
