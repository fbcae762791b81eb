//! The trace memory for JavaScript.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

use napi::{
    Env,
    bindgen_prelude::{
        AsyncTask, Float32ArraySlice, Object, ObjectFinalize, ToNapiValue, Uint8ArraySlice, Unknown,
    },
};
use napi_derive::napi;

use knowledgepulse_error::{self as error, Error};
use knowledgepulse_index::{
    memory::Memory,
    method::Method,
    options::{ModelIdentity, Origin},
    shared::{SharedMemory, lock},
    traces::{SimilarTrace, TraceEntry, TraceMemory, stored::PackedTrace},
};
use knowledgepulse_trace::{digest, label::Label, words::Words};

use crate::{
    background::{Background, locked},
    call::NativeCall,
    error::{Result, throw},
    memory_wrap::{MemoryWrap, WrappedMemory, load, memory_class},
    trace,
    vector_cache::{NativeBounds, NativeModelIdentity},
};

/// The memories that a thread has handed to others, by their handles; each lives as long as one of its objects does.
static HANDED: Mutex<Handed> = Mutex::new(Handed {
    memories: Vec::new(),
    next: 1,
});

struct Handed {
    memories: Vec<(u64, Weak<Mutex<TraceMemory>>)>,
    next: u64,
}

impl Handed {
    /// Returns the handle of a memory, the same at every call.
    fn handle_of(&mut self, memory: &Arc<Mutex<TraceMemory>>) -> u64 {
        self.memories.retain(|(_, memory)| memory.strong_count() > 0);
        let known = self
            .memories
            .iter()
            .find(|(_, known)| Weak::as_ptr(known) == Arc::as_ptr(memory));
        if let Some((handle, _)) = known {
            return *handle;
        }
        let handle = self.next;
        self.next += 1;
        self.memories.push((handle, Arc::downgrade(memory)));
        handle
    }

    fn memory(&self, handle: u64) -> Option<Arc<Mutex<TraceMemory>>> {
        let (_, memory) = self.memories.iter().find(|(known, _)| *known == handle)?;
        memory.upgrade()
    }
}

/// The memory behind `TraceMemory`; the JavaScript class checks the types of its arguments.
#[napi(custom_finalize)]
pub struct NativeTraceMemory {
    wrap: MemoryWrap<TraceMemory>,
    /// Never changes: reading it need not wait for the memory.
    method: Method,
}

impl ObjectFinalize for NativeTraceMemory {
    fn finalize(self, env: Env) -> Result<()> {
        self.wrap.forget(env)
    }
}

impl WrappedMemory for TraceMemory {
    type Native = NativeTraceMemory;
}

impl From<MemoryWrap<TraceMemory>> for NativeTraceMemory {
    fn from(wrap: MemoryWrap<TraceMemory>) -> Self {
        let method = lock(&wrap.memory).method();
        Self { wrap, method }
    }
}

/// A trace that is similar to another one.
#[napi(object)]
pub struct NativeSimilarTrace {
    /// How many living traces are older.
    pub index: f64,
    pub label: Option<String>,
    pub similarity: f64,
    pub lexical: f64,
    pub contained: f64,
    pub embedded: Option<f64>,
}

/// A word of a stored trace.
#[napi(object)]
pub struct NativeStoredWord {
    /// The XXH3-64 of the word, in 16 hexadecimal digits.
    pub hash: String,
    pub count: f64,
}

/// Traces to be compared and remembered.
struct Batch {
    traces: Vec<(Words, Option<Label>)>,
    vectors: Vec<f32>,
    model: Option<ModelIdentity>,
}

impl Batch {
    /// Reads traces, and returns the function that takes their words, which is to be called away from the event loop.
    fn read(
        env: &Env,
        traces: Vec<Unknown>,
        vectors: Option<Float32ArraySlice>,
        model: Option<NativeModelIdentity>,
    ) -> Result<impl FnOnce() -> error::Result<Self> + Send + use<>> {
        let traces = traces.into_iter();
        let traces: Vec<_> = traces
            .map(|trace| trace::read(env, trace, Some(Method::Full)))
            .collect::<Result<_>>()?;
        let vectors = vectors.map(|vectors| vectors.to_vec()).unwrap_or_default();
        let model = model.map(Into::into);
        Ok(move || {
            let words = traces.into_iter().map(|trace| (Words::of(&trace), trace.label));
            Ok(Self {
                traces: words.collect(),
                vectors,
                model,
            })
        })
    }

