//! Groups of near-duplicates: traces that are linked by their nearest remembered trace.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use knowledgepulse_json::{Text, Value, object};

use crate::{
    json_object,
    near_duplicate::{SIMILARITY, is_near_duplicate},
    values::{IntoValue, list},
};

/// How many traces can be described when a later one resembles them: those added last.
const RECENT_TRACES: usize = 10_000;

/// How many groups are described, the largest; others are counted alone, unless they grow.
const DESCRIBED_GROUPS: usize = 2_000;

const LISTED_GROUPS: usize = 30;
const LISTED_MEMBERS: usize = 8;
const POSITIONS: usize = 256;

/// The description of a trace of this run.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    /// How many traces were added before it.
    pub(super) position: u64,
    pub(super) id: Option<Text>,
    pub(super) source: Text,
    pub(super) line: u64,
    /// The position in the array that it is an element of.
    pub(super) element: Option<u64>,
    pub(super) score: f64,
    pub(super) excerpt: Text,
}

impl Listed {
    /// Returns the fields of its object.
    pub(super) fn fields(&self) -> [(&'static str, Value); 8] {
        [
            ("position", self.position.into_value()),
            ("index", self.position.into_value()),
            ("id", self.id.clone().into_value()),
            ("source", self.source.clone().into()),
            ("line", self.line.into_value()),
            ("element", self.element.into_value()),
            ("score", self.score.into()),
            ("excerpt", self.excerpt.clone().into()),
        ]
    }
}

/// A trace of a group.
#[derive(Debug)]
struct Member {
    trace: Trace,
    /// The label of the trace that it resembles, and how much; `None` of one that begins a group.
    nearest: Option<(Option<Text>, f64)>,
}

#[derive(Debug)]
enum Trace {
    /// A trace of this run.
    Listed(Arc<Listed>),
    /// One of an earlier run, or of long ago: its id is all there is.
    Forgotten(Text),
}

impl Member {
    fn position(&self) -> Option<u64> {
        match &self.trace {
            Trace::Listed(trace) => Some(trace.position),
            Trace::Forgotten(_) => None,
        }
    }

    fn to_value(&self) -> Value {
        let mut fields = match &self.trace {
            Trace::Listed(trace) => trace.fields().to_vec(),
            Trace::Forgotten(id) => vec![("id", id.clone().into()), ("position", Value::Null)],
        };
        if let Some((label, similarity)) = &self.nearest {
            fields.push(("nearest", label.clone().into_value()));
            fields.push(("similarity", (*similarity).into()));
        }
        object(fields)
    }
}

#[derive(Debug)]
struct Group {
    size: u64,
    /// The first ones.
    members: Vec<Member>,
    /// Of many positions every other one, which shows as well where they lie.
    positions: Vec<u64>,
    min_similarity: f64,
    max_similarity: f64,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            size: 0,
            members: Vec::new(),
            positions: Vec::new(),
            min_similarity: f64::INFINITY,
            max_similarity: f64::NEG_INFINITY,
        }
    }
}

impl Group {
    fn join(&mut self, member: Member) {
        self.size += 1;
        self.positions.extend(member.position());
        self.thin();
        if let Some((_, similarity)) = member.nearest {
            self.min_similarity = self.min_similarity.min(similarity);
            self.max_similarity = self.max_similarity.max(similarity);
        }
        if self.members.len() < LISTED_MEMBERS {
            self.members.push(member);
        }
    }

    fn merge(&mut self, other: Self) {
        self.size += other.size;
        self.members.extend(other.members);
        self.members.sort_by_key(Member::position);
        self.members.truncate(LISTED_MEMBERS);
        self.positions.extend(other.positions);
        self.thin();
        self.min_similarity = self.min_similarity.min(other.min_similarity);
        self.max_similarity = self.max_similarity.max(other.max_similarity);
    }

    fn thin(&mut self) {
        while self.positions.len() > POSITIONS {
            self.positions.sort_unstable();
            self.positions = self.positions.iter().copied().step_by(2).collect();
        }
    }

    fn to_value(&self) -> Value {
        // Labels of earlier runs come first.
        let mut members: Vec<&Member> = self.members.iter().collect();
        members.sort_by_key(|member| member.position());
        let mut positions = self.positions.clone();
        positions.sort_unstable();
        json_object! {
            "size": self.size,
            "minSimilarity": self.min_similarity,
            "maxSimilarity": self.max_similarity,
            "members": list(members.into_iter().map(Member::to_value)),
            "positions": list(positions),
        }
    }
}

/// The traces that were added last.
#[derive(Debug, Default)]
struct Recent {
    traces: VecDeque<Arc<Listed>>,
    /// The positions of these by their ids.
    positions: HashMap<Text, u64>,
}

