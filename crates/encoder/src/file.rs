//! The safetensors file that the weights are in.

use std::{borrow::Cow, ops::Range};

use safetensors::tensor::{Dtype, Metadata};

use crate::{
    error::{Error, Result},
    source::Source,
};

/// The header of the official file has 11 KB.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// A safetensors file whose header was read and fits its length.
#[derive(Debug)]
pub(crate) struct TensorFile {
    source: Source,
    header: Metadata,
    /// Where the tensors begin.
    start: u64,
}

/// Where a tensor lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub offset: u64,
    pub bytes: u64,
}

impl TensorFile {
    /// Reads the header.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Damaged`].
    pub fn open(source: Source) -> Result<Self> {
        let damaged = |reason: &str| Error::Damaged(reason.to_owned());
        if source.length() < 8 {
            return Err(damaged("they are too short for a safetensors file"));
        }
        let mut length = [0; 8];
        source.read_into(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(damaged("they do not begin as a safetensors file does"));
        }
        let start = 8 + length;
        if start > source.length() {
            return Err(damaged("they end within the header"));
        }
        let header: Metadata = serde_json::from_slice(&source.read(8..start)?).map_err(|error| {
            Error::Damaged(format!("the header is not that of a safetensors file: {error}"))
        })?;
        let expected = start.checked_add(header.data_len() as u64);
        if expected != Some(source.length()) {
            return Err(Error::Damaged(format!(
                "they have {} bytes where the header describes {}",
                source.length(),
                start.saturating_add(header.data_len() as u64)
            )));
        }
        Ok(Self {
            source,
            header,
            start,
        })
    }

    /// Returns the bytes that all is read from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns whether there is a tensor of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.header.info(name).is_some()
    }

    /// Returns the tensor called `name`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the file lacks it.
    pub fn find(&self, name: &str) -> Result<Tensor> {
        let info = self.header.info(name);
        let info = info.ok_or_else(|| Error::Unsupported(format!("there is no tensor {name}")))?;
        let (from, to) = info.data_offsets;
        Ok(Tensor {
            name: name.to_owned(),
            dtype: info.dtype,
            shape: info.shape.clone(),
            offset: self.start + from as u64,
            bytes: (to - from) as u64,
        })
    }

    /// Returns the tensor called `name`, which must have this type and shape.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn expect(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Tensor> {
        let tensor = self.find(name)?;
        if tensor.dtype != dtype || tensor.shape != shape {
            return Err(Error::Unsupported(format!(
                "{name} is {:?} {:?}, not {dtype:?} {shape:?}",
                tensor.dtype, tensor.shape
            )));
        }
        Ok(tensor)
    }

    /// Returns the bytes of a tensor.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn bytes(&self, tensor: &Tensor) -> Result<Cow<'_, [u8]>> {
        Ok(self.source.read(tensor.offset..tensor.offset + tensor.bytes)?)
    }

    /// Returns the bytes of some rows of a tensor: few of them stay in the processor's cache until they are packed.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn rows(&self, tensor: &Tensor, rows: Range<usize>) -> Result<Cow<'_, [u8]>> {
        let count = tensor.shape.first().copied().unwrap_or(0) as u64;
        let row = tensor.bytes.checked_div(count).unwrap_or(0);
        let from = tensor.offset + rows.start as u64 * row;
        Ok(self.source.read(from..from + rows.len() as u64 * row)?)
    }

    /// Returns the numbers of a tensor in single precision, all finite.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Unsupported`] or [`Error::Damaged`].
    pub fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let tensor = self.expect(name, Dtype::F32, shape)?;
        let bytes = self.bytes(&tensor)?;
        let mut floats = Vec::new();
        let count = bytes.len() / 4;
        floats
            .try_reserve_exact(count)
            .map_err(|_| Error::Memory(bytes.len()))?;
        floats.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        check_finite(name, &floats)?;
        Ok(floats)
    }
}

/// # Errors
/// [`Error::Damaged`] if a number is not finite.
pub(crate) fn check_finite(name: &str, floats: &[f32]) -> Result<()> {
    // Without an early end, so that it is done sixteen at a time.
    let finite = floats
        .iter()
        .fold(true, |finite, float| finite & float.is_finite());
    if finite {
        Ok(())
    } else {
        Err(Error::Damaged(format!("{name} has numbers that are not finite")))
    }
}
