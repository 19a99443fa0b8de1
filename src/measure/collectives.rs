//! Collectives over any transport: their ranks' stamps become times on the root's clock, as sure as clocks allow.

use super::stamps::{Stamps, Timed, impossible, timed};
use crate::error::Result;
use crate::topology::Rank;
use crate::transport::Ping;
use crate::transport::clocks::Clocks;

/// What clocks spoilt is run so many times more: most jumps come once.
const MOST_RETRIES: usize = 2;

/// One rank's part in timing a collective.
pub(super) struct Timing<'a, T> {
    pub transport: &'a mut T,
    /// What this rank knows about the others' clocks.
    pub clocks: &'a mut Clocks,
    /// The rank on whose clock the times are.
    pub root: Rank,
    /// The other members.
    pub others: Vec<Rank>,
    /// All begin together, since no one of them does.
    pub together: Option<Together<'a>>,
    /// The first run waits for whoever hears late that it begins.
    pub first_waits: bool,
    /// Ranks that are through do nothing else before all are: what takes their processors or links meanwhile would be counted.
    pub stays: bool,
    /// Others than the root make data new for the next run, which begins when they have.
    pub others_renew: bool,
}

/// How ranks begin together.
pub(super) struct Together<'a> {
    /// They come from another collective that the same ones began together, and nobody is late.
    pub follows: bool,
    /// On the root, how long all others take to answer at least; infinite until they were asked.
    pub answered_s: &'a mut f64,
}

