//! Sharing for JavaScript.

use std::{path::Path, sync::Arc};

use napi::bindgen_prelude::{AsyncTask, Uint8Array};
use napi_derive::napi;

use knowledgepulse_command::{
    desk::described,
    named::{Named, Wrong, sessions_of},
};
use knowledgepulse_error::{self as error, Call, Code, Error};
use knowledgepulse_formats::FormatName;
use knowledgepulse_index::{memory::Memory, method::Method, options::MemoryOptions};
use knowledgepulse_json::{Value, object};
use knowledgepulse_share::{
    Files, Folder, Form, Log, Manifest, Quality, Session, Set, Settings, TOLD_CONFIDENCE, Zip, share,
};
use knowledgepulse_trace::reading::{self, Texts};

use crate::{
    background::{self, Background},
    call::NativeCall,
    clean::{NativeCleanSettings, parsed},
    engine::ENGINE,
    outcomes,
};

/// Shares traces in JSON and paths of files and folders, as the second of each pair says, into a folder, away from the event loop; the sessions of
/// this machine without a list. Resolves to the manifest in JSON, with a `warning` about outcomes.
#[napi(js_name = "share", catch_unwind, ts_return_type = "Promise<string>")]
pub fn share_into(
    shared: Option<Vec<(String, bool)>>,
    folder: String,
    form: String,
    cleaning: NativeCleanSettings,
    call: &NativeCall,
) -> AsyncTask<Background<String>> {
    let call = call.share();
    background::run(move || {
        call.check()?;
        let mut target = Folder::create(Path::new(&folder))?;
        let named = shared.map(|shared| shared.into_iter().map(named_from).collect());
        let named: Option<Vec<_>> = named.transpose()?;
        let filled_in = named.iter().flatten().filter(|named| is_filled_in(named)).count();
        let (sessions, wrong) = sessions_of(named)?;
        let chosen = "Named by a program".into();
        let (set, form) = target.set(Form::from_name(&form))?;
        let sessions = set.new_among(sessions);
        let manifest = share_by(
            &cleaning,
            set,
            (&sessions, wrong),
            form,
            chosen,
            &mut target,
            &call,
        )?;
        // From here on it is too late to cancel.
        if !call.complete() {
            return Err(Error::Aborted);
        }
        target.finish()?;
        Ok(to_json(&manifest, outcomes::told_of(filled_in)))
    })
}

/// A session that the caller has read.
#[napi(object, object_to_js = false)]
pub struct NativeSession {
    /// The name of its file.
    pub name: String,
    pub format: String,
    /// Its trace in JSON.
    pub trace: String,
    /// The position of its file among the texts, if it has one.
    pub text: Option<u32>,
    pub reason: String,
    pub stands_for: f64,
    /// Whether it succeeded, as the user tells.
    pub success: Option<bool>,
}

/// A folder in a zip.
#[napi(object, object_from_js = false)]
pub struct NativeZip {
    pub zip: Uint8Array,
    /// The manifest in JSON.
    pub manifest: String,
}

/// Shares sessions into a zip in memory, ranked in their order. `texts` are those of their files.
#[napi(catch_unwind, ts_return_type = "Promise<NativeZip>")]
pub fn share_as_zip(
    sessions: Vec<NativeSession>,
    texts: Vec<String>,
    form: String,
    chosen: String,
    cleaning: NativeCleanSettings,
) -> AsyncTask<Background<NativeZip>> {
    background::run(move || {
        let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
        let ranked = (1..).zip(sessions);
        let sessions = ranked.map(|(rank, session)| session_from(rank, session, &texts));
        let sessions = sessions.collect::<error::Result<Vec<_>>>()?;
        let mut zip = Zip::default();
        let manifest = share_by(
            &cleaning,
            Set::default(),
            (&sessions, Wrong::new()),
            Form::from_name(&form).unwrap_or_default(),
            chosen,
            &mut zip,
            &Call::default(),
        )?;
        let bytes = zip
            .finish()
            .map_err(|error| Error::Other(Code::InvalidInput, error.to_string()))?;
        Ok(NativeZip {
            zip: bytes.into(),
            manifest: to_json(&manifest, None),
        })
    })
}

