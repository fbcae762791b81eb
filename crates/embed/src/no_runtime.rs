//! What stands for ONNX Runtime where no library can be loaded: in WebAssembly. Nothing runs beside the caller's thread there, so
//! nothing has to be waited for when the process ends.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
};

use knowledgepulse_error::{Error, Result};

use crate::{Lane, Limits, Network};

/// An ONNX Runtime, of which there is none.
pub struct Runtime {
    /// Where it was loaded from.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
    never: Infallible,
}

impl Runtime {
    /// # Errors
    /// [`Error::RuntimeNotFound`], always.
    pub fn load(_: &Path) -> Result<&'static Self> {
        Err(Error::RuntimeNotFound(
            "WebAssembly cannot load one; use a model with a model.safetensors, which needs none".into(),
        ))
    }
}

/// A graph for ONNX Runtime, of which there is none.
pub struct Graph(Infallible);

impl Graph {
    /// # Errors
    /// None: there is no runtime to call it with.
    pub fn open(runtime: &'static Runtime, _: &Path) -> Result<Self> {
        match runtime.never {}
    }
}

impl Network for Graph {
    fn open_lane(&self, _: usize) -> Result<Box<dyn Lane>> {
        match self.0 {}
    }

    fn limits(&self) -> Option<Limits> {
        match self.0 {}
    }

    fn pass_tokens(&self) -> usize {
        match self.0 {}
    }
}

/// Does nothing.
pub fn stop() {}

/// Does nothing.
pub fn wait() {}

/// Does nothing.
pub fn hold_at_exit() {}

/// Does nothing.
pub(super) fn stop_at_exit() {}
