//! Choices for all sizes from those that were made at some: where one candidate becomes faster than another, and where the network changes.

use crate::error::Result;

/// To within which factors it is found where one row ends and the next begins.
#[derive(Debug, Clone, Copy)]
pub struct Close {
    /// Where two candidates take turns, which take about the same there.
    crossing: f64,
    /// Where one that was best is much slower at once: what lies between is done the slow way.
    jump: f64,
}

/// Of messages that change where [`protocol_changes`] says.
pub const CLOSE: Close = Close { crossing: 1.03, jump: 1.03 };
/// Of blocks, several of which may be one message: that changes at other sizes of a block.
pub const CLOSE_IN_BLOCKS: Close = Close { jump: 1.004, ..CLOSE };
/// Where messages of one byte more or less are lost, or not, it is found exactly.
pub const TO_THE_BYTE: Close = Close { crossing: 1.0, jump: 1.0 };
/// The jump at a protocol change is at least this share of what a message takes: a handshake is, the next byte of a stream is not.
const LEAST_JUMP: f64 = 0.05;

/// Measured tables know where it is to within this factor: there they have a steep line from the last size before it to the first after.
const RAMP: f64 = 1.15;

/// Where messages begin to take longer at once, as where they begin to wait for a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtocolChange {
    /// The last size that is known to be before it.
    pub before: usize,
    /// The first size that is known to be after it.
    pub after: usize,
}

impl ProtocolChange {
    /// A size that is not known to be before or after it is taken to be after it.
    pub fn beyond(&self, bytes: usize) -> usize {
        if (self.before + 1..self.after).contains(&bytes) { self.after } else { bytes }
    }
}

/// The protocol changes of messages up to `largest`. Between two powers of two there is at most one.
pub fn protocol_changes(seconds: impl Fn(usize) -> f64, largest: usize) -> Vec<ProtocolChange> {
    let slope = |m: usize| seconds(m + 1) - seconds(m);
    let mut found = Vec::new();
    let mut begin = 1;
    while begin < largest {
        let end = (2 * begin).min(largest);
        // into the steepest part
        let (mut low, mut high) = (begin, end);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if seconds(middle) - seconds(low) > seconds(high) - seconds(middle) { high = middle } else { low = middle }
        }
        let steep = slope(low) / 2.0;
        let first = first_where(begin, low, |m| slope(m) > steep);
        let last = first_where(low, end, |m| slope(m) <= steep);
        let height = seconds(last) - seconds(first);
        if height > LEAST_JUMP * seconds(first) && last as f64 <= first as f64 * RAMP + 1.0 {
            found.push(ProtocolChange { before: first, after: last });
        }
        begin = end;
    }
    found
}

/// The first size from `low` up to `high` of which something holds that does not hold before it; `high` if it holds of none.
fn first_where(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// The best candidate for each size from `sizes[0]` up to the last: `(from, candidate)`, neighbours differ. `best` says which it is at a
/// size, and after it those that are about as good. It is asked at the `sizes`, on both sides of where each protocol change begins, and in between as closely as
/// `close`, or until both are as good, where two that were asked about differ; where they agree, once in their middle. Where the one before is much slower as soon
/// as the other is best, as closely as for that.
///
/// # Errors
/// Those of `best`.
pub fn best_from<C: PartialEq + Copy>(
    sizes: &[usize],
    changes: &[ProtocolChange],
    close: Close,
    mut best: impl FnMut(usize) -> Result<(C, Vec<C>)>,
) -> Result<Vec<(usize, C)>> {
    let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) else { return Ok(Vec::new()) };
    let beside = changes.iter().flat_map(|l| [l.before, l.before + 1]).filter(|l| (first..=last).contains(l));
    let mut asked: Vec<usize> = sizes.iter().copied().chain(beside).collect();
    asked.sort_unstable();
    asked.dedup();
    let mut found = vec![(first, best(first)?.0)];
    for pair in asked.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let before = found[found.len() - 1].1;
        let (after, as_good) = best(high)?;
        switches((low, before), (high, after, &as_good), (close, true), &mut best, &mut found)?;
    }
    Ok(found)
}

