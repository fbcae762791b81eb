//! The Cholesky decomposition.

use multiversion::multiversion;

/// Replaces the upper triangle of a symmetric positive matrix `A` by that of `U` with `A = U' D U`, whose diagonal is all ones.
#[multiversion(targets("x86_64+avx2"))]
pub fn decompose(matrix: &mut [f64], width: usize) {
    /// Rows that are processed together, so that the rows above them are read but once.
    const ROWS: usize = 8;
    /// Columns that are worked on together, so that they stay in the first cache.
    const COLUMNS: usize = 128;

    for first in (0..width).step_by(ROWS) {
        let (above, rows) = matrix.split_at_mut(first * width);
        let rows = &mut rows[..ROWS.min(width - first) * width];
        let factors = above.chunks_exact(width).enumerate().map(|(pivot, above)| {
            let mut factors = [0.0; ROWS];
            for (factor, number) in factors.iter_mut().zip(&above[first..]) {
                *factor = number / above[pivot];
            }
            factors
        });
        let factors: Vec<[f64; ROWS]> = factors.collect();
        for from in (first..width).step_by(COLUMNS) {
            let columns = from..(from + COLUMNS).min(width);
            for (above, factors) in above.chunks_exact(width).zip(&factors) {
                for (row, factor) in rows.chunks_exact_mut(width).zip(factors) {
                    subtract(&mut row[columns.clone()], *factor, &above[columns.clone()]);
                }
            }
        }
        // And from each other.
        for pivot in 0..rows.len() / width {
            let (above, below) = rows.split_at_mut((pivot + 1) * width);
            let above = &above[pivot * width..];
            for (index, row) in below.chunks_exact_mut(width).enumerate() {
                let column = first + pivot + 1 + index;
                let factor = above[column] / above[first + pivot];
                subtract(&mut row[column..], factor, &above[column..]);
            }
        }
    }
    for (index, row) in matrix.chunks_exact_mut(width.max(1)).enumerate() {
        let diagonal = row[index];
        for number in &mut row[index..] {
            *number /= diagonal;
        }
    }
}

fn subtract(numbers: &mut [f64], factor: f64, others: &[f64]) {
    for (number, other) in numbers.iter_mut().zip(others) {
        *number -= factor * other;
    }
}
