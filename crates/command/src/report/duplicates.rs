//! Groups of near-duplicates: traces that are linked by their nearest remembered trace.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    num::NonZeroUsize,
    sync::Arc,
};

use knowledgepulse_json::{Text, Value, object};
use lru::LruCache;

use crate::{
    json_object,
    near_duplicate::{SIMILARITY, is_near_duplicate},
    values::{IntoValue, list},
};

/// How many traces are known by their id: the traces added last, and the traces of the groups used last.
const KNOWN_TRACES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
const KNOWN_LINKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(19_999);

/// How many groups are held. Beyond that the smallest are no longer listed, unless they grow.
const HELD_GROUPS: usize = 2_000;

/// The number of groups at which unreachable groups are removed: more than can be held and linked.
const MOST_GROUPS: usize = HELD_GROUPS + KNOWN_LINKS.get() * 3 / 2;

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

/// The number of a group: how many were begun before it.
type GroupId = u64;

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

/// The groups of near-duplicates of a run, in bounded memory.
#[derive(Debug)]
pub(super) struct NearDuplicates {
    traces: LruCache<Text, Arc<Listed>>,
    /// The groups of traces, by their ids.
    links: LruCache<Text, GroupId>,
    groups: HashMap<GroupId, Group>,
    /// Into which groups others were merged.
    merged: HashMap<GroupId, GroupId>,
    /// The groups that may be listed.
    held: Vec<GroupId>,
    /// How many traces resemble an earlier one so much.
    count: u64,
    begun: u64,
    group_count: u64,
}

impl NearDuplicates {
    pub(super) fn new() -> Self {
        Self {
            traces: LruCache::new(KNOWN_TRACES),
            links: LruCache::new(KNOWN_LINKS),
            groups: HashMap::new(),
            merged: HashMap::new(),
            held: Vec::new(),
            count: 0,
            begun: 0,
            group_count: 0,
        }
    }

    /// Adds a trace. `nearest` is the label of the trace that it resembles most, if there is one, and `resemblance` is how much.
    pub(super) fn add(&mut self, trace: Listed, nearest: Option<Option<Text>>, resemblance: Option<f64>) {
        let trace = Arc::new(trace);
        if let Some((label, similarity)) = nearest.zip(resemblance)
            && is_near_duplicate(resemblance)
        {
            self.count += 1;
            self.link(&trace, label, similarity);
        }
        if let Some(id) = &trace.id {
            self.traces.put(id.clone(), trace.clone());
        }
    }

    fn link(&mut self, trace: &Arc<Listed>, nearest: Option<Text>, similarity: f64) {
        if self.groups.len() + self.merged.len() > MOST_GROUPS {
            self.sweep();
        }
        let mut group = match &nearest {
            Some(label) => self.group_of(label),
            None => self.begin(),
        };
        if trace.id != nearest
            && let Some(id) = &trace.id
        {
            if let Some(&own) = self.links.get(id) {
                let own = root_of(&mut self.merged, own);
                group = self.merge(group, own);
            }
            self.links.put(id.clone(), group);
        }
        self.groups.entry(group).or_default().join(Member {
            trace: Trace::Listed(trace.clone()),
            nearest: Some((nearest, similarity)),
        });
        self.hold(group);
    }

    /// Returns the group of the trace that another one resembles; a new one has that trace.
    fn group_of(&mut self, id: &Text) -> GroupId {
        if let Some(&known) = self.links.get(id) {
            return root_of(&mut self.merged, known);
        }
        let group = self.begin();
        self.links.put(id.clone(), group);
        let trace = self.traces.get(id).cloned();
        let trace = trace.map_or_else(|| Trace::Forgotten(id.clone()), Trace::Listed);
        let member = Member { trace, nearest: None };
        self.groups.entry(group).or_default().join(member);
        group
    }

    fn begin(&mut self) -> GroupId {
        self.begun += 1;
        self.group_count += 1;
        self.groups.insert(self.begun, Group::default());
        self.begun
    }

