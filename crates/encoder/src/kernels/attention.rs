//! Attention of sixteen queries at a time, one to a lane: maxima and sums over the keys need nothing from another lane, and no
//! key is ever padded.
//!
//! The queries of a block are transposed into a panel, the keys are the rows of a product with it (the scores, a row for each
//! key), and the values, transposed, are the rows of a product with the scores' powers: the scores are logarithms to the base of 2, because queries are
//! multiplied by that of e, and so the softmax takes powers of two.

use std::ops::Range;

use super::{
    functions::{TOGETHER, exp2},
    lanes::{Floats, Integers, LANES, Lanes, Shorts},
    tile::{OfFloats, OfShorts, Rows, multiply},
};

/// Components of a head.
pub const HEAD: usize = 32;

/// Queries in a block: two panels.
const BLOCK: usize = 2 * LANES;

/// The largest 16-bit query, key or value: 32 products of two such numbers fit 32 bits.
const LARGEST: f32 = 8191.0;

/// The largest sum of the 16-bit probabilities of a query, before they are rounded: times [`LARGEST`], and with a half more
/// for each of [`crate::MAX_TOKENS`] tokens, it fits 32 bits.
const TOTAL: f32 = 250_000.0;

/// Consecutive rows of queries, keys and values, which some thread has computed: `3 * hidden` numbers for each token.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// In single precision; empty where attention is in 16 bits.
    pub floats: &'a [f32],
    /// In 16 bits; empty where attention is in single precision.
    pub shorts: &'a [i16],
    /// The scales of the 16-bit numbers: for each token `3 * heads` numbers.
    pub scales: &'a [f32],
}

/// The queries that attend, and the keys that they attend to.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a> {
    /// The keys and values of the text, in parts.
    pub text: &'a [Part<'a>],
    /// The part with the queries, whose rows may be of several texts.
    pub own: Part<'a>,
    pub hidden: usize,
}

/// Memory that attention works in.
#[derive(Debug, Default)]
pub struct AttentionScratch {
    /// The block's queries as panels.
    queries: Vec<Floats>,
    /// Scores, then the powers of two: two panels with a block for each key.
    scores: Vec<Floats>,
    short_queries: Vec<Shorts>,
    short_scores: Vec<Shorts>,
    /// The values of a head, two tokens in each word.
    pairs: Vec<i32>,
    key_scales: Vec<f32>,
    value_scales: Vec<f32>,
    /// The result: two panels with a block for each component.
    sums: Vec<Floats>,
}

impl Part<'_> {
    fn tokens(&self, hidden: usize) -> usize {
        self.floats.len().max(self.shorts.len()) / (3 * hidden)
    }
}

