//! The product of some rows and one or two panels of sixteen columns, in registers: the loop in which nearly all time goes.

use super::lanes::{Bytes, Floats, Integers, Lanes, Shorts};

/// The operands of a product: words of four bytes with vectors of as many such words, into sums.
pub trait Product<L: Lanes>: Copy {
    /// The operand of a lane at a time.
    type Word: Copy;
    /// The words of sixteen columns, in memory.
    type Block;
    /// Sixteen sums, in memory.
    type Sums;
    /// A vector of words or sums, in registers.
    type Vector: Copy;
    /// How many rows of a tile fit the registers.
    const ROWS: usize;

    fn zero(lanes: L) -> Self::Vector;
    fn load(lanes: L, block: &Self::Block) -> Self::Vector;
    fn step(lanes: L, row: Self::Word, column: Self::Vector, sum: Self::Vector) -> Self::Vector;
    fn load_sums(lanes: L, sums: &Self::Sums) -> Self::Vector;
    fn store_sums(lanes: L, vector: Self::Vector, sums: &mut Self::Sums);
}

macro_rules! products {
    ($(#[$doc:meta] $product:ident: $word:ty, $block:ident, $step:ident, $sums:ident, $vector:ident, $rows:ident, $splat:ident, $load:ident, $store:ident;)*) => {$(
        #[$doc]
        #[derive(Clone, Copy)]
        pub struct $product;

        impl<L: Lanes> Product<L> for $product {
            type Word = $word;
            type Block = $block;
            type Sums = $sums;
            type Vector = L::$vector;
            const ROWS: usize = L::$rows;

            #[inline(always)]
            fn zero(lanes: L) -> L::$vector {
                lanes.$splat(Default::default())
            }

            #[inline(always)]
            fn load(lanes: L, block: &$block) -> L::$vector {
                // As aligned as it is, so that nothing is left to check in the loop.
                lanes.$load(&bytemuck::cast_ref::<_, $sums>(block).0)
            }

            #[inline(always)]
            fn step(lanes: L, row: $word, column: L::$vector, sum: L::$vector) -> L::$vector {
                lanes.$step(row, column, sum)
            }

            #[inline(always)]
            fn load_sums(lanes: L, sums: &$sums) -> L::$vector {
                lanes.$load(&sums.0)
            }

            #[inline(always)]
            fn store_sums(lanes: L, vector: L::$vector, sums: &mut $sums) {
                lanes.$store(vector, &mut sums.0);
            }
        }
    )*};
}

products! {
    /// Floats.
    OfFloats: f32, Floats, accumulate, Floats, F, ROWS, splat, load, store;
    /// Unsigned bytes (rows) and signed bytes (columns), four to a word.
    OfBytes: i32, Bytes, dot_bytes, Integers, I, INTEGER_ROWS, splat_integer, load_integers, store_integers;
    /// Signed 16-bit integers, two to a word.
    OfShorts: i32, Shorts, dot_shorts, Integers, I, INTEGER_ROWS, splat_integer, load_integers, store_integers;
}

/// Words in memory as the rows of a product: word `k` of row `r` is at `r * row_step + k * word_step`.
#[derive(Clone, Copy)]
pub struct Rows<'a, W> {
    pub words: &'a [W],
    pub row_step: usize,
    pub word_step: usize,
    pub rows: usize,
    pub depth: usize,
}

impl<W> Rows<'_, W> {
    /// Returns whether all words are within the slice.
    fn fit(&self) -> bool {
        if self.rows == 0 || self.depth == 0 {
            return true;
        }
        let last = (self.rows - 1)
            .checked_mul(self.row_step)
            .zip((self.depth - 1).checked_mul(self.word_step))
            .and_then(|(row, word)| row.checked_add(word));
        last.is_some_and(|last| last < self.words.len())
    }
}

/// The most rows that a tile of any instruction set has.
pub const MAX_ROWS: usize = 16;

/// Rows in tiles of about the same height: in a last one with few rows each step would wait for the one before.
#[derive(Clone, Copy)]
pub struct Tiles {
    tiles: usize,
    /// The rows of most tiles, and how many of the first ones have one more.
    height: usize,
    taller: usize,
}

impl Tiles {
    #[inline(always)]
    pub fn new(rows: usize, tallest: usize) -> Self {
        let tiles = rows.div_ceil(tallest);
        let height = rows / tiles.max(1);
        let taller = rows - height * tiles;
        Self {
            tiles,
            height,
            taller,
        }
    }

    /// Returns the first row and the number of rows of each, the tallest first.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.tiles).map(move |tile| {
            let from = tile * self.height + tile.min(self.taller);
            (from, self.height + usize::from(tile < self.taller))
        })
    }
}

