//! What is lost: a message that comes in while another sender's does may be, and is sent again later. One replay counts how likely that is, a few more
//! replay what it leads to.

use super::Run;
use crate::error::Result;
use crate::model::CostModel;
use crate::schedule::Schedule;
use crate::stats::{self, Random};
use crate::topology::{Link, Rank};
use rand::Rng;

/// So many runs in which something is lost stand for all of them: each loses its first message in another part of what may be lost.
const RUNS: usize = 8;

/// Messages that miss each other by less than this share of what their bytes take to come in may meet as well: predictions are no better.
const NEAR: f64 = 0.02;

/// What is lost in a replay.
#[derive(Debug)]
pub(super) struct Losing {
    /// By rank, if any receives from several and messages are lost: who sent what came in last, and until when it did.
    last: Vec<(Rank, f64)>,
    /// True if a message came in, by a port that several send to, that may be lost where it meets another one.
    pub may_lose: bool,
    /// How likely it is that none was lost of those that met another one since the last one that was. By products alone: ranks must decide alike, and a
    /// logarithm may differ in its last digit from processor to processor.
    kept: f64,
    /// Where that is no more than this, the next one is lost; never, at first.
    next: f64,
    /// The longest that one waits until it is sent again.
    wait_s: f64,
    /// Where that comes from afterwards.
    random: Random,
}

impl Losing {
    pub(super) fn new(ranks: usize) -> Losing {
        Losing {
            last: vec![(Rank::MAX, f64::NEG_INFINITY); ranks],
            may_lose: false,
            kept: 1.0,
            next: -1.0,
            wait_s: 0.0,
            random: stats::random(0),
        }
    }

    /// True if messages may be lost.
    pub(super) fn is_possible(&self) -> bool {
        !self.last.is_empty()
    }
}

impl Run<'_> {
    /// Seconds that a message comes later, whose last bytes are at a rank's port now and through it at another time, since it was lost.
    pub(super) fn lost(&mut self, rank: u32, op: u32, now: f64, through: f64) -> f64 {
        if !self.losing.is_possible() {
            return 0.0; // none ever is
        }
        let Some((from, bytes)) = self.schedule.programs[rank as usize].message(op as usize) else { return 0.0 };
        let (other, until) = std::mem::replace(&mut self.losing.last[rank as usize], (from, through));
        let Some(loss) = self.model.loss(Link { from, to: rank as Rank }, bytes) else { return 0.0 };
        let losing = &mut self.losing;
        losing.may_lose = true;
        if other == from || until + loss.port_s * (1.0 + NEAR) <= now {
            return 0.0;
        }
        (losing.kept, losing.wait_s) = (losing.kept * (1.0 - loss.share), losing.wait_s.max(loss.wait_s));
        if losing.kept > losing.next {
            return 0.0;
        }
        (losing.kept, losing.next) = (1.0, 1.0 - losing.random.random::<f64>());
        loss.wait_s
    }
}

/// True if a message of a schedule may be lost, were it to meet another one: it is of a size that is, and comes to a rank that several send to.
///
/// # Errors
/// As [`super::replay`].
pub fn may_lose(schedule: &Schedule, model: &dyn CostModel) -> Result<bool> {
    let mut run = Run::new(schedule, model)?;
    run.go(f64::INFINITY)?;
    Ok(run.losing.may_lose)
}

/// What a schedule takes in the mean, by what it takes where nothing is lost: a run that was replayed to its end. For ever, if that is longer than `limit`.
pub(super) fn mean(run: &Run, schedule: &Schedule, model: &dyn CostModel, limit: f64) -> Result<f64> {
    let (once, nothing_lost, wait_s) = (run.completion(), run.losing.kept, run.losing.wait_s);
    let with_losses = |seconds: f64| nothing_lost * once + (1.0 - nothing_lost) * seconds;
    if nothing_lost == 1.0 || with_losses(once.max(wait_s)) > limit {
        return Ok(if nothing_lost == 1.0 { once } else { f64::INFINITY });
    }
    let mut sum = 0.0;
    for k in 0..RUNS {
        let mut run = Run::new(schedule, model)?;
        let chance = (k as f64 + 0.5) / RUNS as f64 * (1.0 - nothing_lost);
        (run.losing.next, run.losing.random) = (1.0 - chance, stats::random(k as u64));
        run.go(f64::INFINITY)?;
        sum += run.completion();
    }
    Ok(with_losses(sum / RUNS as f64))
}

