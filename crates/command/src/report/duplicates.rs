//! Groups of near-duplicates: traces that are linked by their nearest remembered trace.

use std::{cmp::Reverse, collections::HashMap};

use knowledgepulse_json::{Text, Value, object};

use crate::{
    json_object,
    near_duplicate::{SIMILARITY, is_near_duplicate},
    values::{IntoValue, list},
};

const LISTED_GROUPS: usize = 30;
const LISTED_MEMBERS: usize = 8;

/// A trace of a group.
#[derive(Debug)]
struct Member {
    /// How many traces were added before it; `None` of one that began a group, which a later one names by its id.
    position: Option<u64>,
    id: Option<Text>,
    /// The label of the trace that it resembles, and how much; `None` of one that begins a group.
    nearest: Option<(Option<Text>, f64)>,
}

impl Member {
    fn to_value(&self) -> Value {
        let mut fields = vec![
            ("position", self.position.into_value()),
            ("id", self.id.clone().into_value()),
        ];
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
    min_similarity: f64,
    max_similarity: f64,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            size: 0,
            members: Vec::new(),
            min_similarity: f64::INFINITY,
            max_similarity: f64::NEG_INFINITY,
        }
    }
}

impl Group {
    fn join(&mut self, member: Member) {
        self.size += 1;
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
        self.members.sort_by_key(|member| member.position);
        self.members.truncate(LISTED_MEMBERS);
        self.min_similarity = self.min_similarity.min(other.min_similarity);
        self.max_similarity = self.max_similarity.max(other.max_similarity);
    }

    fn to_value(&self) -> Value {
        json_object! {
            "size": self.size,
            "minSimilarity": self.min_similarity,
            "maxSimilarity": self.max_similarity,
            "members": list(self.members.iter().map(Member::to_value)),
        }
    }
}

/// The groups of near-duplicates of a run: a union-find of groups, by the ids of their traces.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    /// The group in which each trace was put first.
    first_groups: HashMap<Text, usize>,
    /// Into which group each group was merged; itself if into none.
    parents: Vec<usize>,
    /// The groups that were merged into no other.
    groups: HashMap<usize, Group>,
    /// How many traces resemble an earlier one so much.
    count: u64,
}

impl NearDuplicates {
    /// Adds a trace. `nearest` is the label of the trace that it resembles most, if there is one, and `resemblance` is how much.
    pub(super) fn add(
        &mut self,
        position: u64,
        id: Option<&Text>,
        nearest: Option<Option<Text>>,
        resemblance: Option<f64>,
    ) {
        let Some((nearest, similarity)) = nearest.zip(resemblance) else {
            return;
        };
        if !is_near_duplicate(resemblance) {
            return;
        }
        self.count += 1;
        let mut group = match &nearest {
            Some(label) => self.group_of(label),
            None => self.begin(),
        };
        if id != nearest.as_ref()
            && let Some(id) = id
        {
            match self.first_groups.get(id) {
                Some(&own) => group = self.merge(group, own),
                None => drop(self.first_groups.insert(id.clone(), group)),
            }
        }
        let member = Member {
            position: Some(position),
            id: id.cloned(),
            nearest: Some((nearest, similarity)),
        };
        self.join(group, member);
    }

    /// Returns the group of the trace that another one resembles; a new one has that trace.
    fn group_of(&mut self, id: &Text) -> usize {
        if let Some(&first) = self.first_groups.get(id) {
            return self.root_of(first);
        }
        let group = self.begin();
        self.first_groups.insert(id.clone(), group);
        let member = Member {
            position: None,
            id: Some(id.clone()),
            nearest: None,
        };
        self.join(group, member);
        group
    }

    fn begin(&mut self) -> usize {
        let group = self.parents.len();
        self.parents.push(group);
        self.groups.insert(group, Group::default());
        group
    }

    fn join(&mut self, group: usize, member: Member) {
        self.groups.entry(group).or_default().join(member);
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

    /// Returns the largest groups, and how many near-duplicates there were.
    pub(super) fn summary(&self) -> Value {
        let mut groups: Vec<_> = self.groups.iter().collect();
        // Of equal ones the oldest is the first.
        groups.sort_by_key(|(number, group)| (Reverse(group.size), **number));
        groups.truncate(LISTED_GROUPS);
        json_object! {
            "similarity": SIMILARITY,
            "count": self.count,
            "groupCount": self.groups.len(),
            "groups": list(groups.into_iter().map(|(_, group)| group.to_value())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A multiple of 3.
    const ADDED: u64 = 3_000;

    /// Adds traces with the ids and nearest labels that `link` returns for their positions.
    fn add_many(link: impl Fn(u64) -> (Option<u64>, Option<u64>)) -> NearDuplicates {
        let text = |id: u64| Text::from(id.to_string());
        let mut duplicates = NearDuplicates::default();
        for position in 0..ADDED {
            let (id, nearest) = link(position);
            let id = id.map(text);
            duplicates.add(position, id.as_ref(), Some(nearest.map(text)), Some(0.96));
        }
        duplicates
    }

    #[test]
    fn add_without_ids_begins_a_group_each_time() {
        let duplicates = add_many(|_| (None, None));
        assert_eq!(duplicates.groups.len() as u64, ADDED);
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
    }
}
