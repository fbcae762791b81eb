//! Chooses from more traces than memory holds, in two passes over them. The first draws a sample; the second offers every trace to a sieve,
//! which judges sets by how well they cover the sample.
//!
//! The sieve is sieve-streaming++ (Kazemi et al., ICML 2019). It keeps a set for each of some thresholds, and adds a trace to the sets that
//! gain at least their threshold by it. For the F of the sample, where s(i, j) is that of the [`NEAR`] nearest i of each j, the best of these
//! sets has at least 1/2 - [`EPSILON`] of the largest F of all sets of its size. Greedy over the traces of all sets then finds a better one
//! nearly always.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
    thread,
    time::Instant,
};

use knowledgepulse_error::Result;
use knowledgepulse_index::{
    method::Method,
    traces::{TraceEntry, TraceMemory},
};
use knowledgepulse_os as os;
use knowledgepulse_trace::{label::Label, words::Words};

use super::{
    Candidates, Count, NEIGHBOURS, Neighbour, Outcome, Reason, Rule, Sampled, Selection, Standing, describe,
    facility::{Pick, Submodular, greedy},
    judge, mean_of, outlook, quality_by_length,
};

/// The ratio of neighbouring thresholds, and the part of the guarantee that it costs.
const EPSILON: f64 = 0.1;

/// How many traces of the sample a trace can cover.
const NEAR: usize = 256;

/// Where the numbers begin by which a sample is drawn: the same traces give the same sample.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// A trace that is offered.
#[derive(Debug, Clone)]
pub struct Offered {
    /// The words or embedding to compare.
    pub words: Words,
    /// How it ended.
    pub outcome: Outcome,
    /// The id.
    pub label: Option<Label>,
}

/// A uniform sample of traces, of bounded size: Algorithm R (Vitter 1985).
#[derive(Debug)]
pub struct Sample {
    window: usize,
    seen: usize,
    random: u64,
    /// The index of each trace among all.
    traces: Vec<(usize, Offered)>,
}

impl Sample {
    /// No traces yet, at most `window`.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            window,
            seen: 0,
            random: SEED,
            traces: Vec::new(),
        }
    }

    /// Offers the next trace. `read` is called only if it joins the sample.
    pub fn offer(&mut self, read: impl FnOnce() -> Offered) {
        let index = self.seen;
        self.seen += 1;
        if self.traces.len() < self.window {
            self.traces.push((index, read()));
            return;
        }
        let place = self.below(self.seen);
        if let Some(replaced) = self.traces.get_mut(place) {
            *replaced = (index, read());
        }
    }

    /// A number below another one, by SplitMix64.
    #[allow(clippy::cast_possible_truncation)] // Below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(SEED);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        ((u128::from(bits) * end as u128) >> 64) as usize
    }

    /// Returns how many traces were offered.
    #[must_use]
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Ends the first pass: returns the sieve to which all traces are to be offered again, in the same order. `threads` is how many
    /// threads compare; 0 stands for one for each core.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::join`].
    pub fn into_sieve(
        mut self,
        count: Count,
        threads: usize,
        progress: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Sieve> {
        self.traces.sort_unstable_by_key(|&(index, _)| index);
        let mut candidates = Candidates::new(Method::Lexical, 0);
        for (_, offered) in &self.traces {
            let entry = TraceEntry {
                label: offered.label.as_ref(),
                ..(&offered.words).into()
            };
            candidates.add(entry, offered.outcome)?;
        }
        let neighbours = candidates.memory.join(0, NEIGHBOURS, threads, progress)?;
        let (rule, unknown, _, weights) = judge(&neighbours, &candidates);
        let size = self.traces.len();
        Ok(Sieve {
            memories: vec![candidates.memory; os::threads(threads)],
            lengths: candidates.lengths,
            mean: mean_of(&candidates.outcomes),
            weights,
            most: vec![0.0; size],
            indices: self.traces.into_iter().map(|(index, _)| index).collect(),
            rule,
            unknown,
            count: count.of(self.seen),
            offered: 0,
            largest: 0.0,
            best: 0.0,
            sets: BTreeMap::new(),
            pruned: None,
        })
    }
}

