//! Ranks as threads of one process: programs run with real bytes on a machine without MPI.

use super::{Executor, Transport};
use crate::error::{Error, Result};
use crate::schedule::Schedule;
use crate::topology::Rank;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A receive that has waited so long has met a schedule that is wrong.
const DEADLINE: Duration = Duration::from_secs(30);

/// Messages of one sender to one receiver; those taken leave the queue from the front.
#[derive(Default)]
struct Lane {
    queue: VecDeque<Option<Vec<u8>>>,
    taken: usize,
}

#[derive(Default)]
struct Mailbox {
    lanes: Mutex<Vec<Lane>>,
    news: Condvar,
}

/// One thread's end.
pub struct ThreadTransport {
    rank: Rank,
    mailboxes: Arc<Vec<Mailbox>>,
    /// Receives started, by sender.
    started: Vec<usize>,
    epoch: Instant,
}

/// A message under way: sends are complete at once.
#[derive(Debug)]
pub enum ThreadRequest {
    /// A send.
    Sent,
    /// The `index`-th receive from a rank.
    Receive {
        /// The sender.
        from: Rank,
        /// Its position among the receives from this sender.
        index: usize,
        /// Where the bytes go.
        data: *mut u8,
        /// How many are expected.
        len: usize,
    },
}

/// Ends for so many ranks.
pub fn transports(ranks: usize) -> Vec<ThreadTransport> {
    let lanes = || Mutex::new((0..ranks).map(|_| Lane::default()).collect());
    let mailboxes = Arc::new((0..ranks).map(|_| Mailbox { lanes: lanes(), news: Condvar::new() }).collect::<Vec<_>>());
    let epoch = Instant::now();
    (0..ranks).map(|rank| ThreadTransport { rank, mailboxes: Arc::clone(&mailboxes), started: vec![0; ranks], epoch }).collect()
}

impl Transport for ThreadTransport {
    type Request = ThreadRequest;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    unsafe fn send(&mut self, to: Rank, data: *const u8, len: usize) -> Result<ThreadRequest> {
        // SAFETY: the caller vouches for `len` readable bytes
        let bytes = unsafe { std::slice::from_raw_parts(data, len) }.to_vec();
        let mailbox = &self.mailboxes[to];
        let mut lanes = mailbox.lanes.lock().map_err(|_| self.poisoned())?;
        lanes[self.rank].queue.push_back(Some(bytes));
        mailbox.news.notify_all();
        Ok(ThreadRequest::Sent)
    }

    unsafe fn receive(&mut self, from: Rank, data: *mut u8, len: usize) -> Result<ThreadRequest> {
        self.started[from] += 1;
        Ok(ThreadRequest::Receive { from, index: self.started[from] - 1, data, len })
    }

    fn wait(&mut self, request: ThreadRequest) -> Result<()> {
        let ThreadRequest::Receive { from, index, data, len } = request else { return Ok(()) };
        let mailbox = &self.mailboxes[self.rank];
        let mut lanes = mailbox.lanes.lock().map_err(|_| self.poisoned())?;
        let bytes = loop {
            let lane = &mut lanes[from];
            if let Some(slot) = lane.queue.get_mut(index - lane.taken) {
                let bytes = slot.take();
                while lane.queue.front().is_some_and(Option::is_none) {
                    lane.queue.pop_front();
                    lane.taken += 1;
                }
                break bytes.unwrap_or_default();
            }
            let (guard, timeout) = mailbox.news.wait_timeout(lanes, DEADLINE).map_err(|_| self.poisoned())?;
            lanes = guard;
            if timeout.timed_out() {
                return Err(Error::Rank { rank: self.rank, reason: format!("no message from rank {from} within {DEADLINE:?}") });
            }
        };
        if bytes.len() != len {
            return Err(Error::Rank {
                rank: self.rank,
                reason: format!("{} bytes came from rank {from}, {len} were expected", bytes.len()),
            });
        }
        // SAFETY: the caller vouched for `len` writable bytes until this request is complete
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, len) };
        Ok(())
    }
}

impl ThreadTransport {
    fn poisoned(&self) -> Error {
        Error::Rank { rank: self.rank, reason: "another rank's thread panicked".into() }
    }
}

/// Runs a schedule over threads. `buffers` holds each rank's message, which the schedule works on in place.
///
/// ```
/// use collwise::collective::{Shape, bcast};
/// let shape = Shape { ranks: 3, root: 0, bytes: 5 };
/// let schedule = bcast::algorithm("chain").unwrap().schedule(&shape, &Default::default()).unwrap();
/// let mut buffers = vec![b"hello".to_vec(), vec![0; 5], vec![0; 5]];
/// collwise::transport::threads::run(&schedule, &mut buffers).unwrap();
/// assert_eq!(buffers[2], b"hello");
/// ```
///
/// # Errors
/// [`Error::Rank`] of the first rank that failed; [`Error::Invalid`] if there are not as many buffers as ranks.
pub fn run(schedule: &Schedule, buffers: &mut [Vec<u8>]) -> Result<()> {
    if buffers.len() != schedule.ranks() {
        return Err(Error::invalid(format!("run {} ranks with {} buffers", schedule.ranks(), buffers.len())));
    }
    std::thread::scope(|scope| {
        let ends = transports(schedule.ranks()).into_iter().zip(&schedule.programs).zip(buffers);
        let threads: Vec<_> = ends
            .map(|((mut end, program), buffer)| {
                scope.spawn(move || {
                    // SAFETY: the buffer is borrowed for this thread alone until the scope ends
                    unsafe { Executor::default().run(&mut end, program, buffer.as_mut_ptr(), buffer.len(), None) }
                })
            })
            .collect();
        threads.into_iter().enumerate().try_for_each(|(rank, thread)| {
            thread.join().unwrap_or_else(|_| Err(Error::Rank { rank, reason: "its thread panicked".into() }))
        })
    })
}
