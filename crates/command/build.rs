//! Takes the page of the report, which the set-up bundles, into the program.

use std::{env, fs, path::Path};

fn main() {
    let directory = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let page = Path::new(&directory).join("../../dist/report.html.gz");
    println!("cargo::rerun-if-changed={}", page.display());
    println!("cargo::rerun-if-env-changed=KNOWLEDGEPULSE_PAGE");
    // Without one, `kp-score report` says what to do.
    let bytes = fs::read(&page).unwrap_or_default();
    if bytes.is_empty() && env::var_os("KNOWLEDGEPULSE_PAGE").is_some() {
        println!("cargo::error=there is no page of the report: npm run setup bundles it");
    }
    let out = env::var("OUT_DIR").unwrap_or_default();
    if let Err(error) = fs::write(Path::new(&out).join("report.html.gz"), bytes) {
        println!("cargo::error=the page of the report cannot be written: {error}");
    }
}
