//! Another rank's clock, from stamps: what to add to it to get one's own, how that drifts, and how far off it may be.
//!
//! No more is taken for true than that no message arrives before it is sent, and how fast two clocks may drift apart. So what to add lies in a
//! range, and so does the rate at which it changes; a range that comes from several looks is what all of them allow. That is as sure as it is
//! careful: the ways out and back may differ by all of a round trip, which no exchange of stamps can see.

/// Two clocks drift apart by so much at most: quartzes are sold with 50 parts in a million each, and age a little.
pub const MOST_DRIFT: f64 = 1.1e-4;

/// A rate that was seen holds but for so much: quartzes follow the temperature by some tenths of a millionth a degree.
const WANDER: f64 = 1e-6;

/// And it says nothing of what is so many seconds away: rooms warm up, and NTP steers.
const KEPT_S: f64 = 300.0;

/// Looks that are kept. Each has its say in all that is asked.
const MOST_LOOKS: usize = 16;

/// A message to another rank and its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// When it was sent, on this rank's clock.
    pub sent: f64,
    /// When it was answered, on the other's.
    pub theirs: f64,
    /// When the answer was there, on this rank's.
    pub received: f64,
}

/// What another clock's stamp is on this rank's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// When that was.
    pub at: f64,
    /// It is off by so much at most.
    pub bound: f64,
    /// So much of this is drift since the last look, or between two: another look takes it away. The rest is half the shortest round trip.
    pub drift: f64,
}

/// All from one value to another.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    low: f64,
    high: f64,
}

/// Nothing is known.
const ANYTHING: Range = Range { low: f64::NEG_INFINITY, high: f64::INFINITY };

impl Range {
    fn intersect(self, other: Range) -> Range {
        Range { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    fn is_empty(self) -> bool {
        self.low > self.high
    }

    fn middle(self) -> f64 {
        self.low.midpoint(self.high)
    }

    fn half_width(self) -> f64 {
        (self.high - self.low).abs() / 2.0
    }

    fn wider(self, by: f64) -> Range {
        Range { low: self.low - by, high: self.high + by }
    }
}

/// What some exchanges in a row say.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    /// When that holds.
    when: f64,
    /// What to add to the other clock then.
    add: Range,
}

impl Look {
    /// As in SKaMPI's exchanges, the shortest way out and the shortest way back count, which need not be of the same exchange: what delays
    /// a message delays one way at a time.
    fn of(exchanges: &[Exchange], most_drift: f64) -> Option<Look> {
        let last = exchanges.last()?;
        let when = last.sent.midpoint(last.received);
        let add = |e: &Exchange| {
            // the answer was given between the two, on a clock that has drifted since, and stamps are rounded
            let away = (when - e.sent).abs().max((when - e.received).abs());
            let rounding = f64::EPSILON * (e.theirs.abs() + e.received.abs());
            Range { low: e.sent - e.theirs, high: e.received - e.theirs }.wider(most_drift * away + rounding)
        };
        let add = exchanges.iter().map(add).fold(ANYTHING, Range::intersect);
        // clocks that tick coarsely seem to hear before somebody speaks: by as much they are uncertain
        let add = if add.is_empty() { Range { low: add.high, high: add.low } } else { add };
        Some(Look { when, add })
    }

    /// What to add at another time, if it changes at any of these rates.
    fn at(&self, when: f64, rate: Range) -> Range {
        let since = when - self.when;
        let (one, other) = (rate.low * since, rate.high * since);
        Range { low: self.add.low + one.min(other), high: self.add.high + one.max(other) }
    }

    /// The mean rates at which both this and a later look are right.
    fn rate_until(&self, later: &Look) -> Range {
        let between = later.when - self.when;
        Range { low: (later.add.low - self.add.high) / between, high: (later.add.high - self.add.low) / between }
    }
}

/// What is known about another rank's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// Since its last jump, the earliest first.
    looks: Vec<Look>,
    /// How what to add changes, as far as the looks say.
    rate: Range,
    /// How fast it may change.
    most_drift: f64,
}

impl Default for Clock {
    fn default() -> Self {
        Clock::drifting(MOST_DRIFT)
    }
}

impl Clock {
    /// A clock that shows the same system's time: it may begin elsewhere, but does not drift.
    pub fn of_same_system() -> Clock {
        Clock::drifting(0.0)
    }

    fn drifting(most_drift: f64) -> Clock {
        Clock { looks: Vec::new(), rate: any_rate(most_drift), most_drift }
    }

    /// Takes in some exchanges in a row, one at least, made later than those before. If the clock has jumped, or runs faster or slower than any
    /// clock should, gives by about how much it is off: what was known is then dropped, and stamps between this look and the last one are read
    /// wrong by as much. A jump by less than a round trip may go unseen.
    #[must_use = "stamps from before a jump are read wrong"]
    pub fn look(&mut self, exchanges: &[Exchange]) -> Option<f64> {
        let look = Look::of(exchanges, self.most_drift)?;
        let expected = self.add_at(look.when);
        self.looks.retain(|old| look.when - old.when < KEPT_S);
        self.looks.push(look);
        if self.looks.len() > MOST_LOOKS {
            // far from each other they tell more of the rate; of the two earliest the wider one tells less
            let wider = usize::from(self.looks[1].add.half_width() > self.looks[0].add.half_width());
            self.looks.remove(wider);
        }
        self.rate = rate(&self.looks, self.most_drift);
        let has_jumped = self.rate.is_empty() || expected.intersect(look.add).is_empty();
        has_jumped.then(|| {
            *self = Clock { looks: vec![look], ..Clock::default() };
            (look.add.middle() - expected.middle()).abs()
        })
    }