#[cfg(test)]
mod tests {
    use super::super::completion;
    use super::*;
    use crate::model::{Cost, Loss};
    use crate::schedule::{Action, Program, Span};

    /// Messages of 100 bytes or more may be lost: every fifth of them, for a second. A byte takes a microsecond to come in, and nothing else any time.
    struct Lossy;

    impl CostModel for Lossy {
        fn cost(&self, _: Link, bytes: usize) -> Cost {
            Cost { transit: 1e-6 * bytes as f64, ..Cost::default() }
        }

        fn port_in(&self, _: Link, bytes: usize) -> f64 {
            1e-6 * bytes as f64
        }

        fn loses(&self) -> bool {
            true
        }

        fn loss(&self, link: Link, bytes: usize) -> Option<Loss> {
            (bytes >= 100).then(|| Loss { share: 0.2, wait_s: 1.0, port_s: self.port_in(link, bytes) })
        }
    }

    /// Each of these ranks sends the last one a message at once, or each after so many seconds more.
    fn to_one(senders: usize, bytes: usize, apart_s: f64) -> Schedule {
        let mut programs = vec![Program::new(); senders + 1];
        for rank in 0..senders {
            let after =
                if apart_s > 0.0 { vec![programs[rank].push(Action::Delay { seconds: apart_s * rank as f64 }, &[])] } else { Vec::new() };
            programs[rank].send(senders, Span::output(0, bytes), &after);
            programs[senders].recv(rank, Span::output(0, bytes), &[]);
        }
        Schedule { programs }
    }

    #[test]
    fn what_meets_another_senders_message_is_lost_as_often_as_is_said() {
        for senders in [2, 3, 6, 12] {
            let seconds = completion(&to_one(senders, 100, 0.0), &Lossy).unwrap();
            // all but the first meet another one, and all that are lost are so at once
            let lost = 1.0 - 0.8f64.powi(senders as i32 - 1);
            assert!((seconds / (lost + 1e-4 * senders as f64) - 1.0).abs() < 0.01, "{senders}: {seconds}");
        }
    }

    #[test]
    fn as_much_is_lost_where_nothing_is_said_of_what_is_under_way_as_where_as_many_messages_are_said() {
        let bytes = 128 << 10;
        let of = |in_flight: usize| {
            let mut programs = vec![Program::new(); 3];
            for k in 0..200 {
                for rank in 0..2 {
                    programs[rank].send(2, Span::output(k * bytes, bytes), &[]);
                    programs[2].recv(rank, Span::output(k * bytes, bytes), &[]);
                }
            }
            let schedule = Schedule { programs: programs.into_iter().map(|program| program.with_in_flight(in_flight)).collect() };
            completion(&schedule, &Lossy).unwrap()
        };
        // 400 messages come in one after the other, and a message that is lost holds up what its sender sends next
        assert!(of(0) == of(64) && of(64) > 400.0 * 1e-6 * bytes as f64, "{} {}", of(0), of(64));
    }

    #[test]
    fn what_meets_nothing_or_is_short_is_not_lost() {
        assert!(completion(&to_one(2, 99, 0.0), &Lossy).unwrap() < 1e-3);
        assert!(completion(&to_one(3, 100, 1.1e-4), &Lossy).unwrap() < 1e-3);
        // too close to be sure of it
        assert!(completion(&to_one(2, 100, 1.01e-4), &Lossy).unwrap() > 0.1);
        assert!(may_lose(&to_one(3, 100, 1.1e-4), &Lossy).unwrap() && !may_lose(&to_one(3, 99, 0.0), &Lossy).unwrap());
        // one sender's stream
        let mut programs = vec![Program::new(); 2];
        for _ in 0..3 {
            programs[0].send(1, Span::output(0, 100), &[]);
            programs[1].recv(0, Span::output(0, 100), &[]);
        }
        assert!(!may_lose(&Schedule { programs }, &Lossy).unwrap());
    }
}
