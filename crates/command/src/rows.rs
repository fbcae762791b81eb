//! The results on standard output: a row for each trace.

use std::mem;

use knowledgepulse_index::memory::{Basis, Nearest, Reading};
use knowledgepulse_json::{Text, Value, is_white_space, number as javascript_number};
use knowledgepulse_score::{
    Breakdown,
    overrides::{Override, Rule},
};

use crate::{
    breakdown::value_of,
    json_object,
    near_duplicate::{is_near_duplicate, resemblance},
    options::Format,
    printable::{MOST_UNITS, decimal, fixed, label_of, pad_end, printable, rounded, width_of},
    scored::{Judged, Scored},
    values::IntoValue,
};

/// The placeholder for a domain without visible characters.
pub const NO_DOMAIN: &str = "(none)";

const BAR_WIDTH: usize = 10;
const DOMAIN_WIDTH: usize = 18;

/// A longer place loses its beginning: the end of a path tells it from others.
const PLACE_WIDTH: usize = 40;
const OBJECTIVE_WIDTH: usize = 60;

/// Similarities are computed in single precision, which has about as many decimals.
const SINGLE_DECIMALS: u8 = 6;

const CSV_HEADER: &str =
    "source,line,index,id,objective,domain,score,kept,format,knownSuccess,knownConfidence";
const CSV_EXPLANATION: &str = ",complexity,novelty,toolDiversity,outcomeConfidence,profile,\
    complexityWeight,noveltyWeight,toolDiversityWeight,outcomeConfidenceWeight,\
    composite,overrides,noveltyBasis,nearestLabel,nearestSimilarity,tokens,truncated";

/// Makes text of results: [`begin`](Self::begin), then a [`row`](Self::row) for each trace, then [`end`](Self::end).
#[derive(Debug)]
pub struct Rows {
    format: Format,
    explains: bool,
    shows_kept: bool,
    is_first: bool,
    /// The widest place so far, in UTF-16 code units, so that objectives are mostly below each other.
    place_width: usize,
}

impl Rows {
    /// Returns the rows of a format. `explains` adds the parts of each score, `shows_kept` a column of the table that says
    /// if the trace is kept.
    pub fn new(format: Format, explains: bool, shows_kept: bool) -> Self {
        Self {
            format,
            explains,
            shows_kept,
            is_first: true,
            place_width: 0,
        }
    }

    /// Returns the text before the first row.
    pub fn begin(&self) -> String {
        match self.format {
            Format::Json => r#"{"results":["#.into(),
            Format::Csv if self.explains => format!("{CSV_HEADER}{CSV_EXPLANATION}\n"),
            Format::Csv => format!("{CSV_HEADER}\n"),
            // The table has its heading with the first row: there may be none.
            Format::Table | Format::JsonLines => String::new(),
        }
    }

    /// Returns the row of a trace.
    pub fn row(&mut self, judged: &Judged) -> String {
        let is_first = mem::take(&mut self.is_first);
        match self.format {
            Format::Table if is_first => self.heading() + &self.table_row(judged),
            Format::Table => self.table_row(judged),
            Format::Json if is_first => format!("\n{}", self.json(judged)),
            Format::Json => format!(",\n{}", self.json(judged)),
            Format::JsonLines => format!("{}\n", self.json(judged)),
            Format::Csv => csv_line(&self.csv_cells(judged)),
        }
    }

    /// Returns the text after the last row.
    pub fn end(&self, summary: &Value) -> String {
        match self.format {
            Format::Json => format!("\n],\"summary\":{}}}\n", summary.to_json()),
            Format::Table | Format::JsonLines | Format::Csv => String::new(),
        }
    }

    fn heading(&self) -> String {
        let kept = self.kept_cell("kept");
        format!("{:20}{kept}{:DOMAIN_WIDTH$}trace\n", "score", "domain")
    }