    /// The shortest round trip, as far as it was seen.
    pub fn trip(&self) -> f64 {
        2.0 * self.way()
    }

    /// A stamp of the other clock on this rank's; after a jump only those since then.
    pub fn reading(&self, theirs: f64) -> Reading {
        let around = theirs + self.looks.last().map_or(0.0, |look| look.add.middle());
        let at = theirs + self.add_at(around).middle();
        let add = self.add_at(at);
        // when the stamp was made is known as well as what to add, and meanwhile that drifts
        let bound = add.half_width() * (1.0 + self.most_drift);
        Reading { at: theirs + add.middle(), bound, drift: (bound - self.way()).max(0.0) }
    }

    /// What the other clock shows at a time of this rank's.
    pub fn theirs(&self, at: f64) -> f64 {
        at - self.add_at(at).middle()
    }

    /// How much of the uncertainty at a time is drift.
    pub fn drift(&self, at: f64) -> f64 {
        self.reading(self.theirs(at)).drift
    }

    /// Half the shortest round trip.
    fn way(&self) -> f64 {
        self.looks.iter().map(|look| look.add.half_width()).fold(f64::INFINITY, f64::min)
    }

    fn add_at(&self, when: f64) -> Range {
        let is_near = self.looks.last().is_some_and(|last| when - last.when < KEPT_S);
        let rate = if is_near { self.rate } else { any_rate(self.most_drift) };
        self.looks.iter().map(|look| look.at(when, rate)).fold(ANYTHING, Range::intersect)
    }
}

/// What clocks may do that drift apart by so much at most.
fn any_rate(most_drift: f64) -> Range {
    Range { low: -most_drift, high: most_drift }
}

