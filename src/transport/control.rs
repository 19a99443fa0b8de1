//! Small messages between ranks that measure: stamps, texts, and signals that carry nothing.

use super::Transport;
use crate::error::Result;
use crate::topology::Rank;

/// What ranks that measure say to each other, over any transport.
pub trait Control: Transport {
    /// Sends some stamps.
    ///
    /// # Errors
    /// The transport's reason.
    fn send_times(&mut self, to: Rank, times: &[f64]) -> Result<()> {
        let bytes: Vec<u8> = times.iter().flat_map(|t| t.to_ne_bytes()).collect();
        // SAFETY: `bytes` lives until the send is complete
        let request = unsafe { self.send(to, 0, bytes.as_ptr(), bytes.len())? };
        self.wait(request)
    }

    /// Receives so many stamps.
    ///
    /// # Errors
    /// The transport's reason.
    fn receive_times(&mut self, from: Rank, count: usize) -> Result<Vec<f64>> {
        Ok(self.receive_times_of_each(&[(from, count)])?.concat())
    }

    /// Receives so many stamps from each rank, all at the same time: where a message sets out only when its receive is posted (rendezvous;
    /// any message in `SimGrid`), one after the other would take a latency each.
    ///
    /// # Errors
    /// The transport's reason.
    fn receive_times_of_each(&mut self, wanted: &[(Rank, usize)]) -> Result<Vec<Vec<f64>>> {
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
    /// The transport's reason.
    fn receive_signals(&mut self, from: impl IntoIterator<Item = Rank>) -> Result<()> {
        let wanted: Vec<(Rank, usize)> = from.into_iter().map(|r| (r, 0)).collect();
        self.receive_times_of_each(&wanted).map(drop)
    }

    /// Lets a rank go on when it knows that all members have come so far; nobody else waits.
    ///
    /// # Errors
    /// The transport's reason.
    fn gather_at(&mut self, root: Rank, members: &[Rank]) -> Result<()> {
        if self.rank() == root { self.receive_signals(members.iter().copied().filter(|&r| r != root)) } else { self.send_times(root, &[]) }
    }

    /// Tells each rank something, straight: between sites a tree of messages would take several latencies.
    ///
    /// # Errors
    /// The transport's reason.
    fn send_texts(&mut self, texts: &[(Rank, Vec<u8>)]) -> Result<()> {
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
    /// The transport's reason.
    fn barrier(&mut self, ranks: &[Rank]) -> Result<()> {
        let (me, first) = (self.rank(), ranks[0]);
        if me != first {
            self.send_times(first, &[])?;
            return self.receive_times(first, 0).map(drop);
        }
        self.receive_signals(ranks[1..].iter().copied())?;
        ranks[1..].iter().try_for_each(|&r| self.send_times(r, &[]))
    }

    /// Hears what a rank tells.
    ///
    /// # Errors
    /// The transport's reason.
    fn receive_text(&mut self, from: Rank) -> Result<Vec<u8>> {
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
}

impl<T: Transport> Control for T {}
