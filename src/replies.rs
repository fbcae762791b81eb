//! The way back to JavaScript: one channel for each environment, so that promises settle in the order in which the engine
//! has settled their calls. An environment is one load of the addon into one thread.
//!
//! napi's own deferred has a threadsafe function for each promise, and the event loop looks at all of them for each reply: of a thousand
//! calls at a time, whose embeddings were known, each took 43 µs, and takes 37 µs with the channel.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    rc::Rc,
    sync::Arc,
};

use napi::{
    Env, JsError, JsValue, Status,
    bindgen_prelude::{Object, ToNapiValue, Unknown},
    check_status, sys,
    threadsafe_function::{ThreadsafeCallContext, ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use knowledgepulse_error::Error;

use crate::error::{Result, into_unknown};

/// The value that resolves a promise, or the error that rejects it.
type Outcome<'env> = std::result::Result<Unknown<'env>, Unknown<'env>>;

/// A reply on its way to the thread of its environment, where alone JavaScript values are made.
struct Reply {
    deferred: Deferred,
    outcome: Box<dyn for<'env> FnOnce(&'env Env) -> Outcome<'env> + Send>,
}

/// The native half of a promise.
struct Deferred(sys::napi_deferred);

// SAFETY: other threads only carry it back to the thread of its environment.
unsafe impl Send for Deferred {}

/// Weak: it does not keep the event loop going by itself.
type Channel = ThreadsafeFunction<Reply, (), (), Status, false, true, 0>;

/// The channel of an environment, and how many promises wait for it and keep the event loop going.
#[derive(Clone)]
struct Replies {
    channel: Arc<Channel>,
    pending: Rc<Cell<usize>>,
}

/// Returns a promise, and the means to settle it from any thread. Until then it keeps the event loop going.
pub(super) fn promise(env: &Env) -> Result<(Ticket, Object<'_>)> {
    let replies = Replies::of(env)?;
    let (mut deferred, mut promise) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the environment is the caller's, on whose thread we are; both places outlive the call.
    let made = unsafe { sys::napi_create_promise(env.raw(), &raw mut deferred, &raw mut promise) };
    check_status!(made)?;
    replies.hold(env);
    let ticket = Ticket {
        deferred: Some(Deferred(deferred)),
        channel: replies.channel,
    };
    Ok((ticket, Object::from_raw(env.raw(), promise)))
}

impl Replies {
    /// Returns the replies of `env`. The first call creates them.
    fn of(env: &Env) -> Result<Self> {
        if let Some(replies) = env.get_instance_data::<Self>()? {
            return Ok(replies.clone());
        }
        let deliver = |context: ThreadsafeCallContext<Reply>| {
            Self::of(&context.env)?.settle(&context.env, context.value);
            Ok(())
        };
        // napi wants a function of JavaScript to call after that.
        let nothing = env.create_function_from_closure::<(), (), _>("replied", |_| Ok(()))?;
        let channel = nothing
            .build_threadsafe_function::<Reply>()
            .weak::<true>()
            .build_callback(deliver)?;
        let replies = Self {
            channel: Arc::new(channel),
            pending: Rc::default(),
        };
        env.set_instance_data(replies.clone(), (), |_| {})?;
        Ok(replies)
    }

    /// Keeps the event loop going for one more promise.
    fn hold(&self, env: &Env) {
        if self.pending.replace(self.pending.get() + 1) == 0 {
            // SAFETY: this is the environment's thread; the channel lives, because we have it.
            unsafe { sys::napi_ref_threadsafe_function(env.raw(), self.channel.raw()) };
        }
    }

    /// Lets the event loop end, unless it is kept going for other promises.
    fn release(&self, env: &Env) {
        if self.pending.replace(self.pending.get() - 1) == 1 {
            // SAFETY: this is the environment's thread; the channel lives, because we have it.
            unsafe { sys::napi_unref_threadsafe_function(env.raw(), self.channel.raw()) };
        }
    }

    /// Settles a promise with the reply to it.
    fn settle(&self, env: &Env, Reply { deferred, outcome }: Reply) {
        self.release(env);
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome(env)))
            .unwrap_or_else(|panic| Err(into_unknown(env, &Error::from_panic(&*panic))));
        // A failure means that the environment is ending, where nobody waits.
        match outcome {
            // SAFETY: the deferred is of this environment, and its ticket has sent it once.
            Ok(value) => unsafe {
                sys::napi_resolve_deferred(env.raw(), deferred.0, value.raw());
            },
            // SAFETY: the same.
            Err(reason) => unsafe {
                sys::napi_reject_deferred(env.raw(), deferred.0, reason.raw());
            },
        }
    }
}

/// Settles a promise, from any thread. If the environment has ended, nothing happens.
pub(super) struct Ticket {
    /// `None` once it is settled.
    deferred: Option<Deferred>,
    channel: Arc<Channel>,
}

impl Ticket {
    /// Settles the promise after all promises that were settled before.
    pub(super) fn settle<T: ToNapiValue + Send + 'static>(mut self, result: std::result::Result<T, Error>) {
        self.send(result);
    }

    fn send<T: ToNapiValue + Send + 'static>(&mut self, result: std::result::Result<T, Error>) {
        let Some(deferred) = self.deferred.take() else {
            return;
        };
        let reply = Reply {
            deferred,
            outcome: Box::new(|env| to_javascript(env, result)),
        };
        self.channel.call(reply, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

fn to_javascript<T: ToNapiValue>(env: &Env, result: std::result::Result<T, Error>) -> Outcome<'_> {
    let value = result.map_err(|error| into_unknown(env, &error))?;
    value
        .into_unknown(env)
        .map_err(|error| JsError::from(error).into_unknown(*env))
}

/// A promise that nobody settles would keep the process from ending.
impl Drop for Ticket {
    fn drop(&mut self) {
        self.send::<()>(Err(Error::Internal("a call was dropped without a reply".into())));
    }
}
