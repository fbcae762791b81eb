//! The engine ONNX Runtime, for models of users: sessions of a graph in a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use ort::{
    session::Session,
    value::{Outlet, TensorRef},
};

use knowledgepulse_encoder::{Shape, unit_mean};
use knowledgepulse_error::{Error, Result, fault};

use crate::{
    DIMENSIONS, Embedding, Lane, Network, damaged, embedding_of, encoder_failed,
    file::{Identity, check_room},
    runtime::Runtime,
    unsupported,
};

/// The inputs that a BERT export may have, in the order in which [`SessionLane`] makes them.
const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

/// The output that holds one vector per token.
const OUTPUT: &str = "last_hidden_state";

/// The address space of a session without weights, in bytes: stacks and heaps of its threads, and intermediate results of 512 tokens.
const SESSION_BYTES: u64 = 256 << 20;

/// A graph in a file, whose lanes are sessions.
pub struct Graph {
    runtime: &'static Runtime,
    path: PathBuf,
    identity: Identity,
}

/// A session, which embeds one text at a time.
struct SessionLane {
    runtime: &'static Runtime,
    session: Session,
    threads: usize,
}

impl Graph {
    /// Opens the ONNX file in `path`. ONNX Runtime checks its contents.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE` if the file cannot be read, or `ERR_OUT_OF_MEMORY`.
    pub fn open(runtime: &'static Runtime, path: &Path) -> Result<Self> {
        let graph = Self::identify(runtime, path).map_err(|error| damaged(path, error))?;
        graph.check_room()?;
        Ok(graph)
    }

    fn identify(runtime: &'static Runtime, path: &Path) -> io::Result<Self> {
        // ONNX Runtime refuses weights behind a symbolic link out of the folder.
        let path = if cfg!(unix) {
            path.canonicalize()?
        } else {
            path.to_owned()
        };
        let identity = Identity::of(&std::fs::metadata(&path)?);
        Ok(Self {
            runtime,
            path,
            identity,
        })
    }

    /// # Errors
    /// `ERR_OUT_OF_MEMORY`.
    fn check_room(&self) -> Result<()> {
        let bytes = self.identity.length.saturating_mul(2);
        check_room(&self.path, bytes.saturating_add(SESSION_BYTES))
    }
}

impl Network for Graph {
    fn open_lane(&self, threads: usize) -> Result<Box<dyn Lane>> {
        fault::point("lane");
        let path = &self.path;
        self.check_room()?;
        // A lane of another model than the first would give other scores.
        match std::fs::metadata(path) {
            Ok(metadata) if Identity::of(&metadata) == self.identity => {}
            Ok(_) => return Err(damaged(path, "it has changed since it was loaded")),
            Err(error) => return Err(damaged(path, error)),
        }
        let session = self
            .runtime
            .session(threads, |mut builder| builder.commit_from_file(path));
        let session = session.map_err(|error| damaged(path, error))?;
        let mut inputs = session.inputs().iter().map(Outlet::name);
        if let Some(input) = inputs.find(|input| !INPUTS.contains(input)) {
            return Err(unsupported(path, format!("it wants the input `{input}`")));
        }
        if !session.outputs().iter().any(|output| output.name() == OUTPUT) {
            return Err(unsupported(path, format!("it has no output `{OUTPUT}`")));
        }
        Ok(Box::new(SessionLane {
            runtime: self.runtime,
            session,
            threads,
        }))
    }

    fn shape(&self) -> Option<Shape> {
        None
    }

    fn pass_tokens(&self) -> usize {
        0
    }
}

impl Lane for SessionLane {
    fn embed(&mut self, texts: &[&[u32]]) -> Result<Vec<Embedding>> {
        texts.iter().map(|ids| self.run(ids)).collect()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn kernel(&self) -> Option<String> {
        None
    }
}

impl SessionLane {
    fn run(&mut self, ids: &[u32]) -> Result<Embedding> {
        let failed = |error: ort::Error| Error::Inference(error.to_string());
        let length = ids.len();
        let ids: Vec<i64> = ids.iter().copied().map(i64::from).collect();
        // A single text has no padding: all tokens have attention, and segment 0.
        let attention_mask = vec![1_i64; length];
        let token_type_ids = vec![0_i64; length];
        let values = [&ids, &attention_mask, &token_type_ids];
        let mut inputs = Vec::with_capacity(INPUTS.len());
        for (name, values) in INPUTS.into_iter().zip(values) {
            if self.session.inputs().iter().any(|input| input.name() == name) {
                let tensor = TensorRef::from_array_view(([1, length], values.as_slice()));
                inputs.push((name, tensor.map_err(failed)?));
            }
        }
        let session = &mut self.session;
        self.runtime.run(|options| {
            let outputs = session.run_with_options(inputs, options).map_err(failed)?;
            let (shape, states) = outputs[OUTPUT].try_extract_tensor::<f32>().map_err(failed)?;
            if **shape != [1, to_i64(length), to_i64(DIMENSIONS)] {
                return Err(Error::Inference(format!("unexpected output shape {shape}")));
            }
            pool(states)
        })
    }
}

fn to_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Returns the mean of the tokens' vectors, scaled to length one. Sums are in double precision, as in the SDK.
fn pool(states: &[f32]) -> Result<Embedding> {
    let (tokens, _) = states.as_chunks::<DIMENSIONS>();
    let mut sums = [0.0_f64; DIMENSIONS];
    for token in tokens {
        for (sum, &component) in sums.iter_mut().zip(token) {
            *sum += f64::from(component);
        }
    }
    embedding_of(unit_mean(&sums, tokens.len()).map_err(encoder_failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_is_the_scaled_mean() {
        let mut states = vec![0.0; 2 * DIMENSIONS];
        states[0] = 3.0;
        states[DIMENSIONS] = 3.0;
        states[1] = 8.0;
        let embedding = pool(&states).unwrap();
        assert!((embedding[0] - 0.6).abs() < 1e-7);
        assert!((embedding[1] - 0.8).abs() < 1e-7);
        assert_eq!(embedding[2], 0.0);
    }

    #[test]
    fn a_model_that_outputs_nonsense_is_an_error() {
        for nonsense in [f32::NAN, f32::INFINITY, 0.0] {
            let states = vec![nonsense; DIMENSIONS];
            assert_eq!(pool(&states).unwrap_err().code(), "ERR_RUNTIME_UNUSABLE");
        }
    }
}
