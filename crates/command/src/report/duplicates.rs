//! Groups of near-duplicates: traces that are linked by their nearest remembered trace.

use std::{cmp::Reverse, collections::HashMap};

use knowledgepulse_json::{Text, Value, object};

use crate::{
    json_object,
    near_duplicate::{SIMILARITY, is_near_duplicate},
    values::{IntoValue, list},
};

/// How many traces are held in all; later ones are counted.
const HELD: usize = 100_000;

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
    fn join(&mut self, member: &Member) {
        self.size += 1;
        if let Some((_, similarity)) = member.nearest {
            self.min_similarity = self.min_similarity.min(similarity);
            self.max_similarity = self.max_similarity.max(similarity);
        }
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

/// The groups of near-duplicates of a run.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    /// The group of each trace with an id; of several with one id, that of the first.
    groups_of: HashMap<Text, usize>,
    groups: Vec<Group>,
    held: usize,
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
        let group = nearest.as_ref().map_or(self.groups.len(), |id| self.group_of(id));
        if let Some(id) = id {
            self.groups_of.entry(id.clone()).or_insert(group);
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
        let group = self.groups.len();
        if let Some(&group) = self.groups_of.get(id) {
            return group;
        }
        self.groups_of.insert(id.clone(), group);
        let member = Member {
            position: None,
            id: Some(id.clone()),
            nearest: None,
        };
        self.join(group, member);
        group
    }

    /// Adds a trace to a group, or begins it.
    fn join(&mut self, group: usize, member: Member) {
        if group == self.groups.len() {
            self.groups.push(Group::default());
        }
        let (group, is_held) = (&mut self.groups[group], self.held < HELD);
        group.join(&member);
        if is_held && group.members.len() < LISTED_MEMBERS {
            group.members.push(member);
            self.held += 1;
        }
    }

    /// Returns the largest groups, and how many near-duplicates there were.
    pub(super) fn summary(&self) -> Value {
        let mut groups: Vec<_> = self.groups.iter().collect();
        // Of equal ones the oldest stays first.
        groups.sort_by_key(|group| Reverse(group.size));
        groups.truncate(LISTED_GROUPS);
        json_object! {
            "similarity": SIMILARITY,
            "count": self.count,
            "groupCount": self.groups.len(),
            "groups": list(groups.into_iter().map(Group::to_value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: u64 = 120_000;

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
    fn add_without_ids_begins_a_group_each_time_and_holds_some_traces() {
        let duplicates = add_many(|_| (None, None));
        assert_eq!(duplicates.groups.len() as u64, ADDED);
        let held: usize = duplicates.groups.iter().map(|group| group.members.len()).sum();
        assert_eq!(held, HELD);
    }

    #[test]
    fn add_of_a_chain_makes_one_group_with_the_first_members() {
        let duplicates = add_many(|position| (Some(position + 1), Some(position)));
        assert_eq!(duplicates.groups.len(), 1);
        let group = &duplicates.groups[0];
        assert_eq!((group.size, group.members.len()), (ADDED + 1, LISTED_MEMBERS));
    }
}