/// The rates that all looks allow, two by two; empty if there are none.
fn rate(looks: &[Look], most_drift: f64) -> Range {
    let pairs = looks.iter().enumerate().flat_map(|(k, later)| looks[..k].iter().map(move |look| look.rate_until(later)));
    pairs.fold(any_rate(most_drift), |rate, mean| rate.intersect(mean.wider(WANDER)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats;
    use proptest::prelude::*;
    use rand::Rng;

    /// Two clocks that run too fast by some shares, with messages between them.
    struct Pair {
        mine: f64,
        theirs: f64,
        /// What the other clock shows at time 0.
        ahead: f64,
        way_s: f64,
        random: stats::Random,
    }

    impl Pair {
        fn new(mine: f64, theirs: f64, way_s: f64, seed: u64) -> Pair {
            Pair { mine: mine * 1e-6, theirs: theirs * 1e-6, ahead: 12.345, way_s, random: stats::random(seed) }
        }

        fn mine(&self, time: f64) -> f64 {
            1000.0 + time * (1.0 + self.mine)
        }

        fn theirs(&self, time: f64) -> f64 {
            1000.0 + self.ahead + time * (1.0 + self.theirs)
        }

        /// One way of a message takes the shortest time, or up to some times as long.
        fn way(&mut self) -> f64 {
            self.way_s * (1.0 - 0.5 * (1.0 - self.random.random::<f64>()).ln())
        }

        fn exchanges(&mut self, mut time: f64, count: usize) -> Vec<Exchange> {
            let mut exchange = || {
                let (out, back) = (self.way(), self.way());
                let exchange = Exchange { sent: self.mine(time), theirs: self.theirs(time + out), received: self.mine(time + out + back) };
                time += out + back;
                exchange
            };
            (0..count).map(|_| exchange()).collect()
        }

        /// How far off a stamp made at some time is read, and by how much that may be.
        fn error(&self, clock: &Clock, time: f64) -> (f64, Reading) {
            let reading = clock.reading(self.theirs(time));
            ((reading.at - self.mine(time)).abs(), reading)
        }
    }

    proptest! {
        #[test]
        fn the_true_offset_is_inside_the_bound(
            mine in -50.0..50.0, theirs in -50.0..50.0, exponent in -6.0..-1.5, gaps in prop::collection::vec(0.05..60.0, 1..30), seed: u64
        ) {
            let mut pair = Pair::new(mine, theirs, 10f64.powf(exponent), seed);
            let (mut clock, mut time) = (Clock::default(), 0.0);
            for gap in gaps {
                // a look begins when the one before is over: its eight messages take 12 of the shortest times in the mean
                time += gap + 40.0 * pair.way_s;
                prop_assert_eq!(clock.look(&pair.exchanges(time, 4)), None, "no clock has jumped");
                for asked in [time - 0.7 * gap, time, time + 0.01, time + gap, time + 20.0, time + 900.0] {
                    let (error, reading) = pair.error(&clock, asked);
                    prop_assert!(error <= reading.bound + 1e-12, "{error} at {asked}, {reading:?}");
                    prop_assert!(reading.drift <= reading.bound);
                }
            }
        }

        #[test]
        fn a_jump_is_noticed(theirs in -50.0..50.0, jump in prop_oneof![-1.0..-1e-3f64, 1e-3..1.0], seed: u64) {
            let mut pair = Pair::new(0.0, theirs, 20e-6, seed);
            let mut clock = Clock::default();
            for time in [0.0, 1.0, 5.0] {
                prop_assert_eq!(clock.look(&pair.exchanges(time, 4)), None);
            }
            pair.ahead += jump;
            let noticed = clock.look(&pair.exchanges(7.0, 4)).unwrap_or(0.0);
            prop_assert!((noticed - jump.abs()).abs() < 3e-4, "it jumped by {jump} s, and {noticed} s was noticed");
            let (error, reading) = pair.error(&clock, 8.0);
            prop_assert!(error <= reading.bound && reading.bound < 3e-4, "what was known before is gone: {error}, {reading:?}");
            prop_assert_eq!(clock.look(&pair.exchanges(9.0, 4)), None, "it has not jumped again");
        }

        /// An offset that is kept for 20 s is off by a millisecond at 50 parts in a million.
        #[test]
        fn two_looks_find_the_drift(theirs in prop_oneof![-50.0..-49.0, 49.0..50.0], seed: u64) {
            let mut pair = Pair::new(0.0, theirs, 20e-6, seed);
            let mut clock = Clock::default();
            for time in [0.0, 5.0] {
                prop_assert_eq!(clock.look(&pair.exchanges(time, 8)), None);
            }
            // what to add to a clock that is fast gets less
            let rate = -theirs * 1e-6;
            prop_assert!(clock.rate.low <= rate && rate <= clock.rate.high && clock.rate.half_width() < 2e-5, "{rate}: {:?}", clock.rate);
            let (error, reading) = pair.error(&clock, 25.0);
            prop_assert!(error <= reading.bound && reading.bound < 0.5e-3 && error < 0.2e-3, "{error}, {reading:?}");
        }
    }

    #[test]
    fn between_two_looks_less_is_uncertain_than_after_them() {
        let mut pair = Pair::new(50.0, -50.0, 1e-6, 3);
        let mut clock = Clock::default();
        let mut drifts = Vec::new();
        for time in [0.0, 10.0] {
            assert_eq!(clock.look(&pair.exchanges(time, 8)), None);
            drifts.push(pair.error(&clock, 5.0).1.drift);
        }
        assert!(drifts[0] > 5e-4 && drifts[1] < 1e-5, "one look, and another one after it: {drifts:?}");
        assert!(pair.error(&clock, 5.0).0 < 1e-5);
        let trip = clock.trip();
        assert!((2e-6..6e-6).contains(&trip), "{trip}");
    }

    #[test]
    fn clocks_of_one_system_do_not_drift() {
        let mut pair = Pair::new(0.0, 0.0, 1e-6, 5);
        let mut clock = Clock::of_same_system();
        assert_eq!(clock.look(&pair.exchanges(0.0, 4)), None);
        let (error, reading) = pair.error(&clock, 1e4);
        assert!(error <= reading.bound && reading.drift < 1e-12 && reading.bound < 2e-6, "{error}, {reading:?}");
        pair.ahead += 1.0;
        assert!(clock.look(&pair.exchanges(2e4, 4)).is_some());
        assert!(pair.error(&clock, 2e4 + 10.0).1.drift > 1e-3, "it is no such clock");
    }

    #[test]
    fn a_rate_that_wanders_is_no_jump() {
        let mut pair = Pair::new(0.0, 20.0, 2e-6, 4);
        let mut clock = Clock::default();
        let mut time = 0.0;
        for k in 0..400 {
            assert_eq!(clock.look(&pair.exchanges(time, 4)), None, "look {k}");
            let (error, reading) = pair.error(&clock, time + 4.9);
            assert!(error <= reading.bound, "look {k}: {error}, {reading:?}");
            time += 5.0;
            // four tenths of a millionth up and down in ten minutes; the clock goes on from where it is
            let before = pair.theirs(time);
            pair.theirs = (20.0 + 0.4 * (time / 100.0).sin()) * 1e-6;
            pair.ahead += before - pair.theirs(time);
        }
    }

    #[test]
    fn clocks_that_tick_coarsely_are_read_as_finely_as_they_tick() {
        let early = Exchange { sent: 10.000_001, theirs: 10.0, received: 10.000_001 };
        let late = Exchange { sent: 10.000_002, theirs: 10.000_003, received: 10.000_002 };
        let mut clock = Clock::default();
        assert_eq!(clock.look(&[early, late]), None);
        let reading = clock.reading(10.0);
        assert!((reading.at - 10.0).abs() <= 1.1e-6 && reading.bound >= 0.9e-6, "{reading:?}");
        assert_eq!(Clock::default().look(&[]), None, "nothing says nothing");
    }
}
