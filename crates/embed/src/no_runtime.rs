//! Replaces ONNX Runtime in WebAssembly, which loads no library and has no other threads to wait for.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
};

use knowledgepulse_error::{Error, Result};

use crate::{Lane, Limits, Network};

/// An ONNX Runtime, which never exists.
pub struct Runtime {
    /// The file it was loaded from.
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

/// A graph for ONNX Runtime, which never exists.
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
