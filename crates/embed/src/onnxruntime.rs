//! The engine ONNX Runtime, for models of users: sessions of a graph in a file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use ort::{
    session::{Session, builder::SessionBuilder},
    value::{DynValue, Outlet, Tensor, TensorRef},
};

use knowledgepulse_error::{Error, Result, fault};

use crate::{
    DIMENSIONS, Embedding, Lane, Limits, Network, damaged,
    file::{Identity, check_room},
    model::outline::{LARGEST_GRAPH, Outline, Table},
    runtime::Runtime,
    scaled, unsupported,
};

/// The inputs that a BERT export may have, in the order in which [`SessionLane`] makes them.
const INPUTS: [&str; 3] = ["input_ids", "attention_mask", "token_type_ids"];

/// The output that holds one vector per token.
const OUTPUT: &str = "last_hidden_state";

/// The address space of a session without weights, in bytes: stacks and heaps of its threads, and intermediate results of 512 tokens.
const SESSION_BYTES: u64 = 256 << 20;

/// A graph in a file, whose lanes are sessions. They share the weights in other files, except copied ones.
pub struct Graph {
    runtime: &'static Runtime,
    path: PathBuf,
    /// The file, and the files with its weights.
    files: Vec<(PathBuf, Identity)>,
    tables: Vec<(String, Arc<DynValue>)>,
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
    /// [`Error::ModelDamaged`] also if a file that holds its weights is missing or too short, or [`Error::NoRoomForModel`].
    pub fn open(runtime: &'static Runtime, path: &Path) -> Result<Self> {
        let graph = Self::read(runtime, path).map_err(|error| damaged(path, error))?;
        graph.check_room()?;
        Ok(graph)
    }

    fn read(runtime: &'static Runtime, path: &Path) -> io::Result<Self> {
        // ONNX Runtime refuses weights behind a symbolic link out of the folder.
        let path = if cfg!(unix) {
            path.canonicalize()?
        } else {
            path.to_owned()
        };
        let identified = |path: PathBuf| -> io::Result<_> {
            let identity = Identity::of(&std::fs::metadata(&path)?);
            Ok((path, identity))
        };
        let mut files = vec![identified(path.clone())?];
        let mut tables = Vec::new();
        if files[0].1.length <= LARGEST_GRAPH
            && let Ok(outline) = Outline::read(&std::fs::read(&path)?)
        {
            for name in &outline.files {
                files.push(identified(path.with_file_name(name))?);
            }
            for table in &outline.tables {
                let values = read_table(&path.with_file_name(&table.file), table)?;
                tables.push((table.name.clone(), Arc::new(values)));
            }
        }
        Ok(Self {
            runtime,
            path,
            files,
            tables,
        })
    }

    /// # Errors
    /// [`Error::NoRoomForModel`].
    fn check_room(&self) -> Result<()> {
        let lengths = self.files.iter().map(|(_, identity)| identity.length);
        let bytes = lengths.fold(0, u64::saturating_add).saturating_mul(2);
        check_room(&self.path, bytes.saturating_add(SESSION_BYTES))
    }

    /// Fails if a file was changed, which would make a wrong session or crash ONNX Runtime.
    fn check_unchanged(&self) -> std::result::Result<(), String> {
        for (path, identity) in &self.files {
            match std::fs::metadata(path) {
                Ok(metadata) if Identity::of(&metadata) == *identity => {}
                Ok(_) => return Err(format!("{} has changed since it was loaded", path.display())),
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }
}

/// Reads the values of `table` from `path`.
///
/// # Errors
/// If the file is too short for them, or they are of a kind that no table of ours has.
fn read_table(path: &Path, table: &Table) -> io::Result<DynValue> {
    const FLOAT: i32 = 1;
    const INT8: i32 = 3;
    let unknown = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is of an unknown kind", table.name),
        )
    };
    let values = table.shape.iter().try_fold(1_usize, |product, &length| {
        product.checked_mul(usize::try_from(length).ok()?)
    });
    let values = values.ok_or_else(unknown)?;
    let mut file = File::open(path)?;
    let end = table.offset.checked_add(table.length);
    if end.is_none_or(|end| end > file.metadata().map_or(0, |metadata| metadata.len())) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(table.offset))?;
    let shape = table.shape.as_slice();
    let no_room = || io::Error::from(io::ErrorKind::OutOfMemory);
    let made = match table.data_type {
        FLOAT if Some(table.length) == (values as u64).checked_mul(4) => {
            let mut floats: Vec<f32> = zeros(values).ok_or_else(no_room)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut floats))?;
            Tensor::from_array((shape, floats)).map(Tensor::into_dyn)
        }
        INT8 if table.length == values as u64 => {
            let mut bytes: Vec<i8> = zeros(values).ok_or_else(no_room)?;
            file.read_exact(bytemuck::cast_slice_mut(&mut bytes))?;
            Tensor::from_array((shape, bytes)).map(Tensor::into_dyn)
        }
        _ => return Err(unknown()),
    };
    made.map_err(io::Error::other)
}

/// Returns `None` if there is not enough memory; `vec!` would end the process.
fn zeros<T: Clone + Default>(length: usize) -> Option<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(length).ok()?;
    values.resize(length, T::default());
    Some(values)
}

impl Network for Graph {
    fn open_lane(&self, threads: usize) -> Result<Box<dyn Lane>> {
        fault::point("lane");
        let path = &self.path;
        self.check_room()?;
        self.check_unchanged().map_err(|reason| damaged(path, reason))?;
        let commit = |mut builder: SessionBuilder| {
            for (name, table) in &self.tables {
                builder = builder.with_initializer(name, Arc::clone(table))?;
            }
            builder.commit_from_file(path)
        };
        let session = self.runtime.session(threads, commit);
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

    fn limits(&self) -> Option<Limits> {
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

/// Returns the mean of the tokens' vectors, scaled to length one. As in the SDK, sums are in double precision, rounded to single
/// precision after the mean and after the scaling.
fn pool(states: &[f32]) -> Result<Embedding> {
    let (tokens, _) = states.as_chunks::<DIMENSIONS>();
    let mut sums = [0.0_f64; DIMENSIONS];
    for token in tokens {
        for (sum, &component) in sums.iter_mut().zip(token) {
            *sum += f64::from(component);
        }
    }
    #[allow(clippy::cast_precision_loss)] // At most 512 tokens.
    let count = tokens.len() as f64;
    #[allow(clippy::cast_possible_truncation)] // Rounding is the intent.
    scaled(sums.map(|sum| (sum / count) as f32))
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
            assert_eq!(pool(&states).unwrap_err().code(), "ERR_INFERENCE");
        }
    }
}