/// The context of the queries in rows `queries` of `own`, into `context`: `hidden` numbers for each.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // `panel` is an index of several.
pub fn floats<L: Lanes>(
    lanes: L,
    attention: Attention,
    queries: Range<usize>,
    scratch: &mut AttentionScratch,
    context: &mut [f32],
) {
    let (hidden, step) = (attention.hidden, 3 * attention.hidden);
    let tokens: usize = attention.text.iter().map(|part| part.tokens(hidden)).sum();
    scratch.queries.resize(2 * HEAD, Floats([0.0; LANES]));
    scratch.scores.resize(2 * tokens, Floats([0.0; LANES]));
    scratch.sums.resize(2 * HEAD, Floats([0.0; LANES]));
    let (panel_queries, scores, sums) = (&mut scratch.queries, &mut scratch.scores, &mut scratch.sums);
    let scale = lanes.splat(score_scale());
    for head in 0..hidden / HEAD {
        for (block, context) in queries
            .clone()
            .step_by(BLOCK)
            .zip(context.chunks_mut(BLOCK * hidden))
        {
            let count = context.len() / hidden;
            let panels = count.div_ceil(LANES).next_multiple_of(L::PANELS);
            for panel in 0..panels {
                for half in 0..HEAD / LANES {
                    let mut rows = [[0.0; LANES]; LANES];
                    for (lane, words) in rows.iter_mut().enumerate() {
                        // Lanes without a query repeat the last one.
                        let row = block + (panel * LANES + lane).min(count - 1);
                        let start = row * step + head * HEAD + half * LANES;
                        words.copy_from_slice(&attention.own.floats[start..start + LANES]);
                        let scaled = lanes.multiply(lanes.load(words), scale);
                        lanes.store(scaled, words);
                    }
                    let start = panel * HEAD + half * LANES;
                    let panel: &mut [Floats] = &mut panel_queries[start..start + LANES];
                    lanes.transpose(bytemuck::cast_ref(&rows), square(bytemuck::cast_slice_mut(panel)));
                }
            }
            for panel in (0..panels).step_by(L::PANELS) {
                let mut token = 0;
                for part in attention.text {
                    let rows = Rows {
                        words: &part.floats[hidden + head * HEAD..],
                        row_step: step,
                        word_step: 1,
                        rows: part.tokens(hidden),
                        depth: HEAD,
                    };
                    let queries = (&panel_queries[panel * HEAD..], HEAD);
                    let scores = (&mut scores[panel * tokens + token..], tokens);
                    multiply::<L, OfFloats>(lanes, rows, queries, scores, false);
                    token += rows.rows;
                }
            }
            let mut totals = [lanes.splat(1.0); 2];
            for panel in 0..panels {
                let scores = &mut scores[panel * tokens..(panel + 1) * tokens];
                let mut largest = lanes.load(&scores[0].0);
                for score in scores.iter() {
                    largest = lanes.larger(lanes.load(&score.0), largest);
                }
                let mut total = lanes.splat(0.0);
                let (fours, rest) = scores.as_chunks_mut::<TOGETHER>();
                for scores in fours {
                    total = powers(lanes, scores, largest, total);
                }
                total = powers(lanes, rest, largest, total);
                totals[panel] = lanes.divide(lanes.splat(1.0), total);
            }
            for panel in (0..panels).step_by(L::PANELS) {
                let mut token = 0;
                for part in attention.text {
                    let rows = Rows {
                        words: &part.floats[2 * hidden + head * HEAD..],
                        row_step: 1,
                        word_step: step,
                        rows: HEAD,
                        depth: part.tokens(hidden),
                    };
                    let scores = (&scores[panel * tokens + token..], tokens);
                    let sums = (&mut sums[panel * HEAD..], HEAD);
                    multiply::<L, OfFloats>(lanes, rows, scores, sums, token > 0);
                    token += rows.depth;
                }
            }
            for (panel, sums) in sums.chunks_exact(HEAD).enumerate().take(panels) {
                let sum = |sum: &Floats| lanes.load(&sum.0);
                let rows = context.chunks_exact_mut(hidden).skip(panel * LANES);
                write_head(lanes, sums, sum, totals[panel], rows, head);
            }
        }
    }
}

/// Writes the context of a head to the panel's queries in `rows`: the sums of each component, a block with a lane for each
/// query, converted to floats by `float` and multiplied with `factor`.
#[inline(always)]
fn write_head<'a, L: Lanes>(
    lanes: L,
    sums: &[Floats],
    float: impl Fn(&Floats) -> L::F,
    factor: L::F,
    rows: impl Iterator<Item = &'a mut [f32]>,
    head: usize,
) {
    let mut transposed = [[[0.0; LANES]; LANES]; HEAD / LANES];
    for (transposed, sums) in transposed.iter_mut().zip(sums.chunks_exact(LANES)) {
        let mut components = [[0.0; LANES]; LANES];
        for (words, sum) in components.iter_mut().zip(sums) {
            lanes.store(lanes.multiply(float(sum), factor), words);
        }
        lanes.transpose(bytemuck::cast_ref(&components), bytemuck::cast_mut(transposed));
    }
    for (lane, row) in rows.take(LANES).enumerate() {
        let parts = row[head * HEAD..][..HEAD].chunks_exact_mut(LANES);
        for (part, transposed) in parts.zip(&transposed) {
            part.copy_from_slice(&transposed[lane]);
        }
    }
}

#[inline(always)]
fn square<W>(rows: &mut [[W; LANES]]) -> &mut [[W; LANES]; LANES] {
    rows.first_chunk_mut()
        .unwrap_or_else(|| unreachable!("sixteen rows"))
}

/// Brings each head of each row of `floats` (queries, keys and values) into 16 bits: its largest number to 8191.
#[inline(always)]
pub fn quantize<L: Lanes>(lanes: L, floats: &[f32], shorts: &mut [i16], scales: &mut [f32]) {
    for ((head, shorts), scale) in floats
        .as_chunks::<HEAD>()
        .0
        .iter()
        .zip(shorts.as_chunks_mut::<HEAD>().0)
        .zip(scales)
    {
        let ([low, high], []) = head.as_chunks::<LANES>() else {
            continue;
        };
        let ([short_low, short_high], []) = shorts.as_chunks_mut::<LANES>() else {
            continue;
        };
        let (low, high) = (lanes.load(low), lanes.load(high));
        // Not 0: a head of zeros has a scale as well.
        let largest = lanes
            .largest(lanes.larger(lanes.absolute(low), lanes.absolute(high)))
            .max(1e-25);
        let inverse = lanes.splat(LARGEST / largest);
        lanes.store_shorts(lanes.round(lanes.multiply(low, inverse)), short_low);
        lanes.store_shorts(lanes.round(lanes.multiply(high, inverse)), short_high);
        *scale = largest / LARGEST;
    }
}

