//! The commands of a script for a shell, as far as it takes to know which programs ran.

use std::{collections::HashMap, str::Split, sync::LazyLock};

/// So much of a script is looked at, in bytes, and so many words of a command.
const MOST_BYTES: usize = 16 * 1024;
const MOST_WORDS: usize = 16;

/// Returns the rows of `tables/commands.tsv`: a kind, what it is of, and words.
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, &'static str, Split<'static, char>)> {
    let rows = include_str!("../tables/commands.tsv").lines();
    rows.filter_map(|row| {
        let mut cells = row.split('\t');
        Some((cells.next()?, cells.next()?, cells.next()?.split('|')))
    })
}

/// The words of each kind.
static WORDS: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut words: HashMap<_, Vec<_>> = HashMap::new();
    rows().for_each(|(kind, _, names)| words.entry(kind).or_default().extend(names));
    words
});

/// Returns the words of a kind.
pub(crate) fn words_of(kind: &str) -> impl Iterator<Item = &'static str> {
    WORDS.get(kind).into_iter().flatten().copied()
}

/// Returns the words of each command of a script that runs something, without the text of here-documents and comments.
pub(crate) fn commands_of(script: &str) -> Vec<Vec<String>> {
    let script = &script[..script.floor_char_boundary(MOST_BYTES)];
    let mut commands = Commands::default();
    let mut quote = None;
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match (c, quote) {
            ('<', quote) if quote != Some('\'') && rest.starts_with("<<") => length = document(rest),
            ('\\', quote) if quote != Some('\'') => {
                let next = rest[1..].chars().next();
                length += next.map_or(0, char::len_utf8);
                // A line that goes on.
                next.filter(|next| *next != '\n')
                    .into_iter()
                    .for_each(|next| commands.push(next));
            }
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => commands.push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                commands.open();
            }
            (';' | '&' | '|' | '\n' | '(' | ')' | '`', None) => commands.end(),
            ('#', None) if commands.word.is_none() => length = rest.find('\n').unwrap_or(rest.len()),
            (c, None) if c.is_whitespace() => commands.end_word(),
            (c, None) => commands.push(c),
        }
        rest = &rest[length..];
    }
    commands.end();
    commands.list
}

/// Returns the length of a here-document with its operator; of the operator if it is none.
fn document(text: &str) -> usize {
    let name = text[2..].trim_start_matches(['-', '~', '\'', '"', '\\']);
    let length = name
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    let (name, rest) = name.split_at(length);
    let start = text.len() - rest.len();
    let mut at = start;
    for line in rest.split_inclusive('\n') {
        if at > start && line.trim() == name && !name.is_empty() {
            return at + line.trim_end().len();
        }
        at += line.len();
    }
    2
}

#[derive(Default)]
struct Commands {
    list: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
}

impl Commands {
    fn open(&mut self) {
        self.word.get_or_insert_default();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let word = self.word.take().filter(|_| self.words.len() < MOST_WORDS);
        // Variables that are set before a command.
        let is_variable = |word: &String| {
            let name = word.split_once('=').map(|(name, _)| name);
            self.words.is_empty()
                && name.is_some_and(|name| {
                    name.bytes()
                        .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
                })
        };
        let word = word.filter(|word| !is_variable(word));
        self.words.extend(word);
    }

    fn end(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty()
            && !words
                .iter()
                .any(|word| words_of("question").any(|option| option == word))
        {
            self.list.push(words);
        }
    }
}

/// Returns how many words of a command its beginning takes, if it begins with these; options between them do not matter.
pub(crate) fn length_of(words: &[String], beginning: &str) -> Option<usize> {
    let mut at = 0;
    for part in beginning.split(' ') {
        loop {
            let word = words.get(at)?;
            at += 1;
            if word == part || at == 1 && program_of(word) == part {
                break;
            }
            match word.as_str() {
                _ if at == 1 => return None,
                "clean" => {}
                option if words_of("option").any(|other| other == option) => at += 1,
                option if option.starts_with(['-', '+']) => {}
                _ => return None,
            }
        }
    }
    Some(at)
}

/// Returns the name of a program: without its folder, its ending on Windows and the version of Python.
pub(crate) fn program_of(word: &str) -> &str {
    let folder = word.bytes().rposition(|byte| matches!(byte, b'/' | b'\\'));
    let name = &word[folder.map_or(0, |at| at + 1)..];
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let name = name.strip_suffix(".cmd").unwrap_or(name);
    let rest = name.strip_prefix("python");
    let is_version = |rest: &str| rest.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    if rest.is_some_and(is_version) {
        "python"
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_script_leave_out_texts_variables_and_comments() {
        for (script, commands) in [
            (
                "cd /x && CI=1 npm test 2>&1 | tail -5",
                &["cd /x", "npm test 2>", "1", "tail -5"][..],
            ),
            (
                "git commit -m \"a; npm test && b\" # npm test",
                &["git commit -m a; npm test && b"],
            ),
            ("echo 'it''s' it\\ is\\\n a", &["echo its it is a"]),
            (
                "git commit -m \"$(cat <<'EOF'\nfix \"it\"; cargo test\nEOF\n)\" && git push",
                &["git commit -m $(cat \n)", "git push"],
            ),
            ("cat <<X\nnpm test\nX\nls", &["cat", "ls"]),
            (
                "out=$(go test ./...); echo `ls`",
                &["go test ./...", "echo", "ls"],
            ),
            ("pytest --version; cargo test --no-run", &[]),
            ("a << b", &["a b"]),
            ("", &[]),
        ] {
            let found = commands_of(script);
            let found: Vec<_> = found.iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, commands, "{script}");
        }
    }

    #[test]
    fn length_of_a_beginning_skips_options_and_their_values() {
        let length = |command: &str, beginning| {
            let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
            length_of(&words, beginning)
        };
        assert_eq!(
            length("git -C /x -c a=b --no-pager commit -m x", "git commit"),
            Some(7)
        );
        assert_eq!(
            length(".venv/bin/python3.11 -m pytest -q", "python -m pytest"),
            Some(3)
        );
        assert_eq!(length("mvn clean verify", "mvn verify"), Some(3));
        assert_eq!(length("cargo +nightly test", "cargo test"), Some(3));
        assert_eq!(length("node --test x", "node --test"), Some(2));
        assert_eq!(length("git log commit", "git commit"), None);
        assert_eq!(length("echo git commit", "git commit"), None);
        assert_eq!(length("git", "git commit"), None);
    }
}
