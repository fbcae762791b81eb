//! The crates build on each other in one direction, and no crate knows Node-API.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use regex::Regex;

use toml_edit::DocumentMut;
use walkdir::WalkDir;

/// The order of the data: each crate depends only on those before it.
const LAYERS: [&str; 12] = [
    "error", "os", "json", "trace", "formats", "clean", "encoder", "embed", "index", "score", "share",
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

/// The files of these crates build on each other in one direction too.
const LAYERED_FILES: [&str; 2] = ["json", "formats"];

/// Returns the paths that a tree of a `use` names: `a::{b, c::d}` names `a::b` and `a::c::d`.
fn paths_of(tree: &str) -> Vec<String> {
    let Some((before, inner)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let inner = &inner[..inner.rfind('}').unwrap_or(inner.len())];
    let (mut depth, mut start, mut paths) = (0, 0, Vec::new());
    for (at, sign) in inner.char_indices().chain([(inner.len(), ',')]) {
        depth += i32::from(sign == '{') - i32::from(sign == '}');
        if sign == ',' && depth == 0 {
            let member = inner[start..at].trim();
            if !member.is_empty() {
                paths.extend(
                    paths_of(member)
                        .iter()
                        .map(|path| format!("{}{path}", before.trim())),
                );
            }
            start = at + 1;
        }
    }
    paths
}

/// Returns the paths within the crate that a file names outside of its tests.
fn used_in(text: &str, module: &[String], uses: &Regex) -> BTreeSet<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    let found = uses
        .captures_iter(&code)
        .filter_map(|found| found.get(1).or(found.get(2)));
    let paths = found.flat_map(|found| paths_of(found.as_str()));
    let path = |path: String| {
        let mut names: Vec<String> = path.split("::").map(str::to_owned).collect();
        let mut base = if names[0] == "super" {
            module[..module.len().saturating_sub(1)].to_vec()
        } else {
            Vec::new()
        };
        base.extend(names.drain(1..));
        base
    };
    paths.map(path).collect()
}

/// Returns a file, and the files that it names, which name it again in turn; `None` if there is no such circle.
fn circle_in(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut left = edges.clone();
    // What names none of those that are left is in no circle.
    while let Some(free) = left
        .iter()
        .find_map(|(file, used)| (!used.iter().any(|other| left.contains_key(other))).then(|| file.clone()))
    {
        left.remove(&free);
    }
    let mut path = vec![left.keys().next()?.clone()];
    loop {
        let next = left[path.last()?]
            .iter()
            .find(|other| left.contains_key(*other))?
            .clone();
        if let Some(at) = path.iter().position(|file| *file == next) {
            return Some(path.split_off(at));
        }
        path.push(next);
    }
}

#[test]
fn files_depend_on_each_other_without_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let uses = Regex::new(
        r"(?s)(?-u:\b)((?:crate|super)::[^;({]*\{.*?\});|(?-u:\b)((?:crate|super)(?:::[A-Za-z0-9_]+)+)",
    )
    .unwrap();
    // Files within: `use merged::Item` in `spans.rs`.
    let uses_within = Regex::new(r"\nuse ([a-z_]+)::").unwrap();
    let exports_of = Regex::new(r"(?s)\n(?:pub(?:\(crate\))? )?use ([a-z_]+::.*?);").unwrap();
    for layer in LAYERED_FILES {
        let source = crates.join(layer).join("src");
        let files = WalkDir::new(&source).into_iter().map(Result::unwrap);
        let files: Vec<PathBuf> = files
            .map(walkdir::DirEntry::into_path)
            .filter(|file| file.extension().is_some_and(|end| end == "rs"))
            .collect();
        let module_of = |file: &Path| -> Vec<String> {
            let path = file.strip_prefix(&source).unwrap().with_extension("");
            let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
            names.filter(|name| name != "mod" && name != "lib").collect()
        };
        let modules: BTreeMap<Vec<String>, String> = files
            .iter()
            .map(|file| {
                (
                    module_of(file),
                    file.strip_prefix(&source).unwrap().display().to_string(),
                )
            })
            .collect();
        let texts: BTreeMap<Vec<String>, String> = files
            .iter()
            .map(|file| (module_of(file), fs::read_to_string(file).unwrap()))
            .collect();
        // The root names what is in other files: `pub use common::Wrong`.
        let root = &texts[&Vec::new()];
        let exports: BTreeMap<String, Vec<String>> = exports_of
            .captures_iter(root)
            .flat_map(|found| paths_of(&found[1]))
            .filter_map(|path| {
                let names: Vec<String> = path.split("::").map(str::to_owned).collect();
                Some((names.last()?.clone(), names))
            })
            .collect();
        let file_of = |mut path: Vec<String>| {
            if let [name, ..] = &path[..]
                && let Some(exported) = exports.get(name).filter(|_| !modules.contains_key(&path[..1]))
            {
                path.clone_from(exported);
            }
            while !path.is_empty() {
                if let Some(file) = modules.get(&path) {
                    return Some(file.clone());
                }
                path.pop();
            }
            None
        };
        let is_product = |module: &Vec<String>| !module.is_empty() && module[0] != "tests";
        let edges: BTreeMap<String, BTreeSet<String>> = modules
            .iter()
            .filter(|(module, _)| is_product(module))
            .map(|(module, file)| {
                let within = uses_within.captures_iter(&texts[module]);
                let within = within.map(|found| [&module[..], &[found[1].to_owned()]].concat());
                let used = used_in(&texts[module], module, &uses).into_iter();
                let used = used.chain(within).filter_map(file_of);
                (file.clone(), used.filter(|other| other != file).collect())
            })
            .collect();
        assert!(
            edges.values().map(BTreeSet::len).sum::<usize>() >= edges.len(),
            "{layer}: {edges:?}"
        );
        assert_eq!(circle_in(&edges), None, "{layer}");
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