/// Shows a session, clean unless `cleaning` is missing. Resolves to `row` and `conversation` as report/data.d.ts has them, in JSON, without
/// what depends on other sessions.
#[napi(catch_unwind, ts_return_type = "Promise<string>")]
pub fn show_session(
    session: NativeSession,
    texts: Vec<String>,
    cleaning: Option<NativeCleanSettings>,
) -> AsyncTask<Background<String>> {
    background::run(move || {
        let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
        let session = session_from(1, session, &texts)?;
        let cleaner = cleaning
            .map(|cleaning| cleaning.cleaner("options.clean"))
            .transpose()?;
        let shown = described(&session.log, cleaner.as_ref());
        let (row, conversation) = shown
            .map_err(|reason| Error::Other(Code::InvalidInput, format!("{}: {reason}", session.log.name)))?;
        Ok(object([("row", row), ("conversation", conversation)]).to_json())
    })
}

fn session_from(rank: u64, given: NativeSession, texts: &[Arc<str>]) -> error::Result<Session<'static>> {
    let trace = parsed(&given.trace)?;
    let at = given.text.map(|at| at as usize);
    let text = at.and_then(|at| texts.get(at).cloned());
    let format = FormatName::from_name(&given.format).unwrap_or(FormatName::Trace);
    let trace = Box::new(move || {
        reading::read(Some(&trace), Texts::None).map_err(std::io::Error::other)?;
        Ok(trace.clone())
    });
    let log = Log {
        text: text.map(|text| Box::new(move || Ok(text.to_string())) as _),
        outcome: given.success.map(|success| (success, TOLD_CONFIDENCE)),
        ..Log::of_trace(given.name, format, trace)
    };
    Ok(Session {
        stands_for: given.stands_for as u64,
        ..Session::new(log, rank, &given.reason)
    })
}

fn share_by(
    cleaning: &NativeCleanSettings,
    set: Set,
    (sessions, wrong): (&[Session], Wrong),
    form: Form,
    chosen: String,
    files: &mut dyn Files,
    call: &Call,
) -> error::Result<Manifest> {
    let cleaner = cleaning.cleaner("options.clean")?;
    let settings = Settings {
        form,
        cleaner: &cleaner,
        quality: &Quality::beside(&ENGINE, Memory::new(Method::Lexical, MemoryOptions::default())),
        chosen,
        program: format!("@knowledgepulse/native {}", env!("CARGO_PKG_VERSION")),
    };
    let mut manifest = share(set, &[], sessions, &settings, files, &|_| !call.is_cancelled())?;
    manifest.left_out.extend(wrong);
    if manifest.lines().is_empty() {
        return Err(Error::Other(Code::InvalidInput, nothing_in(&manifest)));
    }
    Ok(manifest)
}

fn named_from((shared, is_path): (String, bool)) -> error::Result<Named> {
    match is_path {
        true => Ok(Named::Path(shared)),
        false => parsed(&shared).map(Named::Trace),
    }
}

/// Returns whether a trace without `metadata.imported` has the outcome that readers fill in.
fn is_filled_in(named: &Named) -> bool {
    let Named::Trace(trace) = named else { return false };
    trace.at(&["metadata", "imported"]).is_none()
        && reading::read(Some(trace), Texts::None).is_ok_and(|trace| outcomes::is_filled_in(&trace))
}

fn nothing_in(manifest: &Manifest) -> String {
    let first = manifest.left_out.first();
    let reason = first.map(|(name, reason)| format!(": {name} is left out, because {reason}"));
    format!("there is nothing to share{}", reason.unwrap_or_default())
}

fn to_json(manifest: &Manifest, warning: Option<String>) -> String {
    let left_out = manifest
        .left_out
        .iter()
        .map(|(name, reason)| object([("name", name.as_str().into()), ("reason", reason.as_str().into())]));
    let result = object([
        ("sessions", manifest.lines().into()),
        ("leftOut", left_out.collect::<Vec<Value>>().into()),
        ("warning", warning.into()),
    ]);
    result.to_json()
}
