//! Runs the transcripts in `transcripts/`: what `kp-score` prints, how it exits, and which files it leaves. Each begins in a copy of
//! `transcripts/files`. The examples of README.md and docs/command-line.md run as transcripts too, in a copy
//! of `transcripts/pages`.
//!
//! `cargo test -p knowledgepulse-command --test transcripts -- trycmd=memory` runs those whose path has `memory` in it, and
//! `TRYCMD=overwrite` replaces the expected outputs. `KNOWLEDGEPULSE_COMMAND` is the whole path of another program to run, such as
//! `bin/kp-score.js`.

use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    process::{self, Command},
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
        ["gzip", file, compressed] => gzip(Path::new(file), Path::new(compressed)),
        ["kp-score", ref arguments @ ..] => run_command(arguments),
        _ if env::var_os("HOME").is_some_and(|home| home == NOBODY) => run_transcripts(),
        _ => run_with_home(NOBODY),
    }
}

/// The home folder of transcripts that set no other one.
const NOBODY: &str = "nobody";

/// Runs this program again with another home folder: what the user of this machine has there changes no result.
fn run_with_home(home: &str) -> io::Result<()> {
    let mut again = Command::new(env::current_exe()?);
    again.args(env::args_os().skip(1));
    let status = again.env("HOME", home).env("USERPROFILE", home).status()?;
    process::exit(status.code().unwrap_or(1))
}

fn run_transcripts() -> io::Result<()> {
    let this = env::current_exe()?;
    let cases = || {
        let cases = TestCases::new();
        cases
            .register_bin("kp-score", Bin::Path(command()))
            .register_bin("files", Bin::Path(this.clone()))
            // `npx kp-score`, as people write it.
            .register_bin("npx", Bin::Path(this.clone()))
            .env("XDG_CONFIG_HOME", "")
            .env("XDG_DATA_HOME", "");
        cases
    };
    let pages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    write_pages(&pages)?;
    // They run when they are dropped.
    cases()
        .env("HOME", "home")
        .env("USERPROFILE", "home")
        .case(pages.join("*.md"));
    let transcripts = cases();
    transcripts.case("tests/transcripts/*.md");
    if command().extension().is_some_and(|ending| ending == "js") {
        // The command of `@knowledgepulse/native` has it.
        transcripts.skip("tests/transcripts/doctor.md");
    }
    Ok(())
}

/// Returns the program that is tested.
fn command() -> PathBuf {
    let named = env::var_os("KNOWLEDGEPULSE_COMMAND");
    named
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_kp-score").into())
        .into()
}

fn run_command(arguments: &[&str]) -> io::Result<()> {
    let status = Command::new(command()).args(arguments).status()?;
    process::exit(status.code().unwrap_or(1))
}

/// Writes the pages as transcripts: their times vary.
fn write_pages(folder: &Path) -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // An earlier run has written files there.
    drop(fs::remove_dir_all(folder));
    fs::create_dir_all(folder)?;
    for page in ["README.md", "docs/command-line.md"] {
        let text = fs::read_to_string(root.join("../..").join(page))?;
        let time = |line: &str| {
            let words = [" scored in ", " read in "]
                .into_iter()
                .find(|words| line.contains(words));
            words.and_then(|words| Some(format!("{}{words}[..] s\n", line.split_once(words)?.0)))
        };
        let lines = text.lines().map(|line| match time(line) {
            Some(line_without) if line.ends_with(" s") => line_without,
            // An empty line ends the output of the last command.
            _ if line == "```" => "\n```\n".into(),
            _ => format!("{line}\n"),
        });
        // Other examples are not of the command.
        let text = lines
            .collect::<String>()
            .replace("```console\n$ node", "```text\n$ node");
        let page = folder.join(page.replace('/', "-"));
        fs::write(&page, text)?;
        copy_folder(&root.join("tests/transcripts/pages"), &page.with_extension("in"))?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
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
