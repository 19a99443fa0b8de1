//! What a broadcast of the next size is hardly faster than.

/// Where the best takes no more than so much longer than what is hardly to be had for less, no better one is looked for.
const LITTLE: f64 = 0.05;

/// What broadcasts of growing sizes hardly take less than: what the best of the size before took, and what links take for the bytes more. No bound: a longer
/// message in segments may make up for what a shorter one lost. Ways that differ in more than segments, trees and windows are measured anyway.
#[derive(Default)]
pub(super) struct Floor {
    seconds: f64,
    links_allow: f64,
}

impl Floor {
    /// At the next size, for which links take so long at least.
    pub fn rise(&mut self, links_allow: f64) {
        self.seconds += links_allow - self.links_allow;
        self.links_allow = links_allow;
    }

    /// True if little is left to be won. What is near by chance raises no floor, so that these shares of several sizes do not add up.
    pub fn is_near(&self, seconds: f64) -> bool {
        seconds <= self.seconds * (1.0 + LITTLE)
    }

    /// What the best took at this size once better ones were looked for.
    pub fn found(&mut self, seconds: f64) {
        self.seconds = self.seconds.max(seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_a_shorter_message_and_what_links_take_for_more_bytes_little_is_left_to_be_won() {
        let mut floor = Floor::default();
        floor.rise(2.0);
        assert!(floor.is_near(2.05) && !floor.is_near(2.2), "what links allow");
        floor.found(3.0);
        floor.rise(7.0);
        assert!(floor.is_near(8.3) && !floor.is_near(8.5), "3, and 5 for the bytes more");
        floor.rise(8.0);
        assert!(!floor.is_near(9.5), "what was near before does not count");
        floor.found(8.5);
        assert!(floor.is_near(9.0), "it does not fall");
    }
}
