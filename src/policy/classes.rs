//! Classes of sizes: what is decided at one size of a class holds for all of it.

use super::Policy;
use crate::collective::Collective;
use crate::decide::even_part;
use crate::model::Losses;
use std::collections::BTreeSet;

impl Policy {
    /// A collective's classes of sizes: where each begins, between two beginnings of rows, with a size that a row in it was made at, or else one in
    /// its middle.
    pub fn size_classes(&self, collective: &'static Collective) -> Vec<(usize, usize)> {
        let across = self.two_level(collective).iter().map(|r| (r.from_bytes, r.at_bytes));
        let inside = self.groups.iter().flat_map(|g| g.rows(collective).iter().map(|r| (r.from_bytes, r.at_bytes)));
        let rows: Vec<(usize, usize)> = across.chain(inside).collect();
        let begins: Vec<usize> = rows.iter().map(|r| r.0).collect::<BTreeSet<_>>().into_iter().collect();
        let class = |(k, &from): (usize, &usize)| {
            let end = begins.get(k + 1).copied().unwrap_or(usize::MAX);
            let made = rows.iter().map(|r| r.1).find(|at| (from..end).contains(at));
            (from, made.unwrap_or(if end == usize::MAX { from.max(1) } else { from + (end - from) / 2 }))
        };
        begins.iter().enumerate().map(class).collect()
    }

    /// The classes that decisions are made for: as narrow as the network wants.
    pub(super) fn narrow_classes(&self, collective: &'static Collective) -> Vec<(usize, usize)> {
        let edges = self.groups.iter().filter_map(|g| g.losses.as_ref()).flat_map(loss_edges).collect();
        narrow(&self.size_classes(collective), &edges)
    }
}

/// Sizes down to this share of the one that a decision was made at have what it decided.
const NEAR: (usize, usize) = (16, 19);
/// Sizes up to this take what an empty message takes, about: their classes are as wide as they are, but for the size that a row was made at.
const SHORT: usize = 1 << 10;

/// Messages are of so many blocks, and of such parts of a vector, in what many ranks do.
const MOST_BLOCKS: usize = 16;

/// The largest sizes of which no message, of whole blocks or an [even] part of a vector, is as long as those that are lost, or longer than these.
fn loss_edges(losses: &Losses) -> BTreeSet<usize> {
    let ends = [losses.from_bytes - 1, losses.to_bytes];
    let of_end = |end: usize| (1..=MOST_BLOCKS).flat_map(move |k| [end / k, even_part(end) * k]).chain([end]);
    ends.into_iter().flat_map(of_end).collect()
}

/// Classes of sizes in which all are near the one that stands for them: what ranks do that a row was not made for changes inside a wide one. It is the
/// largest of them, so that no message has a segment more than what was decided for. What is above the largest size that a row was made at stays one
/// class.
fn narrow(classes: &[(usize, usize)], edges: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for (k, &(from, at)) in classes.iter().enumerate() {
        let end = classes.get(k + 1).map_or(at, |next| next.0 - 1);
        if end <= SHORT {
            // what is above the size that a row was made at is no part of it
            all.extend([(from, at)].into_iter().chain((at < end).then_some((at + 1, end))));
            continue;
        }
        let down_to = |least: usize, last: usize| {
            std::iter::successors(Some(last), |&size| Some(size * NEAR.0 / NEAR.1)).take_while(move |&size| size > least)
        };
        // the size that a row was made at ends a class, and so does the longest short one
        let within = edges.iter().copied().filter(|edge| (from..end).contains(edge));
        let parts: BTreeSet<usize> = (from <= SHORT).then_some(SHORT).into_iter().chain([at, end]).chain(within).collect();
        let before = |part: usize| parts.range(..part).next_back().map_or(from, |&last| last);
        let narrow = parts.iter().flat_map(|&part| down_to(before(part).max(SHORT), part));
        let ends: BTreeSet<usize> = parts.iter().copied().chain(narrow).collect();
        let begins = std::iter::once(from).chain(ends.iter().map(|end| end + 1));
        all.extend(begins.zip(ends.iter().copied()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_narrow_and_their_largest_size_stands_for_them() {
        let wide = [(0, 1), (46, 2048), (92_682, 131_072), (370_728, 1 << 19)];
        let all = narrow(&wide, &BTreeSet::new());
        assert!(all.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].0 && two[0].1 >= two[0].0), "{all:?}");
        assert_eq!((all[0], all[1], all[all.len() - 1].1), ((0, 1), (2, 45), 1 << 19));
        // each of the wide ones begins where it did, and the size that a row was made at stands for itself still
        for (from, at) in wide {
            assert!(all.iter().any(|class| class.0 == from) && all.iter().any(|class| class.1 == at), "{from} {at}: {all:?}");
        }
        let of = |bytes: usize| all[all.partition_point(|class| class.0 <= bytes) - 1].1;
        for bytes in (2048..1 << 19).step_by(101) {
            let at = of(bytes);
            assert!(bytes <= at && (at as f64) < 1.2 * bytes as f64, "{bytes} is decided at {at}");
        }
        assert_eq!(of(1 << 20), 1 << 19, "larger than any that was measured");
    }

    #[test]
    fn what_is_short_is_one_class_up_to_1_kib_but_for_the_size_that_a_row_was_made_at() {
        let below =
            |wide: &[(usize, usize)]| narrow(wide, &BTreeSet::new()).into_iter().take_while(|class| class.0 <= SHORT).collect::<Vec<_>>();
        assert_eq!(below(&[(0, 1), (46, 2048)]), [(0, 1), (2, 45), (46, SHORT)]);
        assert_eq!(below(&[(0, 8), (3548, 1 << 16)]), [(0, 8), (9, SHORT)]);
        assert_eq!(below(&[(0, 1), (46, SHORT), (1449, 2048)]), [(0, 1), (2, 45), (46, SHORT)]);
        assert_eq!(below(&[(0, 8), (700, 800), (SHORT, 1500)]), [(0, 8), (9, 699), (700, 800), (801, SHORT - 1), (SHORT, SHORT)]);
    }
}