    /// Copies the bytes of packed traces, and returns the function that unpacks them.
    fn copy(
        entries: Vec<NativePackedEntry>,
        model: Option<NativeModelIdentity>,
        memory: &NativeTraceMemory,
    ) -> impl FnOnce() -> error::Result<Self> + Send + use<> {
        let entries = entries.into_iter();
        let packed: Vec<_> = entries
            .map(|entry| (entry.trace.to_vec(), entry.label.map(Label::from)))
            .collect();
        let model = model.map(Into::into);
        let dimensions = match memory.method {
            Method::Full => memory.wrap.bounds.dimensions,
            _ => 0,
        };
        move || {
            let mut batch = Self {
                traces: Vec::with_capacity(packed.len()),
                vectors: Vec::new(),
                model,
            };
            for (bytes, label) in packed {
                let PackedTrace { words, vector } = PackedTrace::unpack(&bytes, dimensions)?;
                batch.traces.push((words, label));
                batch.vectors.extend(vector);
            }
            Ok(batch)
        }
    }

    /// Returns the entries. The memory refuses vectors of a wrong length.
    fn entries(&self) -> Vec<TraceEntry<'_>> {
        let length = self.vectors.len() / self.traces.len().max(1);
        let mut vectors = self.vectors.chunks(length.max(1));
        let entries = self.traces.iter().map(|(words, label)| TraceEntry {
            words,
            vector: vectors.next(),
            label: label.as_ref(),
            model: self.model.as_ref(),
        });
        entries.collect()
    }
}

/// A trace whose words and embedding are packed as stores keep them.
#[napi(object, object_to_js = false)]
pub struct NativePackedEntry<'env> {
    #[napi(ts_type = "Uint8Array")]
    pub trace: Uint8ArraySlice<'env>,
    pub label: Option<String>,
}

impl NativeTraceMemory {
    /// Has `act` work on the memory away from the event loop, after the calls made before. The batch is made there too.
    fn enqueue<'env, T: ToNapiValue + Send + 'static>(
        &self,
        env: &'env Env,
        make: impl FnOnce() -> error::Result<Batch> + Send + 'static,
        call: Option<&NativeCall>,
        act: impl FnOnce(&mut TraceMemory, &[TraceEntry], Instant) -> error::Result<T> + Send + 'static,
    ) -> Result<Object<'env>> {
        self.wrap
            .enqueue(env, call, move |memory, now| act(memory, &make()?.entries(), now))
    }

    /// Returns the memory itself, for callers that do not compare by it.
    pub(super) fn shared(&self) -> Arc<Mutex<TraceMemory>> {
        Arc::clone(&self.wrap.memory)
    }

    /// Returns the memory itself.
    pub(super) fn share(&self) -> Memory {
        Memory::Traces {
            memory: self.shared(),
            method: self.method,
        }
    }
}

