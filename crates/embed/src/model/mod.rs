//! Finding and checking the files of the embedding model.

mod config;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use knowledgepulse_encoder::Shape;
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use knowledgepulse_error::{Code, Error, Result, fault};
use knowledgepulse_os::obstacle::Obstacle;

use crate::{MOST_TOKENS, damaged, unsupported};
use config::Config;

/// The length of an embedding of every model that can be used.
pub const DIMENSIONS: usize = 384;

/// Describes a model package that `model/build.py` made; absent in a plain directory of model files.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Manifest {
    #[serde(default)]
    model: Option<String>,
    dtype: String,
    files: BTreeMap<String, FileRecord>,
}

/// The manifest's entry of a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct FileRecord {
    bytes: u64,
    sha256: String,
}

/// The fields of `tokenizer_config.json` that are read. Some exports write 1e30 for "no limit".
#[derive(Debug, Deserialize)]
struct TokenizerConfig {
    model_max_length: Option<f64>,
    do_lower_case: Option<bool>,
}

/// The files of a model, found and of the right size, but not yet read.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFiles {
    /// The directory.
    pub directory: PathBuf,
    /// The weights, `model.safetensors`, which the built-in engine reads; `None` without the file.
    pub weights: Option<PathBuf>,
    /// The ONNX graph, which ONNX Runtime reads; `None` without the file.
    pub graph: Option<PathBuf>,
    /// The type of the weights, `fp32` or `q8`, if the manifest has it.
    pub dtype: Option<String>,
    /// The number of tokens after which a text is cut, special tokens included.
    pub max_length: usize,
    config: Config,
    manifest: Option<Manifest>,
}

impl ModelFiles {
    /// Looks at `directory`, which is either a model package (`manifest.json`, `model.safetensors`, `model.onnx`, …) or laid
    /// out like `sentence-transformers/all-MiniLM-L6-v2` (`model.safetensors`, `onnx/model.onnx`, …, no manifest). Of the
    /// files that a manifest lists, the sizes are checked.
    ///
    /// # Errors
    /// [`Error::ModelNotFound`] if there is no such directory or it holds no model, `ERR_MODEL_UNUSABLE`
    /// if a file is missing or unreadable, has another size than the manifest says, is malformed or is a Git LFS pointer, or if neither
    /// engine computes the model.
    pub fn find(directory: &Path) -> Result<Self> {
        fault::point("model");
        // Systems differ in the error for a path below a file.
        if !directory.is_dir() {
            return Err(absent(directory));
        }
        let manifest: Option<Manifest> = parse_optional(&directory.join("manifest.json"))?;
        let weights = find_file(directory, &[WEIGHTS])?;
        let graph = find_file(directory, &GRAPHS)?;
        if weights.is_none() && graph.is_none() {
            if manifest.is_some() {
                return Err(damaged(&directory.join(WEIGHTS), MISSING));
            }
            return Err(absent(directory));
        }
        for (name, record) in manifest.iter().flat_map(|manifest| &manifest.files) {
            let path = directory.join(name);
            let found = std::fs::metadata(&path)
                .map_err(|error| unread(&path, &error))?
                .len();
            refuse_pointer(&path)?;
            if found != record.bytes {
                let reason = format!("it has {found} bytes instead of {}", record.bytes);
                return Err(damaged(&path, reason));
            }
        }
        for path in [&weights, &graph].into_iter().flatten() {
            refuse_pointer(path)?;
        }

        let config = Config::read(directory)?;
        let tokenizer_config_path = directory.join("tokenizer_config.json");
        let tokenizer_config: TokenizerConfig =
            parse(&tokenizer_config_path, &read(&tokenizer_config_path)?)?;
        if tokenizer_config.do_lower_case == Some(false) {
            let reason = "`do_lower_case` is false, and texts are lower-cased whatever the engine; use an uncased model";
            return Err(unsupported(&tokenizer_config_path, reason));
        }
        let limit = tokenizer_config.model_max_length.unwrap_or(f64::INFINITY);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates, as it should.
        let max_length = MOST_TOKENS
            .min(config.max_position_embeddings)
            .min(limit as usize);
        if max_length < 2 {
            return Err(damaged(&tokenizer_config_path, "model_max_length is below 2"));
        }
        Ok(Self {
            directory: directory.to_owned(),
            weights,
            graph,
            dtype: manifest.as_ref().map(|manifest| manifest.dtype.clone()),
            max_length,
            config,
            manifest,
        })
    }

