//! The files that a run writes when it ends: in their places, or beside them where not all of the input was read.

use crate::{
    error::Result,
    files::{
        file_identity::{Output, is_same_file},
        output_file::OutputFile,
    },
    show::summary::Written,
};

/// The files, as their options name them.
pub(crate) struct Outputs {
    files: Vec<(&'static str, OutputFile)>,
    /// How many traces were written to `--out`.
    traces: u64,
    /// Inputs and other files of the run, whose names a partial result must not take.
    others: Vec<String>,
}

impl Outputs {
    /// Opens the files.
    pub(crate) fn open(outputs: &[Output], others: Vec<String>) -> Result<Self> {
        let open = |&(name, file): &Output| Ok((name, OutputFile::open(file)?));
        Ok(Self {
            files: outputs.iter().map(open).collect::<Result<_>>()?,
            traces: 0,
            others,
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

    /// Writes the page of the report.
    pub(crate) fn write_report(&mut self, page: &str) -> Result<()> {
        let report = self.get("report");
        report.map_or(Ok(()), |report| report.write(page.as_bytes()))
    }

    /// Publishes all files, or beside their places if the run is incomplete. Returns the files that were written.
    pub(crate) fn publish(&mut self, is_complete: bool) -> Result<Vec<Written>> {
        for (_, file) in &mut self.files {
            file.finish()?;
        }
        let mut written = Vec::new();
        for at in 0..self.files.len() {
            let partial = self.files[at].1.partial().filter(|_| !is_complete);
            let is_used = |name: &String| {
                let mut others = self.others.iter().map(String::as_str);
                others.any(|other| is_same_file(other, name))
                    || self.files.iter().any(|(_, file)| is_same_file(&file.name, name))
            };
            // Where another file of the run has that name, the partial result goes nowhere.
            if partial.as_ref().is_some_and(is_used) {
                continue;
            }
            let (name, file) = &mut self.files[at];
            file.publish(is_complete)?;
            written.push(Written {
                file: partial.unwrap_or_else(|| file.name.clone()),
                traces: (*name == "out").then_some(self.traces),
            });
        }
        Ok(written)
    }

    /// Says what became of the files of an incomplete run.
    pub(crate) fn left(&self, written: &[Written]) -> String {
        // A pipe or a device keeps the bytes that were written to it.
        let names: Vec<_> = written.iter().map(|written| written.file.as_str()).collect();
        let files = self.files.iter().map(|(_, file)| file.name.as_str());
        let files: Vec<_> = files.filter(|file| !names.contains(file)).collect();
        if files.is_empty() {
            return String::new();
        }
        let are = if files.len() == 1 {
            "is as it was"
        } else {
            "are as they were"
        };
        let result = match &names[..] {
            [] => "there is no partial result".into(),
            names => format!("what was scored is in {}", names.join(", ")),
        };
        format!("; {result}, and {} {are}", files.join(", "))
    }
}
