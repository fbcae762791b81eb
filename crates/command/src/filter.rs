//! Which sessions are read: the same options for every command, and the user's file `ignore`.

use std::{
    fs,
    io::ErrorKind::{NotADirectory, NotFound},
    path::{self, Path, PathBuf},
    time::Duration,
};

use clap::Args;
use jiff::Timestamp;
use knowledgepulse_formats::{FormatName, date, settings_folder, trace::SESSION};
use knowledgepulse_json::Value;
use knowledgepulse_os::home_folder;

use crate::{Failure, Messages, Result, STDIN, TraceInfo, args::whole, counted, duration, one_of};

/// Which sessions are read: those for which all hold.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Which sessions")]
pub struct Filter {
    /// Only those that began since then: 30d, or 2026-09-01
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<String>,

    /// Only those of this agent, by its name in `kp-score formats`
    #[arg(long = "agent", value_name = "NAME", value_parser = one_of(FormatName::ALL.iter().map(|format| (format.name(), *format))), hide_possible_values = true)]
    pub agents: Vec<FormatName>,

    /// Only those that worked in a folder of this name
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,

    /// Only those in which the agent has at least N turns
    #[arg(long, value_name = "N", value_parser = whole)]
    pub min_turns: Option<usize>,

    /// Without these: ids, projects, files, folders
    #[arg(long = "exclude", value_name = "FILE|ID", value_parser = excluded)]
    pub excluded: Vec<Excluded>,

    /// What the file `ignore` names, and the path of that file.
    #[arg(skip)]
    pub ignored: (Vec<Excluded>, String),
}

/// Sessions that are left out: those of an id or a project, in a file or folder, or that worked there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    name: String,
    /// The path that it may be, and what that is without links, as agents note it.
    paths: Vec<PathBuf>,
}

impl Excluded {
    /// Reads a name. A relative path is one of `base`, and `~` the home folder.
    #[must_use]
    pub fn new(name: &str, base: &Path) -> Self {
        let home = || name.strip_prefix("~/").zip(home_folder());
        let path = home().map_or_else(|| base.join(name), |(name, home)| home.join(name));
        let paths = [path::absolute(&path), path.canonicalize()].into_iter().flatten();
        Self {
            name: name.to_owned(),
            paths: paths.collect(),
        }
    }

    fn has_file(&self, file: &str) -> bool {
        path::absolute(file).is_ok_and(|file| self.has_path(&file))
    }

    fn has_path(&self, path: &Path) -> bool {
        self.paths.iter().any(|above| path.starts_with(above))
    }

    fn has_session(&self, file: &str, about: &TraceInfo, trace: &Value) -> bool {
        let noted = |name| trace.at(&["metadata", "imported", name]).and_then(Value::as_str);
        // Sub-agents go with their session.
        let ids = noted(SESSION).unwrap_or_default().split(' ');
        let known = [&about.id, &about.run.parent].into_iter().flatten();
        let mut ids = ids.chain(known.map(|id| id.as_str()));
        ids.any(|id| id == self.name)
            || about.is_of_project(&self.name)
            || noted("cwd").is_some_and(|folder| self.has_path(Path::new(folder)))
            || self.has_file(file)
    }
}

/// Why a session or a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// An option leaves it out.
    Other,
    /// The file `ignore` names it.
    Ignored,
}

impl LeftOut {
    /// Returns how many of these the file `ignore` names.
    pub(crate) fn ignored(all: &[Self]) -> u64 {
        all.iter().filter(|why| **why == Self::Ignored).count() as u64
    }
}

impl Filter {
    /// Adds what the file `ignore` in the user's settings folder names, a line each.
    ///
    /// # Errors
    /// If there is one that cannot be read.
    pub(crate) fn with_ignored(mut self) -> Result<Self> {
        let Some(file) = settings_file("ignore") else {
            return Ok(self);
        };
        let name = file.display().to_string();
        let text = match fs::read_to_string(&file) {
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(self),
            text => text.map_err(|error| Failure::read(&name, &error))?,
        };
        let home = home_folder().unwrap_or_default();
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        self.ignored = (lines.map(|line| Excluded::new(line, &home)).collect(), name);
        Ok(self)
    }

    /// Returns why a file has no wanted session; `None` if it may have one. Where its time `is_kept`, what was written last before a time began before it.
    pub(crate) fn of_file(&self, file: &str, is_kept: bool) -> Option<LeftOut> {
        let written = fs::metadata(file).and_then(|stat| stat.modified()).ok();
        let written = written.and_then(|time| Timestamp::try_from(time).ok());
        let is_late = |since: &String| written.is_none_or(|time| date::to_iso(time) >= *since);
        let has = |excluded: &[Excluded]| excluded.iter().any(|excluded| excluded.has_file(file));
        match file {
            STDIN => None,
            _ if has(&self.ignored.0) => Some(LeftOut::Ignored),
            _ if is_kept && !self.since.as_ref().is_none_or(is_late) => Some(LeftOut::Other),
            _ => has(&self.excluded).then_some(LeftOut::Other),
        }
    }