/// As [`floats`], with products of 16-bit integers.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // `panel` is an index of several.
pub fn shorts<L: Lanes>(
    lanes: L,
    attention: Attention,
    queries: Range<usize>,
    scratch: &mut AttentionScratch,
    context: &mut [f32],
) {
    let (hidden, step) = (attention.hidden, 3 * attention.hidden);
    let heads = hidden / HEAD;
    let tokens: usize = attention.text.iter().map(|part| part.tokens(hidden)).sum();
    let depth = tokens.div_ceil(2);
    scratch.short_queries.resize(HEAD, Shorts([0; 2 * LANES]));
    scratch.scores.resize(2 * tokens, Floats([0.0; LANES]));
    scratch.short_scores.resize(2 * depth, Shorts([0; 2 * LANES]));
    scratch.sums.resize(2 * HEAD, Floats([0.0; LANES]));
    scratch.pairs.resize(depth * HEAD, 0);
    scratch.key_scales.resize(tokens, 0.0);
    scratch.value_scales.resize(tokens, 0.0);
    let AttentionScratch {
        scores,
        short_queries,
        short_scores,
        pairs,
        key_scales,
        value_scales,
        sums,
        ..
    } = scratch;
    let score_scale = score_scale();
    for head in 0..heads {
        let mut token = 0;
        for part in attention.text {
            for row in 0..part.tokens(hidden) {
                key_scales[token] = part.scales[row * 3 * heads + heads + head];
                value_scales[token] = part.scales[row * 3 * heads + 2 * heads + head];
                let values = &part.shorts[row * step + 2 * hidden + head * HEAD..][..HEAD];
                let pairs = pairs[token / 2 * HEAD..][..HEAD].iter_mut().zip(values);
                // The second of a last pair is nothing.
                if token % 2 == 0 {
                    pairs.for_each(|(pair, value)| *pair = i32::from(*value) & 0xffff);
                } else {
                    pairs.for_each(|(pair, value)| *pair |= i32::from(*value) << 16);
                }
                token += 1;
            }
        }
        for (block, context) in queries
            .clone()
            .step_by(BLOCK)
            .zip(context.chunks_mut(BLOCK * hidden))
        {
            let count = context.len() / hidden;
            let panels = count.div_ceil(LANES).next_multiple_of(L::PANELS);
            let mut query_scales = [[0.0; LANES]; 2];
            for panel in 0..panels {
                let mut rows = [[0; LANES]; LANES];
                for (lane, query) in rows.iter_mut().enumerate() {
                    let row = block + (panel * LANES + lane).min(count - 1);
                    query_scales[panel][lane] = attention.own.scales[row * 3 * heads + head] * score_scale;
                    let start = (row * step + head * HEAD) / 2;
                    query.copy_from_slice(&words(attention.own.shorts)[start..start + LANES]);
                }
                let panel = &mut short_queries[panel * LANES..(panel + 1) * LANES];
                lanes.transpose(&rows, square(bytemuck::cast_slice_mut(panel)));
            }
            for panel in (0..panels).step_by(L::PANELS) {
                let mut token = 0;
                for part in attention.text {
                    let rows = Rows {
                        words: &words(part.shorts)[(hidden + head * HEAD) / 2..],
                        row_step: step / 2,
                        word_step: 1,
                        rows: part.tokens(hidden),
                        depth: HEAD / 2,
                    };
                    let queries = (&short_queries[panel * LANES..], LANES);
                    let scores: &mut [Integers] =
                        bytemuck::cast_slice_mut(&mut scores[panel * tokens + token..]);
                    multiply::<L, OfShorts>(lanes, rows, queries, (scores, tokens), false);
                    token += rows.rows;
                }
            }
            let mut factors = [lanes.splat(1.0); 2];
            for panel in 0..panels {
                let scores = &mut scores[panel * tokens..(panel + 1) * tokens];
                let query_scale = lanes.load(&query_scales[panel]);
                let mut largest = lanes.splat(f32::NEG_INFINITY);
                for (score, key_scale) in scores.iter_mut().zip(&*key_scales) {
                    let scale = lanes.multiply(query_scale, lanes.splat(*key_scale));
                    let sum = lanes.load_integers(bytemuck::cast_ref(&score.0));
                    let value = lanes.multiply(lanes.to_floats(sum), scale);
                    largest = lanes.larger(value, largest);
                    lanes.store(value, &mut score.0);
                }
                // The scale of a token's values goes into its probability.
                let mut total = lanes.splat(0.0);
                let mut scaled = [lanes.splat(0.0); 2];
                let (fours, rest) = scores.as_chunks_mut::<TOGETHER>();
                let (scales, last_scales) = value_scales.as_chunks::<TOGETHER>();
                for (scores, scales) in fours.iter_mut().zip(scales) {
                    total = scaled_powers(lanes, scores, scales, largest, total, &mut scaled);
                }
                total = scaled_powers(lanes, rest, last_scales, largest, total, &mut scaled);
                let [scaled_total, scaled_largest] = scaled;
                let factor = lanes.smaller(
                    lanes.divide(lanes.splat(32_767.0), scaled_largest),
                    lanes.divide(lanes.splat(TOTAL), scaled_total),
                );
                let (twos, one) = scores.as_chunks::<2>();
                let short_scores = &mut short_scores[panel * depth..(panel + 1) * depth];
                for (two, short) in twos.iter().zip(&mut *short_scores) {
                    let both = lanes.or(
                        whole(lanes, &two[0], factor),
                        lanes.shift_left_16(whole(lanes, &two[1], factor)),
                    );
                    lanes.store_integers(both, bytemuck::cast_mut(&mut short.0));
                }
                if let ([last], Some(short)) = (one, short_scores.last_mut()) {
                    lanes.store_integers(whole(lanes, last, factor), bytemuck::cast_mut(&mut short.0));
                }
                factors[panel] = lanes.divide(lanes.splat(1.0), lanes.multiply(factor, total));
            }
            for panel in (0..panels).step_by(L::PANELS) {
                let rows = Rows {
                    words: &pairs[..],
                    row_step: 1,
                    word_step: HEAD,
                    rows: HEAD,
                    depth,
                };
                let scores = (&short_scores[panel * depth..], depth);
                let sums: &mut [Integers] = bytemuck::cast_slice_mut(&mut sums[panel * HEAD..]);
                multiply::<L, OfShorts>(lanes, rows, scores, (sums, HEAD), false);
            }
            for (panel, sums) in sums.chunks_exact(HEAD).enumerate().take(panels) {
                let sum = |sum: &Floats| lanes.to_floats(lanes.load_integers(bytemuck::cast_ref(&sum.0)));
                let rows = context.chunks_exact_mut(hidden).skip(panel * LANES);
                write_head(lanes, sums, sum, factors[panel], rows, head);
            }
        }
    }
}

