//! The table of traces for people, as wide as the terminal.

use std::env;

use console::{Alignment::Left, Style, Term, measure_text_width, pad_str, truncate_str};
use knowledgepulse_share::told_apart;

use crate::{Scored, grouped, label_of};

/// How wide the table is where nothing says how wide the reader's page is.
const USUAL_WIDTH: usize = 100;
const LEAST_OBJECTIVE: usize = 28;

/// The widest cells of a column other than the objective, where there is room, and where there is little.
const WIDEST: usize = 32;
const WIDEST_OF_NARROW: usize = 12;

/// The most UTF-16 code units of a text that are looked at.
const MOST_UNITS: usize = 240;

const HEADING: Style = Style::new().bold();
const FAINT: Style = Style::new().dim();

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
}

/// The columns before the objective.
const COLUMNS: [&str; 5] = ["project", "agent", "date", "turns", "facts"];

/// The column that comes before these where traces are scored, and is shown even if all scores are the same.
const SCORE: &str = "score";

/// Returns what a column says of a trace.
fn cell_of(heading: &str, Scored { about, breakdown, .. }: &Scored) -> String {
    match heading {
        SCORE => format!("{:.3}", breakdown.score),
        "project" => label_of(&about.project.clone().unwrap_or_default(), "", MOST_UNITS),
        "agent" => label_of(&about.agent, "", MOST_UNITS),
        "date" => {
            let date = about.when.as_deref().and_then(|when| when.get(..10));
            date.unwrap_or_default().to_owned()
        }
        "turns" => grouped(about.turns),
        _ => {
            let ended = about
                .success
                .map(|done| if done { "succeeded" } else { "failed" });
            let facts = ended.map(str::to_owned).into_iter().chain(about.facts_in_words());
            facts.collect::<Vec<_>>().join(" · ")
        }
    }
}

/// The columns of numbers.
const NUMBERS: [&str; 3] = ["#", SCORE, "turns"];

/// The columns that a narrow terminal goes without, the first to go first.
const FIRST_TO_GO: [&str; 3] = ["date", "agent", "turns"];

impl Table {
    /// Returns a table of these many or of all: of scores, the best first, or else of sessions in the order in which they are added.
    pub(crate) fn new(has_scores: bool, most: Option<usize>) -> Self {
        Self {
            rows: Vec::new(),
            most,
            has_scores,
            count: 0,
        }
    }

    /// Adds a trace, whose row ends with `end`.
    pub(crate) fn add(&mut self, scored: &Scored, end: String) {
        self.count += 1;
        let scored = scored.clone();
        self.rows.push(TableRow { scored, end });
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

    /// Returns the table.
    pub(crate) fn render(mut self) -> String {
        self.leave_out();
        if self.rows.is_empty() {
            return String::new();
        }
        let columns = self.has_scores.then_some(SCORE).into_iter().chain(COLUMNS);
        let columns = columns.map(|heading| {
            let cells = self.rows.iter().map(|row| cell_of(heading, &row.scored));
            (heading, cells.collect())
        });
        let mut text = self.with_objectives(columns.filter(is_shown).collect());
        if self.count > self.rows.len() {
            let [shown, all] = [self.rows.len(), self.count].map(|count| grouped(count as u64));
            text.push_str(&format!("the {shown} best of {all}; --all shows all\n"));
        }
        text
    }

    /// Returns the columns with the number of each row before them and its objective behind them. The table is as wide as the terminal, or
    /// as `COLUMNS` says.
    fn with_objectives(&self, mut columns: Vec<Cells>) -> String {
        let width = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let of_terminal = || Term::stdout().size_checked().map(|(_, columns)| columns.into());
        let width: usize = width.or_else(of_terminal).unwrap_or(USUAL_WIDTH);
        let numbers = (1..=self.rows.len()).map(|number| format!("{number:>2}"));
        columns.insert(0, ("#", numbers.collect()));
        let mut lines = vec![String::new(); self.rows.len() + 1];
        let used = |columns: &[Cells], widest: usize| {
            let widths = columns.iter().map(|cells| width_in(cells, widest) + 2);
            widths.sum::<usize>()
        };
        for heading in FIRST_TO_GO {
            if used(&columns, WIDEST_OF_NARROW) + LEAST_OBJECTIVE / 2 > width {
                columns.retain(|(other, _)| *other != heading);
            }
        }
        let fits = |widest: &usize| used(&columns, *widest) + LEAST_OBJECTIVE <= width;
        let widest = (WIDEST_OF_NARROW..=WIDEST).rev().find(fits);
        let widest = widest.unwrap_or(WIDEST_OF_NARROW);
        let room = width.saturating_sub(used(&columns, widest));
        let room = room.max(LEAST_OBJECTIVE / 2);
        for cells in &columns {
            let (width, (heading, cells)) = (width_in(cells, widest), cells);
            let padded = |text: &str| match NUMBERS.contains(heading) {
                true => format!("  {text:>width$}"),
                false => format!("  {}", pad_str(text, width, Left, Some("…"))),
            };
            lines[0].push_str(&padded(heading));
            for (line, cell) in lines[1..].iter_mut().zip(cells) {
                line.push_str(&padded(cell));
            }
        }
        lines[0] = HEADING
            .apply_to(format!("{}  objective", &lines[0][2..]))
            .to_string();
        let objectives: Vec<_> = self.rows.iter().map(|row| &row.scored.about.objective).collect();
        let objectives = told_apart(&objectives, room);
        for ((line, row), objective) in lines[1..].iter_mut().zip(&self.rows).zip(&objectives) {
            let end = match row.end.as_str() {
                "" => String::new(),
                end => format!("  {}", FAINT.apply_to(end)),
            };
            let objective = label_of(objective, "", MOST_UNITS);
            let left = room.saturating_sub(measure_text_width(&end)).max(1);
            let objective = truncate_str(objective.trim(), left, "…");
            // Without the space before the first column.
            let whole = format!("{}  {objective}{end}", &line[2..]);
            whole.trim_end().clone_into(line);
        }
        lines.join("\n") + "\n"
    }
}

/// The heading of a column, and its cells.
type Cells = (&'static str, Vec<String>);

/// Returns the width of a column in which a cell is at most so wide.
fn width_in((heading, cells): &Cells, widest: usize) -> usize {
    let widths = cells.iter().map(|cell| measure_text_width(cell).min(widest));
    widths.max().unwrap_or_default().max(heading.len())
}

/// Returns whether a column says something, and not the same of each of several rows.
fn is_shown((heading, cells): &Cells) -> bool {
    let is_same = cells.iter().all(|cell| *cell == cells[0]);
    *heading == SCORE || !is_same || cells.len() == 1 && !cells[0].is_empty()
}
