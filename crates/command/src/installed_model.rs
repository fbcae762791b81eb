//! The model that was installed beside the program, as Python's packages do it. The launcher of the npm package names the model of npm's
//! packages by a variable.

use std::path::{Path, PathBuf};

/// The folders of models, in order of preference.
const FOLDERS: [&str; 2] = ["all-minilm-l6-v2", "all-minilm-l6-v2-q8"];

/// Finds the directory of the model that was installed beside `program`.
///
/// # Errors
/// If no model was found: the searched places and the way out.
pub fn installed_model(program: &Path) -> Result<PathBuf, String> {
    let places = places_beside(program);
    let mut models = places
        .iter()
        .flat_map(|place| FOLDERS.map(|folder| place.join(folder)));
    let advice = || {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        let [largest, smallest] = FOLDERS;
        format!(
            "{} have no {largest} or {smallest}; pip install kp-score-model, npx -p kp-score -p @knowledgepulse/{smallest} kp-score, or a \
             directory in KNOWLEDGEPULSE_MODEL_DIR brings one",
            places.join(" and ")
        )
    };
    models.find(|model| model.is_dir()).ok_or_else(advice)
}

/// Returns the folders with the data of the package that installed `program`: `share/knowledgepulse` beside the program's
/// folder, and one folder up, where `pip install --user` puts it on Windows.
fn places_beside(program: &Path) -> Vec<PathBuf> {
    // Tools that install a program for itself link to it from elsewhere. Windows spells a resolved path in another way.
    let resolved = program.canonicalize().ok();
    let resolved = resolved.filter(|resolved| cfg!(not(windows)) && resolved != program);
    let programs = [program].into_iter().chain(resolved.as_deref());
    let folders = programs.flat_map(|program| program.ancestors().skip(2).take(2));
    folders
        .map(|folder| folder.join("share").join("knowledgepulse"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const PROGRAM: &str = "kp-score";

    /// Returns a folder with programs in `bin`, and models of these names.
    fn installation(programs: &str, models: &[&str]) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        for model in models {
            fs::create_dir_all(directory.path().join("share/knowledgepulse").join(model)).unwrap();
        }
        let programs = directory.path().join(programs);
        fs::create_dir_all(&programs).unwrap();
        let program = programs.join(PROGRAM);
        fs::write(&program, "").unwrap();
        (directory, program)
    }

    fn found(program: &Path) -> String {
        let directory = installed_model(program).unwrap();
        directory.file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn finds_the_model_of_a_virtual_environment() {
        for programs in ["bin", "Scripts", "Python311/Scripts"] {
            let (_directory, program) = installation(programs, &["all-minilm-l6-v2-q8"]);
            assert_eq!(found(&program), "all-minilm-l6-v2-q8");
        }
    }

    #[test]
    fn of_two_models_the_fp32_one_is_preferred() {
        let (_directory, program) = installation("bin", &["all-minilm-l6-v2", "all-minilm-l6-v2-q8"]);
        assert_eq!(found(&program), "all-minilm-l6-v2");
    }

    #[cfg(unix)]
    #[test]
    fn finds_the_model_behind_a_link_to_the_program() {
        let (_directory, program) = installation("bin", &["all-minilm-l6-v2-q8"]);
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join(PROGRAM);
        std::os::unix::fs::symlink(&program, &link).unwrap();
        assert_eq!(found(&link), "all-minilm-l6-v2-q8");
    }

    #[test]
    fn a_missing_model_is_told_with_the_places_and_the_way_out() {
        let (directory, program) = installation("bin", &[]);
        let message = installed_model(&program).unwrap_err();
        let place = directory.path().join("share").join("knowledgepulse");
        let q8 =
            "pip install kp-score-model, npx -p kp-score -p @knowledgepulse/all-minilm-l6-v2-q8 kp-score";
        for part in [&place.display().to_string(), q8, "KNOWLEDGEPULSE_MODEL_DIR"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