/// The sets of the second pass.
#[derive(Debug)]
pub struct Sieve {
    /// The sample, once for each thread: a search changes a memory's buffers.
    memories: Vec<TraceMemory>,
    /// The length of each trace of the sample.
    lengths: Vec<f64>,
    /// The value of an unknown outcome, where most are known.
    mean: f64,
    /// w of each trace of the sample.
    weights: Vec<f64>,
    /// The largest q s by which any trace covers each trace of the sample.
    most: Vec<f64>,
    /// The index of each trace of the sample among all.
    indices: Vec<usize>,
    rule: Rule,
    unknown: usize,
    count: usize,
    offered: usize,
    /// The largest F of a single trace.
    largest: f64,
    /// The largest F of a set.
    best: f64,
    /// By the exponents of their thresholds, which are powers of 1 + ε.
    sets: BTreeMap<i32, Set>,
    /// The best set whose threshold has become too low: it may stay the best of all.
    pruned: Option<Set>,
}

/// A trace of a set.
#[derive(Debug)]
struct Member {
    index: usize,
    label: Option<Label>,
    quality: f64,
    /// The places in the sample of the traces that it covers, with q s.
    row: Vec<(usize, f64)>,
}

impl Member {
    /// Returns the trace at an index, with its similarity by its q s, or that of the member.
    fn neighbour(&self, index: usize, value: f64) -> Neighbour {
        let similarity = value / self.quality;
        Neighbour { index, similarity }
    }
}

#[derive(Debug)]
struct Set {
    members: Vec<Arc<Member>>,
    cover: Vec<f64>,
    value: f64,
}

impl Set {
    fn new(sample: usize) -> Self {
        Self {
            members: Vec::new(),
            cover: vec![0.0; sample],
            value: 0.0,
        }
    }

    fn by_value(one: &Self, other: &Self) -> Ordering {
        one.value.total_cmp(&other.value)
    }

    fn gain(&self, member: &Member, weights: &[f64]) -> f64 {
        let row = member.row.iter();
        row.map(|&(place, value)| weights[place] * (value - self.cover[place]).max(0.0))
            .sum()
    }

    fn add(&mut self, member: &Arc<Member>, gain: f64) {
        for &(place, value) in &member.row {
            self.cover[place] = self.cover[place].max(value);
        }
        self.value += gain;
        self.members.push(Arc::clone(member));
    }
}

/// A set that grows by members.
struct Growing<'g> {
    set: Set,
    members: &'g [&'g Arc<Member>],
    weights: &'g [f64],
}

impl Submodular for Growing<'_> {
    fn gain(&self, index: usize) -> f64 {
        self.set.gain(self.members[index], self.weights)
    }

    fn choose(&mut self, index: usize) {
        let gain = self.gain(index);
        self.set.add(self.members[index], gain);
    }
}

