//! What takes too long for sure, by what ranks have still to do: it is not replayed to its end.

use super::Run;
use crate::stats::ROUNDING;
use crate::topology::Link;

/// Seconds that what a rank has still to do will keep it at least: so much later than now, or later still, all is complete.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Left {
    /// Its port, until the last message leaves.
    port: f64,
    /// Its processor.
    cpu: f64,
}

impl Run<'_> {
    /// Finds what each rank that is replayed has to do.
    pub(super) fn weigh(&mut self) {
        self.left = vec![Left::default(); self.places.len()];
        for (rank, program) in self.schedule.programs.iter().enumerate() {
            if self.places[rank].one as usize != rank {
                continue; // another one stands for it
            }
            let (mut port, mut longest) = (0.0, 0.0);
            for op in 0..program.len() {
                let Some((to, bytes)) = program.sends_to(op).and(program.message(op)) else { continue };
                let (cost, pipe) = self.cost(Link { from: rank, to }, bytes);
                (port, longest) = (port + cost.gap, f64::max(longest, cost.gap));
                if let Some((pipe, _)) = pipe {
                    self.goes_through(pipe, rank as u32);
                }
                self.left[rank].cpu += cost.send_overhead;
                self.left[self.places[to].one as usize].cpu += cost.recv_overhead;
            }
            // how long the last one keeps it matters to nobody
            self.left[rank].port = port - longest;
        }
    }

    /// A rank does something at a time: it is over if what it has left to do takes longer than there is time.
    pub(super) fn done_of(&mut self, rank: u32, now: f64, port: f64, cpu: f64) {
        if self.limit < f64::INFINITY {
            let left = &mut self.left[rank as usize];
            self.is_over |= now + left.port.max(left.cpu) > self.limit * ROUNDING;
            (left.port, left.cpu) = (left.port - port, left.cpu - cpu);
        }
    }
}