impl Recent {
    fn push(&mut self, trace: Arc<Listed>) {
        let Some(id) = &trace.id else { return };
        self.positions.insert(id.clone(), trace.position);
        self.traces.push_back(trace);
        if self.traces.len() > RECENT_TRACES
            && let Some(oldest) = self.traces.pop_front()
            && let Some(id) = &oldest.id
            && self.positions.get(id) == Some(&oldest.position)
        {
            self.positions.remove(id);
        }
    }

    fn get(&self, id: &Text) -> Option<Arc<Listed>> {
        let position = self.positions.get(id)?;
        let found = self.traces.binary_search_by_key(position, |trace| trace.position);
        found.ok().and_then(|index| self.traces.get(index)).cloned()
    }
}

/// The groups of near-duplicates of a run: a union-find of groups, by the ids of their traces.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    recent: Recent,
    /// The group in which each trace was put first.
    first_groups: HashMap<Text, usize>,
    /// Into which group each group was merged; itself if into none.
    parents: Vec<usize>,
    /// The groups that were merged into no other.
    groups: HashMap<usize, Group>,
    /// The groups with members, and groups that were merged since.
    described: Vec<usize>,
    /// How many traces resemble an earlier one so much.
    count: u64,
}

impl NearDuplicates {
    /// Adds a trace. `nearest` is the label of the trace that it resembles most, if there is one, and `resemblance` is how much.
    pub(super) fn add(&mut self, trace: Listed, nearest: Option<Option<Text>>, resemblance: Option<f64>) {
        let trace = Arc::new(trace);
        if let Some((label, similarity)) = nearest.zip(resemblance)
            && is_near_duplicate(resemblance)
        {
            self.count += 1;
            self.link(&trace, label, similarity);
        }
        self.recent.push(trace);
    }

    fn link(&mut self, trace: &Arc<Listed>, nearest: Option<Text>, similarity: f64) {
        let mut group = match &nearest {
            Some(label) => self.group_of(label),
            None => self.begin(),
        };
        if trace.id != nearest
            && let Some(id) = &trace.id
        {
            match self.first_groups.get(id) {
                Some(&own) => group = self.merge(group, own),
                None => drop(self.first_groups.insert(id.clone(), group)),
            }
        }
        let trace = Trace::Listed(trace.clone());
        let nearest = Some((nearest, similarity));
        self.join(group, Member { trace, nearest });
    }

    /// Returns the group of the trace that another one resembles; a new one has that trace.
    fn group_of(&mut self, id: &Text) -> usize {
        if let Some(&first) = self.first_groups.get(id) {
            return self.root_of(first);
        }
        let group = self.begin();
        self.first_groups.insert(id.clone(), group);
        let trace = self.recent.get(id);
        let trace = trace.map_or_else(|| Trace::Forgotten(id.clone()), Trace::Listed);
        self.join(group, Member { trace, nearest: None });
        group
    }

    fn begin(&mut self) -> usize {
        let group = self.parents.len();
        self.parents.push(group);
        self.groups.insert(group, Group::default());
        group
    }

    fn join(&mut self, group: usize, member: Member) {
        let joined = self.groups.entry(group).or_default();
        if joined.members.is_empty() {
            self.described.push(group);
        }
        joined.join(member);
        if self.described.len() > 2 * DESCRIBED_GROUPS {
            let largest = self.largest(self.described.len());
            for group in &largest[largest.len().min(DESCRIBED_GROUPS)..] {
                let group = self.groups.entry(*group).or_default();
                (group.members, group.positions) = Default::default();
            }
            self.described = largest;
            self.described.truncate(DESCRIBED_GROUPS);
        }
    }

    /// Returns the group that a group was merged into, by any number of steps, or itself.
    fn root_of(&mut self, mut group: usize) -> usize {
        while self.parents[group] != group {
            // So that the next look takes half of the steps.
            self.parents[group] = self.parents[self.parents[group]];
            group = self.parents[group];
        }
        group
    }

