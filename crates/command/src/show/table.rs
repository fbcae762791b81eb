//! The table of traces for people, as wide as the terminal.

use std::{
    env,
    io::{self, IsTerminal},
};

use anstyle::{AnsiColor, Style};
use knowledgepulse_share::told_apart;

use crate::{Scored, Sorted, TraceInfo, allows_colours, fitted, fixed, grouped, label_of, pad_end, width_of};

/// How wide the table is where nothing says how wide the reader's page is.
const USUAL_WIDTH: usize = 100;
const LEAST_OBJECTIVE: usize = 28;

/// The widest cells of a column other than the objective, where there is room, and where there is little.
const WIDEST: usize = 32;
const WIDEST_OF_NARROW: usize = 12;

/// The most UTF-16 code units of a text that are looked at.
const MOST_UNITS: usize = 240;

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Rows that wait until all are known.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<TableRow>,
    /// How many rows are shown; `None` for all.
    most: Option<usize>,
    /// Whether the best scores come first and are shown; otherwise the rows are of sessions, in their order.
    has_scores: bool,
    count: usize,
}

/// What is told of a trace.
#[derive(Debug)]
struct TableRow {
    scored: Scored,
    /// What the row ends with.
    end: String,
    /// Lines below the row.
    below: String,
}

/// A column before the objective.
struct Column {
    heading: &'static str,
    cells: Vec<String>,
    is_number: bool,
    /// Whether it is shown even if it says the same of each row.
    stays: bool,
}

/// The columns that a narrow terminal goes without, the first to go first.
const FIRST_TO_GO: [&str; 3] = ["date", "agent", "turns"];

impl Table {
    /// Returns a table of scores, the best first: of these many or of all.
    pub(crate) fn of_scores(most: Option<usize>) -> Self {
        Self {
            rows: Vec::new(),
            most,
            has_scores: true,
            count: 0,
        }
    }

    /// Returns a table of sessions in the order in which they are added: of the first ones, or of all.
    pub(crate) fn of_sessions(most: Option<usize>) -> Self {
        Self {
            has_scores: false,
            ..Self::of_scores(most)
        }
    }

    /// Adds a trace. Its row ends with `end`, and `below` are lines that explain its score.
    pub(crate) fn add(&mut self, scored: &Scored, end: String, below: String) {
        self.count += 1;
        self.rows.push(TableRow {
            scored: scored.clone(),
            end,
            below,
        });
        if self.most.is_some_and(|most| self.rows.len() >= 2 * most + 64) {
            self.leave_out();
        }
    }

    /// Leaves out the rows that are not shown; of equal scores the later.
    fn leave_out(&mut self) {
        let score = |row: &TableRow| row.scored.breakdown.score;
        if self.has_scores {
            // The sort is stable. Scores are never NaN.
            self.rows
                .sort_by(|one, other| score(other).total_cmp(&score(one)));
        }
        self.rows.truncate(self.most.unwrap_or(usize::MAX));
    }

    /// Returns the table, with the rank of each score among `scores`.
    pub(crate) fn render(mut self, scores: &Sorted) -> String {
        self.leave_out();
        let columns = if self.has_scores {
            self.columns_of_scores(scores)
        } else {
            self.columns_of_sessions()
        };
        let mut text = self.with_objectives(&columns);
        if self.count > self.rows.len() {
            text.push_str(&format!(
                "the {} best of {}; --all shows all\n",
                grouped(self.rows.len() as u64),
                grouped(self.count as u64)
            ));
        }
        text
    }

    fn column(&self, heading: &'static str, is_number: bool, cell: impl Fn(&Scored) -> String) -> Column {
        Column {
            heading,
            cells: self.rows.iter().map(|row| cell(&row.scored)).collect(),
            is_number,
            stays: false,
        }
    }

    fn columns_of_scores(&self, scores: &Sorted) -> Vec<Column> {
        let share = |scored: &Scored| scores.share_below(scored.breakdown.score);
        let stays = |column| Column {
            stays: true,
            ..column
        };
        vec![
            stays(self.column("score", true, |scored| fixed(scored.breakdown.score, 3))),
            stays(self.column("beats", true, |scored| {
                format!("{} %", fixed(100.0 * share(scored), 0))
            })),
            self.column("agent", false, |scored| {
                label_of(&scored.about.agent, "", MOST_UNITS)
            }),
            self.column("date", false, |scored| date_of(&scored.about)),
            stays(self.column("steps", true, |scored| grouped(scored.about.steps))),
            stays(self.column("done", false, |scored| {
                let done = scored
                    .about
                    .success
                    .map(|success| if success { "yes" } else { "no" });
                done.unwrap_or("?").into()
            })),
        ]
    }

