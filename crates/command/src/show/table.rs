//! The table of traces for people, as wide as the terminal.

use std::env;

use console::{Alignment::Left, Style, Term, measure_text_width, pad_str, truncate_str};
use knowledgepulse_share::told_apart;

use crate::{Scored, grouped, label_of};

/// How wide the table is where nothing says how wide the reader's page is.
const USUAL_WIDTH: usize = 100;
const LEAST_OBJECTIVE: usize = 14;

/// The widest cells of a column other than the objective, which have a fifth of the width, on a wide and on a narrow page.
const WIDEST: usize = 32;
const WIDEST_OF_NARROW: usize = 12;

/// The most UTF-16 code units of a text that are looked at.
const MOST_UNITS: usize = 240;

const HEADING: Style = Style::new().bold();
const FAINT: Style = Style::new().dim();

/// The column that comes first where traces are scored.
const SCORE: &str = "score";

/// The columns before the objective.
const COLUMNS: [&str; 7] = ["#", SCORE, "project", "agent", "date", "turns", "facts"];

/// The columns of numbers, of which the first two are shown even if all say the same.
const NUMBERS: [&str; 3] = ["#", SCORE, "turns"];

/// The columns that a narrow terminal goes without, the first to go first.
const FIRST_TO_GO: [&str; 3] = ["date", "agent", "turns"];

/// Rows that wait until all are known.
#[derive(Debug)]
pub(crate) struct Table {
    /// Each trace, and what its row ends with.
    rows: Vec<(Scored, String)>,
    /// How many rows are shown; `None` for all.
    most: Option<usize>,
    /// Whether the best scores come first and are shown; otherwise the rows are of sessions, in their order.
    pub has_scores: bool,
    count: usize,
}

/// Returns what a column says of a trace, whose row has this number.
fn cell_of(heading: &str, number: usize, Scored { about, breakdown, .. }: &Scored) -> String {
    match heading {
        "#" => format!("{number:>2}"),
        SCORE => format!("{:.3}", breakdown.score),
        "project" => label_of(&about.project.clone().unwrap_or_default(), MOST_UNITS),
        "agent" => label_of(&about.agent, MOST_UNITS),
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
        self.rows.push((scored.clone(), end));
        if self.most.is_some_and(|most| self.rows.len() >= 2 * most + 64) {
            self.leave_out();
        }
    }

    /// Leaves out the rows that are not shown; of equal scores the later.
    fn leave_out(&mut self) {
        let score = |(scored, _): &(Scored, String)| scored.breakdown.score;
        if self.has_scores {
            // The sort is stable. Scores are never NaN.
            self.rows
                .sort_by(|one, other| score(other).total_cmp(&score(one)));
        }
        self.rows.truncate(self.most.unwrap_or(usize::MAX));
    }

    /// Returns the table, as wide as the terminal, or as `COLUMNS` says.
    pub(crate) fn render(&mut self) -> String {
        self.leave_out();
        if self.rows.is_empty() {
            return String::new();
        }
        let width = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let of_terminal = || Term::stdout().size_checked().map(|(_, columns)| columns.into());
        let width: usize = width.or_else(of_terminal).unwrap_or(USUAL_WIDTH);
        let columns = COLUMNS.into_iter().map(|heading| {
            let cells = (1..).zip(&self.rows);
            let cells = cells.map(|(number, (scored, _))| cell_of(heading, number, scored));
            (heading, cells.collect())
        });
        let mut columns: Vec<Cells> = columns.filter(is_shown).collect();
        columns.retain(|(heading, _)| self.has_scores || *heading != SCORE);
        let widest = (width / 5).clamp(WIDEST_OF_NARROW, WIDEST);
        let room_beside = |columns: &[Cells]| {
            let widths = columns.iter().map(|cells| width_in(cells, widest) + 2);
            width.saturating_sub(widths.sum())
        };
        for heading in FIRST_TO_GO {
            if room_beside(&columns) < LEAST_OBJECTIVE {
                columns.retain(|(other, _)| *other != heading);
            }
        }
        let room = room_beside(&columns).max(LEAST_OBJECTIVE);
        let padded = |column: &Cells, text: &str| {
            let width = width_in(column, widest);
            match NUMBERS.contains(&column.0) {
                true => format!("{text:>width$}  "),
                false => format!("{}  ", pad_str(text, width, Left, Some("…"))),
            }
        };
        let heading: String = columns.iter().map(|column| padded(column, column.0)).collect();
        let mut text = format!("{}\n", HEADING.apply_to(heading + "objective"));
        let objectives: Vec<_> = self
            .rows
            .iter()
            .map(|(scored, _)| &scored.about.objective)
            .collect();
        let objectives = told_apart(&objectives, room);
        for (at, ((_, end), objective)) in self.rows.iter().zip(&objectives).enumerate() {
            let end = match end.as_str() {
                "" => String::new(),
                end => format!("  {}", FAINT.apply_to(end)),
            };
            let objective = label_of(objective, MOST_UNITS);
            let left = room.saturating_sub(measure_text_width(&end)).max(1);
            let objective = truncate_str(objective.trim(), left, "…");
            let mut line: String = columns
                .iter()
                .map(|column| padded(column, &column.1[at]))
                .collect();
            line += &format!("{objective}{end}");
            text += &format!("{}\n", line.trim_end());
        }
        if self.count > self.rows.len() {
            let [shown, all] = [self.rows.len(), self.count].map(|count| grouped(count as u64));
            text += &format!("the {shown} best of {all}; --all shows all\n");
        }
        text
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
    NUMBERS[..2].contains(heading) || !is_same || cells.len() == 1 && !cells[0].is_empty()
}
