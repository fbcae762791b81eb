//! The table of traces for people: the best first, as wide as the terminal.

use std::{
    collections::HashMap,
    env,
    io::{self, IsTerminal},
};

use anstyle::{AnsiColor, Style};
use knowledgepulse_json::Text;

use crate::{
    score::scored::Scored,
    show::{
        messages::allows_colours,
        near_duplicate::{is_near_duplicate, resemblance},
        printable::{fitted, fixed, grouped, label_of, pad_end, width_of},
        statistics::Sorted,
    },
};

/// How wide the table is where nothing says how wide the reader's page is.
const USUAL_WIDTH: usize = 100;
const LEAST_OBJECTIVE: usize = 16;
const AGENT_WIDTH: usize = 12;

/// The most UTF-16 code units of an objective that are looked at.
const MOST_UNITS: usize = 240;

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Rows that wait until all are known.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<TableRow>,
    /// Whether the rows come in their order.
    is_sorted: bool,
    /// How many of the best rows are shown; `None` for all.
    most: Option<usize>,
    count: usize,
    /// The traces of sub-agents, until it is known whether their sessions are there.
    of_sub_agents: Vec<TableRow>,
    /// By the name of a session, the one that has started it.
    parents: HashMap<Text, Option<Text>>,
    /// How many traces are near-copies of a trace, by its id.
    alike: HashMap<Text, u64>,
    /// The first trace of the near-copies that each trace is of, by its id.
    first: HashMap<Text, Text>,
}

/// What is told of a trace.
#[derive(Debug)]
struct TableRow {
    scored: Scored,
    /// What the row ends with: what is like the trace.
    end: String,
    /// Lines below the row.
    below: String,
}

impl Table {
    /// Returns a table of the best traces, of these many or of all.
    pub(crate) fn new(most: Option<usize>) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Returns a table of all traces, in the order in which they are added.
    pub(crate) fn in_order() -> Self {
        Self {
            is_sorted: true,
            ..Self::default()
        }
    }

    /// Adds a trace, in the order of the input. Its row ends with `end`, and `below` are lines that explain its score.
    pub(crate) fn add(&mut self, scored: &Scored, end: String, below: String) {
        self.count += 1;
        let nearest = scored.breakdown.novelty.nearest.as_ref();
        let nearest = nearest.and_then(|nearest| nearest.label.as_deref());
        if !self.is_sorted
            && is_near_duplicate(resemblance(&scored.breakdown))
            && let Some(nearest) = nearest
        {
            let nearest = Text::from(nearest);
            let first = self.first.get(&nearest).cloned().unwrap_or(nearest);
            *self.alike.entry(first.clone()).or_default() += 1;
            if let Some(id) = &scored.about.id {
                self.first.insert(id.clone(), first);
            }
        }
        let row = TableRow {
            scored: scored.clone(),
            end,
            below,
        };
        let run = &scored.about.run;
        if let Some(session) = run
            .session
            .clone()
            .filter(|session| run.parent.as_ref() != Some(session))
        {
            self.parents.insert(session, run.parent.clone());
        }
        if run.parent.is_some() && !self.is_sorted {
            self.of_sub_agents.push(row);
            return;
        }
        self.rows.push(row);
        if let Some(most) = self.most
            && self.rows.len() >= 2 * most + 64
        {
            self.sort();
        }
    }

    /// Puts the best first, of equal ones the earlier, and leaves out the others.
    fn sort(&mut self) {
        if self.is_sorted {
            return;
        }
        // The sort is stable. Scores are never NaN.
        self.rows.sort_by(|one, other| {
            other
                .scored
                .breakdown
                .score
                .total_cmp(&one.scored.breakdown.score)
        });
        self.rows.truncate(self.most.unwrap_or(usize::MAX));
    }