    /// Fails unless the built-in engine computes this model.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`, which names the field of `config.json`.
    pub fn require_builtin(&self) -> Result<()> {
        self.config.require_builtin(&self.directory, self.graph.is_some())
    }

    /// Fails if the weights have other sizes than `config.json` says.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`.
    pub fn require_sizes(&self, shape: Shape) -> Result<()> {
        self.config.require_sizes(&self.directory, shape)
    }

    /// Returns the model's name; `None` without a manifest.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.manifest.as_ref()?.model.as_deref()
    }

    /// Reads `tokenizer.json`.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`, also if the file differs from the manifest.
    pub fn read_tokenizer(&self) -> Result<Vec<u8>> {
        let path = self.directory.join("tokenizer.json");
        refuse_pointer(&path)?;
        let bytes = read(&path)?;
        let files = self.manifest.as_ref().map(|manifest| &manifest.files);
        if let Some(record) = files.and_then(|files| files.get("tokenizer.json")) {
            let found = sha256(&bytes);
            if found != record.sha256 {
                let reason = format!("its SHA-256 is {found} instead of {}", record.sha256);
                return Err(damaged(&path, reason));
            }
        }
        Ok(bytes)
    }

    /// Returns the SHA-256 of the weights' file, in hexadecimal: that of the manifest, else computed, which reads the whole file. What the manifest
    /// says is not checked, which would take longer than loading the file; the doctor does that.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`.
    pub fn weights_sha256(&self) -> Result<String> {
        if let Some(stated) = self.stated_sha256() {
            return Ok(stated.to_owned());
        }
        let path = self.weights_file();
        file_sha256(path).map_err(|error| unread(path, &error))
    }

    fn stated_sha256(&self) -> Option<&str> {
        let name = self.weights_file().strip_prefix(&self.directory).ok()?.to_str()?;
        let record = self.manifest.as_ref()?.files.get(name)?;
        Some(&record.sha256)
    }

    /// Returns the file of the weights; of two, that of the built-in engine, which the graph refers to.
    fn weights_file(&self) -> &Path {
        // At least one exists.
        let file = self.weights.as_ref().or(self.graph.as_ref());
        file.unwrap_or(&self.directory)
    }
}

const MISSING: &str = "it is missing";

/// Returns the error for an unreadable file of a model.
pub(super) fn unread(path: &Path, error: &io::Error) -> Error {
    match Obstacle::of(path, error) {
        Obstacle::Missing => damaged(path, MISSING),
        Obstacle::Dangling(target) => damaged(
            path,
            format!("it is a link to {}, which does not exist", target.display()),
        ),
        Obstacle::Directory => damaged(path, "it is a directory"),
        Obstacle::Unreadable(reason) => Error::unreadable(Code::ModelUnusable, path, &reason),
    }
}

/// The path in messages about a model in memory.
pub const IN_MEMORY: &str = "the model in memory";

/// The name of the weights in a model directory.
const WEIGHTS: &str = "model.safetensors";

/// The names that the ONNX graph may have.
const GRAPHS: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// Returns the file of a model directory with the first existing name of `names`.
fn find_file(directory: &Path, names: &[&str]) -> Result<Option<PathBuf>> {
    for name in names {
        let path = directory.join(name);
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => return Ok(Some(path)),
            Ok(_) => return Err(damaged(&path, "it is no file")),
            Err(error) if Obstacle::of(&path, &error) == Obstacle::Missing => {}
            Err(error) => return Err(unread(&path, &error)),
        }
    }
    Ok(None)
}

/// The error for a directory in which no model was found.
fn absent(directory: &Path) -> Error {
    let reason = match std::fs::read_dir(directory) {
        Ok(_) => "has neither model.safetensors nor model.onnx (or onnx/model.onnx)".into(),
        Err(_) if directory.exists() && !directory.is_dir() => "is no directory".into(),
        Err(error) => match Obstacle::of(directory, &error) {
            Obstacle::Dangling(target) => {
                format!("is a link to {}, which does not exist", target.display())
            }
            Obstacle::Unreadable(_) => return unread(directory, &error),
            _ => "does not exist".into(),
        },
    };
    Error::ModelNotFound(format!("{} {reason}", directory.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| unread(path, &error))
}

fn parse<T: DeserializeOwned>(path: &Path, json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        if json.starts_with(POINTER) {
            damaged(path, POINTER_REASON)
        } else {
            damaged(path, error)
        }
    })
}

