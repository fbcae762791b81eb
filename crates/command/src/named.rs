//! Sessions that a program names, by traces and paths: they are shared without a choice before.

use std::{collections::HashMap, fs, io, path::Path};

use knowledgepulse_error::{self as error, Code, Error};
use knowledgepulse_formats::{FormatName, run::head_of};
use knowledgepulse_json::Value;
use knowledgepulse_share::{
    Log, Session,
    logs::{WholeFiles, add_subagents},
};
use knowledgepulse_trace::reading::{self, Texts};

use crate::{Failure, Filter, Inputs, Item, Kept, Messages, RunInfo, State, TraceRead, traces::each};

/// What a program shares.
pub enum Named {
    /// A trace.
    Trace(Value),
    /// The path of a file or a folder.
    Path(String),
}

/// What is no trace, by its place, and why.
pub type Wrong = Vec<(String, String)>;

/// Reads the sessions of traces and paths, or of this machine if there is no list, in the order in which they are named. Those of
/// sub-agents come with their sessions.
///
/// # Errors
/// [`Error::Io`] if the system refuses a path, [`Error::Other`] if one has no session or cannot be read to its end.
pub fn sessions_of(named: Option<Vec<Named>>) -> error::Result<(Vec<Session<'static>>, Wrong)> {
    let messages = Messages::silent();
    let mut inputs = Inputs::default();
    if named.is_none() {
        inputs = inputs.found(&[], &messages)?;
    }
    let mut sessions = Vec::new();
    // By a file, the number of what names it.
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (number, named) in (1..).zip(named.into_iter().flatten()) {
        match named {
            // One that is not valid cannot be read, and is left out.
            Named::Trace(trace) => {
                let (run, name) = (RunInfo::of(&trace), format!("trace-{number}"));
                let trace = Box::new(move || valid(trace.clone()));
                let log = Log::of_trace(name, FormatName::Trace, trace);
                sessions.push((number, run, log));
            }
            Named::Path(path) => {
                let io = |source| Error::Io {
                    path: (&path).into(),
                    action: "read",
                    source,
                };
                let is_file = fs::metadata(&path).map_err(io)?.is_file();
                if is_file && head_of(Path::new(&path)).is_ok_and(|head| head.format.is_none()) {
                    let problem = format!("{path} has no session of a known format");
                    return Err(Error::Other(Code::InvalidInput, problem));
                }
                let below = Inputs::new(vec![path], Filter::default()).found(&[], &messages)?;
                for file in below.sources {
                    numbers.entry(file.clone()).or_insert_with(|| {
                        inputs.sources.push(file);
                        number
                    });
                }
            }
        }
    }
    add_subagents(&mut inputs.sources);
    let files = WholeFiles::of(&inputs.sources);
    let (mut kept, mut wrong) = (Kept::new()?, Wrong::new());
    let mut take = |Item { place, state, .. }: Item<TraceRead>| {
        match state {
            State::Read(TraceRead { about, json, .. }) => {
                let text = kept.add(&json)?;
                let trace = kept.value(text);
                let trace = Box::new(move || valid(trace()?));
                let log = files.log(&place.source, about.format, trace);
                let number = numbers.get(&place.source).copied().unwrap_or(usize::MAX);
                sessions.push((number, about.run, log));
            }
            State::Wrong(reason) => wrong.push((place.to_string(), reason.to_string())),
            State::Unread(reason) => {
                let problem = format!("cannot read {}: {reason}", place.source);
                return Err(Failure::file(problem));
            }
            State::Skipped(_) | State::LeftOut(_) => {}
        }
        Ok(())
    };
    if !inputs.sources.is_empty() {
        each(inputs, &mut take)?;
    }
    sessions.sort_by_key(|(number, ..)| *number);
    let sessions = sessions.into_iter();
    let sessions = sessions.map(|(_, run, log)| (run, Session::new(log, 0, "given")));
    Ok((with_subagents(sessions.collect()), wrong))
}

