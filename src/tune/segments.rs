//! In which segments broadcasts over groups are tried.

use crate::decide::LEAST_ACROSS;
use crate::policy::CompiledPolicy;
use crate::schedule::MOST_SEGMENTS;

/// They are at most so many: pipelines across groups are as long as those of two groups and the way between them, so twice as many as are tried
/// inside one.
const MOST_ACROSS: usize = 2 * MOST_SEGMENTS;
/// A pipeline has about so many segments.
pub(super) const PIECES: usize = 8;

/// Segment sizes to try: powers of two, the sizes that the links were measured at (which lie close on both sides of where the library
/// changes its protocol), and the whole message.
pub(super) fn segment_sizes(policy: &CompiledPolicy, bytes: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = (12..24).map(|i| 1 << i).collect();
    for link in &policy.policy.links {
        sizes.extend(link.model.tables.get("bytes").iter().flat_map(|t| &t.value).map(|&s| s as usize));
    }
    sizes.retain(|&s| s >= LEAST_ACROSS && s < bytes && bytes.div_ceil(s) <= MOST_ACROSS);
    sizes.sort_unstable();
    sizes.dedup();
    // of sizes that differ by less than a tenth, the smaller: it is on the safe side of a limit
    let mut kept: Vec<usize> = Vec::new();
    for s in sizes {
        if kept.last().is_none_or(|&k| s as f64 > k as f64 * 1.1) {
            kept.push(s);
        }
    }
    kept.push(0);
    kept
}

/// The next smaller and the next larger segment size; 0 is the whole message.
pub(super) fn neighbours(sizes: &[usize], segment: usize) -> impl Iterator<Item = usize> {
    let place = sizes.iter().position(|&s| s == segment);
    let beside = place.map_or([None; 2], |k| [k.checked_sub(1), Some(k + 1)]);
    beside.into_iter().flatten().filter_map(|k| sizes.get(k).copied())
}

/// The segment size that is nearest to an eighth of so many bytes.
pub(super) fn pipeline(sizes: &[usize], bytes: usize) -> Option<usize> {
    sizes.iter().copied().filter(|&s| s > 0).min_by_key(|s| s.abs_diff(bytes / PIECES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_the_next_sizes_and_the_whole_message_is_the_largest() {
        let of = |segment| neighbours(&[4096, 8192, 0], segment).collect::<Vec<_>>();
        assert_eq!((of(4096), of(8192), of(0), of(5)), (vec![8192], vec![4096, 0], vec![8192], vec![]));
    }

    #[test]
    fn a_pipeline_has_eight_segments_or_about_as_many() {
        let of = |bytes| pipeline(&[4096, 8192, 16_000, 0], bytes);
        assert_eq!((of(128 << 10), of(64 << 10), of(9000), pipeline(&[0], 9000)), (Some(16_000), Some(8192), Some(4096), None));
    }
}
