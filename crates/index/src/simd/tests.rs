//! The same properties for every implementation that this CPU has, against sums that share no code with them.

use super::*;
use proptest::prelude::*;

/// The relative error of [`Kernels::dots`].
const DOT_ERROR: f64 = 14.0001 / 16_777_216.0;

/// Components in whole groups.
fn groups(components: &[f32]) -> Vec<Floats> {
    let chunks = components.chunks(GROUP);
    chunks
        .map(|chunk| {
            let mut group = Floats([0.0; GROUP]);
            group.0[..chunk.len()].copy_from_slice(chunk);
            group
        })
        .collect()
}

/// The numeric contract of the module, as it is written there.
fn contract(a: &[f32], b: &[f32]) -> f64 {
    fn halves(lanes: &[f32]) -> f32 {
        let (front, back) = lanes.split_at(lanes.len() / 2);
        match lanes {
            [lane] => *lane,
            _ => halves(&front.iter().zip(back).map(|(a, b)| a + b).collect::<Vec<_>>()),
        }
    }
    let span = |(a, b): (&[f32], &[f32])| {
        let at = |v: &[f32], index: usize| v.get(index).copied().unwrap_or(0.0);
        let lane = |lane| {
            (lane..a.len().next_multiple_of(64))
                .step_by(64)
                .fold(0.0_f32, |sum, index| libm::fmaf(at(a, index), at(b, index), sum))
        };
        f64::from(halves(&(0..64).map(lane).collect::<Vec<_>>()))
    };
    // Not `sum`, which begins with a negative zero.
    let spans = a.chunks(512).zip(b.chunks(512)).map(span);
    spans.fold(0.0, |total, span| total + span)
}

fn exact(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn norm(a: &[f32]) -> f64 {
    exact(a, a).sqrt()
}

/// A query and rows with components of very different size, whose products stay within the range.
fn query_and_rows() -> impl Strategy<Value = (Vec<f32>, Vec<Vec<f32>>)> {
    let component = prop_oneof![
        8 => -1.0f32..1.0,
        1 => (-1.0f32..1.0, -12i32..=12).prop_map(|(digits, exponent)| digits * 10.0_f32.powi(exponent)),
        1 => prop::sample::select(vec![0.0, -0.0, 1e12, -1e12, 1e-12, -1e-12, 1e-45, f32::MIN_POSITIVE]),
    ];
    (0usize..1100, prop::collection::vec(component, 1100 * 4)).prop_map(|(length, components)| {
        let mut rows: Vec<_> = components
            .chunks_exact(1100)
            .map(|row| row[..length].to_vec())
            .collect();
        (rows.remove(0), rows)
    })
}

macro_rules! properties {
    ($($module:ident: $kernel:ident),*) => {$(
        mod $module {
            use super::*;

            /// `None` if the CPU lacks the instructions.
            fn kernels() -> Option<Kernels> {
                implementations().into_iter().find(|kernels| kernels.kernel == Kernel::$kernel)
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]

                #[test]
                fn dots_keeps_the_contract((query, rows) in query_and_rows()) {
                    let Some(kernels) = kernels() else { return Ok(()) };
                    let flat: Vec<Floats> = rows.iter().flat_map(|row| groups(row)).collect();
                    let mut products = vec![f64::NAN; rows.len()];
                    kernels.dots(&groups(&query), &flat, &mut products);
                    for (row, product) in rows.iter().zip(products) {
                        prop_assert_eq!(product.to_bits(), contract(&query, row).to_bits());
                        let bound = DOT_ERROR * norm(&query) * norm(row);
                        let error = (product - exact(&query, row)).abs();
                        prop_assert!(error <= bound + 1e-42, "{} {}", error, bound);
                    }
                }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
properties!(avx512: Avx512Vnni, avx2: Avx2);
#[cfg(target_arch = "aarch64")]
properties!(neon: Neon);
properties!(scalar: Portable);

#[test]
fn the_best_comes_first() {
    let found: Vec<_> = implementations().iter().map(|kernels| kernels.kernel).collect();
    assert_eq!(kernels().kernel, found[0]);
    assert_eq!(found.last(), Some(&Kernel::Portable));
    for kernel in [Kernel::Avx512Vnni, Kernel::Avx2, Kernel::Neon, Kernel::Portable] {
        let is_available = !cfg!(miri) && Kernel::available().any(|other| other == kernel);
        assert_eq!(
            found.contains(&kernel),
            is_available || kernel == Kernel::Portable
        );
    }
}

#[test]
fn rows_lie_on_cache_lines() {
    let rows = groups(&[0.0; 100]);
    assert_eq!(rows.as_ptr() as usize % 64, 0);
    assert_eq!(size_of::<Floats>(), 256);
}
