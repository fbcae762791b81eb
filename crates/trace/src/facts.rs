//! What is observed in a session, and where: a pure function of what was said. Facts are no outcome: docs/what-a-score-means.md has how
//! well they tell success. `tables/words.tsv` says which words tell what.

use std::{collections::BTreeMap, sync::LazyLock};

use knowledgepulse_error::named;
use knowledgepulse_json::{Value, json_object};
use regex::Regex;

use crate::{
    actions::{actions_of, regex},
    phrases::{are_in, first},
    roles::{Role, roles_of},
};

/// The field of `metadata.imported` with the places of the steps that are reasoning, which the user did not see.
pub const REASONING: &str = "reasoning";

/// The field of `metadata.imported` with the last step before the user stopped the agent.
pub const INTERRUPTED: &str = "interrupted";

/// So much of the beginning and of the end of a result tells how it ended, in characters and bytes.
const BEGINNING: usize = 1_000;
const END: usize = 4_000;

/// So much is read of what the user and the agent said last, in characters: the rest is mostly quoted.
const LAST_WORDS: usize = 400;
const LAST_MESSAGE: usize = 4_000;

named! {
    /// What is observed, with its words. How tests, a build and a linter ended is that of their last run.
    pub enum FactKind {
        /// Tests ran, and passed.
        TestsPassed = "tests passed",
        /// Tests ran, and failed.
        TestsFailed = "tests failed",
        /// Tests ran, and their output does not say how they ended.
        TestsRan = "tests ran",
        /// A build or a type check ended without an error.
        BuildPassed = "build passed",
        /// A build or a type check failed.
        BuildFailed = "build failed",
        /// A linter found nothing.
        LintPassed = "lint passed",
        /// A linter found something.
        LintFailed = "lint failed",
        /// A commit was made.
        Committed = "committed",
        /// Commits were pushed.
        Pushed = "pushed",
        /// A pull request or a merge request was opened.
        PullRequest = "pull request",
        /// The user's last words thank or praise.
        Thanked = "thanked",
        /// The user's last words correct the agent.
        Corrected = "corrected",
        /// The user stopped the agent, which said nothing after that.
        Interrupted = "interrupted",
        /// The agent's last message says that it did not manage.
        GaveUp = "gave up",
        /// Calls failed in the last third of the results.
        LateErrors = "late errors",
        /// The last step is a message of the agent.
        Answered = "answered",
    }
}

/// A fact about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// What is observed.
    pub kind: FactKind,
    /// The step where it is seen last, from 0.
    pub step: usize,
    /// How often: runs of tests, commits, errors. At least 1.
    pub count: usize,
}

impl FactKind {
    /// Returns whether it speaks for the session; `None` if neither. It is no verdict.
    #[must_use]
    pub fn is_good(self) -> Option<bool> {
        match self {
            Self::TestsPassed | Self::BuildPassed | Self::LintPassed | Self::Thanked => Some(true),
            Self::TestsFailed | Self::BuildFailed | Self::LintFailed => Some(false),
            Self::Corrected | Self::Interrupted | Self::GaveUp | Self::LateErrors => Some(false),
            Self::TestsRan | Self::Committed | Self::Pushed | Self::PullRequest | Self::Answered => None,
        }
    }
}

impl Fact {
    /// Returns the fact in words, such as `tests passed` or `3 late errors`.
    #[must_use]
    pub fn words(self) -> String {
        match (self.kind, self.count) {
            (FactKind::LateErrors, 1) => "1 late error".into(),
            (FactKind::LateErrors, count) => format!("{count} late errors"),
            (kind, _) => kind.name().into(),
        }
    }

    /// Returns the fact as JSON: `{"name", "step", "count"}`.
    #[must_use]
    pub fn to_value(self) -> Value {
        json_object! { "name": self.kind.name(), "step": self.step, "count": self.count }
    }
}

