//! Ranks as threads of one process: programs run with real bytes on a machine without MPI.

use super::task::nothing_to_combine;
use super::{Buffers, Executor, Tag, Task, Transport};
use crate::error::{Error, Result};
use crate::schedule::Schedule;
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A receive that has waited so long has met a schedule that is wrong.
const DEADLINE: Duration = Duration::from_secs(30);

/// Messages of one sender to one receiver with one tag; those taken leave the queue from the front.
#[derive(Default)]
struct Stream {
    queue: VecDeque<Option<Vec<u8>>>,
    taken: usize,
}

#[derive(Default)]
struct Mailbox {
    streams: Mutex<FxHashMap<(Rank, Tag), Stream>>,
    news: Condvar,
}

/// One thread's end.
pub struct ThreadTransport {
    rank: Rank,
    mailboxes: Arc<Vec<Mailbox>>,
    /// Receives started, by sender and tag.
    started: FxHashMap<(Rank, Tag), usize>,
    epoch: Instant,
}

/// A message under way: sends are complete at once.
#[derive(Debug, Clone, Copy)]
pub enum ThreadRequest {
    /// A send.
    Sent,
    /// The `index`-th receive from a rank.
    Receive {
        /// The sender.
        from: Rank,
        /// The tag.
        tag: Tag,
        /// Its position among the receives from this sender with this tag.
        index: usize,
        /// Where the bytes go.
        data: *mut u8,
        /// How many are expected.
        len: usize,
    },
}

/// Ends for so many ranks.
pub fn transports(ranks: usize) -> Vec<ThreadTransport> {
    let mailboxes = Arc::new((0..ranks).map(|_| Mailbox::default()).collect::<Vec<_>>());
    let epoch = Instant::now();
    let end = |rank| ThreadTransport { rank, mailboxes: Arc::clone(&mailboxes), started: FxHashMap::default(), epoch };
    (0..ranks).map(end).collect()
}

impl Transport for ThreadTransport {
    type Request = ThreadRequest;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    unsafe fn send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ThreadRequest> {
        // SAFETY: the caller vouches for `len` readable bytes
        let bytes = unsafe { std::slice::from_raw_parts(data, len) }.to_vec();
        let mailbox = &self.mailboxes[to];
        let mut streams = mailbox.streams.lock().map_err(|_| self.poisoned())?;
        streams.entry((self.rank, tag)).or_default().queue.push_back(Some(bytes));
        mailbox.news.notify_all();
        Ok(ThreadRequest::Sent)
    }

    /// Its messages are copies, in memory that both ends share.
    unsafe fn send_synchronous(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ThreadRequest> {
        // SAFETY: the caller's
        unsafe { self.send(to, tag, data, len) }
    }

    unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<ThreadRequest> {
        let started = self.started.entry((from, tag)).or_default();
        *started += 1;
        Ok(ThreadRequest::Receive { from, tag, index: *started - 1, data, len })
    }

    fn test(&mut self, request: ThreadRequest) -> Result<bool> {
        let mut streams = self.mailboxes[self.rank].streams.lock().map_err(|_| self.poisoned())?;
        self.take(&mut streams, request)
    }

    fn wait(&mut self, request: ThreadRequest) -> Result<()> {
        self.wait_any(&mut [request]).map(drop)
    }

    fn wait_any(&mut self, requests: &mut [ThreadRequest]) -> Result<usize> {
        let mailbox = &self.mailboxes[self.rank];
        let mut streams = mailbox.streams.lock().map_err(|_| self.poisoned())?;
        loop {
            for (k, request) in requests.iter().enumerate() {
                if self.take(&mut streams, *request)? {
                    return Ok(k);
                }
            }
            let (guard, timeout) = mailbox.news.wait_timeout(streams, DEADLINE).map_err(|_| self.poisoned())?;
            streams = guard;
            if timeout.timed_out() {
                return Err(Error::Rank { rank: self.rank, reason: format!("no message within {DEADLINE:?}: {requests:?}") });
            }
        }
    }
}

impl Stream {
    /// Takes the message with this number, if it is there.
    fn take(&mut self, index: usize) -> Option<Vec<u8>> {
        let bytes = self.queue.get_mut(index.checked_sub(self.taken)?)?.take();
        while self.queue.front().is_some_and(Option::is_none) {
            self.queue.pop_front();
            self.taken += 1;
        }
        bytes
    }
}

impl ThreadTransport {
    /// Takes in a message, if it is there; true if the request is complete.
    fn take(&self, streams: &mut FxHashMap<(Rank, Tag), Stream>, request: ThreadRequest) -> Result<bool> {
        let ThreadRequest::Receive { from, tag, index, data, len } = request else { return Ok(true) };
        let Some(bytes) = streams.get_mut(&(from, tag)).and_then(|s| s.take(index)) else { return Ok(false) };
        if bytes.len() != len {
            let reason = format!("{} bytes came from rank {from}, {len} were expected", bytes.len());
            return Err(Error::Rank { rank: self.rank, reason });
        }
        // SAFETY: whoever started the receive vouched for `len` writable bytes until it is complete
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, len) };
        Ok(true)
    }

    fn poisoned(&self) -> Error {
        Error::Rank { rank: self.rank, reason: "another rank's thread panicked".into() }
    }
}

/// Runs a schedule over threads, without input: `buffers` holds each rank's output.
///
/// ```
/// use collwise::collective::{Shape, bcast};
/// let shape = Shape::new(3, 0, 5);
/// let schedule = bcast::algorithm("chain").unwrap().schedule(&shape, &Default::default()).unwrap();
/// let mut buffers = vec![b"hello".to_vec(), vec![0; 5], vec![0; 5]];
/// collwise::transport::threads::run(&schedule, &mut buffers).unwrap();
/// assert_eq!(buffers[2], b"hello");
/// ```
///
/// # Errors
/// [`Error::Rank`] of the first rank that failed; [`Error::Invalid`] if there are not as many buffers as ranks.
pub fn run(schedule: &Schedule, buffers: &mut [Vec<u8>]) -> Result<()> {
    run_with(schedule, &vec![Vec::new(); schedule.ranks()], buffers, nothing_to_combine)
}

/// As [`run`], with each rank's input, and what combines elements.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    schedule: &Schedule,
    inputs: &[Vec<u8>],
    outputs: &mut [Vec<u8>],
    combine: impl Fn(&[u8], &mut [u8]) -> Result<()> + Sync,
) -> Result<()> {
    if [inputs.len(), outputs.len()] != [schedule.ranks(); 2] {
        return Err(Error::invalid(format!("run {} ranks with {} inputs and {} outputs", schedule.ranks(), inputs.len(), outputs.len())));
    }
    std::thread::scope(|scope| {
        let ends = transports(schedule.ranks()).into_iter().zip(&schedule.programs).zip(inputs.iter().zip(outputs));
        let combine = &combine;
        let threads: Vec<_> = ends
            .map(|((mut end, program), (input, output))| {
                scope.spawn(move || {
                    let mut task = Task::new(program).combining(combine);
                    // SAFETY: the buffers are borrowed for this thread alone until the scope ends
                    unsafe { Executor::default().run(&mut end, &mut task, Buffers::of(input, output), 0) }
                })
            })
            .collect();
        threads.into_iter().enumerate().try_for_each(|(rank, thread)| {
            thread.join().unwrap_or_else(|_| Err(Error::Rank { rank, reason: "its thread panicked".into() }))
        })
    })
}
