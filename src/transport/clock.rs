//! Clocks of ranks that measure: how far apart they are, and starting together.

use super::Transport;
use super::mpi::{MpiTransport, now};
use crate::error::Result;
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Round trips of which the shortest is taken.
const PINGS: usize = 16;
/// So many ranks are pinged at the same time: between sites most of a round trip is waiting.
const AT_ONCE: usize = 4;
/// An offset holds for so long at least...
const LASTING_S: f64 = 20.0;
/// ...and for so many round trips: clocks that NTP keeps drift by less than a millionth, and so by less than a hundredth of the round trip.
const LASTING_TRIPS: f64 = 1e4;

/// A common start is so many times as far off as everybody took to answer: time enough to be told.
const LEAD: f64 = 1.5;

/// What is known about another rank's clock.
#[derive(Debug, Clone, Copy)]
struct Offset {
    /// When it was found.
    when: f64,
    /// The shortest round trip.
    trip: f64,
    /// What to add to the other clock.
    add: f64,
}

/// Offsets that were found.
#[derive(Debug, Default)]
pub struct Offsets {
    found: FxHashMap<Rank, Offset>,
}

impl Offsets {
    fn holds(&self, rank: Rank) -> bool {
        self.found.get(&rank).is_some_and(|o| now() - o.when < LASTING_S.max(LASTING_TRIPS * o.trip))
    }
}

impl MpiTransport {
    /// On the root: what to add to each other rank's clock to get the root's. Stamps of two ranks are compared nowhere else.
    /// `known` keeps what was found on the root, for a while; the others only serve.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn clock_offsets(&mut self, root: Rank, others: &[Rank], known: &mut Offsets) -> Result<Vec<f64>> {
        if self.rank() != root {
            while self.receive_times(root, 1)?[0] > 0.0 {
                self.send_times(root, &[now()])?;
            }
            return Ok(Vec::new());
        }
        let unknown: Vec<Rank> = others.iter().copied().filter(|&r| !known.holds(r)).collect();
        for few in unknown.chunks(AT_ONCE) {
            for (&r, offset) in few.iter().zip(self.ping(few)?) {
                known.found.insert(r, offset);
            }
        }
        others.iter().try_for_each(|&r| self.send_times(r, &[0.0]))?;
        Ok(others.iter().filter_map(|r| known.found.get(r)).map(|o| o.add).collect())
    }

    /// Returns at about the same time on the root and all others, each on its own clock. The offsets are those of the root's
    /// [`MpiTransport::clock_offsets`].
    ///
    /// # Errors
    /// MPI's reason.
    pub fn start_together(&mut self, root: Rank, others: &[Rank], offsets: &[f64]) -> Result<()> {
        let until = if self.rank() == root {
            // those who are told in time start together; who is late is timed by its own start
            let asked = now();
            others.iter().try_for_each(|&r| self.send_times(r, &[]))?;
            self.receive_signals(others.iter().copied())?;
            let start = now() + LEAD * (now() - asked);
            others.iter().zip(offsets).try_for_each(|(&r, offset)| self.send_times(r, &[start - offset]))?;
            start
        } else {
            self.receive_times(root, 0)?;
            self.send_times(root, &[])?;
            self.receive_times(root, 1)?[0]
        };
        self.delay((until - now()).max(0.0));
        Ok(())
    }

    /// As SKaMPI does it, but with the shortest way out and the shortest way back of some round trips, which need not be of the same one: what
    /// delays a message delays one way at a time. The two ways are taken to be as long as each other.
    fn ping(&mut self, others: &[Rank]) -> Result<Vec<Offset>> {
        let (mut outward, mut back) = (vec![f64::INFINITY; others.len()], vec![f64::INFINITY; others.len()]);
        for _ in 0..PINGS {
            let mut stamps = vec![[0u8; size_of::<f64>()]; others.len()];
            let (mut under_way, mut outs) = (Vec::new(), Vec::new());
            for (&r, stamp) in others.iter().zip(&mut stamps) {
                // SAFETY: `stamps` lives, in its place, until all receives are complete
                under_way.push(unsafe { self.receive(r, 0, stamp.as_mut_ptr(), stamp.len())? });
                outs.push(now());
                self.send_times(r, &[1.0])?;
            }
            let mut open: Vec<usize> = (0..others.len()).collect();
            while !open.is_empty() {
                let k = self.wait_any(&mut under_way)?;
                let arrived = now();
                under_way.remove(k);
                let k = open.remove(k);
                let theirs = f64::from_ne_bytes(stamps[k]);
                // each with the offset in it, which differs in sign
                outward[k] = outward[k].min(theirs - outs[k]);
                back[k] = back[k].min(arrived - theirs);
            }
        }
        let when = now();
        let offset = |(out, back): (f64, f64)| Offset { when, trip: out + back, add: (back - out) / 2.0 };
        Ok(outward.into_iter().zip(back).map(offset).collect())
    }
}
