//! The crates build on each other in one direction, and no crate knows Node-API.

use std::{fs, path::Path};

use toml_edit::DocumentMut;

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