    fn kept_cell(&self, text: &str) -> String {
        if self.shows_kept {
            format!("{text:6}")
        } else {
            String::new()
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A score is from 0 to 1.
    fn table_row(&mut self, Judged { scored, kept, .. }: &Judged) -> String {
        let breakdown = &scored.breakdown;
        let full = (breakdown.score * BAR_WIDTH as f64).round() as usize;
        let mut row = format!(
            "{}  {}{}  {}{}{}",
            decimal(breakdown.score),
            "█".repeat(full),
            "░".repeat(BAR_WIDTH.saturating_sub(full)),
            self.kept_cell(if *kept { "yes" } else { "no" }),
            pad_end(
                &label_of(&scored.domain, NO_DOMAIN, DOMAIN_WIDTH - 2),
                DOMAIN_WIDTH
            ),
            self.trace_cell(scored),
        );
        if is_near_duplicate(resemblance(breakdown)) {
            row.push_str(", like ");
            row.push_str(&name_of_nearest(breakdown.novelty.nearest.as_ref()));
        }
        row.push('\n');
        if self.explains {
            row.push_str(&explanation(breakdown));
        }
        row
    }

    /// Returns where a trace is, its objective, and its id, by which others refer to it.
    fn trace_cell(&mut self, scored: &Scored) -> String {
        let place = printable(&end_of(&scored.place.to_string(), PLACE_WIDTH), MOST_UNITS);
        self.place_width = self.place_width.max(width_of(&place));
        let mut cell = pad_end(&place, self.place_width);
        let id = scored.id.as_ref().map(|id| label_of(id, "", MOST_UNITS));
        for name in [
            label_of(&trim_start(&scored.objective), "", OBJECTIVE_WIDTH),
            id.unwrap_or_default(),
        ] {
            if !name.is_empty() {
                cell.push_str("  ");
                cell.push_str(&name);
            }
        }
        cell.truncate(cell.trim_end_matches(is_white_space).len());
        cell
    }

    fn json(&self, judged: &Judged) -> String {
        let Judged {
            scored,
            kept,
            selection,
        } = judged;
        let mut value = json_object! {
            "source": scored.place.source.as_str(),
            "line": scored.place.line,
            "index": scored.place.index,
            "id": scored.id.clone(),
            "objective": scored.objective.clone(),
            "domain": scored.domain.clone(),
            "score": scored.breakdown.score,
            "kept": *kept,
            "format": scored.format.name(),
            "known": scored.known.into_value(),
        };
        if let Value::Object(fields) = &mut value {
            if let Some(selection) = selection {
                fields.insert("selection", selection.clone());
            }
            if self.explains {
                fields.insert("breakdown", value_of(&scored.breakdown));
            }
        }
        value.to_json()
    }

    fn csv_cells(&self, Judged { scored, kept, .. }: &Judged) -> Vec<Value> {
        let breakdown = &scored.breakdown;
        let mut cells = vec![
            scored.place.source.as_str().into(),
            scored.place.line.into_value(),
            scored.place.index.into_value(),
            scored.id.clone().into_value(),
            scored.objective.clone().into(),
            scored.domain.clone().into(),
            breakdown.score.into(),
            (*kept).into(),
            scored.format.name().into(),
            scored.known.success.into(),
            scored.known.confidence.into(),
        ];
        if !self.explains {
            return cells;
        }
        let novelty = &breakdown.novelty;
        let nearest = novelty.nearest.as_ref();
        let rules: Vec<_> = breakdown
            .overrides
            .iter()
            .map(|applied| applied.rule.name())
            .collect();
        let [complexity, compared, tool_diversity, outcome] = breakdown.dimensions.to_array();
        cells.extend([complexity, without_noise(compared), tool_diversity, outcome].map(Value::from));
        cells.push(breakdown.profile.name.as_str().into());
        cells.extend(breakdown.profile.weights.to_array().map(Value::from));
        cells.extend([
            breakdown.composite.into(),
            rules.join(" ").into(),
            novelty.basis.name().into(),
            nearest.and_then(|nearest| nearest.label.as_deref()).into_value(),
            nearest
                .map(|nearest| without_noise(nearest.similarity))
                .into_value(),
            novelty.reading.and_then(|reading| reading.tokens).into_value(),
            novelty.reading.map(|reading| reading.truncated).into_value(),
        ]);
        cells
    }
}

/// Returns the last UTF-16 code units of a text, with an ellipsis where it is longer.
fn end_of(text: &str, units: usize) -> Text {
    let left_out = width_of(text).saturating_sub(units);
    if left_out == 0 {
        return text.into();
    }
    let end: Vec<u16> = text.encode_utf16().skip(left_out + 1).collect();
    [&"…".into(), &Text::from_units(&end)].into_iter().collect()
}

/// Returns a text without the white space that it begins with, as JavaScript's `trimStart` does.
fn trim_start(text: &Text) -> Text {
    let is_space = |&unit: &u16| char::from_u32(unit.into()).is_some_and(is_white_space);
    let rest: Vec<u16> = text.units().skip_while(is_space).collect();
    Text::from_units(&rest)
}

/// Returns the parts of a score, for people: lines of their own and an empty one.
fn explanation(breakdown: &Breakdown) -> String {
    let words = ["complexity", "novelty", "tool diversity", "outcome"];
    let terms: Vec<_> = words
        .into_iter()
        .zip(breakdown.profile.weights.to_array())
        .zip(breakdown.dimensions.to_array())
        .map(|((name, weight), value)| format!("{} × {} {name}", fixed(weight, 2), decimal(value)))
        .collect();
    let mut lines = format!(
        "        {} = {}\n",
        terms.join(" + "),
        decimal(breakdown.composite)
    );
    for Override { rule, after, .. } in &breakdown.overrides {
        let words = match rule {
            Rule::SingleThought => "a single thought",
            Rule::RecoveryBonus => "recovered from errors",
            Rule::SingleToolPenalty => "only one tool",
            Rule::Clamp => "kept within 0 and 1",
        };
        lines.push_str(&format!("        {words}: {}\n", decimal(*after)));
    }
    let tokens = match breakdown.novelty.reading {
        Some(Reading {
            tokens: Some(tokens),
            truncated,
        }) => {
            let rest = if truncated { ", the rest left out" } else { "" };
            format!(", {tokens} tokens{rest}")
        }
        _ => String::new(),
    };
    lines + &format!("        {}{tokens}\n\n", novelty_words(breakdown))
}

fn novelty_words(breakdown: &Breakdown) -> String {
    let nearest = breakdown.novelty.nearest.as_ref();
    match (breakdown.novelty.basis, nearest) {
        (Basis::Given, _) => {
            let novelty = decimal(breakdown.dimensions.novelty);
            format!("novelty {novelty}: as it was scored before")
        }
        (Basis::NoEmbedder, _) => "novelty 0.5: there is no embedder".into(),
        (_, None) => "novelty 0.5: nothing to compare with yet".into(),
        (_, Some(Nearest { similarity, .. })) => {
            format!(
                "most similar: {} ({})",
                name_of_nearest(nearest),
                decimal(*similarity)
            )
        }
    }
}

fn name_of_nearest(nearest: Option<&Nearest>) -> String {
    // The nearest of a known trace that is not compared again is not known.
    let Some(nearest) = nearest else {
        return "an earlier trace".into();
    };
    let label = nearest.label.as_deref().unwrap_or_default();
    label_of(&label.into(), "a trace without an id", MOST_UNITS)
}

/// Returns a number as single precision has it: a similarity of 1.0000000014 is 1, and a novelty of -1.4e-9 is 0.
fn without_noise(number: f64) -> f64 {
    rounded(number, SINGLE_DECIMALS)
}

fn csv_line(cells: &[Value]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.iter().map(csv_cell));
    // Writing to memory does not fail.
    let line = written.ok().and_then(|()| writer.into_inner().ok());
    String::from_utf8(line.unwrap_or_default()).unwrap_or_default()
}

/// Returns the text of a cell. A spreadsheet would compute a text that begins like a formula, so an apostrophe comes before it.
fn csv_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) => javascript_number(*number),
        Value::Digits(digits) => digits.to_string_lossy().into_owned(),
        Value::String(text) => {
            let text = text.to_string_lossy();
            let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
            format!("{}{text}", if is_formula { "'" } else { "" })
        }
        value => value.to_json(),
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;
    use proptest::prelude::*;

    use super::*;
    use crate::scored::tests::scored;

    const SCORED: &str = r#"{"source":"a.jsonl","line":3,"index":1,"format":"trace","known":{"success":true,"confidence":false},
        "id":"t1","objective":" Fix\nit","domain":"=code","success":true,"breakdown":{"score":0.46875,
        "dimensions":{"complexity":0.5,"novelty":-1.4e-9,"toolDiversity":0.25,"outcomeConfidence":1},"profile":"code",
        "weights":{"complexity":0.25,"novelty":0.35,"toolDiversity":0.15,"outcomeConfidence":0.25},
        "contributions":{"complexity":0.125,"novelty":0,"toolDiversity":0.0375,"outcomeConfidence":0.25},"composite":0.4125,
        "overrides":[{"rule":"recovery-bonus","before":0.4125,"after":0.46875}],"noveltyBasis":"cache",
        "nearest":{"label":"t0","similarity":1.0000000014,"lexical":null,"contained":null,"embedded":null,"sharedWords":null,
        "newWords":null},"tokens":512,"truncated":true}}"#;

    fn judged() -> Judged {
        let scored = Scored::from_value(&parse_str(SCORED).unwrap()).unwrap();
        Judged {
            scored,
            kept: false,
            selection: None,
        }
    }

    #[test]
    fn a_row_of_the_table_explains_the_score_in_words() {
        let mut rows = Rows::new(Format::Table, true, true);
        assert_eq!(
            rows.begin() + &rows.row(&judged()),
            "score               kept  domain            trace\n\
             0.4688  █████░░░░░  no    =code             a.jsonl:3[1]  Fix it  t1, like t0\n        \
             0.25 × 0.5000 complexity + 0.35 × 0.0000 novelty + 0.15 × 0.2500 tool diversity + 0.25 × 1.0000 outcome = 0.4125\n        \
             recovered from errors: 0.4688\n        \
             most similar: t0 (1.0000), 512 tokens, the rest left out\n\n"
        );
    }

    #[test]
    fn a_row_of_csv_guards_formulas_and_rounds_what_is_of_single_precision() {
        let mut rows = Rows::new(Format::Csv, true, false);
        assert_eq!(
            rows.row(&judged()),
            "a.jsonl,3,1,t1,\" Fix\nit\",'=code,0.46875,false,trace,true,false,0.5,0,0.25,1,code,0.25,0.35,0.15,0.25,0.4125,\
             recovery-bonus,cache,t0,1,512,true\n"
        );
    }

    #[test]
    fn end_of_cuts_utf16_code_units_from_the_beginning() {
        assert_eq!(end_of("abc", 3), "abc");
        assert_eq!(end_of("abcd", 3), "…cd");
        assert_eq!(end_of("ab😀", 2).units().last(), Some(0xde00));
    }

    proptest! {
        #[test]
        fn a_row_of_the_table_is_one_line_that_is_safe_to_print(scored in scored(), kept: bool) {
            let mut rows = Rows::new(Format::Table, false, true);
            let judged = Judged { scored, kept, selection: None };
            let text = rows.row(&judged) + &rows.row(&judged);
            prop_assert_eq!(text.lines().count(), 3);
            prop_assert!(text.lines().all(|line| printable(&line.into(), usize::MAX) == line));
        }

        #[test]
        fn rows_of_json_are_one_value(scored in scored(), kept: bool) {
            let mut rows = Rows::new(Format::Json, true, false);
            let judged = Judged { scored, kept, selection: None };
            let json = [rows.begin(), rows.row(&judged), rows.row(&judged), rows.end(&kept.into())].concat();
            let value = parse_str(&json).unwrap();
            prop_assert_eq!(value.get("summary"), Some(&kept.into()));
            for result in value.get("results").and_then(Value::as_array).unwrap() {
                prop_assert_eq!(result.get("domain").and_then(Value::as_text), Some(&judged.scored.domain));
                prop_assert_eq!(result.get("breakdown"), Some(&value_of(&judged.scored.breakdown)));
            }
        }

        #[test]
        fn rows_of_csv_have_as_many_cells_as_the_header_and_no_formulas(scored in scored(), explains: bool) {
            let mut rows = Rows::new(Format::Csv, explains, false);
            let objective = scored.objective.to_string_lossy().into_owned();
            let csv = rows.begin() + &rows.row(&Judged { scored, kept: true, selection: None });
            let mut reader = csv::Reader::from_reader(csv.as_bytes());
            let width = reader.headers().unwrap().len();
            let row = reader.records().next().unwrap().unwrap();
            prop_assert_eq!(row.len(), width);
            prop_assert_eq!(row[4].trim_start_matches('\''), objective.trim_start_matches('\''));
            prop_assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '@', '\t', '\r'])));
        }
    }
}
