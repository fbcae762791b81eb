//! The files that a run writes when it ends. They stay as they were where not all of the input was read.

use crate::{
    error::Result,
    files::{file_identity::Output, output_file::OutputFile},
    show::summary::Written,
};

/// The files, as their options name them.
pub(crate) struct Outputs {
    files: Vec<(&'static str, OutputFile)>,
    /// How many traces were written to `--out`.
    traces: u64,
}

impl Outputs {
    /// Opens the files.
    pub(crate) fn open(outputs: &[Output]) -> Result<Self> {
        let open = |&(name, file): &Output| Ok((name, OutputFile::open(file)?));
        Ok(Self {
            files: outputs.iter().map(open).collect::<Result<_>>()?,
            traces: 0,
        })
    }

    /// Returns whether there is no file.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    fn get(&mut self, option: &str) -> Option<&mut OutputFile> {
        let found = self.files.iter_mut().find(|(name, _)| *name == option);
        found.map(|(_, file)| file)
    }

    /// Writes a trace, a line of JSON, to `--out`.
    pub(crate) fn write_trace(&mut self, line: &str) -> Result<()> {
        let Some(out) = self.get("out") else { return Ok(()) };
        out.write(line.as_bytes())?;
        out.write(b"\n")?;
        self.traces += 1;
        Ok(())
    }

    /// Returns the page of the report, if it is wanted.
    pub(crate) fn report(&mut self) -> Option<&mut OutputFile> {
        self.get("report")
    }

    /// Publishes the files. If the run is incomplete, only pipes and devices have its bytes. Returns the files that were written.
    pub(crate) fn publish(&mut self, is_complete: bool) -> Result<Vec<Written>> {
        let files = self.files.iter_mut();
        let wanted = files.filter(|(_, file)| is_complete || file.is_written_directly());
        let mut wanted: Vec<_> = wanted.collect();
        for (_, file) in &mut wanted {
            file.finish()?;
        }
        let mut written = Vec::new();
        for (name, file) in wanted {
            file.publish()?;
            written.push(Written {
                file: file.name.clone(),
                traces: (*name == "out").then_some(self.traces),
            });
        }
        Ok(written)
    }

    /// Says which files an incomplete run has left as they were.
    pub(crate) fn left(&self) -> String {
        let files = self.files.iter().filter(|(_, file)| !file.is_written_directly());
        let files: Vec<_> = files.map(|(_, file)| file.name.as_str()).collect();
        match files.len() {
            0 => String::new(),
            1 => format!("; {} is as it was", files[0]),
            _ => format!("; {} are as they were", files.join(", ")),
        }
    }
}
