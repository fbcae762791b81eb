//! The crates build on each other in one direction, and no crate knows Node-API.

use std::{fs, path::Path};

use toml_edit::DocumentMut;
use walkdir::WalkDir;

/// The order of the data: each crate depends only on those before it.
const LAYERS: [&str; 12] = [
    "error", "os", "json", "trace", "formats", "clean", "share", "encoder", "embed", "index", "score",
    "command",
];

#[test]
fn each_crate_depends_on_lower_layers_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut names: Vec<_> = fs::read_dir(crates)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected = LAYERS.map(String::from);
    expected.sort();
    assert_eq!(names, expected);
    for (position, layer) in LAYERS.iter().enumerate() {
        let text = fs::read_to_string(crates.join(layer).join("Cargo.toml")).unwrap();
        let manifest: DocumentMut = text.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table();
        for (dependency, _) in dependencies.into_iter().flatten() {
            assert!(!dependency.starts_with("napi"), "{layer} knows Node-API");
            if let Some(name) = dependency.strip_prefix("knowledgepulse-") {
                assert!(LAYERS[..position].contains(&name), "{layer} depends on {name}");
            }
        }
        let description = manifest["package"]["description"].as_str().unwrap_or_default();
        assert!(
            description.len() > 10 && !description.ends_with('.'),
            "{layer}: {description}"
        );
    }
}

/// All crates are tested together, with the tables that one of them asks for. `kp-score` is built without them, and would end there.
#[test]
fn expressions_need_no_tables_of_unicode() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // The cleaner's expressions are of bytes, and those that its callers give are checked.
    for layer in LAYERS.iter().filter(|layer| **layer != "clean") {
        for file in WalkDir::new(crates.join(layer).join("src"))
            .into_iter()
            .map(Result::unwrap)
        {
            if file.file_type().is_dir() {
                continue;
            }
            let text = fs::read_to_string(file.path()).unwrap();
            for needs_tables in ["(?i)", "(?i:", r"\p{"] {
                assert!(
                    !text.contains(&format!("r\"{needs_tables}")),
                    "{}",
                    file.path().display()
                );
                assert!(
                    !text.contains(&format!("|{needs_tables}")),
                    "{}",
                    file.path().display()
                );
            }
        }
    }
}
