//! Time in MPI where several threads of a process may be there at once.

/// A clock that runs at the rate 1/n while n calls are in MPI, and stands while none is. What it advances during a call is the call's share
/// of the time: the shares of all calls add up to the time during which at least one was in MPI, never to more.
///
/// Stamps are seconds of any clock that does not run backwards.
#[derive(Debug, Default)]
pub struct SharedClock {
    /// When it was last brought up to date.
    last: f64,
    /// Calls that are in MPI.
    inside: u32,
    /// What it shows, in seconds.
    shown: f64,
}

impl SharedClock {
    /// A call enters MPI: what the clock shows then, for [`SharedClock::leave`].
    pub fn enter(&mut self, now: f64) -> f64 {
        self.advance(now);
        self.inside += 1;
        self.shown
    }

    /// The call that entered when the clock showed `entered` leaves: the seconds that are its share.
    pub fn leave(&mut self, now: f64, entered: f64) -> f64 {
        self.advance(now);
        self.inside = self.inside.saturating_sub(1);
        self.shown - entered
    }

    fn advance(&mut self, now: f64) {
        if self.inside > 0 {
            self.shown += (now - self.last).max(0.0) / f64::from(self.inside);
        }
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::SharedClock;

    #[test]
    fn calls_one_after_the_other_have_all_of_their_time() {
        let mut clock = SharedClock::default();
        let first = clock.enter(10.0);
        assert_eq!(clock.leave(13.0, first), 3.0);
        let second = clock.enter(20.0);
        assert_eq!(clock.leave(21.0, second), 1.0);
    }

    #[test]
    fn a_call_within_another_shares_its_time() {
        let mut clock = SharedClock::default();
        let outer = clock.enter(0.0);
        let inner = clock.enter(1.0);
        assert_eq!(clock.leave(3.0, inner), 1.0); // half of 2 s
        assert_eq!(clock.leave(7.0, outer), 6.0); // 1 s, half of 2 s, 4 s
    }

    #[test]
    fn shares_of_three_threads_add_up_to_the_time_with_any_of_them_in_mpi() {
        let mut clock = SharedClock::default();
        let a = clock.enter(0.0);
        let b = clock.enter(2.0);
        let c = clock.enter(4.0);
        let shares = [clock.leave(10.0, a), clock.leave(12.0, b), clock.leave(15.0, c)];
        assert_eq!(shares, [2.0 + 1.0 + 2.0, 1.0 + 2.0 + 1.0, 2.0 + 1.0 + 3.0]);
        assert_eq!(shares.iter().sum::<f64>(), 15.0);
        // nobody is in MPI from 15 to 40
        let again = clock.enter(40.0);
        assert_eq!(clock.leave(41.0, again), 1.0);
    }
}