    fn columns_of_sessions(&self) -> Vec<Column> {
        let project = |scored: &Scored| scored.about.project.clone().unwrap_or_default();
        vec![
            self.column("project", false, |scored| {
                label_of(&project(scored), "", MOST_UNITS)
            }),
            self.column("agent", false, |scored| {
                label_of(&scored.about.agent, "", MOST_UNITS)
            }),
            self.column("date", false, |scored| date_of(&scored.about)),
            self.column("turns", true, |scored| grouped(scored.about.turns)),
            self.column("facts", false, |scored| {
                let done = scored
                    .about
                    .success
                    .map(|success| if success { "succeeded" } else { "failed" });
                let facts = scored.about.facts_in_words().into_iter();
                done.map(str::to_owned)
                    .into_iter()
                    .chain(facts)
                    .collect::<Vec<_>>()
                    .join(" · ")
            }),
        ]
    }

    /// Returns the columns with the number of each row before them and its objective behind them. The table is as wide as the terminal, or
    /// as `COLUMNS` says.
    fn with_objectives(&self, columns: &[Column]) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let width = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width: usize = width.or_else(terminal_width).unwrap_or(USUAL_WIDTH);
        let has_colours = io::stdout().is_terminal() && allows_colours();
        let painted = |style: Style, text: String| match has_colours && !text.is_empty() {
            true => format!("{style}{text}{style:#}"),
            false => text,
        };
        let number_width = self.rows.len().to_string().len().max(2);
        let mut lines = vec![format!("{:>number_width$}", "#")];
        lines.extend((1..=self.rows.len()).map(|number| format!("{number:>number_width$}")));
        let mut columns: Vec<_> = columns.iter().filter(|column| column.is_shown()).collect();
        let used = |columns: &[&Column], widest: usize| {
            let widths = columns.iter().map(|column| column.width(widest) + 2);
            number_width + 2 + widths.sum::<usize>()
        };
        for heading in FIRST_TO_GO {
            if used(&columns, WIDEST_OF_NARROW) + LEAST_OBJECTIVE / 2 > width {
                columns.retain(|column| column.heading != heading);
            }
        }
        let fits = |widest: &usize| used(&columns, *widest) + LEAST_OBJECTIVE <= width;
        let widest = (WIDEST_OF_NARROW..=WIDEST)
            .rev()
            .find(fits)
            .unwrap_or(WIDEST_OF_NARROW);
        let room = width
            .saturating_sub(used(&columns, widest))
            .max(LEAST_OBJECTIVE / 2);
        for column in columns {
            let Column {
                heading,
                cells,
                is_number,
                ..
            } = column;
            let width = column.width(widest);
            let padded = |text: &str| match is_number {
                true => format!("  {text:>width$}"),
                false => format!("  {}", pad_end(&fitted(text, width), width)),
            };
            lines[0].push_str(&padded(heading));
            for (line, cell) in lines[1..].iter_mut().zip(cells) {
                let style = match cell.as_str() {
                    "yes" => Some(GOOD),
                    "no" => Some(BAD),
                    "?" => Some(FAINT),
                    _ => None,
                };
                let styled = style.map(|style| padded(cell).replacen(cell, &painted(style, cell.clone()), 1));
                line.push_str(&styled.unwrap_or_else(|| padded(cell)));
            }
        }
        lines[0] = painted(HEADING, format!("{}  objective", lines[0]));
        let objectives: Vec<_> = self.rows.iter().map(|row| &*row.scored.about.objective).collect();
        let objectives = told_apart(&objectives);
        for ((line, TableRow { end, below, .. }), objective) in
            lines[1..].iter_mut().zip(&self.rows).zip(&objectives)
        {
            let end = if end.is_empty() {
                String::new()
            } else {
                format!("  {end}")
            };
            let objective = label_of(objective, "", MOST_UNITS);
            let left = room.saturating_sub(width_of(&end)).max(1);
            let objective = fitted(objective.trim(), left);
            *line = format!("{line}  {objective}{}", painted(FAINT, end))
                .trim_end()
                .to_owned();
            line.push_str(format!("\n{below}").trim_end_matches('\n'));
        }
        lines.join("\n") + "\n"
    }
}

impl Column {
    /// Returns its width, where a cell is at most so wide.
    fn width(&self, widest: usize) -> usize {
        let widths = self.cells.iter().map(|cell| width_of(cell).min(widest));
        widths.max().unwrap_or_default().max(self.heading.len())
    }

    /// Returns whether it says something, and not the same of each of several rows.
    fn is_shown(&self) -> bool {
        let is_same = self.cells.iter().all(|cell| *cell == self.cells[0]);
        self.stays || !is_same || self.cells.len() == 1 && !self.cells[0].is_empty()
    }
}

fn date_of(about: &TraceInfo) -> String {
    let date = about.when.as_deref().and_then(|when| when.get(..10));
    date.unwrap_or_default().to_owned()
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
