//! Sharing for JavaScript.

use std::path::Path;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;

use knowledgepulse_error::{self as error, Error};
use knowledgepulse_json::{Value, object};
use knowledgepulse_share::{
    Folder, FolderError, Form, Manifest, Settings, ShareError, share,
    sources::{Shared, SourceError, sessions_of},
};

use crate::{
    background::{self, Background},
    clean::{NativeCleanSettings, parsed},
};

/// A trace in JSON, or the path of a file.
#[napi(object, object_to_js = false)]
pub struct NativeShared {
    pub trace: Option<String>,
    pub file: Option<String>,
}

/// Shares traces and files into a folder, away from the event loop. Resolves to the manifest in JSON.
#[napi(js_name = "share", catch_unwind, ts_return_type = "Promise<string>")]
pub fn share_into(
    shared: Vec<NativeShared>,
    folder: String,
    form: String,
    cleaning: NativeCleanSettings,
) -> AsyncTask<Background<String>> {
    background::run(move || {
        let cleaner = cleaning.cleaner("options.clean")?;
        let settings = Settings {
            form: Form::from_name(&form).unwrap_or_default(),
            cleaner: &|| cleaner.clone(),
            identifiers: cleaning.identifiers,
            chosen: "Named by a program".into(),
            program: format!("@knowledgepulse/native {}", env!("CARGO_PKG_VERSION")),
        };
        let mut target = Folder::create(Path::new(&folder)).map_err(of_folder)?;
        let given = shared
            .into_iter()
            .map(shared_from)
            .collect::<error::Result<_>>()?;
        let sessions = sessions_of(given).map_err(of_source)?;
        let manifest = share(&sessions, &settings, &mut target, &|_| true).map_err(of_share)?;
        if manifest.entries.is_empty() {
            return Err(Error::Sharing(nothing_in(&manifest)));
        }
        target.finish().map_err(of_folder)?;
        Ok(to_json(&manifest))
    })
}

fn shared_from(NativeShared { trace, file }: NativeShared) -> error::Result<Shared> {
    match trace {
        Some(json) => parsed(&json).map(Shared::Trace),
        None => Ok(Shared::File(file.unwrap_or_default())),
    }
}

fn nothing_in(manifest: &Manifest) -> String {
    let first = manifest.left_out.first();
    let reason = first.map(|(name, reason)| format!(": {name} is left out, because {reason}"));
    format!("there is nothing to share{}", reason.unwrap_or_default())
}

fn to_json(manifest: &Manifest) -> String {
    let sessions = manifest.entries.iter().map(|entry| entry.to_value());
    let left_out = manifest
        .left_out
        .iter()
        .map(|(name, reason)| object([("name", name.as_str().into()), ("reason", reason.as_str().into())]));
    let result = object([
        ("sessions", sessions.collect::<Vec<Value>>().into()),
        ("leftOut", left_out.collect::<Vec<Value>>().into()),
    ]);
    result.to_json()
}

fn of_source(error: SourceError) -> Error {
    match error {
        SourceError::Read(path, source) => Error::MemoryIo {
            path: path.into(),
            action: "read",
            source,
        },
        error => Error::Sharing(error.to_string()),
    }
}

fn of_folder(error: FolderError) -> Error {
    match error {
        FolderError::Io(path, source) => unwritable(path, source),
        error => Error::Sharing(error.to_string()),
    }
}

fn of_share(error: ShareError) -> Error {
    match error {
        ShareError::Write(path, source) => unwritable(path, source),
        ShareError::Interrupted => Error::Aborted,
    }
}

fn unwritable(path: String, source: std::io::Error) -> Error {
    Error::MemoryIo {
        path: path.into(),
        action: "written",
        source,
    }
}
