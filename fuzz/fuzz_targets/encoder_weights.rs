//! Any bytes as the weights of an encoder: an error that says why, or a model that embeds without a panic, in eight bits the same on
//! every kernel.
//!
//! The input is text, which the lengths are made for: the first line is the header, and the bytes after it are repeated until the
//! file is as long as the header says. An input that does not begin with `{` is taken as it is.

#![no_main]

use std::sync::Arc;

use knowledgepulse_encoder::{Encoder, Error, Kernel, Model, Options, Precision, Source};
use libfuzzer_sys::fuzz_target;

/// What a header may ask of this target: a model of 32 numbers with two layers has less.
const LONGEST: usize = 1 << 17;

fuzz_target!(|bytes: &[u8]| {
    let file = match bytes.first() {
        Some(b'{') => assemble(bytes),
        _ => bytes.to_vec(),
    };
    let model = match Model::load(Source::memory(file), 1) {
        Ok(model) => model,
        Err(Error::Damaged(reason) | Error::Unsupported(reason)) => {
            assert!(!reason.is_empty());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let shape = model.shape();
    let last = u32::try_from(shape.vocabulary - 1).expect("a vocabulary that fits");
    let text: Vec<u32> = (0..shape.positions.min(20))
        .map(|index| if index % 2 == 0 { 0 } else { last })
        .collect();
    let model = Arc::new(model);
    let mut first = None;
    for kernel in Kernel::available() {
        let outcomes = [&text[..1], &text[..]].map(|text| embed(&model, kernel, text));
        if model.precision() == Precision::Int8 {
            assert_eq!(*first.get_or_insert(outcomes.clone()), outcomes, "{kernel}");
        }
    }
});

/// Returns the bits of the embedding, or nothing if its numbers leave the range.
fn embed(model: &Arc<Model>, kernel: Kernel, text: &[u32]) -> Option<Vec<u32>> {
    let mut options = Options::default();
    options.threads = 1;
    options.kernel = Some(kernel);
    let mut encoder = Encoder::new(Arc::clone(model), options).expect("a kernel of this processor");
    match encoder.embed(text) {
        Ok(embedding) => {
            assert_eq!(embedding.len(), model.shape().hidden);
            assert!(embedding.iter().all(|number| number.is_finite()));
            Some(embedding.into_iter().map(f32::to_bits).collect())
        }
        Err(Error::NotFinite) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A file with the header in the first line of `input`.
fn assemble(input: &[u8]) -> Vec<u8> {
    let end = input
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(input.len());
    let (header, data) = input.split_at(end);
    let data = data
        .get(1..)
        .filter(|data| !data.is_empty())
        .unwrap_or(&[0, 0, 0, 63]);
    let ends = String::from_utf8_lossy(header);
    let ends = ends.split("\"data_offsets\":[").skip(1);
    let ends = ends.filter_map(|rest| rest.split(&[',', ']'][..]).nth(1)?.trim().parse::<usize>().ok());
    let length = ends.max().unwrap_or(0).min(LONGEST);
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(data.iter().cycle().take(length));
    file
}
