//! What the calls of an agent do, by `tables/commands.tsv`: an action has the name of the fact that it ended well.

use std::sync::LazyLock;

use knowledgepulse_json::Value;
use regex::{Regex, RegexSet};

/// So much of a script is looked at, in bytes.
const MOST_BYTES: usize = 16 * 1024;

/// Compiles an expression of this crate.
pub(crate) fn regex(expression: &str) -> Regex {
    #[allow(clippy::expect_used)] // The tests compile every expression.
    Regex::new(expression).expect("the expression is valid")
}

/// Returns the lines of `tables/commands.tsv`: a kind, what it is of, and expressions.
fn rows() -> impl Iterator<Item = [&'static str; 3]> {
    let rows = include_str!("../tables/commands.tsv").lines();
    rows.filter_map(|row| row.split('\t').collect::<Vec<_>>().try_into().ok())
}

/// Returns the expressions of a kind.
fn expressions_of(kind: &str) -> &'static str {
    let mut rows = rows();
    rows.find(|row| row[0] == kind)
        .map_or("", |[.., expressions]| expressions)
}

/// The actions, and the expressions that tell them: of commands, and of names of tools behind a tab. The first that matches decides.
static ACTIONS: LazyLock<(Vec<&str>, RegexSet)> = LazyLock::new(|| {
    let spaced = |names: &str| names.replace(' ', r"(?:\.exe|\.cmd)?(?: [-+][^ ]*| clean)* ");
    let (wrappers, runners) = (
        spaced(expressions_of("wrapper")),
        spaced(expressions_of("runner")),
    );
    // Variables and wrappers with their options and numbers, and the folder of the program.
    let before = format!("^(?:[A-Za-z0-9_]*=[^ ]* |(?:[^ ]*/)?(?:{wrappers})(?: [-0-9][^ ]*)* )*(?:[^ ]*/)?");
    let expression_of = |of: &str, names: &str| match of {
        "tool" => Some(format!("^\t(?s:.*)(?:{names})$")),
        "target" => Some(format!(
            "{before}(?:{runners})(?: -[^ ]*| clean)* (?:[^- ][^ ]*)?(?i-u:{names})"
        )),
        "shell" => Some(format!(r"{before}(?:{})(?:\.exe|\.cmd)?(?: |$)", spaced(names))),
        _ => None,
    };
    let rules = rows().filter_map(|[action, of, names]| Some((action, expression_of(of, names)?)));
    let (actions, expressions): (Vec<_>, Vec<_>) = rules.unzip();
    #[allow(clippy::expect_used)] // The tests compile every expression.
    let expressions = RegexSet::new(expressions).expect("the expressions are valid");
    (actions, expressions)
});

fn action_of(text: &str) -> Option<&'static str> {
    let (actions, expressions) = &*ACTIONS;
    Some(actions[expressions.matches(text).iter().next()?])
}

/// The fields of a call that have a script.
static FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| expressions_of("field").split('|').collect());

/// Returns what a call does, each action once.
pub(crate) fn actions_of(call: &Value) -> Vec<&'static str> {
    let name = call.at(&["tool", "name"]).and_then(Value::as_str);
    let of_tool = name.and_then(|name| action_of(&format!("\t{name}")));
    let mut actions = Vec::from_iter(of_tool);
    // Codex has the words of a command within an action.
    let inputs = [call.get("input"), call.at(&["input", "action"])];
    for input in inputs.into_iter().flatten() {
        let fields = FIELDS.iter().filter_map(|field| input.get(field));
        let scripts = fields.flat_map(scripts_in);
        for script in scripts {
            let commands = commands_of(&script).into_iter();
            actions.extend(commands.filter_map(|command| action_of(&command)));
        }
    }
    actions.sort_unstable();
    actions.dedup();
    actions
}

/// Returns the scripts in a field: a text, the words of one command, or a list of scripts.
fn scripts_in(field: &Value) -> Vec<String> {
    if let Some(script) = field.as_str() {
        return vec![script.to_owned()];
    }
    let words = field.as_array().unwrap_or_default();
    let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
    match words[..] {
        [shell, option, script, ..]
            if shell.trim_end_matches(".exe").ends_with("sh") && option.starts_with('-') =>
        {
            vec![script.to_owned()]
        }
        _ if words.iter().any(|word| word.contains(' ')) => words.into_iter().map(str::to_owned).collect(),
        _ => vec![words.join(" ")],
    }
}

/// A comment, what ends a command, or a word with its quotes.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?s)#[^\n]*|[;&|\n()`]|(?:'[^']*'?|"(?:\\.|[^"\\])*"?|\\.?|[^ \t\r\n;&|()`'"\\])+"#)
});