/// Multiplies all `rows` with `panels` ([`Lanes::PANELS`] panels of `rows.depth` blocks, `panel_step` blocks apart): `sums`
/// has the sums of a row in one block for each panel, `sums_step` blocks apart, and the next row in the next block. With
/// `onto` the products are added to the sums.
///
/// Each sum is one chain from the first word to the last, so its bits depend neither on the rows beside it nor on the
/// width of the tile.
#[inline(always)]
pub fn multiply<L: Lanes, P: Product<L>>(
    lanes: L,
    rows: Rows<P::Word>,
    (panels, panel_step): (&[P::Block], usize),
    (sums, sums_step): (&mut [P::Sums], usize),
    onto: bool,
) {
    for (from, count) in Tiles::new(rows.rows, P::ROWS).iter() {
        let part = Rows {
            words: rows.words.get(from * rows.row_step..).unwrap_or(&[]),
            rows: count,
            ..rows
        };
        let sums = &mut sums[from..];
        if L::PANELS == 2 {
            dispatch::<L, P, 2>(lanes, part, panels, panel_step, sums, sums_step, onto);
        } else {
            dispatch::<L, P, 1>(lanes, part, panels, panel_step, sums, sums_step, onto);
        }
    }
}

#[inline(always)]
fn dispatch<L: Lanes, P: Product<L>, const PANELS: usize>(
    lanes: L,
    rows: Rows<P::Word>,
    panels: &[P::Block],
    panel_step: usize,
    sums: &mut [P::Sums],
    sums_step: usize,
    onto: bool,
) {
    macro_rules! heights {
        ($($height:literal)*) => {
            match rows.rows {
                $($height if $height <= P::ROWS => {
                    tile::<L, P, $height, PANELS>(lanes, rows, panels, panel_step, sums, sums_step, onto);
                })*
                _ => unreachable!("a tile has 1 to {} rows", P::ROWS),
            }
        };
    }
    heights!(1 2 3 4 5 6 7 8 9 10 11 12);
}

#[inline(always)]
#[allow(clippy::needless_range_loop)] // Indices of several arrays, which the compiler unrolls.
fn tile<L: Lanes, P: Product<L>, const ROWS: usize, const PANELS: usize>(
    lanes: L,
    rows: Rows<P::Word>,
    panels: &[P::Block],
    panel_step: usize,
    sums: &mut [P::Sums],
    sums_step: usize,
    onto: bool,
) {
    assert!(rows.rows == ROWS && rows.fit());
    assert!((PANELS - 1) * panel_step + rows.depth <= panels.len());
    assert!((PANELS - 1) * sums_step + ROWS <= sums.len());
    let mut tile = [[P::zero(lanes); PANELS]; ROWS];
    if onto {
        for row in 0..ROWS {
            for panel in 0..PANELS {
                tile[row][panel] = P::load_sums(lanes, &sums[panel * sums_step + row]);
            }
        }
    }
    let starts: [*const P::Word; ROWS] =
        std::array::from_fn(|row| rows.words.as_ptr().wrapping_add(row * rows.row_step));
    for word in 0..rows.depth {
        let mut columns = [P::zero(lanes); PANELS];
        for panel in 0..PANELS {
            // SAFETY: `word` is less than the depth, which is the number of blocks of each panel, as asserted above.
            let block = unsafe { panels.get_unchecked(panel * panel_step + word) };
            columns[panel] = P::load(lanes, block);
            // The panels of the next tile: where there are few rows, the loop waits for memory more than for sums.
            lanes.prefetch(panels.as_ptr().wrapping_add((PANELS + panel) * panel_step + word));
        }
        for row in 0..ROWS {
            // SAFETY: `row` and `word` are less than the bounds for which `fit` has found the index within the slice.
            let value = unsafe { starts[row].add(word * rows.word_step).read() };
            for panel in 0..PANELS {
                tile[row][panel] = P::step(lanes, value, columns[panel], tile[row][panel]);
            }
        }
    }
    for row in 0..ROWS {
        for panel in 0..PANELS {
            P::store_sums(lanes, tile[row][panel], &mut sums[panel * sums_step + row]);
        }
    }
}

/// The products of bytes of a processor, which may have instructions for whole tiles of them.
pub trait ByteTiles: Lanes {
    /// Prepares this thread for [`ByteTiles::multiply_bytes`], and returns the tiles of `rows` rows that it takes.
    #[inline(always)]
    fn begin_bytes(self, rows: usize) -> Tiles {
        Tiles::new(rows, Self::INTEGER_ROWS)
    }

    /// Multiplies the bytes of a tile with [`Lanes::PANELS`] panels: [`multiply`] with a `sums_step` of [`MAX_ROWS`]. The words of
    /// a row lie side by side, and their number is even. The words of [`MAX_ROWS`] rows are there, and the sums of rows beyond the
    /// last one may change.
    #[inline(always)]
    fn multiply_bytes(self, rows: Rows<i32>, panels: &[Bytes], sums: &mut [Integers]) {
        multiply::<Self, OfBytes>(self, rows, (panels, rows.depth), (sums, MAX_ROWS), false);
    }

    /// Ends what [`ByteTiles::begin_bytes`] has begun.
    #[inline(always)]
    fn end_bytes(self) {}
}
