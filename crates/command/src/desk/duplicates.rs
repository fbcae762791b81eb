//! Groups of near-duplicates: traces that are linked by their nearest remembered trace.

use std::{cmp::Reverse, collections::HashMap};

use knowledgepulse_json::{Text, Value};

use crate::{
    json_object,
    show::{
        near_duplicate::{SIMILARITY, is_near_duplicate},
        values::list,
    },
};

const LISTED_GROUPS: usize = 30;
const LISTED_MEMBERS: usize = 8;

#[derive(Debug)]
struct Group {
    size: u64,
    /// The first ones: `Member` in report/data.d.ts.
    members: Vec<Value>,
    min_similarity: f64,
    max_similarity: f64,
}

impl Group {
    fn join(&mut self, member: impl FnOnce() -> Value) {
        self.size += 1;
        if self.members.len() < LISTED_MEMBERS {
            self.members.push(member());
        }
    }

    fn to_value(&self) -> Value {
        json_object! {
            "size": self.size,
            "minSimilarity": self.min_similarity,
            "maxSimilarity": self.max_similarity,
            "members": self.members.clone(),
        }
    }
}

/// The groups of near-duplicates of a run.
#[derive(Debug, Default)]
pub(super) struct NearDuplicates {
    /// The group of each trace with an id; of several with one id, that of the first.
    groups_of: HashMap<Text, usize>,
    groups: Vec<Group>,
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
        let group = match &nearest {
            Some(id) => self.group_of(id),
            None => self.begin(),
        };
        if let Some(id) = id {
            self.groups_of.entry(id.clone()).or_insert(group);
        }
        let group = &mut self.groups[group];
        group.min_similarity = group.min_similarity.min(similarity);
        group.max_similarity = group.max_similarity.max(similarity);
        group.join(|| {
            json_object! { "position": position, "id": id.cloned(), "nearest": nearest, "similarity": similarity }
        });
    }

    /// Returns the group of the trace that another one resembles; a new one has that trace, of which the id alone is known.
    fn group_of(&mut self, id: &Text) -> usize {
        if let Some(&group) = self.groups_of.get(id) {
            return group;
        }
        let group = self.begin();
        self.groups_of.insert(id.clone(), group);
        self.groups[group].join(|| json_object! { "position": Value::Null, "id": id.clone() });
        group
    }

    fn begin(&mut self) -> usize {
        self.groups.push(Group {
            size: 0,
            members: Vec::new(),
            min_similarity: f64::INFINITY,
            max_similarity: f64::NEG_INFINITY,
        });
        self.groups.len() - 1
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

    const ADDED: u64 = 20_000;

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
        assert_eq!(add_many(|_| (None, None)).groups.len() as u64, ADDED);
    }

    #[test]
    fn add_of_a_chain_makes_one_group_with_the_first_members() {
        let duplicates = add_many(|position| (Some(position + 1), Some(position)));
        assert_eq!(duplicates.groups.len(), 1);
        let group = &duplicates.groups[0];
        assert_eq!((group.size, group.members.len()), (ADDED + 1, LISTED_MEMBERS));
    }
}