    /// Returns the table, best first, with the rank of each score among `scores`.
    pub(crate) fn render(mut self, scores: &Sorted) -> String {
        let mut sub_agents: HashMap<Text, u64> = HashMap::new();
        for mut row in std::mem::take(&mut self.of_sub_agents) {
            if let Some(session) = row.scored.about.run.root(&self.parents) {
                *sub_agents.entry(session.clone()).or_default() += 1;
                self.count -= 1;
            } else {
                row.end = "sub-agent".into();
                self.rows.push(row);
            }
        }
        self.sort();
        let ids = self.rows.iter().map(|row| row.scored.about.id.clone());
        let numbers: HashMap<_, _> = ids.zip(1..).collect();
        for row in &mut self.rows {
            let run = &row.scored.about.run;
            let own = run.session.as_ref().filter(|_| run.parent.is_none());
            let started = own.and_then(|session| sub_agents.get(session)).copied();
            let counts = [
                (started.unwrap_or_default(), ["sub-agent", "sub-agents"]),
                (run.copies, ["earlier copy", "earlier copies"]),
            ];
            let counts = counts.into_iter().filter(|(count, _)| *count > 0);
            let counts: Vec<_> = counts
                .map(|(count, names)| format!("+{} {}", grouped(count), names[usize::from(count > 1)]))
                .collect();
            if !counts.is_empty() {
                row.end = counts.join(", ");
                continue;
            }
            let alike = row.scored.about.id.as_ref().and_then(|id| self.alike.get(id));
            if let Some(alike) = alike {
                row.end = format!("+{} alike", grouped(*alike));
            } else if let Some(id) = &row.scored.about.id
                && let Some(first) = self.first.get(id)
            {
                let number = numbers.get(&Some(first.clone()));
                row.end = number.map_or("a near-copy".into(), |number| format!("like {number}"));
            }
        }
        let mut text = render(&self.rows, scores);
        if self.count > self.rows.len() {
            text.push_str(&format!(
                "the {} best of {}; --all shows all\n",
                grouped(self.rows.len() as u64),
                grouped(self.count as u64)
            ));
        }
        text
    }
}

#[cfg(not(target_family = "wasm"))]
fn terminal_width() -> Option<usize> {
    let (_, columns) = console::Term::stdout().size_checked()?;
    Some(columns.into())
}

#[cfg(target_family = "wasm")]
fn terminal_width() -> Option<usize> {
    None
}

/// Returns a table of rows in their order, with the rank of each score among `scores`. It is as wide as the terminal, or as `COLUMNS`
/// says.
fn render(rows: &[TableRow], scores: &Sorted) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns: usize = columns.or_else(terminal_width).unwrap_or(USUAL_WIDTH);
    let has_colours = io::stdout().is_terminal() && allows_colours();
    let number_width = rows.len().to_string().len().max(2);
    let cells = |[number, score, beats, agent, when, steps]: [&str; 6]| {
        let agent = pad_end(agent, AGENT_WIDTH);
        format!("{number:>number_width$}  {score:5}  {beats:>5}  {agent}  {when:10}  {steps:>5}  ")
    };
    let heading = cells(["#", "score", "beats", "agent", "when", "steps"]) + "done  ";
    let room = columns.saturating_sub(width_of(&heading)).max(LEAST_OBJECTIVE);
    let painted = |style: Style, text: &str| match has_colours {
        true => format!("{style}{text}{style:#}"),
        false => text.to_owned(),
    };
    let mut table = painted(HEADING, &format!("{heading}objective")) + "\n";
    for (number, TableRow { scored, end, below }) in (1..).zip(rows) {
        let about = &scored.about;
        let score = scored.breakdown.score;
        let share = format!("{} %", fixed(100.0 * scores.share_below(score), 0));
        let when = about
            .when
            .as_deref()
            .and_then(|when| when.get(..10))
            .unwrap_or_default();
        let (done, style) = match about.success {
            Some(true) => ("yes", GOOD),
            Some(false) => ("no", BAD),
            None => ("?", FAINT),
        };
        let cells = cells([
            &number.to_string(),
            &fixed(score, 3),
            &share,
            &fitted(&about.agent, AGENT_WIDTH),
            when,
            &grouped(about.steps),
        ]);
        let done = format!("{}{:2$}", painted(style, done), "", 4 - done.len());
        let end = if end.is_empty() {
            String::new()
        } else {
            format!("  {end}")
        };
        let objective = label_of(&about.objective, "", MOST_UNITS);
        let left = room.saturating_sub(width_of(&end)).max(1);
        let objective = fitted(objective.trim(), left);
        let line = format!("{cells}{done}  {objective}{}", painted(FAINT, &end));
        table.push_str(line.trim_end());
        table.push('\n');
        table.push_str(below);
    }
    table
}
