//! Lazy greedy facility location over sparse similarities.

use std::{cmp::Reverse, collections::BinaryHeap};

use knowledgepulse_index::traces::join::Neighbours;

/// F(X) = Σ w(i) · max over j in X of q(j) s(i, j), where s(i, j) is 0 unless j is a neighbour of i, and s(i, i) is 1.
pub(super) struct Facility<'n> {
    neighbours: &'n [Neighbours],
    /// w.
    weights: Vec<f64>,
    /// q.
    qualities: Vec<f64>,
    /// How well the set so far covers each trace: the maximum in F.
    cover: Vec<f64>,
    /// The similarity of each trace to the most similar one of the set so far.
    nearest: Vec<f64>,
    /// The traces that have a trace among their neighbours, with the similarities: of all traces, one after another.
    reached: Vec<(u32, f64)>,
    /// The beginning of each trace's similarities.
    starts: Vec<usize>,
}

/// A trace that was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pick {
    pub(super) index: usize,
    /// By how much F grew.
    pub(super) gain: f64,
    /// Its similarity to the most similar trace of the set before it.
    pub(super) nearest: f64,
}

impl<'n> Facility<'n> {
    /// The function with these neighbours. Each trace is covered as far as `cover` says.
    #[allow(clippy::cast_possible_truncation)] // A memory has fewer than 2^32 traces.
    pub(super) fn new(
        neighbours: &'n [Neighbours],
        weights: Vec<f64>,
        qualities: Vec<f64>,
        cover: Vec<f64>,
    ) -> Self {
        let mut starts = vec![0; neighbours.len() + 1];
        for near in neighbours.iter().flat_map(|of| &of.nearest) {
            starts[near.index + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut next = starts.clone();
        let mut reached = vec![(0, 0.0); starts.last().copied().unwrap_or(0)];
        for (index, of) in (0..).zip(neighbours) {
            for near in &of.nearest {
                let place = &mut next[near.index];
                reached[*place] = (index, near.similarity);
                *place += 1;
            }
        }
        Self {
            neighbours,
            weights,
            qualities,
            nearest: cover.clone(),
            cover,
            reached,
            starts,
        }
    }

    /// Begins anew, with the set of these traces.
    pub(super) fn restart(&mut self, cover: Vec<f64>, set: impl Iterator<Item = usize>) {
        self.nearest.clone_from(&cover);
        self.cover = cover;
        set.for_each(|index| self.choose(index));
    }

    /// The traces that a trace covers, itself first, with the similarities.
    fn covered_by(&self, index: usize) -> impl Iterator<Item = (usize, f64)> {
        let reached = &self.reached[self.starts[index]..self.starts[index + 1]];
        let others = reached
            .iter()
            .map(|&(other, similarity)| (other as usize, similarity));
        std::iter::once((index, 1.0)).chain(others)
    }

    /// F of all traces together: the most that any set has.
    pub(super) fn most(&self) -> f64 {
        let best = |index: usize| {
            let near = self.neighbours[index].nearest.iter();
            let own = self.cover[index].max(self.qualities[index]);
            near.fold(own, |best, near| {
                best.max(self.qualities[near.index] * near.similarity)
            })
        };
        (0..self.weights.len())
            .map(|index| self.weights[index] * best(index))
            .sum()
    }

    /// F of the set so far.
    pub(super) fn value(&self) -> f64 {
        self.weights
            .iter()
            .zip(&self.cover)
            .map(|(weight, cover)| weight * cover)
            .sum()
    }

    /// By how much F grows with a trace; at least 0.
    fn gain(&self, index: usize) -> f64 {
        let quality = self.qualities[index];
        let gains = self.covered_by(index).map(|(other, similarity)| {
            let more = quality * similarity - self.cover[other];
            self.weights[other] * more.max(0.0)
        });
        // Adding 0 turns a negative zero into a plain one.
        gains.sum::<f64>() + 0.0
    }

    fn choose(&mut self, index: usize) {
        let quality = self.qualities[index];
        let reached = self.starts[index]..self.starts[index + 1];
        self.cover[index] = self.cover[index].max(quality);
        for &(other, similarity) in &self.reached[reached] {
            let cover = &mut self.cover[other as usize];
            *cover = cover.max(quality * similarity);
            let nearest = &mut self.nearest[other as usize];
            *nearest = nearest.max(similarity);
        }
    }

    /// Chooses up to `count` of the traces that are `eligible`, each the one by which F grows most, of equal ones the first: lazy greedy
    /// (Minoux 1978). It passes over traces that are as similar as `copy` to one that was chosen before.
    pub(super) fn choose_greedily(&mut self, count: usize, eligible: &[bool], copy: f64) -> Vec<Pick> {
        // The gain of a trace when it was computed last, an upper bound of its present gain, and how many were chosen then. The bits of
        // numbers from 0 on have their order.
        let bound = |facility: &Self, index, chosen| (facility.gain(index).to_bits(), Reverse(index), chosen);
        let indices = (0..eligible.len()).filter(|&index| eligible[index]);
        let mut bounds: BinaryHeap<_> = indices.map(|index| bound(self, index, 0)).collect();
        let mut picks = Vec::new();
        while picks.len() < count
            && let Some((gain, Reverse(index), chosen)) = bounds.pop()
        {
            let nearest = self.nearest[index];
            if nearest >= copy {
                continue;
            }
            if chosen == picks.len() {
                self.choose(index);
                let gain = f64::from_bits(gain);
                picks.push(Pick { index, gain, nearest });
            } else {
                // Gains only fall, so one that is still the largest is the largest of all.
                bounds.push(bound(self, index, picks.len()));
            }
        }
        picks
    }
}
