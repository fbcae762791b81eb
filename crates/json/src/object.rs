//! Objects, which keep the order of their fields.

use std::collections::HashMap;

use crate::{Text, Value};

/// An object of more fields than this has a table of its names.
const MOST_SEARCHED: usize = 32;

type Places = HashMap<Text, usize>;

/// A JSON object, whose fields are in the order in which they were inserted, which tells objects apart too.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(clippy::box_collection, reason = "few objects have it, and values stay small")]
pub struct Object {
    fields: Vec<(Text, Value)>,
    /// The index of each name, in an object with many fields.
    places: Option<Box<Places>>,
    /// The marks of all names: a name without its mark here is missing.
    marks: u32,
}

impl Object {
    /// An object without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            fields: Vec::new(),
            places: None,
            marks: 0,
        }
    }

    /// An object without fields, with memory for so many.
    #[must_use]
    pub fn with_capacity(fields: usize) -> Self {
        Self {
            fields: Vec::with_capacity(fields),
            ..Self::new()
        }
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).map(|at| &self.fields[at].1)
    }

    /// Returns the value of a field to be changed.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.place(name).map(|at| &mut self.fields[at].1)
    }

    /// Whether it has a field of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Returns the fields in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Text, &Value)> + ExactSizeIterator {
        self.fields.iter().map(|(name, value)| (name, value))
    }

    /// Returns the fields in their order, with values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&Text, &mut Value)> + ExactSizeIterator {
        self.fields.iter_mut().map(|(name, value)| (&*name, value))
    }

    /// Returns the names in their order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Text> + ExactSizeIterator {
        self.fields.iter().map(|(name, _)| name)
    }

    /// Returns the values in their order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.fields.iter().map(|(_, value)| value)
    }

    /// Sets a field; an existing one keeps its place.
    pub fn insert(&mut self, name: impl Into<Text>, value: impl Into<Value>) {
        self.set(name.into(), value.into());
    }

    pub(crate) fn set(&mut self, name: Text, value: Value) {
        if let Some(at) = self.place(&name) {
            self.fields[at].1 = value;
            return;
        }
        self.marks |= mark(name.as_bytes());
        if let Some(places) = &mut self.places {
            places.insert(name.clone(), self.fields.len());
        }
        self.fields.push((name, value));
        if self.places.is_none() && self.fields.len() > MOST_SEARCHED {
            self.find_places();
        }
    }

    /// Removes a field; returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.place(name)?;
        let (_, value) = self.fields.remove(at);
        self.marks = self.keys().fold(0, |marks, name| marks | mark(name.as_bytes()));
        self.find_places();
        Some(value)
    }

    #[inline]
    fn place(&self, name: &str) -> Option<usize> {
        if self.marks & mark(name.as_bytes()) == 0 {
            return None;
        }
        self.search(name)
    }

    fn search(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(name).copied(),
            None => self.fields.iter().position(|(other, _)| other == name),
        }
    }

    fn find_places(&mut self) {
        self.places = (self.fields.len() > MOST_SEARCHED).then(|| {
            let names = self.keys().cloned();
            Box::new(names.zip(0..).collect())
        });
    }
}

/// Returns one of 32 bits, by the length of a name and three of its bytes.
#[inline]
fn mark(name: &[u8]) -> u32 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else {
        return 1;
    };
    let middle = name[name.len() / 2];
    let sum = [(*first, 7), (middle, 3), (*last, 13)].map(|(byte, times)| usize::from(byte) * times);
    1 << ((sum.iter().sum::<usize>() + name.len()) % 32)
}

/// Returns the object with these fields, in this order.
#[must_use]
pub fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
    Value::Object(fields.collect())
}

/// Of duplicate fields, keeps the last value in the first place. Takes linear time.
impl FromIterator<(Text, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let mut object = Self::with_capacity(fields.size_hint().0);
        object.extend(fields);
        object
    }
}

/// Sets fields as [`Object::insert`] does.
impl Extend<(Text, Value)> for Object {
    fn extend<I: IntoIterator<Item = (Text, Value)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.set(name, value);
        }
    }
}

impl IntoIterator for Object {
    type Item = (Text, Value);
    type IntoIter = std::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = &'a (Text, Value);
    type IntoIter = std::slice::Iter<'a, (Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(object: &Object) -> Vec<String> {
        object.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_are_in_the_order_in_which_they_were_inserted() {
        let mut object = Object::new();
        for name in ["b", "10", "a", "9", "b"] {
            object.insert(name, name);
        }
        assert_eq!(names(&object), ["b", "10", "a", "9"]);
    }

    proptest! {
        #[test]
        fn collected_inserted_and_removed_are_the_same(
            fields in prop::collection::vec(("[a-h0-3]{1,2}", any::<bool>()), 0..80),
            gone in prop::collection::vec("[a-h0-3]{1,2}", 0..20),
        ) {
            let mut inserted = Object::new();
            for (name, value) in &fields {
                inserted.insert(name.as_str(), *value);
            }
            let pairs = fields.iter().map(|(name, value)| (name.as_str().into(), (*value).into()));
            let mut object: Object = pairs.clone().collect();
            prop_assert_eq!(&object, &inserted);
            let mut extended = Object::new();
            extended.extend(pairs.clone().take(9));
            extended.extend(pairs.skip(9));
            prop_assert_eq!(&object, &extended);
            for name in &gone {
                let last = fields.iter().rev().find(|(other, _)| other == name);
                let is_first = object.contains(name);
                prop_assert_eq!(object.remove(name), last.filter(|_| is_first).map(|(_, value)| (*value).into()));
            }
            for (at, name) in names(&object).iter().enumerate() {
                prop_assert_eq!(object.place(name), Some(at));
            }
        }
    }
}