    /// Merges the smaller one of two groups into the larger one, which it returns.
    fn merge(&mut self, a: GroupId, b: GroupId) -> GroupId {
        if a == b {
            return a;
        }
        let size = |group| self.groups.get(&group).map_or(0, |group| group.size);
        let (large, small) = if size(a) >= size(b) { (a, b) } else { (b, a) };
        let gone = self.groups.remove(&small).unwrap_or_default();
        self.groups.entry(large).or_default().merge(gone);
        self.merged.insert(small, large);
        self.held.retain(|&group| group != small);
        self.group_count -= 1;
        large
    }

    fn hold(&mut self, group: GroupId) {
        if self.held.contains(&group) {
            return;
        }
        self.held.push(group);
        if self.held.len() > HELD_GROUPS {
            self.held = self.largest(HELD_GROUPS / 2);
        }
    }

    fn largest(&self, limit: usize) -> Vec<GroupId> {
        let mut groups = self.held.clone();
        groups.sort_by_cached_key(|group| Reverse(self.groups.get(group).map_or(0, |group| group.size)));
        groups.truncate(limit);
        groups
    }

    /// Forgets the groups that are neither held nor linked.
    fn sweep(&mut self) {
        let mut used: HashSet<GroupId> = self.held.iter().copied().collect();
        for (_, group) in &mut self.links {
            *group = root_of(&mut self.merged, *group);
            used.insert(*group);
        }
        self.merged.clear();
        self.groups.retain(|group, _| used.contains(group));
    }

    /// Returns the largest groups, and how many near-duplicates there were.
    pub(super) fn summary(&self) -> Value {
        let groups = self.largest(LISTED_GROUPS);
        let groups = groups.iter().filter_map(|group| self.groups.get(group));
        json_object! {
            "similarity": SIMILARITY,
            "count": self.count,
            "groupCount": self.group_count,
            "groups": list(groups.map(Group::to_value)),
        }
    }
}

/// Returns the current group of a group: itself, or the one that it was merged into, by any number of steps.
fn root_of(merged: &mut HashMap<GroupId, GroupId>, group: GroupId) -> GroupId {
    let mut root = group;
    while let Some(&next) = merged.get(&root) {
        root = next;
    }
    // So that the next look takes one step.
    let mut step = group;
    while step != root {
        step = merged.insert(step, root).unwrap_or(root);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several times as many as the groups that there may be, and a multiple of 3.
    const ADDED: u64 = 90_000;

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
        let mut duplicates = NearDuplicates::new();
        for position in 0..ADDED {
            let (id, nearest) = link(position);
            let trace = listed(position, id.map(text));
            duplicates.add(trace, Some(nearest.map(text)), Some(0.96));
            assert!(duplicates.groups.len() + duplicates.merged.len() <= MOST_GROUPS + 2);
            assert!(duplicates.held.len() <= HELD_GROUPS);
        }
        duplicates
    }

    #[test]
    fn memory_is_bounded_of_pairs() {
        let duplicates = add_many(|position| (Some(2 * position), Some(2 * position + 1)));
        assert_eq!((duplicates.count, duplicates.group_count), (ADDED, ADDED));
    }

    #[test]
    fn memory_is_bounded_without_ids() {
        assert_eq!(add_many(|_| (None, None)).group_count, ADDED);
    }

    #[test]
    fn memory_is_bounded_of_groups_that_merge() {
        // Each third trace links the groups of the two before it.
        let duplicates = add_many(|position| match position % 3 {
            2 => (Some(10 * (position - 2)), Some(10 * (position - 1))),
            _ => (Some(10 * position), Some(10 * position + 1)),
        });
        assert_eq!(duplicates.group_count, ADDED / 3);
    }

    #[test]
    fn memory_is_bounded_of_one_group() {
        let duplicates = add_many(|position| (Some(position + 1), Some(position)));
        assert_eq!(duplicates.group_count, 1);
        let group = duplicates.groups.values().next().unwrap();
        assert_eq!((group.size, group.members.len()), (ADDED + 1, LISTED_MEMBERS));
        assert!(group.positions.len() <= POSITIONS);
    }
}
