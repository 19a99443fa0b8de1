//! Collectives over MPI: their ranks' stamps become times on the root's clock, as sure as clocks allow.
#![allow(unsafe_code)] // MPI's C interface

use super::Experiment;
use super::mpi::{Player, others};
use super::stamps::{Stamps, Timed, timed};
use crate::error::{Error, Result};
use crate::schedule::Program;
use crate::topology::Rank;
use crate::transport::mpi::now;
use crate::transport::{Transport, library};

/// What clocks spoilt is run so many times more: most jumps come once.
const MOST_RETRIES: usize = 2;

impl Player {
    /// Runs a collective so many times, and looks at the clocks of its ranks where the root must. Whose clock has jumped meanwhile, or may have
    /// drifted too far for what was measured, makes all run once more.
    pub fn play_collective(
        &mut self,
        experiment: &Experiment,
        members: &[Rank],
        program: &Program,
        mut warm_ups: usize,
        repetitions: usize,
    ) -> Result<Vec<f64>> {
        let (me, root) = (self.transport.rank(), members[experiment.timer()]);
        let together = experiment.collective().is_some_and(|c| !c.rooted);
        let others: Vec<Rank> = others(root, members).collect();
        for retries in 0.. {
            let (began, runs) = (now(), warm_ups + repetitions);
            if together {
                self.look_before(root, &others)?;
            }
            let own = self.run_collective(experiment, members, program, runs)?;
            if me != root {
                self.transport.send_times(root, &own.in_a_row())?;
                if !self.transport.serve_looks(root)? {
                    return Ok(Vec::new());
                }
            } else {
                let wanted: Vec<(Rank, usize)> = others.iter().map(|&r| (r, 2 * runs)).collect();
                let theirs = self.transport.receive_times_of_each(&wanted)?;
                let theirs: Vec<(Rank, Stamps)> = others.iter().zip(theirs).map(|(&r, row)| (r, Stamps::of(&row, runs))).collect();
                let (timed, is_spoilt) = self.time(&own, &theirs, together, warm_ups)?;
                let once_more = is_spoilt && retries < MOST_RETRIES;
                self.transport.end_looks(&others, once_more)?;
                self.clocks.timed(now() - began);
                if !once_more {
                    return Ok([timed.seconds, vec![timed.error_s, timed.drift_s]].concat());
                }
            }
            // the paths are warm
            warm_ups = 0;
        }
        Ok(Vec::new())
    }

    /// The runs of a collective: each begins when the root knows that everybody is through with the one before, where there is no root on all ranks
    /// together. Each rank notes when it began and when it was done.
    fn run_collective(&mut self, experiment: &Experiment, members: &[Rank], program: &Program, runs: usize) -> Result<Stamps> {
        let (me, root) = (self.transport.rank(), members[experiment.timer()]);
        let native = experiment.native(me).map(|call| Ok::<_, Error>((self.group(&call.ranks)?, call))).transpose()?;
        let together = experiment.collective().is_some_and(|c| !c.rooted);
        let others: Vec<Rank> = others(root, members).collect();
        let mut stamps = Stamps::default();
        if self.sends_wait_for_receives && !together {
            self.gather_at(root, members)?;
        }
        for _ in 0..runs {
            if together {
                self.transport.start_together(root, &others, &self.clocks)?;
            }
            stamps.starts.push(now());
            self.execute(program, None)?;
            if let Some((comm, call)) = &native {
                // SAFETY: the buffer holds that many bytes; all members of `comm` take part in this experiment
                unsafe { library::run(call.collective, self.buffer.as_mut_ptr(), experiment.bytes(), call.root, *comm)? };
            }
            stamps.ends.push(now());
            self.gather_at(root, members)?;
        }
        Ok(stamps)
    }

    /// Before ranks start together the root looks at clocks that it does not know, or that may be off by more for drift than they are anyhow. (What
    /// has a root of its own is looked at afterwards only: stamps are read backwards as well, and that is one word less for each experiment.)
    fn look_before(&mut self, root: Rank, others: &[Rank]) -> Result<()> {
        if self.transport.rank() != root {
            return self.transport.serve_looks(root).map(drop);
        }
        let mut wanted = self.clocks.unknown(others);
        wanted.extend(self.clocks.drifted(others, now(), |clock| clock.trip() / 2.0));
        // what jumped is known anew, and nothing has been timed yet
        self.transport.look_at(&wanted, &mut self.clocks)?;
        self.transport.end_looks(others, false)
    }

    /// On the root, turns stamps into times. First it looks at clocks that it does not know, and again at those that may have drifted by too much
    /// since the last look: stamps between two looks are read far better than those after the last one. True if nevertheless the times
    /// are spoilt.
    fn time(&mut self, own: &Stamps, theirs: &[(Rank, Stamps)], together: bool, warm_ups: usize) -> Result<(Timed, bool)> {
        let others: Vec<Rank> = theirs.iter().map(|(r, _)| *r).collect();
        let unknown = self.clocks.unknown(&others);
        self.transport.look_at(&unknown, &mut self.clocks)?;
        let first = timed(own, theirs, together, warm_ups, &self.clocks);
        let allowed = first.allowed_drift_s() / if together { 2.0 } else { 1.0 };
        let drifted = if first.drift_s > first.allowed_drift_s() { self.clocks.drifted(&others, now(), |_| allowed) } else { Vec::new() };
        if drifted.is_empty() {
            // known as well as may be, or there is no time to know it better
            return Ok((first, false));
        }
        let jumped = self.transport.look_at(&drifted, &mut self.clocks)?;
        let mut second = timed(own, theirs, together, warm_ups, &self.clocks);
        if let Some((r, by)) = jumped.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            tracing::debug!("the clock of rank {r} has jumped by {by} s, or runs faster or slower than clocks should");
            second.note_jump(by);
            return Ok((second, true));
        }
        let is_spoilt = second.is_adrift();
        Ok((second, is_spoilt))
    }
}
