//! Small messages between ranks that measure: stamps, and signals that carry none.

use super::Transport;
use super::mpi::{MpiTransport, now};
use crate::error::Result;
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Round trips of which the shortest is taken.
const PINGS: usize = 16;
/// An offset holds for so long: clocks that NTP keeps drift by less than a millionth.
const LASTING_S: f64 = 20.0;

/// Offsets that were found, with the time of each.
#[derive(Debug, Default)]
pub struct Offsets {
    found: FxHashMap<Rank, (f64, f64)>,
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
        let mut bytes = vec![0u8; 8 * count];
        // SAFETY: `bytes` lives until the receive is complete
        let request = unsafe { self.receive(from, 0, bytes.as_mut_ptr(), bytes.len())? };
        self.wait(request)?;
        Ok(bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap_or_default())).collect())
    }

    /// Tells every other rank something, straight: between sites a tree of messages would take several latencies.
    ///
    /// # Errors
    /// MPI's reason.
    pub fn tell(&mut self, ranks: usize, text: &[u8]) -> Result<()> {
        let (me, length) = (self.rank(), text.len().to_ne_bytes());
        let mut under_way = Vec::with_capacity(2 * ranks);
        for to in (0..ranks).filter(|&r| r != me) {
            for part in [&length[..], text] {
                // SAFETY: both parts live until all requests are complete
                under_way.push(unsafe { self.send(to, 0, part.as_ptr(), part.len())? });
            }
        }
        under_way.into_iter().try_for_each(|request| self.wait(request))
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
        if self.rank() == root {
            return others.iter().map(|&r| self.clock_offset(r, known)).collect();
        }
        while self.fetch(root, 1)?[0] > 0.0 {
            self.post(root, &[now()])?;
        }
        Ok(Vec::new())
    }

    /// SKaMPI's method: the stamp that came back with the shortest of some round trips was taken half way.
    fn clock_offset(&mut self, other: Rank, known: &mut Offsets) -> Result<f64> {
        if let Some(&(when, offset)) = known.found.get(&other)
            && now() - when < LASTING_S
        {
            self.post(other, &[0.0])?;
            return Ok(offset);
        }
        let mut best = (f64::INFINITY, 0.0);
        for _ in 0..PINGS {
            let out = now();
            self.post(other, &[1.0])?;
            let theirs = self.fetch(other, 1)?[0];
            let back = now();
            if back - out < best.0 {
                best = (back - out, (out + back) / 2.0 - theirs);
            }
        }
        self.post(other, &[0.0])?;
        known.found.insert(other, (now(), best.1));
        Ok(best.1)
    }
}