/// Returns sessions, each with the sub-agents that belong to it, which come as sessions of their own. Those whose session is missing stay so.
pub(crate) fn with_subagents(sessions: Vec<(RunInfo, Session)>) -> Vec<Session> {
    let roots = RunInfo::roots(sessions.iter().map(|(run, _)| run));
    let mut sessions: Vec<_> = sessions.into_iter().map(|(_, session)| Some(session)).collect();
    for (at, root) in roots.into_iter().enumerate() {
        if let Some(root) = root
            && let Some(subagent) = sessions[at].take()
            && let Some(session) = &mut sessions[root]
        {
            session.subagents.push(subagent.log);
        }
    }
    sessions.into_iter().flatten().collect()
}

/// Returns a trace if the scorer would take it.
fn valid(trace: Value) -> io::Result<Value> {
    reading::read(Some(&trace), Texts::None).map_err(io::Error::other)?;
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use knowledgepulse_json::parse_str;

    use super::*;

    fn record(role: &str, fields: &str, words: &str) -> String {
        format!(
            r#"{{"type":"{role}","sessionId":"s1","uuid":"{words}",{fields}"message":{{"role":"{role}","content":"{words}"}}}}"#
        ) + "\n"
    }

    fn path_in(folder: &Path, name: &str) -> String {
        folder.join(name).display().to_string()
    }

    #[test]
    fn sessions_of_takes_traces_compressed_files_and_folders_with_their_subagents() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("projects");
        fs::create_dir_all(home.join("s1/subagents")).unwrap();
        let session = record("user", "", "a") + &record("assistant", "", "b");
        fs::write(home.join("s1.jsonl"), &session).unwrap();
        let sidechain = r#""isSidechain":true,"agentId":"x","#;
        let subagent = record("user", sidechain, "c") + &record("assistant", sidechain, "d");
        fs::write(home.join("s1/subagents/agent-x.jsonl"), subagent).unwrap();
        fs::write(home.join("notes.txt"), "Buy milk.").unwrap();
        let compressed = folder.path().join("other.jsonl.gz");
        let mut gzip = GzEncoder::new(fs::File::create(&compressed).unwrap(), Compression::default());
        gzip.write_all(session.replace("s1", "s2").replace('b', "e").as_bytes())
            .unwrap();
        gzip.finish().unwrap();
        let invalid = parse_str(r#"{"task":{"objective":"o"},"steps":7}"#).unwrap();
        let named = vec![
            Named::Path(compressed.display().to_string()),
            Named::Trace(invalid),
            Named::Path(path_in(folder.path(), "projects")),
        ];
        let (sessions, wrong) = sessions_of(Some(named)).unwrap();
        assert_eq!(wrong, []);
        let names = |log: &Log| {
            Path::new(&log.name)
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        let logs: Vec<_> = sessions.iter().map(|session| names(&session.log)).collect();
        assert_eq!(logs, ["other.jsonl.gz", "trace-2", "s1.jsonl"]);
        assert_eq!(names(&sessions[2].subagents[0]), "agent-x.jsonl");
        assert!((sessions[1].log.trace)().is_err());
        let text = sessions[0].log.text.as_ref().unwrap();
        assert!(text().unwrap().contains(r#""sessionId":"s2""#));
        // A session alone comes with them, too.
        let named = vec![Named::Path(path_in(&home, "s1.jsonl"))];
        assert_eq!(sessions_of(Some(named)).unwrap().0[0].subagents.len(), 1);
    }

    #[test]
    fn sessions_of_refuses_what_it_cannot_read_and_what_has_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |name: &str, bytes: Option<&[u8]>| {
            let path = folder.path().join(name);
            bytes.iter().for_each(|bytes| fs::write(&path, bytes).unwrap());
            let named = Named::Path(path.display().to_string());
            sessions_of(Some(vec![named])).err().unwrap()
        };
        let none = refusal("notes", Some(b"Buy milk.\n")).to_string();
        assert!(none.ends_with("notes has no session of a known format"), "{none}");
        let broken = refusal("gzip", Some(b"\x1f\x8b\x08\xff")).to_string();
        assert!(broken.starts_with("cannot read "), "{broken}");
        let missing = refusal("none", None);
        assert!(matches!(missing, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
    }
}
