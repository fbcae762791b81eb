//! A folder in a zip, where there is no disk.

use std::io::{self, Write};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};

use crate::Files;

/// The files of a folder in a zip in memory.
pub struct Zip {
    archive: ZipArchiveWriter<Vec<u8>>,
    /// The name and the bytes of the file that was begun last.
    file: Option<(String, Vec<u8>)>,
}

impl Default for Zip {
    fn default() -> Self {
        Self {
            archive: ZipArchiveWriter::new(Vec::new()),
            file: None,
        }
    }
}

impl Zip {
    /// Returns the bytes of the zip.
    ///
    /// # Errors
    /// If a file cannot be added, as where its name is too long.
    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        self.close()?;
        self.archive.finish().map_err(io::Error::other)
    }

    fn close(&mut self) -> io::Result<()> {
        let Some((name, bytes)) = self.file.take() else {
            return Ok(());
        };
        let file = self
            .archive
            .new_file(&name)
            .compression_method(CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().map_err(io::Error::other)?;
        let mut counted = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        counted.write_all(&bytes)?;
        let (encoder, descriptor) = counted.finish().map_err(io::Error::other)?;
        encoder.finish()?;
        entry.finish(descriptor).map_err(io::Error::other)?;
        Ok(())
    }
}

impl Files for Zip {
    fn create(&mut self, name: &str) -> io::Result<()> {
        self.close()?;
        self.file = Some((name.to_owned(), Vec::new()));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (_, file) = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.extend(bytes);
        Ok(())
    }
}