impl<T: Ping> Timing<'_, T> {
    /// Runs a collective so many times to warm up, and then so many times that count; each time this rank's part of it is `once`, and `renew` makes
    /// its data new for the next. Gives the times and after them how far off they may be for clocks, and how much of that is drift; nothing on other ranks than the root. It looks at
    /// the clocks of the others where it must. Whose clock has jumped meanwhile, or may have drifted too far for what was measured, makes all run
    /// once more.
    pub fn play(
        &mut self,
        mut warm_ups: usize,
        repetitions: usize,
        mut once: impl FnMut(&mut T) -> Result<()>,
        renew: impl Fn(),
    ) -> Result<Vec<f64>> {
        for retries in 0.. {
            let (began, runs) = (self.transport.now(), warm_ups + repetitions);
            if self.together.is_some() {
                self.look_before()?;
            }
            let own = self.run(runs, &mut once, &renew)?;
            if self.transport.rank() != self.root {
                self.transport.send_times(self.root, &own.as_row())?;
                let once_more = self.transport.serve_looks(self.root)?;
                self.renew_last(&renew);
                if !once_more {
                    return Ok(Vec::new());
                }
            } else {
                let wanted: Vec<(Rank, usize)> = self.others.iter().map(|&r| (r, 2 * runs)).collect();
                let theirs = self.transport.receive_times_of_each(&wanted)?;
                let theirs: Vec<(Rank, Stamps)> = self.others.iter().zip(theirs).map(|(&r, row)| (r, Stamps::of(&row, runs))).collect();
                let (timed, is_spoilt) = self.time(&own, &theirs, warm_ups)?;
                let once_more = is_spoilt && retries < MOST_RETRIES;
                self.transport.end_looks(&self.others, once_more)?;
                self.renew_last(&renew);
                self.clocks.timed(self.transport.now() - began);
                if !once_more {
                    return Ok([timed.seconds, vec![timed.error_s, timed.drift_s]].concat());
                }
            }
            // the paths are warm
            warm_ups = 0;
        }
        Ok(Vec::new())
    }

    /// The runs: each begins when the root knows that everybody is through with the one before, where there is no root on all ranks
    /// together. Each rank notes when it began and when it was done.
    fn run(&mut self, runs: usize, once: &mut impl FnMut(&mut T) -> Result<()>, renew: &impl Fn()) -> Result<Stamps> {
        let mut stamps = Stamps::default();
        if self.first_waits && self.together.is_none() {
            self.transport.gather_at(self.root, &self.others)?;
        }
        if let Some(Together { follows, answered_s }) = &mut self.together {
            // the first answer of all says who comes late, not how far away anybody is
            let asks = if *follows { 0 } else { 1 + usize::from(answered_s.is_infinite()) };
            for ask in 0..asks {
                let took = self.transport.ask(self.root, &self.others)?;
                **answered_s = if asks > 1 && ask == 0 { f64::INFINITY } else { answered_s.min(took) };
            }
            // nobody is late who does it once more
            *follows = true;
        }
        for run in 1..=runs {
            let start = match &self.together {
                Some(Together { answered_s, .. }) => self.transport.start_together(self.root, &self.others, self.clocks, **answered_s)?,
                None => self.transport.now(),
            };
            stamps.starts.push(start);
            once(self.transport)?;
            stamps.ends.push(self.transport.now());
            if run == runs && self.stamps_end_it() {
                break;
            }
            if self.stays {
                let all: Vec<Rank> = std::iter::once(self.root).chain(self.others.iter().copied()).collect();
                self.transport.barrier(&all)?;
            }
            renew();
            // whom all have waited for knows that they are through
            if !self.stays || self.others_renew {
                self.transport.gather_at(self.root, &self.others)?;
            }
        }
        Ok(stamps)
    }

    /// True if nobody waits for the others after the last run of what is long: they do nothing else before the root has everybody's stamps, and let them go on.
    /// Where others than the root make data new it has to know that they have.
    fn stamps_end_it(&self) -> bool {
        self.stays && !self.others_renew
    }

    /// What comes after each run, after the last one where that was left to this.
    fn renew_last(&self, renew: &impl Fn()) {
        if self.stamps_end_it() {
            renew();
        }
    }

    /// Before ranks start together the root looks at clocks that it does not know, or that may be off by more for drift than they are anyhow. (What
    /// has a root of its own is looked at afterwards only: stamps are read backwards as well, and that is one word less for each experiment.)
    fn look_before(&mut self) -> Result<()> {
        if self.transport.rank() != self.root {
            return self.transport.serve_looks(self.root).map(drop);
        }
        let mut wanted = self.clocks.unknown(&self.others);
        wanted.extend(self.clocks.drifted(&self.others, self.transport.now(), |clock| clock.trip() / 2.0));
        // what jumped is known anew, and nothing has been timed yet
        self.transport.look_at(&wanted, self.clocks)?;
        self.transport.end_looks(&self.others, false)
    }

    /// On the root, turns stamps into times. First it looks at clocks that it does not know, and again at those whose stamps cannot be, or that may
    /// have drifted by too much since the last look: stamps between two looks are read far better than those after the last one. True if
    /// nevertheless the times are spoilt.
    fn time(&mut self, own: &Stamps, theirs: &[(Rank, Stamps)], warm_ups: usize) -> Result<(Timed, bool)> {
        let unknown = self.clocks.unknown(&self.others);
        self.transport.look_at(&unknown, self.clocks)?;
        let first = timed(own, theirs, self.together.is_some(), warm_ups, self.clocks);
        let allowed = first.allowed_drift_s() / if self.together.is_some() { 2.0 } else { 1.0 };
        let mut wanted = impossible(own, theirs, self.transport.now(), self.clocks);
        if wanted.is_empty() && first.drift_s > first.allowed_drift_s() {
            wanted = self.clocks.drifted(&self.others, self.transport.now(), |_| allowed);
        }
        if wanted.is_empty() {
            // known as well as may be, or there is no time to know it better
            return Ok((first, false));
        }
        let jumped = self.transport.look_at(&wanted, self.clocks)?;
        let mut second = timed(own, theirs, self.together.is_some(), warm_ups, self.clocks);
        if let Some((r, by)) = jumped.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            tracing::debug!("the clock of rank {r} has jumped by {by} s, or runs faster or slower than clocks should");
            second.note_jump(by);
            return Ok((second, true));
        }
        let is_spoilt = second.is_adrift();
        Ok((second, is_spoilt))
    }
}

#[cfg(test)]
#[allow(unsafe_code)] // transports move raw bytes
mod tests {
    use super::*;
    use crate::collective::{Parameters, Shape, bcast};
    use crate::transport::threads::{ThreadRequest, ThreadTransport, transports};
    use crate::transport::{Buffers, Executor, Tag, Task, Transport};
    use std::cell::Cell;

    /// A thread whose clock is ahead of the others' by what may change.
    struct Jumping {
        inner: ThreadTransport,
        ahead: Cell<f64>,
    }

    impl Transport for Jumping {
        type Request = ThreadRequest;

