//! What a person has decided about sessions: at the page of `report`, a line of JSON for each, or by numbers of the list.

use std::{cmp::Reverse, collections::HashMap, fs};

use knowledgepulse_clean::Cleaner;
use knowledgepulse_score::select::{Chosen, Reason};
use knowledgepulse_share::{STRUCK, TOLD_CONFIDENCE};
use serde::Deserialize;

use super::Set;
use crate::{Failure, Messages, Result, counted};

/// The decisions of a file, or of an option.
#[derive(Default)]
pub(crate) struct Decisions {
    /// What says them, in messages.
    pub name: String,
    /// The sessions that are kept, in their order.
    pub kept: Vec<String>,
    /// Whether sessions succeeded, as the person tells.
    pub outcomes: HashMap<String, bool>,
    /// Words to strike out wherever they stand.
    pub struck: Vec<String>,
}

/// A line of the file.
#[derive(Deserialize)]
struct Decision {
    session: String,
    decision: Option<Verdict>,
    outcome: Option<Outcome>,
    #[serde(default)]
    strike: Vec<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Keep,
    #[serde(rename = "leave out")]
    LeaveOut,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Succeeded,
    Failed,
}

impl Decisions {
    /// Reads decisions.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is no decision; the message names it.
    pub(crate) fn read(file: &str) -> Result<Self> {
        let text = fs::read_to_string(file).map_err(|error| Failure::read(file, &error))?;
        let mut decisions = Self {
            name: file.to_owned(),
            ..Self::default()
        };
        let lines = (1..).zip(text.lines());
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let line: Decision = serde_json::from_str(line).map_err(|_| {
                Failure::usage(format!(
                    "{file}:{number}: it is no decision: a line is {{\"session\": ID, \"decision\": \"keep\" or \"leave out\", \
                     \"outcome\": \"succeeded\" or \"failed\", \"strike\": [WORDS]}}"
                ))
            })?;
            if let Some(outcome) = line.outcome {
                let succeeded = outcome == Outcome::Succeeded;
                decisions.outcomes.insert(line.session.clone(), succeeded);
            }
            if line.decision == Some(Verdict::Keep) {
                decisions.kept.push(line.session);
            }
            let struck = line.strike.into_iter();
            decisions.struck.extend(struck.filter(|words| !words.is_empty()));
        }
        // The longest words come first, as others may be in them.
        decisions.struck.sort_by_key(|words| Reverse(words.len()));
        Ok(decisions)
    }

    /// Has a cleaner replace what was struck out, wherever it stands.
    pub(crate) fn strike(&self, cleaner: &mut Cleaner) {
        for words in &self.struck {
            // An escaped text is a valid expression.
            let _ = cleaner.add_rule(STRUCK, &regex::escape(words));
        }
    }

    /// Makes the sessions that are kept the chosen ones, and tells how they ended. Says how many are not among the candidates.
    pub(crate) fn apply(&self, set: &mut Set, messages: &Messages) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let sessions = set.scored.iter_mut().enumerate();
        for (at, scored) in sessions.filter(|(_, scored)| !scored.about.run.is_subagent) {
            let id = scored.about.id.as_deref().unwrap_or_default().to_owned();
            if let Some(success) = self.outcomes.get(&id) {
                scored.about.told = Some((*success, TOLD_CONFIDENCE));
            }
            places.insert(id, at);
        }
        let found = self.kept.iter().filter_map(|session| places.get(session));
        let found: Vec<_> = found.collect();
        let missing = self.kept.len() - found.len();
        if missing > 0 {
            messages.warning(format!(
                "{}: {} that it keeps {} not here, or shared already",
                self.name,
                counted(missing as u64, "session"),
                if missing == 1 { "is" } else { "are" },
            ));
        }
        let chosen = found.into_iter().map(|&index| Chosen {
            index,
            reason: Reason::Decision,
            gain: 0.0,
            covered: 0.0,
            nearest_before: 0.0,
            stands_for: Vec::new(),
            nearest_left: None,
        });
        set.selection.chosen = chosen.collect();
        set.selection.left.clear();
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_clean::CleanOptions;

    use super::*;

    fn decisions(lines: &str) -> Result<Decisions> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), lines).unwrap();
        Decisions::read(file.path().to_str().unwrap())
    }

    #[test]
    fn read_takes_lines_of_the_page() {
        let read = decisions(
            "{\"session\":\"a\",\"decision\":\"keep\",\"outcome\":\"failed\",\"strike\":[\"A (b)\",\"\"]}\n\n{\"session\":\"b\",\"decision\":\"leave out\"}\n{\"session\":\"c\",\"outcome\":\"succeeded\"}\n",
        );
        let read = read.unwrap_or_else(|failure| panic!("{}", failure.message));
        assert_eq!(
            (read.kept, read.struck),
            (vec!["a".to_owned()], vec!["A (b)".to_owned()])
        );
        assert_eq!((read.outcomes["a"], read.outcomes["c"]), (false, true));
    }

    #[test]
    fn read_names_a_line_that_is_no_decision() {
        for line in [
            "7",
            "not JSON",
            r#"{"decision":"keep"}"#,
            r#"{"session":"a","decision":"maybe"}"#,
            r#"{"session":"a","outcome":"good"}"#,
            r#"{"session":"a","strike":"b"}"#,
        ] {
            let refused = decisions(&format!("{{\"session\":\"a\"}}\n{line}\n"))
                .err()
                .unwrap();
            assert!(
                refused.message.contains(":2: it is no decision"),
                "{}",
                refused.message
            );
        }
    }

    #[test]
    fn strike_replaces_words_with_signs_wherever_they_stand() {
        let words = r#"["Nordfrakt", "Nordfrakt [A+B] (x*)"]"#;
        let read = decisions(&format!("{{\"session\":\"a\",\"strike\":{words}}}\n"));
        let mut cleaner = Cleaner::new(CleanOptions {
            identifiers: true,
            strict: true,
        });
        read.unwrap_or_else(|failure| panic!("{}", failure.message))
            .strike(&mut cleaner);
        let text: Vec<u16> = "of Nordfrakt [A+B] (x*), and of Nordfrakt."
            .encode_utf16()
            .collect();
        let clean = cleaner
            .clean_text(&text)
            .map(|units| String::from_utf16_lossy(&units))
            .unwrap();
        assert_eq!(clean, "of [REDACTED:struck-1], and of [REDACTED:struck-2].");
    }
}
