//! Work on all cores whose results are taken in order.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, channel},
};

/// Maps items on all cores and hands the results on in order, while the next items are mapped. At most two results a core wait. It is not
/// for threads of the pool, which would wait for each other.
///
/// # Errors
/// The first error of `take`. The items that were begun are mapped before it returns.
pub fn in_order<'i, T: Sync, R: Send, E>(
    items: &'i [T],
    map: impl Fn(&'i T) -> R + Sync,
    mut take: impl FnMut(&'i T, R) -> Result<(), E>,
) -> Result<(), E> {
    let cores = rayon::current_num_threads();
    if cores == 1 {
        return items.iter().try_for_each(|item| take(item, map(item)));
    }
    let map = &map;
    rayon::in_place_scope(|scope| {
        let mut begun = VecDeque::new();
        let mut rest = items.iter();
        for item in items {
            for next in rest.by_ref().take(2 * cores - begun.len()) {
                let (sender, result) = channel();
                // Nobody waits after an error.
                scope.spawn(move |_| drop(sender.send(map(next))));
                begun.push_back(result);
            }
            let result: Option<Receiver<R>> = begun.pop_front();
            // After a panic there is none, and the scope hands that on.
            let Some(result) = result.and_then(|result| result.recv().ok()) else {
                break;
            };
            take(item, result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_takes_all_results_in_order_until_an_error() {
        let items: Vec<u32> = (0..100).collect();
        let mut taken = Vec::new();
        let result = in_order(
            &items,
            |item| item * 2,
            |item, double| {
                assert_eq!(double, item * 2);
                taken.push(*item);
                if *item == 70 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((result, taken), (Err("enough"), (0..=70).collect()));
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn in_order_hands_a_panic_on() {
        let items: Vec<u32> = (0..20).collect();
        let _ = in_order(
            &items,
            |item| assert!(*item != 7, "seven"),
            |_, ()| Ok::<_, ()>(()),
        );
    }
}