/// Returns the facts about a trace in JSON, in the order of [`FactKind`].
#[must_use]
pub fn facts_of(trace: &Value) -> Vec<Fact> {
    let steps = trace.get("steps").and_then(Value::as_array).unwrap_or_default();
    let roles = roles_of(trace);
    let text = |at: usize| content_of(&steps[at]);
    let last = |is_wanted: &dyn Fn(usize) -> bool| (0..steps.len()).rev().find(|&at| is_wanted(at));
    let noted = |name| trace.at(&["metadata", "imported", name]);
    // A later run of tests, a build or a linter counts in the place of an earlier one.
    let mut facts = BTreeMap::new();
    let mut note = |place: FactKind, kind, step| {
        let count = facts.get(&(place as usize)).map_or(0, |fact: &Fact| fact.count) + 1;
        facts.insert(place as usize, Fact { kind, step, count });
    };
    for (at, role) in roles.iter().enumerate() {
        let Role::Result(Some(call)) = *role else { continue };
        for good in actions_of(&steps[call])
            .into_iter()
            .filter_map(FactKind::from_name)
        {
            if let Some(kind) = ending_of(&steps[at], good) {
                note(good, kind, at);
            }
        }
    }
    if let Some(at) = last(&|at| roles[at] == Role::User) {
        let words = first(text(at), LAST_WORDS);
        // Thanks before a correction are politeness.
        let kinds = [FactKind::Corrected, FactKind::Thanked];
        let said = kinds.into_iter().find(|kind| are_in(kind.name(), words));
        said.into_iter().for_each(|kind| note(kind, kind, at));
    }
    let is_agent = |at: usize| matches!(roles[at], Role::Agent | Role::Call);
    let stopped = noted(INTERRUPTED).and_then(Value::as_number);
    let said_so = |at: usize| !is_agent(at) && are_in("stopped", first(text(at), LAST_WORDS));
    // The agent said nothing after that.
    let from = last(&is_agent).unwrap_or_default();
    if let Some(at) = last(&|at| at >= from && (stopped == Some(number(at)) || said_so(at))) {
        note(FactKind::Interrupted, FactKind::Interrupted, at);
    }
    let reasoning = noted(REASONING).and_then(Value::as_array).unwrap_or_default();
    let is_reasoning = |at| {
        reasoning
            .iter()
            .rev()
            .any(|place| place.as_number() == Some(number(at)))
    };
    let is_message = |at: usize| roles[at] == Role::Agent && !text(at).trim().is_empty() && !is_reasoning(at);
    if let Some(at) = last(&is_message) {
        if are_in(FactKind::GaveUp.name(), first(text(at), LAST_MESSAGE)) {
            note(FactKind::GaveUp, FactKind::GaveUp, at);
        }
        if at + 1 == steps.len() {
            note(FactKind::Answered, FactKind::Answered, at);
        }
    }
    let is_result = |at: &usize| matches!(roles[*at], Role::Result(_));
    let results: Vec<_> = (0..steps.len()).filter(is_result).collect();
    let late = &results[results.len() - results.len().div_ceil(3)..];
    for &at in late.iter().filter(|at| failed(&steps[**at])) {
        note(FactKind::LateErrors, FactKind::LateErrors, at);
    }
    facts.into_values().collect()
}

#[allow(clippy::cast_precision_loss)] // No trace has 2^53 steps.
fn number(at: usize) -> f64 {
    at as f64
}

fn content_of(step: &Value) -> &str {
    step.get("content").and_then(Value::as_str).unwrap_or_default()
}

fn failed(result: &Value) -> bool {
    result.get("type").and_then(Value::as_str) == Some("error_recovery")
}

/// Results of commands that go on in the background.
static GOES_ON: LazyLock<Regex> = LazyLock::new(|| regex(r"running in (?:the )?background"));

/// What tools print that found errors.
static FAILED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m-u)\b[1-9][0-9]* (?i-u:failed|failing|failures?|errors?|problems?)\b|(?i-u:failures|errors|failed)[:=] ?[1-9]|\bFAILED\b|^(?:--- )?FAIL\b|^\s*error(?:\[|:)|: error(?: TS[0-9]+)?:|npm ERR!|ELIFECYCLE|\*\*\* [ -~]*Error [0-9]|^panic:|^Traceback \(most recent|(?i-u:failed to compile|command not found)",
    )
});

/// What tools print that found none.
static PASSED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m-u)test result: ok|\b[1-9][0-9]* (?i-u:passed|passing|pass|tests? passed|succeeded)\b|^(?:ok|OK|PASS|PASSED)\b|\b0 (?:failed|failures|failing)\b|(?i-u:failures|failed|fail)[:=] ?0\b|BUILD SUCCESS|(?i-u:all (?:[0-9]+ )?tests passed)|✓|✔",
    )
});

/// What Git and programs around it print where they did nothing.
static REFUSED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m-u)nothing (?:added )?to commit|no changes added|^fatal:|^error:|\[(?:remote )?rejected\]|failed to push|hook declined|Everything up-to-date|already exists",
    )
});

