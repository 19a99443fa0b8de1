//! Tags that tell the messages of communicators apart which share a private one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ranges of tags that this process uses. Processes agree on a range that is free on all of them: each proposes one, the last of those is tried,
/// and where somebody has taken it meanwhile they try again behind it.
#[derive(Debug, Default)]
pub struct Tags {
    /// The end of each range by its begin.
    used: BTreeMap<i64, i64>,
    /// Where to look first: ranges are used again as late as possible.
    next: i64,
}

/// Those of this process.
pub fn tags() -> MutexGuard<'static, Tags> {
    static TAGS: Mutex<Tags> = Mutex::new(Tags { used: BTreeMap::new(), next: 0 });
    TAGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tags {
    /// Where so many tags below `bound` are free, from where the last ones were taken on or else from the front.
    pub fn propose(&self, count: i64, bound: i64) -> Option<i64> {
        self.free(self.next, count, bound).or_else(|| self.free(0, count, bound))
    }

    /// The first place from one on where so many tags below `bound` are free.
    pub fn free(&self, from: i64, count: i64, bound: i64) -> Option<i64> {
        let before = self.used.range(..from).next_back().map_or(from, |(_, &end)| end.max(from));
        let mut at = before;
        for (&begin, &end) in self.used.range(from..) {
            if at + count <= begin {
                break;
            }
            at = at.max(end);
        }
        (at + count <= bound).then_some(at)
    }

    /// Where all that follow are free, and none of them was taken lately.
    pub fn beyond(&self) -> i64 {
        self.used.last_key_value().map_or(0, |(_, &end)| end).max(self.next)
    }

    /// Takes so many tags, if they are free; true if so.
    pub fn take(&mut self, from: i64, count: i64) -> bool {
        let free = self.free(from, count, i64::MAX) == Some(from);
        if free {
            self.used.insert(from, from + count);
            self.next = from + count;
        }
        free
    }

    /// The tags from one on are free again.
    pub fn give_back(&mut self, from: i64) {
        self.used.remove(&from);
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;

    #[test]
    fn ranges_never_overlap_and_are_used_again_as_late_as_possible() {
        let mut tags = Tags::default();
        assert_eq!(tags.propose(10, 35), Some(0));
        assert!(tags.take(0, 10) && !tags.take(5, 10) && !tags.take(9, 1) && tags.take(10, 10));
        tags.give_back(0);
        // behind the last one first, then at the front, then nowhere
        assert_eq!(tags.propose(10, 35), Some(20));
        assert!(tags.take(20, 10));
        assert_eq!(tags.propose(10, 35), Some(0));
        assert!(tags.take(0, 10));
        assert_eq!(tags.propose(10, 35), None);
        assert_eq!(tags.propose(5, 35), Some(30));
        tags.give_back(10);
        assert_eq!((tags.free(3, 10, 35), tags.free(3, 11, 99)), (Some(10), Some(30)));
        assert_eq!((tags.beyond(), Tags::default().beyond()), (30, 0));
        tags.give_back(20);
        assert!(tags.take(10, 5) && tags.beyond() == 15, "tags are given back, and were taken from the front again");
    }
}
