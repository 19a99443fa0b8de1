//! Small messages between ranks that measure: stamps, and signals that carry none.

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
    /// Sends some stamps.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn post(&mut self, to: Rank, times: &[f64]) -> Result<()> {
        let bytes: Vec<u8> = times.iter().flat_map(|t| t.to_ne_bytes()).collect();
        // SAFETY: `bytes` lives until the send is complete
        let request = unsafe { self.send(to, 0, bytes.as_ptr(), bytes.len())? };
        self.wait(request)
    }

    /// Receives so many stamps.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn fetch(&mut self, from: Rank, count: usize) -> Result<Vec<f64>> {
        Ok(self.fetch_each(&[(from, count)])?.concat())
    }

    /// Receives so many stamps from each rank, all at the same time: where a message sets out only when its receive is posted (rendezvous;
    /// any message in `SimGrid`), one after the other would take a latency each.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn fetch_each(&mut self, wanted: &[(Rank, usize)]) -> Result<Vec<Vec<f64>>> {
        let mut stamps: Vec<Vec<u8>> = wanted.iter().map(|(_, count)| vec![0; 8 * count]).collect();
        let mut under_way = Vec::with_capacity(wanted.len());
        for ((from, _), bytes) in wanted.iter().zip(&mut stamps) {
            // SAFETY: `stamps` lives, in its place, until all receives are complete
            under_way.push(unsafe { self.receive(*from, 0, bytes.as_mut_ptr(), bytes.len())? });
        }
        under_way.into_iter().try_for_each(|request| self.wait(request))?;
        let number = |b: &[u8]| f64::from_ne_bytes(b.try_into().unwrap_or_default());
        Ok(stamps.iter().map(|bytes| bytes.chunks_exact(8).map(number).collect()).collect())
    }

    /// Returns when each of these ranks has posted a signal without stamps.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn fetch_signals(&mut self, from: impl IntoIterator<Item = Rank>) -> Result<()> {
        let wanted: Vec<(Rank, usize)> = from.into_iter().map(|r| (r, 0)).collect();
        self.fetch_each(&wanted).map(drop)
    }

    /// Tells each rank something, straight: between sites a tree of messages would take several latencies.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn tell(&mut self, texts: &[(Rank, Vec<u8>)]) -> Result<()> {
        let lengths: Vec<[u8; size_of::<usize>()]> = texts.iter().map(|(_, text)| text.len().to_ne_bytes()).collect();
        let mut under_way = Vec::with_capacity(2 * texts.len());
        for ((to, text), length) in texts.iter().zip(&lengths) {
            for part in [&length[..], text] {
                // SAFETY: both parts live until all requests are complete
                under_way.push(unsafe { self.send(*to, 0, part.as_ptr(), part.len())? });
            }
        }
        under_way.into_iter().try_for_each(|request| self.wait(request))
    }

    /// Returns when all these ranks, this one among them, have called it.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn meet(&mut self, ranks: &[Rank]) -> Result<()> {
        let (me, first) = (self.rank(), ranks[0]);
        if me != first {
            self.post(first, &[])?;
            return self.fetch(first, 0).map(drop);
        }
        self.fetch_signals(ranks[1..].iter().copied())?;
        ranks[1..].iter().try_for_each(|&r| self.post(r, &[]))
    }

    /// Hears what a rank tells.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn hear(&mut self, from: Rank) -> Result<Vec<u8>> {
        let mut length = [0u8; size_of::<usize>()];
        // SAFETY: each buffer lives until its request is complete
        let request = unsafe { self.receive(from, 0, length.as_mut_ptr(), length.len())? };
        self.wait(request)?;
        let mut text = vec![0u8; usize::from_ne_bytes(length)];
        // SAFETY: as above
        let request = unsafe { self.receive(from, 0, text.as_mut_ptr(), text.len())? };
        self.wait(request)?;
        Ok(text)
    }

    /// On the root: what to add to each other rank's clock to get the root's. Stamps of two ranks are compared nowhere else.
    /// `known` keeps what was found on the root, for a while; the others only serve.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn clock_offsets(&mut self, root: Rank, others: &[Rank], known: &mut Offsets) -> Result<Vec<f64>> {
        if self.rank() != root {
            while self.fetch(root, 1)?[0] > 0.0 {
                self.post(root, &[now()])?;
            }
            return Ok(Vec::new());
        }
        let unknown: Vec<Rank> = others.iter().copied().filter(|&r| !known.holds(r)).collect();
        for few in unknown.chunks(AT_ONCE) {
            for (&r, offset) in few.iter().zip(self.ping(few)?) {
                known.found.insert(r, offset);
            }
        }
        others.iter().try_for_each(|&r| self.post(r, &[0.0]))?;
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
            others.iter().try_for_each(|&r| self.post(r, &[]))?;
            self.fetch_signals(others.iter().copied())?;
            let start = now() + LEAD * (now() - asked);
            others.iter().zip(offsets).try_for_each(|(&r, offset)| self.post(r, &[start - offset]))?;
            start
        } else {
            self.fetch(root, 0)?;
            self.post(root, &[])?;
            self.fetch(root, 1)?[0]
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
                self.post(r, &[1.0])?;
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
