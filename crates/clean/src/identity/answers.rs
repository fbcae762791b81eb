//! Commands that ask for a name, and what they have printed.

use std::{mem, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};

use super::{Identities, rules::RULES};

/// More commands do not wait for their answers.
const MOST_ASKED: usize = 8;
/// Longer texts are no commands that ask for a name.
const MOST_COMMAND: usize = 4096;

impl Identities {
    /// Remembers the commands of a text that ask for a name, until their output is seen.
    pub(super) fn note_commands(&mut self, text: &str) {
        if text.len() > MOST_COMMAND {
            return;
        }
        let commands = commands_of(text);
        // A call is often told twice, as its text and as its input.
        if !commands.is_empty() && !self.asked.contains(&commands) {
            self.asked
                .drain(..(self.asked.len() + 1).saturating_sub(MOST_ASKED));
            self.asked.push(commands);
        }
    }

    /// Takes a text for what one of the last commands has printed, if it looks so.
    pub(super) fn take_answer(&mut self, text: &str) {
        let text = text.rsplit_once("Output:\n").map_or(text, |(_, output)| output);
        let is_printed = |line: &&str| !line.is_empty() && !line.starts_with(['[', '{', '<', '$']);
        let lines = text.lines().map(str::trim_ascii).filter(is_printed);
        let lines: Vec<&str> = lines.take(200).collect();
        let mut asked = mem::take(&mut self.asked);
        let answered = asked.iter().position(|commands| {
            // As in a terminal.
            let typed = answers_of(commands, &lines).into_iter();
            let typed = typed.map(|(command, line)| format!("$ {command}\n{line}\n"));
            typed.fold(false, |has, typed| self.is_answer(&typed) | has)
        });
        answered.map(|at| asked.remove(at));
        self.asked = asked;
    }

    /// Learns once from a command with a line that it may have printed. Returns whether a rule has matched.
    fn is_answer(&mut self, typed: &str) -> bool {
        let hash = self.hash_of(typed);
        let known = self.answers.get(&hash).copied();
        let has_match = known.unwrap_or_else(|| self.learn_bytes(typed.as_bytes()));
        self.answers.insert(hash, has_match);
        has_match
    }
}

/// Returns whether a command, or one of several, prints a name on a line.
fn asks(commands: &str) -> bool {
    static ASKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        let is_asking = |keyword: &usize| RULES.of_keyword(*keyword).any(|(_, rule)| rule.is_of_answer);
        let keywords = RULES.keywords();
        let asking = (0..keywords.len()).filter(is_asking).map(|at| &keywords[at]);
        // Leftmost, because several bytes at once are searched so.
        let builder = &mut AhoCorasickBuilder::new();
        builder.match_kind(MatchKind::LeftmostFirst).build(asking).ok()
    });
    ASKS.as_ref().is_some_and(|asks| asks.is_match(commands))
}

/// Returns the commands of a text that may be laid beside lines, if one of them prints a name: the first ones that do, the next one, and the last
/// one. Those of a text of JSON are fields of their own.
fn commands_of(text: &str) -> Vec<String> {
    const ENDS: [char; 2] = ['\n', ';'];
    if text.trim_start().starts_with('{') || !asks(text) {
        return Vec::new();
    }
    let mut commands = Vec::new();
    for next in text
        .split(ENDS)
        .flat_map(|line| line.split("&&"))
        .filter_map(command_of)
    {
        commands.push(next);
        if !asks(next) {
            break;
        }
    }
    let last = text
        .rsplit(ENDS)
        .flat_map(|line| line.rsplit("&&"))
        .find_map(command_of);
    let is_behind = |last: &&str| {
        commands
            .last()
            .is_some_and(|before| before.as_ptr() < last.as_ptr())
    };
    commands.extend(last.filter(is_behind));
    match commands.iter().any(|command| asks(command)) {
        true => commands.into_iter().map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

/// Returns a part of a text without the signs of a prompt; `None` if it asks for nothing.
fn command_of(part: &str) -> Option<&str> {
    let command = part.trim_matches(['$', '%', '>', '!', ' ', '`']);
    (!command.is_empty() && !command.starts_with("cd ")).then_some(command)
}

/// Lays commands that ask for a name beside the lines that were printed: the first ones beside the first lines, or the last one beside the
/// last line. A command between them may print any number of lines, and one by itself a list.
fn answers_of<'l>(commands: &'l [String], lines: &[&'l str]) -> Vec<(&'l str, &'l str)> {
    const MOST_LISTED: usize = 40;
    /// Longer lines that end like a sentence are of an answer in words: `The command completed successfully.` is not.
    const MOST_WORDS: usize = 6;
    let is_code = |line: &str| line.contains(['"', '{', '}', '=', ';']);
    let is_said = |line: &str| {
        line.ends_with(',')
            || line.ends_with(['.', ':', '!', '?']) && line.split(' ').nth(MOST_WORDS).is_some()
    };
    if let ([command], 2..=MOST_LISTED) = (commands, lines.len())
        && !lines.iter().any(|line| is_code(line) || is_said(line))
    {
        return lines.iter().map(|line| (command.as_str(), *line)).collect();
    }
    let first = commands.iter().take_while(|command| asks(command)).count();
    let last = commands[first..].last().filter(|command| asks(command));
    if lines.len() < first + usize::from(last.is_some()) {
        return Vec::new();
    }
    let pairs = commands
        .iter()
        .zip(lines)
        .take(first)
        .chain(last.zip(lines.last()));
    pairs.map(|(command, line)| (command.as_str(), *line)).collect()
}