        fn rank(&self) -> Rank {
            self.inner.rank()
        }

        fn now(&self) -> f64 {
            self.inner.now() + self.ahead.get()
        }

        unsafe fn send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ThreadRequest> {
            // SAFETY: the caller's
            unsafe { self.inner.send(to, tag, data, len) }
        }

        unsafe fn send_synchronous(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ThreadRequest> {
            // SAFETY: the caller's
            unsafe { self.send(to, tag, data, len) }
        }

        unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<ThreadRequest> {
            // SAFETY: the caller's
            unsafe { self.inner.receive(from, tag, data, len) }
        }

        fn wait(&mut self, request: ThreadRequest) -> Result<()> {
            self.inner.wait(request)
        }

        fn test(&mut self, request: ThreadRequest) -> Result<bool> {
            self.inner.test(request)
        }

        fn wait_any(&mut self, requests: &mut [ThreadRequest]) -> Result<usize> {
            self.inner.wait_any(requests)
        }
    }

    const RUNS: usize = 5;

    /// What the root finds of two broadcasts of 1 KiB, one after the other, with how often they were run: in the second one, before each run of
    /// these numbers, the clock of rank 1 jumps. Each rank makes data new after each run, once.
    fn broadcasts(together: bool, stays: bool, jumps: &[usize], by: f64) -> [(Vec<f64>, usize); 2] {
        let play = |inner: ThreadTransport| {
            let me = inner.rank();
            let mut transport = Jumping { inner, ahead: Cell::new(100.0 * me as f64) };
            let (mut clocks, mut executor) = (Clocks::default(), Executor::default());
            let program = bcast::algorithm("flat").unwrap().program(me, &Shape::new(3, 0, 1024), &Parameters::default()).unwrap();
            let mut data = vec![me as u8; 1024];
            let others = (1..3).collect();
            let mut answered_s = f64::INFINITY;
            let together = together.then_some(Together { follows: false, answered_s: &mut answered_s });
            let mut timing = Timing {
                transport: &mut transport,
                clocks: &mut clocks,
                root: 0,
                others,
                together,
                first_waits: false,
                stays,
                others_renew: by > 0.0,
            };
            [&[][..], jumps].map(|jumps| {
                let (mut run, renewed) = (0, Cell::new(0));
                let once = |transport: &mut Jumping| {
                    if me == 1 && jumps.contains(&run) {
                        transport.ahead.set(transport.ahead.get() + by);
                    }
                    run += 1;
                    // long enough that no clock drifts by a tenth of it, however long threads wait for processors
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    // SAFETY: the buffer is this thread's own
                    unsafe { executor.run(transport, &mut Task::new(&program), Buffers::of(&[], &mut data), 0) }
                };
                let found = timing.play(1, RUNS, once, || renewed.set(renewed.get() + 1)).unwrap();
                assert_eq!(renewed.get(), run, "rank {me}");
                (found, run)
            })
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = transports(3).into_iter().map(|end| scope.spawn(move || play(end))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).next().unwrap()
        })
    }

    #[test]
    fn what_a_jump_spoils_is_run_again() {
        for (together, stays, by) in
            [(false, false, 0.5), (false, true, -0.5), (true, false, 0.5), (true, true, -0.5), (false, false, -0.5), (true, true, 0.5)]
        {
            let [(before, runs), (after, again)] = broadcasts(together, stays, &[3], by);
            assert_eq!(
                (before.len(), runs, after.len(), again),
                (RUNS + 2, 1 + RUNS, RUNS + 2, 1 + RUNS + RUNS),
                "{together} {stays} {by}"
            );
            assert!(after[..RUNS].iter().all(|&t| t > 1e-3 && t < 0.2), "{together} {by}: {after:?}");
            assert!(after[RUNS] < 0.1, "once more nothing jumps: {after:?}");
        }
    }

    #[test]
    fn a_clock_that_jumps_all_the_time_is_given_up_and_its_times_say_so() {
        let jumps: Vec<usize> = (0..100).filter(|run| run % RUNS == 3).collect();
        let [_, (after, runs)] = broadcasts(false, false, &jumps, 0.5);
        assert_eq!(runs, 1 + RUNS + MOST_RETRIES * RUNS);
        assert!(after[RUNS] > 0.4, "{after:?}");
    }
}