/// Reads a JSON file; `None` if there is none.
fn parse_optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match std::fs::read(path) {
        Ok(bytes) => parse(path, &bytes).map(Some),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unread(path, &error)),
    }
}

/// The beginning of a Git LFS pointer, which replaces a file that was not fetched.
const POINTER: &[u8] = b"version https://git-lfs";
const POINTER_REASON: &str = "it is a Git LFS pointer, not the file itself (run `git lfs pull`)";

fn refuse_pointer(path: &Path) -> Result<()> {
    let mut start = Vec::with_capacity(POINTER.len());
    File::open(path)
        .and_then(|file| file.take(POINTER.len() as u64).read_to_end(&mut start))
        .map_err(|error| unread(path, &error))?;
    if start == POINTER {
        return Err(damaged(path, POINTER_REASON));
    }
    Ok(())
}

/// The SHA-256 of `bytes`, in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// The SHA-256 of a file, in hexadecimal.
fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            bytes => hasher.update(&buffer[..bytes]),
        }
    }
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const MODEL: &[u8] = b"model";
    const GRAPH: &[u8] = b"graph";
    const MODEL_SHA256: &str = "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4";

    fn package() -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, contents: &[u8]| fs::write(directory.path().join(name), contents).unwrap();
        write("model.safetensors", MODEL);
        write("model.onnx", GRAPH);
        write("tokenizer.json", b"{}");
        write(
            "config.json",
            br#"{"hidden_size": 384, "max_position_embeddings": 512}"#,
        );
        write("tokenizer_config.json", br#"{"model_max_length": 512}"#);
        let manifest = serde_json::json!({"dtype": "fp32", "files": {
            "model.safetensors": {"bytes": MODEL.len(), "sha256": MODEL_SHA256},
            "model.onnx": {"bytes": GRAPH.len(), "sha256": sha256(GRAPH)},
            "tokenizer.json": {"bytes": 2, "sha256": sha256(b"{}")},
        }});
        write("manifest.json", manifest.to_string().as_bytes());
        directory
    }

    fn refused(directory: &Path) -> Error {
        let files = match ModelFiles::find(directory) {
            Ok(files) => files,
            Err(error) => return error,
        };
        files.read_tokenizer().unwrap_err()
    }

    #[test]
    fn finds_and_verifies_a_package() {
        let directory = package();
        let files = ModelFiles::find(directory.path()).unwrap();
        assert_eq!(files.max_length, 512);
        assert_eq!(files.dtype.as_deref(), Some("fp32"));
        assert_eq!(files.weights, Some(directory.path().join("model.safetensors")));
        assert_eq!(files.graph, Some(directory.path().join("model.onnx")));
        assert_eq!(files.stated_sha256(), Some(MODEL_SHA256));
        assert_eq!(files.weights_sha256().unwrap(), MODEL_SHA256);
        assert_eq!(files.read_tokenizer().unwrap(), b"{}");
    }

    #[test]
    fn finds_the_layout_of_the_hub() {
        let directory = package();
        fs::remove_file(directory.path().join("manifest.json")).unwrap();
        fs::create_dir(directory.path().join("onnx")).unwrap();
        fs::rename(
            directory.path().join("model.onnx"),
            directory.path().join("onnx/model.onnx"),
        )
        .unwrap();
        let files = ModelFiles::find(directory.path()).unwrap();
        assert_eq!(files.graph, Some(directory.path().join("onnx/model.onnx")));
        assert_eq!(files.stated_sha256(), None);
        assert_eq!(files.weights_sha256().unwrap(), MODEL_SHA256);
        fs::remove_file(directory.path().join("model.safetensors")).unwrap();
        let files = ModelFiles::find(directory.path()).unwrap();
        assert_eq!(files.weights, None);
        assert_eq!(files.weights_sha256().unwrap(), sha256(GRAPH));
    }

    #[test]
    fn absence_is_not_damage() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(refused(directory.path()).code(), "ERR_MODEL_NOT_FOUND");
        assert_eq!(
            refused(&directory.path().join("no")).code(),
            "ERR_MODEL_NOT_FOUND"
        );
    }

    #[test]
    fn absence_error_lists_existing_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let reasons = [
            (directory.path().to_owned(), "has neither"),
            (directory.path().join("none"), "does not exist"),
            (file, "is no directory"),
        ];
        for (path, reason) in reasons {
            let message = refused(&path).to_string();
            assert!(
                message.contains(&format!("{} {reason}", path.display())),
                "{message}"
            );
        }
    }

    #[test]
    fn a_directory_in_place_of_a_file_is_damage() {
        for name in [
            "manifest.json",
            "model.safetensors",
            "model.onnx",
            "tokenizer.json",
            "config.json",
        ] {
            let directory = package();
            let path = directory.path().join(name);
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            let error = refused(directory.path());
            assert_eq!(error.code(), "ERR_MODEL_UNUSABLE", "{error}");
            let message = error.to_string();
            assert!(
                message.contains(name)
                    && (message.contains("is a directory") || message.contains("is no file")),
                "{message}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn unreadable_files_are_not_damaged() {
        use std::os::unix::fs::symlink;
        for (target, code, reason) in [
            ("nowhere", "ERR_MODEL_UNUSABLE", "a link to nowhere"),
            ("", "ERR_MODEL_UNUSABLE", "permissions"),
        ] {
            for name in ["model.safetensors", "model.onnx", "tokenizer.json", "config.json"] {
                let directory = package();
                let path = directory.path().join(name);
                fs::remove_file(&path).unwrap();
                // Without a target, to itself: that is refused also where root runs the tests.
                symlink(if target.is_empty() { name } else { target }, &path).unwrap();
                let error = refused(directory.path());
                assert_eq!(error.code(), code, "{error}");
                let message = error.to_string();
                assert!(message.contains(name) && message.contains(reason), "{message}");
            }
        }
        let directory = package();
        let link = directory.path().join("package");
        symlink("nowhere", &link).unwrap();
        let error = refused(&link);
        assert_eq!(error.code(), "ERR_MODEL_NOT_FOUND");
        assert!(error.to_string().contains("a link to nowhere"), "{error}");
    }

    #[test]
    fn damage_is_named_with_its_file() {
        type Harm = (&'static str, &'static [u8], &'static str);
        let harms: [Harm; 8] = [
            ("model.safetensors", b"mode", "4 bytes instead of 5"),
            ("model.onnx", b"grap", "4 bytes instead of 5"),
            (
                "model.safetensors",
                b"version https://git-lfs.example/spec",
                "Git LFS pointer",
            ),
            ("tokenizer.json", b"[]", "SHA-256"),
            ("tokenizer.json", b"", "0 bytes"),
            ("config.json", b"{", "EOF"),
            (
                "config.json",
                b"version https://git-lfs.example/spec",
                "Git LFS pointer",
            ),
            ("manifest.json", b"{}", "missing field"),
        ];
        for (name, contents, message) in harms {
            let directory = package();
            fs::write(directory.path().join(name), contents).unwrap();
            let error = refused(directory.path());
            assert_eq!(error.code(), "ERR_MODEL_UNUSABLE", "{error}");
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
        for name in [
            "model.safetensors",
            "model.onnx",
            "tokenizer.json",
            "config.json",
            "tokenizer_config.json",
        ] {
            let directory = package();
            fs::remove_file(directory.path().join(name)).unwrap();
            let error = refused(directory.path());
            assert_eq!(error.code(), "ERR_MODEL_UNUSABLE", "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn other_dimensions_are_unsupported() {
        let directory = package();
        let config = br#"{"hidden_size": 768, "max_position_embeddings": 512}"#;
        fs::write(directory.path().join("config.json"), config).unwrap();
        assert_eq!(refused(directory.path()).code(), "ERR_MODEL_UNUSABLE");
    }

    #[test]
    fn the_shorter_limit_holds() {
        let directory = package();
        let path = directory.path().join("tokenizer_config.json");
        for (config, expected) in [
            ("{}", 512),
            (r#"{"model_max_length": 1e30}"#, 512),
            (r#"{"model_max_length": 128}"#, 128),
        ] {
            fs::write(&path, config).unwrap();
            assert_eq!(ModelFiles::find(directory.path()).unwrap().max_length, expected);
        }
        fs::write(&path, r#"{"model_max_length": -5}"#).unwrap();
        assert_eq!(refused(directory.path()).code(), "ERR_MODEL_UNUSABLE");
    }
}
