//! The outlook, which helps to choose the size of a set: the curve beyond the set, its knee, and a map of the set.

use std::collections::HashMap;

use super::{Chosen, Neighbour};

/// How many times as many traces as were asked for the curve has.
pub(super) const BEYOND: usize = 4;

/// How many chosen traces a map shows.
const MOST_CHOSEN: usize = 200;

/// The largest number of traces on a map, and of traces on it that a chosen one stands for.
const MOST_PLACES: usize = 600;
const MOST_SIMILAR: usize = 16;

/// How many steps lay out a map, and how many of them pull similar traces together harder, and how much.
const STEPS: usize = 400;
const GATHERING: usize = 100;
const EXAGGERATION: f64 = 4.0;

/// The part of all attraction that every pair has, so that a trace without neighbours stays on the map.
const GRAVITY: f64 = 0.02;

/// A curve that rises less above its chord than this has no knee.
const LEAST_BEND: f64 = 0.05;

/// The curve beyond a chosen set, and its map.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlook {
    /// The part of the largest F that the set would cover with one more trace, two more and so on, in the order of choosing.
    pub beyond: Vec<f64>,
    /// The first chosen traces, and the most similar of the traces that they stand for.
    pub places: Vec<Place>,
}

/// A candidate on a map on which similar ones are near each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Its index among the candidates.
    pub index: usize,
    /// From -1 to 1.
    pub x: f64,
    /// From -1 to 1.
    pub y: f64,
}

/// Returns after how many values a rising curve bends most: where it lies highest above its chord, as Kneedle has it (Satopää et al.
/// 2011). `before` is its value at 0. `None` if it hardly bends.
#[must_use]
#[allow(clippy::cast_precision_loss)] // No curve has 2^53 values.
pub fn knee(before: f64, curve: &[f64]) -> Option<usize> {
    let rise = curve.last()? - before;
    let above = |at: usize| (curve[at] - before) / rise - (at + 1) as f64 / curve.len() as f64;
    // Of equal ones the first.
    let highest = (0..curve.len())
        .rev()
        .max_by(|&one, &other| above(one).total_cmp(&above(other)))?;
    (above(highest) >= LEAST_BEND).then_some(highest + 1)
}

/// Lays out a map. `near` returns the nearest traces of a trace.
pub(super) fn lay_out<I: Iterator<Item = Neighbour>>(
    chosen: &[Chosen],
    near: impl Fn(usize) -> I,
) -> Vec<Place> {
    let shown = shown(chosen);
    let numbers: HashMap<usize, usize> = shown
        .iter()
        .enumerate()
        .map(|(number, &index)| (index, number))
        .collect();
    let all = shown.len();
    let mut weights = vec![0.0; all * all];
    for (number, &index) in shown.iter().enumerate() {
        let near = near(index)
            .filter_map(|near| Some((*numbers.get(&near.index)?, near.similarity * near.similarity)));
        let near: Vec<_> = near.collect();
        let sum: f64 = near.iter().map(|(_, weight)| weight).sum();
        for (other, weight) in near {
            weights[number * all + other] += weight / sum;
            weights[other * all + number] += weight / sum;
        }
    }
    let mut points = start(all);
    descend(&weights, &mut points);
    fit(&mut points);
    let pairs = shown.into_iter().zip(points);
    pairs.map(|(index, [x, y])| Place { index, x, y }).collect()
}

/// The chosen traces that are shown, then in turns the most similar of the traces that each stands for.
fn shown(chosen: &[Chosen]) -> Vec<usize> {
    let chosen = &chosen[..chosen.len().min(MOST_CHOSEN)];
    let similar =
        (0..MOST_SIMILAR).flat_map(|rank| chosen.iter().filter_map(move |one| one.stands_for.get(rank)));
    let indices = chosen.iter().map(|one| one.index);
    indices
        .chain(similar.map(|near| near.index))
        .take(MOST_PLACES)
        .collect()
}

/// Points that fill a small square evenly: the R2 sequence, which is the same on every machine.
#[allow(clippy::cast_precision_loss)] // At most MOST_PLACES.
fn start(count: usize) -> Vec<[f64; 2]> {
    const STEP: [f64; 2] = [0.754_877_666_246_693, 0.569_840_290_998_053];
    let points = (0..count).map(|number| STEP.map(|step| (number as f64 * step).fract() * 0.01));
    points.collect()
}

/// Descends to a map whose near points have large weights: t-SNE (van der Maaten and Hinton 2008), exact, with the
/// similarities in place of Gaussians.
#[allow(clippy::cast_precision_loss)] // At most MOST_PLACES.
fn descend(weights: &[f64], points: &mut [[f64; 2]]) {
    let all = points.len();
    let pairs = (all * all.saturating_sub(1)) as f64;
    let total = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let rate = (all as f64 / EXAGGERATION).max(10.0);
    let mut kernels = vec![0.0; all * all];
    let mut speeds = vec![[0.0; 2]; all];
    for step in 0..STEPS {
        let (pull, momentum) = if step < GATHERING {
            (EXAGGERATION, 0.5)
        } else {
            (1.0, 0.8)
        };
        let mut sum = 0.0;
        for one in 0..all {
            for other in 0..one {
                let [x, y] = difference(points[one], points[other]);
                let kernel = 1.0 / (1.0 + x * x + y * y);
                kernels[one * all + other] = kernel;
                kernels[other * all + one] = kernel;
                sum += 2.0 * kernel;
            }
        }
        let forces: Vec<[f64; 2]> = (0..all)
            .map(|one| {
                let mut force = [0.0; 2];
                for other in (0..all).filter(|&other| other != one) {
                    let kernel = kernels[one * all + other];
                    let weight = (1.0 - GRAVITY) * weights[one * all + other] / total + GRAVITY / pairs;
                    let push = (pull * weight - kernel / sum) * kernel;
                    let [x, y] = difference(points[one], points[other]);
                    force[0] += push * x;
                    force[1] += push * y;
                }
                force
            })
            .collect();
        for ((point, speed), force) in points.iter_mut().zip(&mut speeds).zip(forces) {
            for axis in 0..2 {
                speed[axis] = momentum * speed[axis] - 4.0 * rate * force[axis];
                point[axis] += speed[axis];
            }
        }
    }
}

