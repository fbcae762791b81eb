//! Any bytes as a file of sessions that is shared: each line that is written is JSON, and the set that was written is read again.

#![no_main]

use std::{collections::BTreeMap, io};

use knowledgepulse_clean::{CleanOptions, Cleaner};
use knowledgepulse_formats::reader::{Content, Settings as Reading, TraceReader};
use knowledgepulse_index::{memory::Memory, method::Method, options::MemoryOptions};
use knowledgepulse_json::{Value, parse_str};
use knowledgepulse_score::engine::Engine;
use knowledgepulse_share::{Files, Form, Log, MANIFEST, Quality, Session, Set, Settings, share};
use libfuzzer_sys::fuzz_target;

/// The files of a folder in memory.
#[derive(Default)]
struct Shelf(BTreeMap<String, Vec<u8>>);

impl Files for Shelf {
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.entry(name.into()).or_default().extend(bytes);
        Ok(())
    }
}

fuzz_target!(|text: &str| {
    let Ok(items) = TraceReader::new(Reading::default()).read_all(text.as_bytes()) else {
        return;
    };
    let traces = items.into_iter().filter_map(|item| match item.content {
        Content::Read(trace) => {
            Some((item.format?, item.place.line, trace))
        }
        _ => None,
    });
    let sessions: Vec<Session> = (1..)
        .zip(traces)
        .map(|(rank, (format, line, trace))| {
            let log = Log {
                text: Some(Box::new(|| Ok(text.to_owned()))),
                line,
                ..Log::of_trace("fuzzed.jsonl".into(), format, Box::new(move || Ok(trace.clone())))
            };
            Session::new(log, rank, "coverage")
        })
        .collect();
    for form in [Form::Native, Form::Messages, Form::Atif, Form::Knowledgepulse] {
        check(&sessions, form);
    }
});

/// Shares sessions, and looks at every file.
fn check(sessions: &[Session], form: Form) {
    let engine = Engine::default();
    let cleaner = Cleaner::new(CleanOptions {
        identifiers: true,
        strict: true,
    });
    let settings = Settings {
        form,
        cleaner: &cleaner,
        quality: &Quality::beside(&engine, Memory::new(Method::Lexical, MemoryOptions::default())),
        chosen: "all of them".into(),
        program: "kp-score 0.0.0".into(),
    };
    let mut shelf = Shelf::default();
    let manifest = share(Set::default(), &[], sessions, &settings, &mut shelf, &|_| true).unwrap();
    let lines = |name: &str| -> Vec<Value> {
        let bytes = shelf.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let lines = std::str::from_utf8(bytes).unwrap().lines();
        lines.map(|line| parse_str(line).unwrap()).collect()
    };
    let told = lines(MANIFEST).len();
    assert_eq!(told + manifest.left_out.len(), sessions.len());
    for name in shelf.0.keys().filter(|name| name.ends_with(".jsonl")) {
        assert!(!lines(name).is_empty(), "{name} is empty");
    }
}