    /// Returns why the session of a trace is not wanted; `None` if it is, or if the trace is of no session.
    pub(crate) fn of_session(&self, file: &str, about: &TraceInfo, trace: &Value) -> Option<LeftOut> {
        trace.get("steps")?;
        let has = |excluded: &[Excluded]| excluded.iter().any(|it| it.has_session(file, about, trace));
        let is_late = |since: &String| about.when.as_ref().is_none_or(|began| began >= since);
        let is_of_agent = |wanted: &FormatName| about.agent == wanted.name();
        // A sub-agent goes with its session.
        let has_turns = |least: usize| about.run.parent.is_some() || about.turns >= least as u64;
        let is_wanted = self.since.as_ref().is_none_or(is_late)
            && (self.agents.is_empty() || self.agents.iter().any(is_of_agent))
            && self
                .project
                .as_ref()
                .is_none_or(|project| about.is_of_project(project))
            && self.min_turns.is_none_or(has_turns)
            && !has(&self.excluded);
        match is_wanted {
            _ if has(&self.ignored.0) => Some(LeftOut::Ignored),
            true => None,
            false => Some(LeftOut::Other),
        }
    }

    /// Tells how much the file `ignore` left out.
    pub(crate) fn tell_ignored(&self, left_out: &[LeftOut], messages: &Messages) {
        let ignored = LeftOut::ignored(left_out);
        if ignored > 0 {
            let sessions = counted(ignored, "session");
            messages.note(format!("left out: {sessions}, as {} says", self.ignored.1));
        }
    }
}

/// Returns the agent of a trace: the format in which it was recorded at first.
pub(crate) fn agent_of(trace: &Value) -> Option<&str> {
    trace.at(&["metadata", "imported", "format"])?.as_str()
}

/// Returns a file of this program in the user's settings folder.
pub(crate) fn settings_file(name: &str) -> Option<PathBuf> {
    Some(settings_folder()?.join("kp-score").join(name))
}

fn excluded(name: &str) -> std::result::Result<Excluded, String> {
    Ok(Excluded::new(name, Path::new("")))
}

/// Parses a time, or how long ago it was.
fn since(text: &str) -> std::result::Result<String, String> {
    let ago = |time: Duration| Timestamp::now().checked_sub(time).ok();
    let time = date::parse(text).or_else(|| duration(text).ok().and_then(ago));
    time.map(date::to_iso)
        .ok_or_else(|| "it must be a time such as 30d, 12h or 2026-09-01".into())
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    fn session(began: &str) -> Value {
        let text = format!(
            r#"{{"id":"kp:trace:a","metadata":{{"created_at":"{began}","imported":{{"format":"codex","session":"s1 s2","cwd":"/work/Shop"}}}},
                "steps":[{{"type":"thought"}},{{"type":"observation"}},{{"type":"thought"}}]}}"#
        );
        parse_str(&text).unwrap()
    }

    fn about(session: &Value) -> TraceInfo {
        TraceInfo::of(session, FormatName::Trace)
    }

    #[test]
    fn of_session_wants_those_for_which_all_options_hold() {
        let filter = Filter {
            since: Some("2026-10-01T00:00:00.000Z".into()),
            agents: vec![FormatName::Codex],
            project: Some("shop".into()),
            min_turns: Some(2),
            ..Filter::default()
        };
        let verdict = |filter: &Filter, began: &str| {
            let session = session(began);
            filter.of_session("f", &about(&session), &session)
        };
        assert_eq!(verdict(&filter, "2026-10-01T02:00:00+02:00"), None);
        assert_eq!(verdict(&filter, "2026-09-30T23:59:59Z"), Some(LeftOut::Other));
        for other in [
            Filter {
                agents: vec![FormatName::Pi],
                ..filter.clone()
            },
            Filter {
                project: Some("sho".into()),
                ..filter.clone()
            },
            Filter {
                min_turns: Some(3),
                ..filter.clone()
            },
        ] {
            assert_eq!(verdict(&other, "2026-10-02"), Some(LeftOut::Other));
        }
    }

    #[test]
    fn excluded_are_ids_projects_files_and_folders() {
        for (name, is_excluded) in [
            ("kp:trace:a", true),
            ("s1", true),
            ("s2", true),
            ("s", false),
            ("SHOP", true),
            ("/work", true),
            ("/work/Sho", false),
            ("/home/maja/logs", true),
            ("/home/maja/logs/f.jsonl", true),
            ("logs", true),
            ("log", false),
            ("codex", false),
        ] {
            let excluded = Excluded::new(name, Path::new("/home/maja"));
            let session = session("2026-10-02");
            let has = excluded.has_session("/home/maja/logs/f.jsonl", &about(&session), &session);
            assert_eq!(has, is_excluded, "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn excluded_folder_may_be_named_by_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (there, link) = (folder.path().join("there"), folder.path().join("link"));
        fs::create_dir(&there).unwrap();
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let excluded = Excluded::new("link", folder.path());
        let there = there.canonicalize().unwrap().display().to_string();
        let text = format!(r#"{{"metadata":{{"imported":{{"cwd":"{there}/shop"}}}}}}"#);
        let session = parse_str(&text).unwrap();
        assert!(excluded.has_session("f", &about(&session), &session));
    }

    #[test]
    fn since_is_a_time_or_how_long_ago_it_was() {
        assert_eq!(since("2026-09-01").unwrap(), "2026-09-01T00:00:00.000Z");
        let ago = since("2d").unwrap();
        let seconds = |text: &str| date::parse(text).unwrap().as_second();
        let passed = seconds(&date::now()) - seconds(&ago);
        assert!((0..60).contains(&(passed - 48 * 3600)), "{ago}");
        assert!(since("soon").is_err());
    }
}