    /// Merges the smaller one of two groups into the larger one, which it returns.
    fn merge(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.root_of(a), self.root_of(b));
        if a == b {
            return a;
        }
        let size = |group| self.groups.get(&group).map_or(0, |group| group.size);
        let (large, small) = if size(a) >= size(b) { (a, b) } else { (b, a) };
        let gone = self.groups.remove(&small).unwrap_or_default();
        self.groups.entry(large).or_default().merge(gone);
        self.parents[small] = large;
        large
    }

    /// Returns the largest groups with members, the largest first, of equal ones the oldest.
    fn largest(&self, limit: usize) -> Vec<usize> {
        let groups = self.described.iter().copied();
        let mut groups: Vec<_> = groups.filter(|group| self.groups.contains_key(group)).collect();
        groups.sort_by_cached_key(|group| (Reverse(self.groups.get(group).map(|group| group.size)), *group));
        groups.dedup();
        groups.truncate(limit);
        groups
    }

    /// Returns the largest groups, and how many near-duplicates there were.
    pub(super) fn summary(&self) -> Value {
        let groups = self.largest(LISTED_GROUPS);
        let groups = groups.iter().filter_map(|group| self.groups.get(group));
        json_object! {
            "similarity": SIMILARITY,
            "count": self.count,
            "groupCount": self.groups.len(),
            "groups": list(groups.map(Group::to_value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several times as many as the traces that are described, and a multiple of 3.
    const ADDED: u64 = 30_000;

    fn listed(position: u64, id: Option<Text>) -> Listed {
        Listed {
            position,
            id,
            source: Text::default(),
            line: 1,
            element: None,
            score: 0.5,
            excerpt: Text::default(),
        }
    }

    /// Adds traces with the ids and nearest labels that `link` returns for their positions.
    fn add_many(link: impl Fn(u64) -> (Option<u64>, Option<u64>)) -> NearDuplicates {
        let text = |id: u64| Text::from(id.to_string());
        let mut duplicates = NearDuplicates::default();
        for position in 0..ADDED {
            let (id, nearest) = link(position);
            let trace = listed(position, id.map(text));
            duplicates.add(trace, Some(nearest.map(text)), Some(0.96));
        }
        duplicates
    }

    fn described(duplicates: &NearDuplicates) -> usize {
        let groups = duplicates.groups.values();
        groups.filter(|group| !group.members.is_empty()).count()
    }

    #[test]
    fn add_of_many_pairs_describes_some() {
        let duplicates = add_many(|position| (Some(2 * position), Some(2 * position + 1)));
        assert_eq!((duplicates.count, duplicates.groups.len() as u64), (ADDED, ADDED));
        assert!(described(&duplicates) <= 2 * DESCRIBED_GROUPS);
        assert!(duplicates.recent.traces.len() <= RECENT_TRACES);
        assert!(duplicates.recent.positions.len() <= RECENT_TRACES);
    }

    #[test]
    fn add_without_ids_begins_a_group_each_time() {
        let duplicates = add_many(|_| (None, None));
        assert_eq!(duplicates.groups.len() as u64, ADDED);
        assert!(described(&duplicates) <= 2 * DESCRIBED_GROUPS);
    }

    #[test]
    fn add_merges_groups_that_a_trace_links() {
        // Each third trace links the groups of the two before it.
        let duplicates = add_many(|position| match position % 3 {
            2 => (Some(10 * (position - 2)), Some(10 * (position - 1))),
            _ => (Some(10 * position), Some(10 * position + 1)),
        });
        assert_eq!(duplicates.groups.len() as u64, ADDED / 3);
        assert!(duplicates.groups.values().all(|group| group.size == 5));
    }

    #[test]
    fn add_of_a_chain_makes_one_group_with_the_first_members() {
        let duplicates = add_many(|position| (Some(position + 1), Some(position)));
        assert_eq!(duplicates.groups.len(), 1);
        let group = duplicates.groups.values().next().unwrap();
        assert_eq!((group.size, group.members.len()), (ADDED + 1, LISTED_MEMBERS));
        assert!(group.positions.len() <= POSITIONS);
    }

    #[test]
    fn add_describes_a_group_that_grows_late() {
        // After many pairs, a chain.
        let duplicates = add_many(|position| match position {
            29_000.. => (Some(position + 100_000), Some(29_000 + 99_999)),
            _ => (Some(2 * position), Some(2 * position + 1)),
        });
        let summary = duplicates.summary();
        let first = &summary.get("groups").and_then(Value::as_array).unwrap()[0];
        assert_eq!(first.get("size"), Some(&1_001_u64.into_value()));
        assert_eq!(
            first.get("members").and_then(Value::as_array).unwrap().len(),
            LISTED_MEMBERS
        );
    }

    #[test]
    fn recent_knows_the_last_of_traces_with_one_id() {
        let mut recent = Recent::default();
        for position in 0..RECENT_TRACES as u64 + 1 {
            let id = if position < 2 { 0 } else { position };
            recent.push(Arc::new(listed(position, Some(id.to_string().into()))));
        }
        let position = |id: &str| recent.get(&id.into()).map(|trace| trace.position);
        assert_eq!(
            (position("0"), position("10000"), position("gone")),
            (Some(1), Some(10_000), None)
        );
    }
}