/// Adds what is best after `low` up to `high`, where others may be about as good. `unsure`: also where both ends agree something else may be best between them.
fn switches<C: PartialEq + Copy>(
    (low, before): (usize, C),
    (high, after, as_good_after): (usize, C, &[C]),
    (close, unsure): (Close, bool),
    best: &mut impl FnMut(usize) -> Result<(C, Vec<C>)>,
    found: &mut Vec<(usize, C)>,
) -> Result<()> {
    let middle = ((low as f64 * high as f64).sqrt().round() as usize).clamp(low, high);
    let jumps = before != after && !as_good_after.contains(&before);
    let within = if jumps { close.jump } else { close.crossing };
    let apart = middle > low && middle < high && high as f64 > low as f64 * within;
    if apart && (before != after || unsure) {
        let (between, as_good) = best(middle)?;
        let is_good = |c: &C| between == *c || as_good.contains(c);
        if before != after && is_good(&before) && is_good(&after) {
            found.push((middle, after));
            return Ok(());
        }
        // halves of what agrees are sure when their middle agrees too
        let unsure = before != after;
        switches((low, before), (middle, between, &as_good), (close, unsure && between != before), best, found)?;
        return switches((middle, between), (high, after, as_good_after), (close, unsure && between != after), best, found);
    }
    if before != after {
        found.push((high, after));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_changes_are_found_to_the_byte_and_streams_have_none() {
        let handshakes =
            |at: &'static [usize]| move |m: usize| 1e-5 + 1e-9 * m as f64 + 4e-5 * at.iter().filter(|&&a| m > a).count() as f64;
        let exactly = |before: usize| ProtocolChange { before, after: before + 1 };
        assert_eq!(protocol_changes(handshakes(&[65_536]), 1 << 22), [exactly(65_536)]);
        assert_eq!(protocol_changes(handshakes(&[4096, 12_288]), 1 << 22), [exactly(4096), exactly(12_288)]);
        assert!(protocol_changes(handshakes(&[]), 1 << 22).is_empty());
        // as tables know it: up to 65,536 bytes without, from 70,000 on with a handshake
        let table = |m: usize| 1e-5 + 1e-9 * m as f64 + 4e-5 * ((m as f64 - 65_536.0) / 4464.0).clamp(0.0, 1.0);
        assert_eq!(protocol_changes(table, 1 << 22), [ProtocolChange { before: 65_536, after: 70_000 }]);
    }

    /// The best of straight lines.
    fn lines(all: &[(f64, f64)]) -> impl Fn(usize) -> Result<(usize, Vec<usize>)> + '_ {
        let seconds = |k: usize, m: usize| all[k].0 + all[k].1 * m as f64;
        move |m| Ok(((0..all.len()).min_by(|&a, &b| seconds(a, m).total_cmp(&seconds(b, m))).unwrap_or(0), Vec::new()))
    }

    #[test]
    fn lines_change_where_they_cross() {
        // they cross at 1000 and at 100,000
        let all = [(1.0, 1e-3), (1.9, 1e-4), (10.9, 1e-5)];
        let found = best_from(&[1, 1 << 20], &[], CLOSE, lines(&all)).unwrap();
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(found[0].0, 1);
        assert!((1000.0..1000.0 * CLOSE.crossing).contains(&(found[1].0 as f64)), "{found:?}");
        assert!((100_000.0..100_000.0 * CLOSE.crossing).contains(&(found[2].0 as f64)), "{found:?}");
        assert_eq!(best_from(&[1, 64, 1 << 20], &[], CLOSE, lines(&all[..1])).unwrap(), [(1, 0)]);
    }

    #[test]
    fn where_one_is_much_slower_at_once_the_next_begins_close_by() {
        // a message of four blocks has a handshake from 16,129 bytes a block on; the other one takes a little longer before that
        let best = |m: usize| Ok((usize::from(m > 16_128), Vec::new()));
        let found = best_from(&[1 << 13, 1 << 15], &[], CLOSE_IN_BLOCKS, best).unwrap();
        assert!(found.len() == 2 && (16_129.0..16_129.0 * CLOSE_IN_BLOCKS.jump).contains(&(found[1].0 as f64)), "{found:?}");
    }

    #[test]
    fn where_two_are_as_good_it_does_not_matter_which_is_taken() {
        // the second is the better one from 300 on, and about as good from 100 to 1,000
        let mut asked = Vec::new();
        let best = |m: usize| {
            asked.push(m);
            Ok((usize::from(m >= 300), if (100..1000).contains(&m) { vec![usize::from(m < 300)] } else { Vec::new() }))
        };
        assert_eq!(best_from(&[1, 1 << 16], &[], CLOSE, best).unwrap(), [(1, 0), (256, 1)]);
        assert_eq!(asked, [1, 1 << 16, 256]);
    }

    #[test]
    fn what_is_best_only_between_two_sizes_is_found_and_rows_end_at_protocol_changes() {
        // the second is best from 100 to 10,000
        let all = [(1.0, 1e-2), (1.99, 1e-4), (2.98, 1e-6)];
        let found = best_from(&[10, 100_000], &[], CLOSE, lines(&all)).unwrap();
        assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), [0, 1, 2]);
        let change = |m: usize| Ok((usize::from(m > 65_536), Vec::new()));
        assert_eq!(
            best_from(&[1 << 16, 1 << 17], &[ProtocolChange { before: 65_536, after: 65_537 }], CLOSE, change).unwrap(),
            [(1 << 16, 0), (65_537, 1)]
        );
    }
}
