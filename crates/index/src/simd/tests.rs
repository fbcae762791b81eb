//! The same properties for every implementation that this CPU has, against sums that share no code with them.

use super::*;
use proptest::prelude::*;

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

/// A query and rows of codes, each in whole groups; every fourth number is an extreme.
fn codes(groups: usize, count: usize, seed: u64) -> (Vec<CodePlanes>, Vec<Codes>) {
    let mut state = seed | 1;
    let mut within = |smallest: i64, largest: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state >> 60 {
            0 | 1 => smallest,
            2 | 3 => largest,
            _ => smallest + ((state >> 20) % (largest - smallest + 1) as u64) as i64,
        }
    };
    let query = (0..groups).map(|_| CodePlanes {
        high: std::array::from_fn(|_| within(-127, 127) as i8),
        low: std::array::from_fn(|_| within(0, 127) as i8),
    });
    let query = query.collect();
    let rows = (0..groups * count).map(|_| Codes(std::array::from_fn(|_| within(0, 255) as u8)));
    (query, rows.collect())
}

fn exact_code_dot(query: &[CodePlanes], row: &[Codes]) -> i64 {
    let mut sum = 0;
    for (query, row) in query.iter().zip(row) {
        for lane in 0..GROUP {
            let component = 128 * i64::from(query.high[lane]) + i64::from(query.low[lane]);
            sum += component * i64::from(row.0[lane]);
        }
    }
    sum
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

                #[test]
                fn code_dots_is_exact(groups in 0usize..20, count in 0usize..5, seed in any::<u64>()) {
                    let Some(kernels) = kernels() else { return Ok(()) };
                    let (query, rows) = codes(groups, count, seed);
                    let mut products = vec![f64::NAN; count];
                    kernels.code_dots(&query, &rows, &mut products);
                    for (index, product) in products.into_iter().enumerate() {
                        let row = &rows[index * groups..][..groups];
                        prop_assert_eq!(product, exact_code_dot(&query, row) as f64);
                    }
                }
            }

            #[test]
            fn the_largest_codes_do_not_overflow() {
                let Some(kernels) = kernels() else { return };
                let rows = vec![Codes([255; GROUP]); MAX_CODE_GROUPS];
                for (high, low) in [(127, 127), (-127, 0)] {
                    let query = vec![CodePlanes { high: [high; GROUP], low: [low; GROUP] }; MAX_CODE_GROUPS];
                    let mut product = [0.0];
                    kernels.code_dots(&query, &rows, &mut product);
                    assert_eq!(product[0], exact_code_dot(&query, &rows) as f64);
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
    assert_eq!(
        (size_of::<Floats>(), size_of::<Codes>(), size_of::<CodePlanes>()),
        (256, 64, 128)
    );
}