impl Sieve {
    /// Offers the next traces.
    ///
    /// # Errors
    /// The errors of [`TraceMemory::nearest`].
    pub fn offer(&mut self, traces: &[Offered]) -> Result<()> {
        let part = traces.len().div_ceil(self.memories.len()).max(1);
        let (rule, mean, lengths) = (self.rule, self.mean, &self.lengths);
        let rows = |memory: &mut TraceMemory, traces: &[Offered]| -> Result<Vec<_>> {
            let row = |trace: &Offered| row_of(memory, &trace.words, trace.outcome, rule, mean, lengths);
            traces.iter().map(row).collect()
        };
        let parts: Vec<Result<Vec<_>>> = thread::scope(|scope| {
            let pairs = self.memories.iter_mut().zip(traces.chunks(part));
            if cfg!(target_family = "wasm") || traces.len() <= part {
                return pairs.map(|(memory, traces)| rows(memory, traces)).collect();
            }
            let workers: Vec<_> = pairs
                .map(|(memory, traces)| scope.spawn(|| rows(memory, traces)))
                .collect();
            let results = workers.into_iter().map(|worker| worker.join());
            results
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let rows: Vec<_> = parts
            .into_iter()
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        for ((quality, row), trace) in rows.into_iter().zip(traces) {
            let index = self.offered;
            self.offered += 1;
            self.take(Member {
                index,
                label: trace.label.clone(),
                quality,
                row,
            });
        }
        Ok(())
    }

    /// Adds a trace to the sets that gain enough by it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // Exponents of positive doubles are below 10^5.
    fn take(&mut self, member: Member) {
        for &(place, value) in &member.row {
            self.most[place] = self.most[place].max(value);
        }
        let single: f64 = member
            .row
            .iter()
            .map(|&(place, value)| self.weights[place] * value)
            .sum();
        self.largest = self.largest.max(single);
        if single <= 0.0 || self.count == 0 {
            return;
        }
        let base = (1.0 + EPSILON).ln();
        let least = self.best.max(self.largest) / (2.0 * self.count as f64);
        let first = (least.ln() / base).floor() as i32;
        let kept = self.sets.split_off(&first);
        let pruned = mem::replace(&mut self.sets, kept).into_values();
        self.pruned = pruned.chain(self.pruned.take()).max_by(Set::by_value);
        let member = Arc::new(member);
        for exponent in first..=(self.largest.ln() / base).floor() as i32 {
            let threshold = (f64::from(exponent) * base).exp();
            let gain = match self.sets.get(&exponent) {
                Some(set) if set.members.len() >= self.count => continue,
                Some(set) => set.gain(&member, &self.weights),
                None => single,
            };
            if gain >= threshold {
                let sample = self.weights.len();
                let set = self.sets.entry(exponent).or_insert_with(|| Set::new(sample));
                set.add(&member, gain);
                self.best = self.best.max(set.value);
            }
        }
    }

    fn all_sets(&self) -> impl Iterator<Item = &Set> {
        self.sets.values().chain(&self.pruned)
    }

    /// Returns the ids of the traces of the sample and of the sets, by their indices.
    #[must_use]
    pub fn labels(&mut self) -> HashMap<usize, Label> {
        let now = Instant::now();
        let mut labels = HashMap::new();
        if let Some(memory) = self.memories.first_mut() {
            for (place, &index) in (0..).zip(&self.indices) {
                let label = memory
                    .stored(place..place + 1, now)
                    .and_then(|stored| stored.label);
                labels.extend(label.map(|label| (index, label)));
            }
        }
        let members = self.all_sets().flat_map(|set| &set.members);
        labels.extend(members.filter_map(|member| Some((member.index, member.label.clone()?))));
        labels
    }

    /// Ends the second pass. The standings of the sample's remaining traces are known, those of other traces are not. An `outlook` adds the other
    /// traces of the sets to the curve, and lays out the chosen traces and the sample.
    #[must_use]
    pub fn finish(self, outlook: bool) -> Selection {
        let all: BTreeMap<usize, &Arc<Member>> = self
            .all_sets()
            .flat_map(|set| &set.members)
            .map(|member| (member.index, member))
            .collect();
        let all: Vec<_> = all.into_values().collect();
        let best = self.all_sets().max_by(|one, other| Set::by_value(one, other));
        let best: Vec<_> = best.map(|best| best.members.iter().collect()).unwrap_or_default();
        let choose = |members| self.greedy(Set::new(self.weights.len()), members, self.count);
        let (of_all, of_best) = (choose(&all), choose(&best));
        let total = |picks: &[(f64, &Arc<Member>)]| picks.iter().map(|(gain, _)| gain).sum::<f64>();
        let (picks, set) = if total(&of_all.0) >= total(&of_best.0) {
            of_all
        } else {
            of_best
        };
        let members: HashMap<usize, &Member> = picks
            .iter()
            .map(|(_, member)| (member.index, &***member))
            .collect();
        let beyond = outlook.then(|| {
            let is_left = |member: &&&Arc<Member>| !members.contains_key(&member.index);
            let left: Vec<_> = all.iter().filter(is_left).copied().collect();
            let (more, _) = self.greedy(set, &left, (outlook::BEYOND - 1) * picks.len());
            more.into_iter().map(pick_of).collect()
        });
        // The chosen trace that covers each trace of the sample best, with q s.
        let mut standing: Vec<Option<(f64, Neighbour)>> = vec![None; self.indices.len()];
        for (_, member) in &picks {
            for &(place, value) in &member.row {
                if standing[place].is_none_or(|(other, _)| value > other) {
                    standing[place] = Some((value, member.neighbour(member.index, value)));
                }
            }
        }
        let left = self.indices.iter().zip(standing);
        let left: Vec<_> = left
            .filter(|(index, _)| !members.contains_key(index))
            .map(|(&index, by)| {
                let standing = by.map_or(Standing::Nothing, |(_, by)| Standing::Chosen(by));
                (index, standing)
            })
            .collect();
        let most: f64 = self
            .most
            .iter()
            .zip(&self.weights)
            .map(|(most, weight)| most * weight)
            .sum();
        // A chosen trace attracts the traces of the sample that it covers; one of the sample covers itself.
        let near = |index: usize| {
            let rows = members.get(&index).into_iter();
            let near = rows.flat_map(|member| {
                let row = member.row.iter();
                row.map(|&(place, value)| member.neighbour(self.indices[place], value))
            });
            near.filter(move |near| near.index != index)
        };
        let picks = picks.iter().map(|&pick| (pick_of(pick), Reason::Coverage));
        let (chosen, outlook) = describe(picks.collect(), beyond, &left, 0.0, most, near);
        Selection {
            chosen,
            left,
            rule: self.rule,
            unknown: self.unknown,
            covered_before: 0.0,
            outlook,
            sampled: Some(Sampled {
                size: self.indices.len(),
                seen: self.offered,
            }),
        }
    }

    /// Chooses up to `count` of the members, each the one by which F grows most, with its gain, of equal ones the first. `set` was chosen
    /// before. Returns the larger set too.
    fn greedy<'m>(
        &self,
        set: Set,
        members: &[&'m Arc<Member>],
        count: usize,
    ) -> (Vec<(f64, &'m Arc<Member>)>, Set) {
        let weights = &self.weights;
        let mut growing = Growing {
            set,
            members,
            weights,
        };
        let picks = greedy(&mut growing, count, 0..members.len()).into_iter();
        let picks = picks.map(|pick| (pick.gain, members[pick.index]));
        (picks.collect(), growing.set)
    }
}

fn pick_of((gain, member): (f64, &Arc<Member>)) -> Pick {
    let index = member.index;
    Pick { index, gain }
}

/// Returns q of a trace, and by how much it covers each trace of the sample, which the memory holds.
#[allow(clippy::cast_precision_loss)] // At most NEAR.
fn row_of(
    memory: &mut TraceMemory,
    words: &Words,
    outcome: Outcome,
    rule: Rule,
    mean: f64,
    lengths: &[f64],
) -> Result<(f64, Vec<(usize, f64)>)> {
    let near = memory.nearest(words.into(), NEAR, Instant::now())?;
    let near = near.iter().map(|near| Neighbour {
        index: near.index,
        similarity: near.similarity.value(),
    });
    let quality = match rule {
        Rule::Outcomes => outcome.quality().unwrap_or(mean),
        Rule::Unknown => quality_by_length(outcome.length(words), lengths, near.clone().take(NEIGHBOURS)),
    };
    let row = near.map(|near| (near.index, quality * near.similarity));
    Ok((quality, row.filter(|&(_, value)| value > 0.0).collect()))
}

#[cfg(test)]
mod tests {
    use knowledgepulse_trace::fixtures::with_texts;
    use proptest::prelude::*;

    use super::*;
    use crate::select::Chosen;

    /// Returns traces of some words; every other one succeeded.
    fn traces(texts: &[Vec<u32>]) -> Vec<Offered> {
        let text = |words: &Vec<u32>| {
            words
                .iter()
                .map(|word| format!("word{word} "))
                .collect::<String>()
        };
        let outcome = |index: usize| Outcome {
            success: Some(index.is_multiple_of(2)),
            confidence: 1.0,
            recoveries: 0.0,
        };
        let pairs = texts.iter().enumerate();
        pairs
            .map(|(index, words)| Offered {
                words: Words::of(&with_texts(&text(words), &[])),
                outcome: outcome(index),
                label: Some(index.to_string().into()),
            })
            .collect()
    }

    fn sieve_of(traces: &[Offered], window: usize, count: usize, threads: usize) -> Sieve {
        let mut sample = Sample::new(window);
        for trace in traces {
            sample.offer(|| trace.clone());
        }
        let mut sieve = sample
            .into_sieve(Count::Number(count), threads, &|_| true)
            .unwrap();
        for part in traces.chunks(7) {
            sieve.offer(part).unwrap();
        }
        sieve
    }

    /// By how much each trace covers each of the sample, computed one by one: q s.
    fn rows(traces: &[Offered], sieve: &mut Sieve) -> Vec<Vec<f64>> {
        let row = |Offered { words, outcome, .. }: &Offered| {
            let near = sieve.memories[0]
                .nearest(words.into(), NEAR, Instant::now())
                .unwrap();
            let mut row = vec![0.0; sieve.weights.len()];
            for near in near {
                row[near.index] = outcome.quality().unwrap() * near.similarity.value();
            }
            row
        };
        traces.iter().map(row).collect()
    }

    fn value(set: &[usize], rows: &[Vec<f64>], weights: &[f64]) -> f64 {
        let best = |place: usize| set.iter().map(|&one| rows[one][place]).fold(0.0, f64::max);
        (0..weights.len()).map(|place| weights[place] * best(place)).sum()
    }

    /// The largest F of all sets of a size.
    fn optimum(from: usize, left: usize, set: &mut Vec<usize>, rows: &[Vec<f64>], weights: &[f64]) -> f64 {
        let mut best = value(set, rows, weights);
        for next in from..if left == 0 { from } else { rows.len() } {
            set.push(next);
            best = best.max(optimum(next + 1, left - 1, set, rows, weights));
            set.pop();
        }
        best
    }

    #[test]
    fn finish_returns_the_best_set_even_if_its_threshold_was_pruned() {
        let texts = [
            &[8, 0, 1][..],
            &[2, 4],
            &[0],
            &[0],
            &[0, 4, 8, 1],
            &[0],
            &[4, 1, 8, 2],
            &[2],
        ];
        let traces = traces(&texts.map(<[u32]>::to_vec));
        let mut sieve = sieve_of(&traces, 5, 2, 1);
        let (rows, weights) = (rows(&traces, &mut sieve), sieve.weights.clone());
        let best = sieve.best;
        let chosen: Vec<_> = sieve
            .finish(false)
            .chosen
            .iter()
            .map(|chosen| chosen.index)
            .collect();
        assert!(value(&chosen, &rows, &weights) >= best - 1e-9);
    }

    /// Checks that there is a set for each threshold from a lower bound of the optimum on, up to the largest F of a single trace.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    fn thresholds_are_right(sieve: &Sieve) {
        let exponent = |value: f64| (value.ln() / (1.0 + EPSILON).ln()).floor() as i32;
        let (first, last) = (sieve.sets.keys().next(), exponent(sieve.largest));
        let first = *first.unwrap();
        assert!(first >= exponent(sieve.largest / (2.0 * sieve.count as f64)));
        assert!(sieve.sets.keys().copied().eq(first..=last));
    }

    #[test]
    fn thresholds_reach_the_largest_value_of_a_trace() {
        let mut texts: Vec<_> = (0..12).map(|word| vec![word, 100 + word]).collect();
        texts.push((0..12).collect());
        let sieve = sieve_of(&traces(&texts), 20, 2, 1);
        assert!(sieve.largest > 1.1, "{}", sieve.largest);
        thresholds_are_right(&sieve);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn sieve_keeps_its_guarantee(
            texts in prop::collection::vec(prop::collection::vec(0u32..12, 1..6), 1..14),
            window in 1usize..16,
            count in 1usize..4,
        ) {
            let traces = traces(&texts);
            let mut sieve = sieve_of(&traces, window, count, 1);
            let (rows, weights) = (rows(&traces, &mut sieve), sieve.weights.clone());
            let optimum = optimum(0, count, &mut Vec::new(), &rows, &weights);
            thresholds_are_right(&sieve);
            // The best set of the sieve has it alone.
            prop_assert!(sieve.best >= (0.5 - EPSILON) * optimum, "{} of {optimum}", sieve.best);
            for set in sieve.sets.values() {
                let members: Vec<_> = set.members.iter().map(|member| member.index).collect();
                prop_assert!((value(&members, &rows, &weights) - set.value).abs() < 1e-9);
                prop_assert!(members.len() <= count);
            }
            let best = sieve.best;
            let most: f64 = (0..weights.len()).map(|place| weights[place] * rows.iter().map(|row| row[place]).fold(0.0, f64::max)).sum();
            let indices = sieve.indices.clone();
            let labels = sieve.labels();
            prop_assert!(labels.iter().all(|(index, label)| **label == index.to_string()));
            prop_assert!(indices.iter().all(|index| labels.contains_key(index)));
            let selection = sieve.finish(false);
            let chosen: Vec<_> = selection.chosen.iter().map(|chosen| chosen.index).collect();
            let found = value(&chosen, &rows, &weights);
            prop_assert!(found >= best - 1e-9);
            let gains: f64 = selection.chosen.iter().map(|chosen| chosen.gain).sum();
            prop_assert!((found - gains).abs() < 1e-9);
            let covered = selection.chosen.last().map_or(0.0, |last| last.covered);
            prop_assert!((covered * most - found).abs() < 1e-9);
            // Each trace of the sample is chosen, or left with the chosen one that covers it best.
            let is_chosen = |index: &usize| chosen.contains(index);
            let left: Vec<_> = selection.left.iter().map(|&(index, _)| index).collect();
            prop_assert_eq!(left, indices.iter().copied().filter(|index| !is_chosen(index)).collect::<Vec<_>>());
            for &(index, standing) in &selection.left {
                let place = indices.iter().position(|&of| of == index).unwrap();
                let best = chosen.iter().map(|&one| rows[one][place]).fold(0.0, f64::max);
                let covered = match standing {
                    Standing::Chosen(near) => near.similarity * traces[near.index].outcome.quality().unwrap(),
                    _ => 0.0,
                };
                prop_assert!((covered - best).abs() < 1e-9);
            }
            let similarities = selection.chosen.iter().map(|chosen| chosen.stands_for.iter().map(|near| near.similarity));
            prop_assert!(similarities.clone().all(|of| of.is_sorted_by(|one, other| one >= other)));
            let standing = selection.left.iter().filter(|(_, by)| matches!(by, Standing::Chosen(_)));
            prop_assert_eq!(similarities.flatten().count(), standing.count());
            prop_assert_eq!(selection.sampled, Some(Sampled { size: window.min(traces.len()), seen: traces.len() }));
        }

        #[test]
        fn sieve_takes_the_same_set_on_any_number_of_threads(
            texts in prop::collection::vec(prop::collection::vec(0u32..20, 1..8), 1..60),
            threads in 2usize..5,
        ) {
            let traces = traces(&texts);
            let one = sieve_of(&traces, 20, 5, 1).finish(false);
            let several = sieve_of(&traces, 20, 5, threads);
            prop_assert_eq!(several.memories.len(), threads);
            prop_assert_eq!(one, several.finish(false));
        }
    }

    #[test]
    fn sieve_of_tasks_takes_a_success_of_each() {
        let texts: Vec<_> = (0..400_u32)
            .map(|run| vec![run / 40, 100 + run / 40, 200 + run])
            .collect();
        let selection = sieve_of(&traces(&texts), 100, 10, 2).finish(false);
        let mut tasks: Vec<_> = selection.chosen.iter().map(|chosen| chosen.index / 40).collect();
        tasks.sort_unstable();
        assert_eq!(tasks, (0..10).collect::<Vec<_>>());
        assert!(selection.chosen.iter().all(|chosen| chosen.index % 2 == 0));
        assert!(selection.chosen[9].covered > 0.5);
        assert!(
            selection
                .explanation()
                .ends_with("; all 400 traces were held against a sample of 100")
        );
        let stands_for: usize = selection
            .chosen
            .iter()
            .map(|chosen| chosen.stands_for.len())
            .sum();
        assert!(stands_for + 10 >= 100 && selection.left.len() <= 100);
    }

    #[test]
    fn finish_with_an_outlook_shows_the_chosen_set_and_the_sample() {
        let texts: Vec<_> = (0..400_u32)
            .map(|run| vec![run / 40, 100 + run / 40, 200 + run])
            .collect();
        let traces = traces(&texts);
        let selection = sieve_of(&traces, 100, 4, 1).finish(true);
        let outlook = selection.outlook.unwrap();
        assert_eq!(
            sieve_of(&traces, 100, 4, 1).finish(false).chosen,
            selection.chosen
        );
        let covered: Vec<_> = selection.chosen.iter().map(|chosen| chosen.covered).collect();
        let curve: Vec<_> = covered.into_iter().chain(outlook.beyond).collect();
        assert!((5..=16).contains(&curve.len()) && curve.is_sorted(), "{curve:?}");
        let places: HashMap<_, _> = outlook.places.iter().map(|place| (place.index, place)).collect();
        let distance = |one: usize, other: usize| {
            let (one, other) = (places[&one], places[&other]);
            (one.x - other.x).hypot(one.y - other.y)
        };
        for chosen in &selection.chosen {
            assert!(!chosen.stands_for.is_empty());
            for near in chosen.stands_for.iter().take(16) {
                let others = selection
                    .chosen
                    .iter()
                    .filter(|other| other.index != chosen.index);
                let is_nearer =
                    |other: &Chosen| distance(near.index, chosen.index) < distance(near.index, other.index);
                assert!(
                    others.clone().all(is_nearer),
                    "{} of {}",
                    near.index,
                    chosen.index
                );
            }
        }
    }

    #[test]
    fn sample_is_uniform_and_the_same_each_time() {
        let none = Offered {
            words: Words::default(),
            outcome: Outcome {
                success: None,
                confidence: 0.5,
                recoveries: 0.0,
            },
            label: None,
        };
        let draw = || {
            let mut sample = Sample::new(1000);
            (0..10_000).for_each(|_| sample.offer(|| none.clone()));
            assert_eq!(sample.seen(), 10_000);
            sample.traces.iter().map(|&(index, _)| index).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        for tenth in 0..10 {
            let count = drawn.iter().filter(|&index| index / 1000 == tenth).count();
            assert!((70..=130).contains(&count), "{count} of tenth {tenth}");
        }
    }

    #[test]
    fn sample_draws_by_splitmix64() {
        let mut sample = Sample::new(1);
        let drawn: Vec<_> = (0..3).map(|_| sample.below(1 << 32)).collect();
        assert_eq!(drawn, [1_853_398_634, 113_532_184, 4_169_906_344]);
    }

    #[test]
    fn row_has_the_quality_and_the_covered_traces() {
        let mut sample = Candidates::new(Method::Lexical, 0);
        let sizes = [
            ("same words here", 2.0),
            ("other things", 5.0),
            ("same words here", 9.0),
        ];
        let words = |text| Words::of(&with_texts(text, &[]));
        for (text, _) in sizes {
            sample
                .add(
                    (&words(text)).into(),
                    Outcome {
                        success: None,
                        confidence: 0.5,
                        recoveries: 0.0,
                    },
                )
                .unwrap();
        }
        let sizes = sizes.map(|(_, size)| size);
        let own: f64 = words("same words here")
            .iter()
            .map(|word| word.count.value())
            .sum();
        let sizes = sizes.map(|size| size * own / 5.0);
        for (success, rule, quality) in [
            (Some(true), Rule::Outcomes, 0.5),
            (Some(false), Rule::Outcomes, 0.15),
            (None, Rule::Outcomes, 0.75),
            (Some(true), Rule::Unknown, 0.8),
        ] {
            let outcome = Outcome {
                success,
                confidence: 0.5,
                recoveries: 0.0,
            };
            let text = words("same words here");
            let (found, row) = row_of(&mut sample.memory, &text, outcome, rule, 0.75, &sizes).unwrap();
            assert!((found - quality).abs() < 1e-12, "{rule:?} {success:?}: {found}");
            let expected = [(0, found), (2, found)];
            assert!(
                row.len() == 2
                    && row
                        .iter()
                        .zip(expected)
                        .all(|(one, other)| one.0 == other.0 && (one.1 - other.1).abs() < 1e-12),
                "{row:?}"
            );
        }
    }

    #[test]
    fn sieve_without_outcomes_says_so() {
        let mut traces = traces(&[vec![1, 2], vec![1, 2, 3], vec![7, 8]]);
        traces.iter_mut().for_each(|trace| trace.outcome.success = None);
        let selection = sieve_of(&traces, 3, 2, 1).finish(false);
        assert_eq!((selection.rule, selection.unknown), (Rule::Unknown, 3));
        let chosen: Vec<_> = selection.chosen.iter().map(|chosen| chosen.index).collect();
        assert!(chosen.len() == 2 && chosen.contains(&2), "{chosen:?}");
    }

    #[test]
    fn trace_is_left_to_the_first_chosen_trace_that_covers_it_best() {
        for (texts, success, count, left, by, similarity) in [
            (
                &[&[1, 2][..], &[1, 3], &[3, 4]][..],
                [true, false, true],
                2,
                1,
                0,
                None,
            ),
            (&[&[1], &[1]], [false, false, false], 1, 1, 0, Some(1.0)),
        ] {
            let texts: Vec<_> = texts.iter().map(|words| words.to_vec()).collect();
            let mut traces = traces(&texts);
            for (trace, success) in traces.iter_mut().zip(success) {
                trace.outcome.success = Some(success);
            }
            let selection = sieve_of(&traces, 3, count, 1).finish(false);
            let [(index, Standing::Chosen(near))] = selection.left[..] else {
                panic!("{:?}", selection.left);
            };
            assert_eq!((index, near.index), (left, by));
            assert!(similarity.is_none_or(|similarity: f64| (near.similarity - similarity).abs() < 1e-12));
        }
    }

    #[test]
    fn sieve_of_nothing_is_empty() {
        for (window, count) in [(0, 5), (10, 0), (10, 5)] {
            let none = sieve_of(&[], window, count, 1).finish(false);
            assert!(none.chosen.is_empty() && none.left.is_empty());
            let some = sieve_of(&traces(&[vec![1], vec![2]]), window, count, 1).finish(false);
            assert!(some.chosen.len() <= count.min(window));
        }
    }
}