/// Returns the factor that makes the product of a query and a key the logarithm of a weight to the base of 2.
fn score_scale() -> f32 {
    #[allow(clippy::cast_precision_loss)] // 32.
    let root = (HEAD as f32).sqrt();
    std::f32::consts::LOG2_E / root
}

/// Replaces up to [`TOGETHER`] scores by 2 to their power, less the largest score. Returns `total` and these.
#[inline(always)]
fn powers<L: Lanes>(lanes: L, scores: &mut [Floats], largest: L::F, mut total: L::F) -> L::F {
    let mut values = [lanes.splat(0.0); TOGETHER];
    for (value, score) in values.iter_mut().zip(&*scores) {
        *value = lanes.subtract(lanes.load(&score.0), largest);
    }
    for (score, value) in scores.iter_mut().zip(exp2(lanes, values)) {
        total = lanes.add(total, value);
        lanes.store(value, &mut score.0);
    }
    total
}

/// As [`powers`], and then multiplies each with that of `scales`. Their sum and the largest are in `scaled`.
#[inline(always)]
fn scaled_powers<L: Lanes>(
    lanes: L,
    scores: &mut [Floats],
    scales: &[f32],
    largest: L::F,
    total: L::F,
    [scaled_total, scaled_largest]: &mut [L::F; 2],
) -> L::F {
    let total = powers(lanes, scores, largest, total);
    for (score, scale) in scores.iter_mut().zip(scales) {
        let scaled = lanes.multiply(lanes.load(&score.0), lanes.splat(*scale));
        *scaled_total = lanes.add(*scaled_total, scaled);
        *scaled_largest = lanes.larger(scaled, *scaled_largest);
        lanes.store(scaled, &mut score.0);
    }
    total
}

#[inline(always)]
fn whole<L: Lanes>(lanes: L, score: &Floats, factor: L::F) -> L::I {
    lanes.round(lanes.multiply(lanes.load(&score.0), factor))
}

/// 16-bit integers, two to a word.
#[inline(always)]
fn words(shorts: &[i16]) -> &[i32] {
    bytemuck::cast_slice(shorts)
}