/// The beginning of a here-document.
static DOCUMENT: LazyLock<Regex> = LazyLock::new(|| regex(r#"<<[-~]? *['"\\]?([A-Za-z0-9_]+)"#));

/// What a command has that leaves its kind open: options with their values.
static OPTIONS: LazyLock<Regex> =
    LazyLock::new(|| regex(&format!(" (?:{}) [^ ]+", expressions_of("option"))));

/// What tells that a command runs nothing.
static QUESTION: LazyLock<Regex> =
    LazyLock::new(|| regex(&format!(" (?:{})(?: |$)", expressions_of("question"))));

/// Returns the commands of a script that run something: their words without quotes, with spaces between them and `_` for those in words.
fn commands_of(script: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut lines = script[..script.floor_char_boundary(MOST_BYTES)].split_inclusive('\n');
    while let Some(line) = lines.next() {
        plain.push_str(line);
        let document = line.contains("<<").then(|| DOCUMENT.captures(line)).flatten();
        let name = document.map(|found| found[1].to_owned());
        let end = name.and_then(|name| lines.clone().position(|line| line.trim() == name));
        end.and_then(|end| lines.nth(end));
    }
    // Lines that go on.
    let plain = plain.replace("\\\n", " ");
    let mut commands = vec![String::new()];
    for part in PART.find_iter(&plain).map(|part| part.as_str()) {
        match (part, commands.last_mut()) {
            (";" | "&" | "|" | "\n" | "(" | ")" | "`", _) => commands.push(String::new()),
            (word, Some(command)) if !word.starts_with('#') => {
                let word = word
                    .replace(['\'', '"', '\\'], "")
                    .replace(char::is_whitespace, "_");
                command.extend([if command.is_empty() { "" } else { " " }, &word]);
            }
            _ => {}
        }
    }
    commands.retain(|command| !command.is_empty() && !QUESTION.is_match(command));
    let without_options = |command: &String| OPTIONS.replace_all(command, "").into_owned();
    commands.iter().map(without_options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knowledgepulse_json::json_object;

    #[test]
    fn commands_of_a_script_leave_out_documents_comments_and_questions() {
        for (script, commands) in [
            (
                "cd /x && CI=1 npm test 2>&1 | tail -5",
                &["cd /x", "CI=1 npm test 2>", "1", "tail -5"][..],
            ),
            (
                "git commit -m \"a; npm test && b\" # npm test",
                &["git commit -m a;_npm_test_&&_b"],
            ),
            ("echo 'it''s' it\\ is\\\n a", &["echo its it_is a"]),
            (
                "git commit -m \"$(cat <<'EOF'\nfix \"it\"; don't cargo test\nEOF\n)\" && git push",
                &["git commit -m $(cat_<<EOF_)", "git push"],
            ),
            ("cat <<X | tee y\nnpm test\nX\nls", &["cat <<X", "tee y", "ls"]),
            (
                "out=$(go test ./...); echo `ls`",
                &["out=$", "go test ./...", "echo", "ls"],
            ),
            ("pytest --version; cargo test --no-run", &[]),
            ("a << b", &["a << b"]),
            ("git -C /x status -s", &["git status -s"]),
            ("", &[]),
        ] {
            assert_eq!(commands_of(script), commands, "{script}");
        }
    }

    #[test]
    fn actions_of_a_command_skip_wrappers_options_and_folders() {
        for (command, action) in [
            ("git -C /x -c a=b --no-pager commit -m x", Some("committed")),
            ("git log commit", None),
            ("echo git commit", None),
            ("git", None),
            (".venv/bin/python3.11 -m pytest -q", Some("tests passed")),
            ("mvn clean verify", Some("tests passed")),
            ("cargo +nightly test", Some("tests passed")),
            ("node --test x", Some("tests passed")),
            ("env A=1 timeout -k 5 60s cargo test", Some("tests passed")),
            ("sudo nice -n 5 make -j8", Some("build passed")),
            ("make clean", Some("build passed")),
            ("make -C sub check", Some("lint passed")),
            ("npm.cmd run lint:test", Some("tests passed")),
            ("pnpm --filter @x/y test", Some("tests passed")),
            ("turbo run build test", Some("build passed")),
            ("npm help test", None),
        ] {
            let call = json_object! { "input": json_object! { "command": command } };
            assert_eq!(actions_of(&call), Vec::from_iter(action), "{command}");
        }
    }

    #[test]
    fn lines_of_the_table_have_kinds_that_are_used() {
        for [kind, of, _] in rows() {
            let is_fact = crate::facts::FactKind::from_name(kind).is_some();
            let is_part = ["runner", "wrapper", "field", "option", "question"].contains(&kind);
            assert!(if of == "part" { is_part } else { is_fact }, "{kind}");
        }
        let lines = include_str!("../tables/commands.tsv").lines();
        assert_eq!(
            rows().count(),
            lines.filter(|line| !line.starts_with('#')).count()
        );
    }
}