fn difference(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0] - other[0], one[1] - other[1]]
}

/// Moves the points to the middle, and scales them to the square from -1 to 1.
fn fit(points: &mut [[f64; 2]]) {
    for axis in 0..2 {
        let values = || points.iter().map(|point| point[axis]);
        let (least, most) = (
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        );
        let (middle, half) = (f64::midpoint(least, most), (most - least) / 2.0);
        for point in points.iter_mut() {
            point[axis] = if half > 0.0 {
                (point[axis] - middle) / half
            } else {
                0.0
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use knowledgepulse_index::traces::join::Neighbours;

    use super::*;
    use crate::select::Reason;

    #[test]
    fn knee_is_where_a_curve_bends_most() {
        assert_eq!(knee(0.0, &[0.3, 0.6, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0]), Some(3));
        assert_eq!(knee(0.5, &[0.7, 0.9, 0.91, 0.92]), Some(2));
        assert_eq!(knee(0.0, &[0.25, 0.5, 0.75, 1.0]), None);
        assert_eq!(knee(0.0, &[]), None);
        assert_eq!(knee(0.4, &[0.4, 0.4]), None);
    }

    /// Chosen traces, the one at `rank * size` for each group of `size`, where all of a group are similar and others a little.
    fn groups(count: usize, size: usize) -> (Vec<Neighbours>, Vec<Chosen>) {
        let all = count * size;
        let similarity = |one: usize, other: usize| if one / size == other / size { 0.8 } else { 0.15 };
        let near = |one: usize| {
            let mut others: Vec<_> = (0..all).filter(|&other| other != one).collect();
            others.sort_by(|&a, &b| f64::total_cmp(&similarity(one, b), &similarity(one, a)));
            let others = others.into_iter().take(32);
            others
                .map(|other| Neighbour {
                    index: other,
                    similarity: similarity(one, other),
                })
                .collect()
        };
        let neighbours = (0..all).map(|one| Neighbours {
            nearest: near(one),
            before: None,
        });
        let chosen = (0..count).map(|group| Chosen {
            index: group * size,
            reason: Reason::Coverage,
            gain: 1.0,
            covered: 1.0,
            stands_for: (1..size)
                .map(|at| Neighbour {
                    index: group * size + at,
                    similarity: 0.8,
                })
                .collect(),
            nearest_left: None,
        });
        (neighbours.collect(), chosen.collect())
    }

    fn places(neighbours: &[Neighbours], chosen: &[Chosen]) -> Vec<Place> {
        lay_out(chosen, |index| neighbours[index].nearest.iter().copied())
    }

    #[test]
    fn map_keeps_groups_together() {
        let (neighbours, chosen) = groups(6, 9);
        let map = places(&neighbours, &chosen);
        assert_eq!(map.len(), 54);
        assert_eq!(map, places(&neighbours, &chosen));
        for place in &map {
            assert!(place.x.abs() <= 1.0 && place.y.abs() <= 1.0, "{place:?}");
            let distance = |other: &Place| (other.x - place.x).hypot(other.y - place.y);
            let mut others: Vec<_> = map.iter().filter(|other| other.index != place.index).collect();
            others.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
            let same = others[..8]
                .iter()
                .filter(|other| other.index / 9 == place.index / 9)
                .count();
            assert!(same >= 7, "{place:?}: {same} of the 8 nearest are of its group");
        }
    }

    #[test]
    fn map_has_the_coordinates_of_another_program() {
        // Computed in Python from the formulas, step by step.
        let (neighbours, chosen) = groups(5, 9);
        let map = places(&neighbours, &chosen);
        for (number, index, x, y) in [
            (0, 0, -0.552_589_994_135_882_5, 0.163_250_756_262_645_65),
            (1, 9, 0.404_649_165_015_821_3, -0.361_625_414_156_686_6),
            (2, 18, 0.957_796_159_654_979_6, 0.334_569_034_201_559_1),
            (44, 44, -0.991_115_391_775_226_6, -0.998_607_197_621_300_1),
        ] {
            let place = map[number];
            assert_eq!(place.index, index);
            assert!(
                (place.x - x).abs() < 1e-6 && (place.y - y).abs() < 1e-6,
                "{place:?}"
            );
        }
    }

    #[test]
    fn map_of_any_size_is_finite_and_bounded() {
        assert!(places(&[], &[]).is_empty());
        for (count, size) in [(1, 1), (2, 1), (1, 40), (300, 1)] {
            let (neighbours, chosen) = groups(count, size);
            let map = places(&neighbours, &chosen);
            assert_eq!(
                map.len(),
                (count * size)
                    .min(MOST_CHOSEN * size)
                    .min(count * (MOST_SIMILAR + 1))
            );
            assert!(
                map.iter()
                    .all(|place| place.x.abs() <= 1.0 && place.y.abs() <= 1.0)
            );
        }
        let alone: Vec<_> = (0..3).map(|_| Neighbours::default()).collect();
        let (_, chosen) = groups(3, 1);
        assert!(
            places(&alone, &chosen)
                .iter()
                .all(|place| place.x.is_finite() && place.y.is_finite())
        );
    }
}
