//! A trace that was scored.

use std::collections::HashMap;

use knowledgepulse_formats::{
    FormatName, PARENT,
    reader::EARLIER_COPIES,
    trace::{project_of, time_of},
};
use knowledgepulse_json::{Text, Value, cut};
use knowledgepulse_score::Breakdown;
use knowledgepulse_share::outcome_of;
use knowledgepulse_trace::{
    facts::{Fact, FactKind, facts_of},
    roles::{roles_of, turns_in},
};

use crate::agent_of;

/// The longest quotation of a trace in results and a report, in UTF-16 code units.
const EXCERPT_LENGTH: usize = 240;

/// The most of an objective that is compared with others, in UTF-16 code units: templates that objectives share are some 400 long.
const MOST_OBJECTIVE: usize = 600;

/// Where a record is.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name of the file, or `stdin`.
    pub source: String,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The position in the array that it is an element of, from 0.
    pub index: Option<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.source, self.line)?;
        self.index.map_or(Ok(()), |index| write!(formatter, "[{index}]"))
    }
}

/// What is told of a trace beside its score.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceInfo {
    /// The format that it was converted from, or [`FormatName::Trace`].
    pub format: FormatName,
    /// The agent: the format in which it was recorded at first.
    pub agent: Text,
    /// The name of the folder in which the agent ran; `None` if that is not known.
    pub project: Option<Text>,
    /// When it began, in ISO 8601; `None` if that is not known.
    pub when: Option<String>,
    /// How many steps it has.
    pub steps: u64,
    /// How many turns the agent has.
    pub turns: u64,
    /// What is observed in it.
    pub facts: Vec<Fact>,
    /// Whether it succeeded; `None` if that is not known.
    pub success: Option<bool>,
    /// Whether it succeeded and how sure that is, as labels or a person tell.
    pub told: Option<(bool, f64)>,
    /// Its `id`, if that is a string.
    pub id: Option<Text>,
    /// The beginning of its objective.
    pub objective: Text,
    /// Its `task_domain`, or `default`.
    pub domain: Text,
    /// Whose run it is.
    pub run: RunInfo,
}

impl TraceInfo {
    /// Reads what a trace tells of itself, and what its format gave it.
    pub(crate) fn of(trace: &Value, format: FormatName) -> Self {
        let text = |path: &[&str]| trace.at(path).and_then(Value::as_text);
        let short = |text: &str| Text::from(cut(text, EXCERPT_LENGTH));
        let objective = text(&["task", "objective"]).map(|text| cut(text, MOST_OBJECTIVE).into());
        let steps = trace.get("steps").and_then(Value::as_array);
        Self {
            format,
            agent: short(agent_of(trace).unwrap_or(format.name())),
            project: project_of(trace).map(short),
            when: time_of(trace),
            steps: steps.map_or(0, |steps| steps.len() as u64),
            turns: turns_in(&roles_of(trace)) as u64,
            facts: facts_of(trace),
            success: outcome_of(trace).map(|(success, _)| success),
            told: None,
            id: text(&["id"]).cloned(),
            objective: objective.unwrap_or_default(),
            domain: text(&["metadata", "task_domain"]).map_or("default".into(), Text::clone),
            run: RunInfo::of(trace),
        }
    }

    /// Returns whether it is of the project of a name.
    pub(crate) fn is_of_project(&self, name: &str) -> bool {
        let project = self.project.as_ref().map(|project| project.to_lowercase());
        project.is_some_and(|project| project == name.to_lowercase())
    }

    /// Returns the facts in words, such as `tests passed`; not that a session ends with an answer, as most do.
    pub(crate) fn facts_in_words(&self) -> Vec<String> {
        let told = self.facts.iter().filter(|fact| fact.kind != FactKind::Answered);
        told.map(|fact| fact.words()).collect()
    }
}

/// What a session is to others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunInfo {
    /// The session's name in its format.
    pub session: Option<Text>,
    /// Whether it is of a sub-agent.
    pub is_subagent: bool,
    /// The session whose agent has started that; `None` if it is not known.
    pub parent: Option<Text>,
    /// How many earlier copies of it were left out.
    pub copies: u64,
}

impl RunInfo {
    /// Reads what a reader has noted in a trace.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is a small whole number.
    pub(crate) fn of(trace: &Value) -> Self {
        let noted = |name| trace.at(&["metadata", "imported", name]);
        let text = |name| noted(name).and_then(Value::as_text).cloned();
        let copies = noted(EARLIER_COPIES).and_then(Value::as_number);
        Self {
            session: text("session_id"),
            is_subagent: noted("is_subagent") == Some(&true.into()),
            parent: text(PARENT),
            copies: copies.map_or(0, |copies| copies as u64),
        }
    }

    /// Returns for each of these runs the place of the session that it belongs to as a sub-agent; `None` of a session, and where the
    /// session is not among them.
    pub(crate) fn roots<'r>(runs: impl IntoIterator<Item = &'r Self>) -> Vec<Option<usize>> {
        let runs: Vec<_> = runs.into_iter().collect();
        let mut named = HashMap::new();
        for (at, run) in runs.iter().enumerate() {
            // Sub-agents that have the name of their session have none of their own.
            let name = run.session.as_ref().filter(|_| run.session != run.parent);
            if let Some(name) = name {
                named.entry(name).or_insert(at);
            }
        }
        let above = |at: usize| named.get(runs[at].parent.as_ref()?).copied();
        // Sub-agents may have sub-agents.
        let root = |at| {
            let mut levels = std::iter::successors(above(at), |level| above(*level)).take(MOST_LEVELS);
            levels.find(|level| runs[*level].parent.is_none())
        };
        (0..runs.len()).map(root).collect()
    }
}

/// How deep sub-agents are looked for.
const MOST_LEVELS: usize = 16;

/// A trace that was scored.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// Where it is.
    pub place: Place,
    /// What is told of it.
    pub about: TraceInfo,
    /// Its score, and the numbers from which it was computed.
    pub breakdown: Breakdown,
    /// Where its JSON waits until a set is chosen.
    pub(crate) text: usize,
}

#[cfg(test)]
pub(crate) mod tests;