#[napi]
#[allow(clippy::cast_precision_loss)] // No memory holds or numbers 2^53 traces.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Safe integers; they saturate.
impl NativeTraceMemory {
    /// Creates an empty memory that compares by this method.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: &Env, method: String, bounds: NativeBounds) -> Result<Self> {
        let method = Method::of_traces(&method)
            .ok_or_else(|| throw(env, &Error::Internal(format!("there is no method {method:?}"))))?;
        Ok(MemoryWrap::own(TraceMemory::new(method, bounds.into())).into())
    }

    /// Compares traces with the memory, one after another, and remembers them unless the call only asks: all or none.
    /// Resolves to the nearest trace of each; null stands for an empty memory. `vectors` are the embeddings of all digests,
    /// one after another. Rejects with `ERR_ABORTED` if the call was cancelled.
    #[napi(catch_unwind, ts_return_type = "Promise<(NativeSimilarTrace | null)[]>")]
    pub fn compare<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown[]")] traces: Vec<Unknown>,
        #[napi(ts_arg_type = "Float32Array | undefined")] vectors: Option<Float32ArraySlice>,
        model: Option<NativeModelIdentity>,
        remember: bool,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let read = Batch::read(env, traces, vectors, model)?;
        self.enqueue(env, read, call, move |memory, entries, now| {
            let nearest = if remember {
                memory.compare_and_add_batch(entries, now)?
            } else {
                let compare = |entry: &TraceEntry| memory.compare(*entry, now);
                entries.iter().map(compare).collect::<error::Result<_>>()?
            };
            Ok(each_shown(nearest))
        })
    }

    /// Compares packed traces with the memory, one after another, and remembers them: all or none. Rejects as `compare`
    /// does, and with `ERR_STORE` for bytes that are no packed trace.
    #[napi(catch_unwind, ts_return_type = "Promise<(NativeSimilarTrace | null)[]>")]
    pub fn compare_and_add_packed<'env>(
        &self,
        env: &'env Env,
        entries: Vec<NativePackedEntry>,
        model: Option<NativeModelIdentity>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let packed = Batch::copy(entries, model, self);
        self.enqueue(env, packed, call, |memory, entries, now| {
            Ok(each_shown(memory.compare_and_add_batch(entries, now)?))
        })
    }

    /// Returns the traces that are most similar to a packed one, the most similar first.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeSimilarTrace[]>")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A safe integer; it saturates.
    pub fn nearest_packed<'env>(
        &self,
        env: &'env Env,
        entry: NativePackedEntry,
        count: f64,
        model: Option<NativeModelIdentity>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let packed = Batch::copy(vec![entry], model, self);
        self.enqueue(env, packed, call, move |memory, entries, now| {
            nearest_to(memory, entries, count as usize, now)
        })
    }

    /// Remembers traces without comparing them: all or none.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn add<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown[]")] traces: Vec<Unknown>,
        #[napi(ts_arg_type = "Float32Array | undefined")] vectors: Option<Float32ArraySlice>,
        model: Option<NativeModelIdentity>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let read = Batch::read(env, traces, vectors, model)?;
        self.enqueue(env, read, call, |memory, entries, now| {
            memory.add_batch(entries, now)
        })
    }

    /// Returns the most similar traces, the most similar first.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeSimilarTrace[]>")]
    pub fn nearest<'env>(
        &self,
        env: &'env Env,
        #[napi(ts_arg_type = "unknown")] trace: Unknown,
        count: f64,
        #[napi(ts_arg_type = "Float32Array | undefined")] vector: Option<Float32ArraySlice>,
        model: Option<NativeModelIdentity>,
        call: Option<&NativeCall>,
    ) -> Result<Object<'env>> {
        let read = Batch::read(env, vec![trace], vector, model)?;
        self.enqueue(env, read, call, move |memory, entries, now| {
            nearest_to(memory, entries, count as usize, now)
        })
    }

    /// A number by which another thread of the process takes part in the memory.
    #[napi(getter, catch_unwind)]
    pub fn handle(&self) -> f64 {
        locked(&HANDED).handle_of(&self.wrap.memory) as f64
    }

    /// Returns the memory with this handle; null if it does not exist or no longer exists.
    #[napi(catch_unwind)]
    pub fn from_handle(handle: f64) -> Option<NativeTraceMemory> {
        let memory = locked(&HANDED).memory(handle as u64);
        memory.map(|memory| MemoryWrap::of(memory, Some(Arc::default())).into())
    }

    /// The oldest living trace whose sequence number is in this range.
    #[napi(
        catch_unwind,
        ts_return_type = "{ sequence: number, label?: string, words: NativeStoredWord[], vector?: Float32Array } | null"
    )]
    pub fn stored<'env>(&self, env: &'env Env, start: f64, end: f64) -> Result<Option<Object<'env>>> {
        let stored = lock(&self.wrap.memory).stored(start as u64..end as u64, Instant::now());
        let Some(stored) = stored else {
            return Ok(None);
        };
        let words: Vec<_> = stored
            .words
            .iter()
            .map(|word| NativeStoredWord {
                hash: format!("{:016x}", word.hash),
                count: word.count.value(),
            })
            .collect();
        let mut object = Object::new(env)?;
        object.set("sequence", stored.sequence as f64)?;
        object.set("label", stored.label.as_deref())?;
        object.set("words", words)?;
        if let Some(vector) = stored.vector {
            object.set("vector", Float32ArraySlice::copy_from(env, vector)?)?;
        }
        Ok(Some(object))
    }

    /// The method by which traces are compared.
    #[napi(getter, catch_unwind)]
    pub fn method(&self) -> String {
        self.method.name().into()
    }
}

memory_class!(NativeTraceMemory, TraceMemory, "Promise<NativeTraceMemory>");

/// Returns the text of a trace whose embedding stands for it. Throws `ERR_INVALID_TRACE`.
#[napi(catch_unwind)]
pub fn trace_digest(env: &Env, #[napi(ts_arg_type = "unknown")] trace: Unknown) -> Result<String> {
    Ok(digest::of(&trace::read(env, trace, Some(Method::Full))?))
}

fn each_shown(nearest: Vec<Option<SimilarTrace>>) -> Vec<Option<NativeSimilarTrace>> {
    let nearest = nearest.into_iter();
    nearest
        .map(|nearest| nearest.map(NativeSimilarTrace::from))
        .collect()
}

fn nearest_to(
    memory: &mut TraceMemory,
    entries: &[TraceEntry],
    count: usize,
    now: Instant,
) -> error::Result<Vec<NativeSimilarTrace>> {
    let Some(entry) = entries.first() else {
        return Ok(Vec::new());
    };
    let nearest = memory.nearest(*entry, count, now)?;
    Ok(nearest.into_iter().map(NativeSimilarTrace::from).collect())
}

impl From<SimilarTrace> for NativeSimilarTrace {
    #[allow(clippy::cast_precision_loss)] // No memory holds 2^53 traces.
    fn from(similar: SimilarTrace) -> Self {
        let similarity = similar.similarity;
        Self {
            index: similar.index as f64,
            label: similar.label.map(|label| label.to_string()),
            similarity: similarity.value(),
            lexical: similarity.lexical,
            contained: similarity.contained,
            embedded: similarity.embedded,
        }
    }
}
