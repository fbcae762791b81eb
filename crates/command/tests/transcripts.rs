//! Runs the transcripts in `transcripts/`: what `kp-score` prints, how it exits, and which files it leaves. Each begins in a copy of
//! `transcripts/files`.
//!
//! `cargo test -p knowledgepulse-command --test transcripts -- trycmd=memory` runs those whose path has `memory` in it, and
//! `TRYCMD=overwrite` replaces the expected outputs. `KNOWLEDGEPULSE_COMMAND` is the whole path of another program to run, such as
//! `bin/kp-score.js`.

use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use trycmd::{TestCases, schema::Bin};

fn main() -> io::Result<()> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list", folder] => list(Path::new(folder)),
        ["show", file] => show(Path::new(file)),
        ["write", file, text] => write(Path::new(file), text),
        ["copy", file, copy] => fs::copy(file, copy).map(drop),
        ["link", file, link] => fs::hard_link(file, link),
        ["gzip", file, compressed] => gzip(Path::new(file), Path::new(compressed)),
        _ => run_transcripts(),
    }
}

fn run_transcripts() -> io::Result<()> {
    let command =
        env::var_os("KNOWLEDGEPULSE_COMMAND").unwrap_or_else(|| env!("CARGO_BIN_EXE_kp-score").into());
    let files = env::current_exe()?;
    TestCases::new()
        .register_bin("kp-score", Bin::Path(PathBuf::from(command)))
        .register_bin("files", Bin::Path(files))
        .case("tests/transcripts/*.md");
    Ok(())
}

/// Prints the names in a folder.
fn list(folder: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()?;
    names.sort();
    println!("{}", names.join(" "));
    Ok(())
}

/// Prints a file, decompressed if its name ends in `.gz`.
fn show(file: &Path) -> io::Result<()> {
    let mut text = String::new();
    let mut bytes = File::open(file)?;
    if file.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(bytes).read_to_string(&mut text)?;
    } else {
        bytes.read_to_string(&mut text)?;
    }
    print!("{text}");
    Ok(())
}

/// Writes a file, in a folder that is made if there is none.
fn write(file: &Path, text: &str) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(file, text)
}

fn gzip(file: &Path, compressed: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(compressed)?, Compression::default());
    io::copy(&mut File::open(file)?, &mut encoder)?;
    encoder.finish().map(drop)
}