/// Returns the fact of a result, whose action is `good` if it ended well; `None` where it is no fact.
fn ending_of(result: &Value, good: FactKind) -> Option<FactKind> {
    let text = content_of(result);
    let end = text.ceil_char_boundary(text.len().saturating_sub(END));
    let has =
        |expression: &Regex| expression.is_match(&text[end..]) || expression.is_match(first(text, BEGINNING));
    let (bad, signs, unknown) = match good {
        FactKind::TestsPassed => (Some(FactKind::TestsFailed), &FAILED, FactKind::TestsRan),
        FactKind::BuildPassed => (Some(FactKind::BuildFailed), &FAILED, good),
        FactKind::LintPassed => (Some(FactKind::LintFailed), &FAILED, good),
        _ => (None, &REFUSED, good),
    };
    match () {
        () if has(&GOES_ON) => None,
        () if failed(result) || has(signs) => bad,
        () if has(&PASSED) => Some(good),
        () => Some(unknown),
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    /// Returns a trace of steps that are written `KIND TEXT`: `user`, `agent`, `ok` and `failed` results, `call NAME`, and `$` for a call of
    /// a shell.
    fn trace(steps: &[&str]) -> Value {
        let steps = steps.iter().map(|step| {
            let (kind, text) = step.split_once(' ').unwrap();
            let text = Value::from(text).to_json();
            match kind {
                "$" => {
                    format!(r#"{{"type":"tool_call","tool":{{"name":"Bash"}},"input":{{"command":{text}}}}}"#)
                }
                "call" => format!(r#"{{"type":"tool_call","tool":{{"name":{text}}}}}"#),
                "agent" => format!(r#"{{"type":"thought","content":{text}}}"#),
                "failed" => format!(r#"{{"type":"error_recovery","content":{text}}}"#),
                _ => format!(r#"{{"type":"observation","content":{text}}}"#),
            }
        });
        let steps: Vec<_> = steps.collect();
        parse_str(&format!(r#"{{"steps":[{}]}}"#, steps.join(","))).unwrap()
    }

    /// Returns the facts about these steps as `NAME@STEP`, and `×COUNT` where that is not 1.
    fn facts(steps: &[&str]) -> Vec<String> {
        let words = |fact: &Fact| {
            let count = if fact.count > 1 {
                format!("×{}", fact.count)
            } else {
                String::new()
            };
            format!("{}@{}{count}", fact.kind.name(), fact.step)
        };
        facts_of(&trace(steps)).iter().map(words).collect()
    }

    #[test]
    fn facts_of_runs_are_those_of_the_last_one() {
        for (command, result, fact) in [
            (
                "$ cargo test",
                "ok test result: ok. 3 passed; 0 failed;",
                Some("tests passed"),
            ),
            (
                "$ cargo test 2>&1 | tail",
                "ok test result: FAILED. 2 passed; 1 failed;",
                Some("tests failed"),
            ),
            (
                "$ cd x && npx jest --ci",
                "failed no output",
                Some("tests failed"),
            ),
            (
                "$ mise run test:ci",
                "ok ok  \tgithub.com/x/y\t0.2s",
                Some("tests passed"),
            ),
            (
                "$ go test ./... | grep -v cached",
                "ok --- FAIL: TestX (0.00s)",
                Some("tests failed"),
            ),
            (
                "$ uv run --with pytest pytest -q",
                "ok 4 passed in 0.2s",
                Some("tests passed"),
            ),
            (
                "$ python -m unittest",
                "ok Ran 4 tests\n\nFAILED (failures=1)",
                Some("tests failed"),
            ),
            (
                "$ mvn -q clean verify",
                "ok Tests run: 3, Failures: 0, Errors: 0",
                Some("tests passed"),
            ),
            ("$ npm test", "ok > x@1.0.0 test", Some("tests ran")),
            ("$ npm test", "ok Command running in background with ID: b1", None),
            ("$ npm run build", "ok built in 2 s", Some("build passed")),
            (
                "$ make -j8 2>&1 | tail -3",
                "ok make: *** [x.o] Error 1",
                Some("build failed"),
            ),
            (
                "$ npx tsc",
                "ok a.ts(1,2): error TS2304: Cannot find name 'x'.",
                Some("build failed"),
            ),
            ("$ ruff check .", "failed E501", Some("lint failed")),
            ("$ make lint", "ok 0 issues.", Some("lint passed")),
            (
                "$ git -C x commit -m 'npm test'",
                "ok [main 1a2b3c4] npm test",
                Some("committed"),
            ),
            (
                "$ git commit -m x",
                "ok nothing to commit, working tree clean",
                None,
            ),
            ("$ git push -u origin x", "ok ! [rejected] main -> main", None),
            ("$ git push", "ok To github.com:x/y.git", Some("pushed")),
            (
                "$ gh pr create --fill",
                "ok https://github.com/x/y/pull/3",
                Some("pull request"),
            ),
            (
                "call mcp__github__create_pull_request",
                "ok {}",
                Some("pull request"),
            ),
            ("call runTests", "ok 3 passed", Some("tests passed")),
            ("$ echo npm test", "ok 3 failed", None),
            ("$ cat test.log", "ok 3 failed", None),
        ] {
            let expected: Vec<_> = fact.map(|fact| format!("{fact}@1")).into_iter().collect();
            let found = facts(&[command, result]);
            let found: Vec<_> = found
                .into_iter()
                .filter(|fact| !fact.starts_with("late"))
                .collect();
            assert_eq!(found, expected, "{command} {result}");
        }
        let failing = [
            "$ pytest",
            "failed 1 failed",
            "agent Fixed.",
            "$ pytest && git commit -m x",
            "ok 2 passed",
        ];
        assert_eq!(facts(&failing), ["tests passed@4×2", "committed@4"]);
        let read = r#"{"steps":[{"type":"tool_call","tool":{"name":"local_shell"},"input":{"action":{"command":["bash","-lc","cd x; go test ./..."]}}},{"type":"observation","content":"ok  \tx\t1s"}]}"#;
        assert_eq!(facts_of(&parse_str(read).unwrap())[0].kind, FactKind::TestsPassed);
    }

    #[test]
    fn facts_of_last_words_are_those_of_the_user_and_of_the_agent() {
        for (steps, expected) in [
            (
                &["agent Done.", "user Thanks, that works now!"][..],
                &["thanked@1"][..],
            ),
            (
                &["agent Done.", "user thanks but it still fails", "agent Fixed."],
                &["corrected@1", "answered@2"],
            ),
            (
                &[
                    "user No, undo that",
                    "agent Done",
                    "user now the docs",
                    "agent Done",
                ],
                &["answered@3"],
            ),
            (&["agent Done.", "user 谢谢"], &["thanked@1"]),
            (&["agent I was unable to find it."], &["gave up@0", "answered@0"]),
            (
                &["agent Leider ist es nicht gelungen; ich konnte nicht weiter."],
                &["gave up@0", "answered@0"],
            ),
            (
                &["$ ls", "ok [Request interrupted by user for tool use]"],
                &["interrupted@1"],
            ),
            (
                &[
                    "$ ls",
                    "ok [Request interrupted by user for tool use]",
                    "agent Sorry.",
                ],
                &["answered@2"],
            ),
            (&["$ ls", "ok a"], &[]),
            (&[], &[]),
        ] {
            assert_eq!(facts(steps), expected, "{steps:?}");
        }
        let mut stopped = trace(&["$ ls", "ok a", "user stop"]);
        let imported = parse_str(r#"{"imported":{"interrupted":1,"reasoning":[]}}"#).unwrap();
        if let Value::Object(fields) = &mut stopped {
            fields.insert("metadata", imported);
        }
        assert_eq!(facts_of(&stopped)[0].kind, FactKind::Interrupted);
    }

    #[test]
    fn facts_of_late_errors_are_failed_results_in_the_last_third() {
        let run = |ends: &[&str]| {
            let steps: Vec<_> = ends.iter().flat_map(|end| ["call read", *end]).collect();
            facts(&steps)
        };
        assert_eq!(run(&["failed x", "ok error", "ok error"]), [""; 0]);
        assert_eq!(run(&["ok x", "ok x", "failed x"]), ["late errors@5"]);
        assert_eq!(
            run(&["ok x", "ok x", "ok x", "failed x", "failed x"]),
            ["late errors@9×2"]
        );
    }

    #[test]
    fn tables_have_kinds_that_are_used() {
        for line in include_str!("../tables/words.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let kind = line.split('\t').next().unwrap();
            assert!(
                FactKind::ALL.iter().any(|fact| fact.name() == kind)
                    || ["stopped", "hedge", "error"].contains(&kind),
                "{line}"
            );
        }
    }
}
