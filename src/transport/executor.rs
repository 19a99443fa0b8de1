//! Executes one rank's program by the rules of [`crate::schedule`].

use super::{Buffers, Tag, Task, Transport};
use crate::error::{Error, Result};
use crate::schedule::{Action, Buffer, CONTROL_BYTES, Cursors, Lane, Program, Span, Trace, UNANSWERED};
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// How far an operation is.
#[derive(Debug, Clone, Copy)]
enum Stage<R> {
    Waiting,
    Open(R),
    Complete,
}

/// The receives of one stream.
#[derive(Debug, Clone, Copy)]
struct Incoming {
    /// The next one to post.
    next: Option<usize>,
    /// Of those that were posted, the oldest one that was not seen to be complete.
    oldest: usize,
    /// How many were posted from there on.
    posted: usize,
}

/// The sends of a stream.
#[derive(Debug, Default)]
struct Outgoing {
    /// Those that were started, the oldest first; those that are complete leave when the oldest is asked for.
    started: VecDeque<usize>,
    /// Bytes since the last message that waited for its receiver.
    unanswered: usize,
}

/// The state of one execution; kept between calls to spare allocations.
///
/// A program is run in one go, or started and then progressed or finished. Several executors may be under way on one transport, each with
/// tags of its own.
#[derive(Debug)]
pub struct Executor<R> {
    /// The caller's memory.
    buffers: Buffers,
    /// Memory of its own, in units as large as any element's alignment.
    scratch: Vec<u128>,
    /// The tag of lane 0.
    tag: Tag,
    stages: Vec<Stage<R>>,
    control: Vec<u8>,
    cursors: Cursors,
    /// Receives that are still to be posted, by stream.
    incoming: Vec<Incoming>,
    /// Sends by receiver and lane. Only in programs that have more of them than may be under way.
    outgoing: FxHashMap<(Rank, Lane), Outgoing>,
    /// The requests that are waited for, and their operations.
    awaited: (Vec<R>, Vec<usize>),
    /// Once all have started: the operations before this one were seen to be complete.
    ended: usize,
}

impl<R> Default for Executor<R> {
    fn default() -> Self {
        let (buffers, scratch, stages, control, cursors, incoming, outgoing, awaited) = Default::default();
        Executor { buffers, scratch, tag: 0, stages, control, cursors, incoming, outgoing, awaited, ended: 0 }
    }
}

impl<R: Copy> Executor<R> {
    /// Runs a program, with tags as [`Executor::start`]. A send that another operation comes after is over when its buffer may be used again.
    ///
    /// # Safety
    /// The input must be valid for reads, the output for reads and writes, and nothing else may write the input or use the output during the
    /// call.
    ///
    /// # Errors
    /// The transport's, a span that lies outside its buffer, elements that cannot be combined, or operations that wait for each other. Requests
    /// that are open then stay with the transport.
    pub unsafe fn run<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task, buffers: Buffers, tag: Tag) -> Result<()> {
        // SAFETY: the caller's
        unsafe {
            if let Some(done) = single_message(transport, task, buffers, tag) {
                return done;
            }
            self.start(transport, task, buffers, tag)?;
            self.finish(transport, task)
        }
    }

    /// Starts a program: what need not wait for anything begins. Its messages have the tags from `tag` on, one for each lane; of two programs
    /// under way between the same ranks each must have its own.
    ///
    /// # Safety
    /// As [`Executor::run`], but until [`Executor::progress`] says that it is complete, or [`Executor::finish`] returns.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn start<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        task: &mut Task,
        buffers: Buffers,
        tag: Tag,
    ) -> Result<()> {
        let program = task.program;
        (self.buffers, self.tag, self.ended) = (buffers, tag, 0);
        let scratch = program.scratch().div_ceil(size_of::<u128>());
        if self.scratch.len() != scratch {
            self.scratch.resize(scratch, 0);
        }
        self.stages.clear();
        self.stages.resize(program.len(), Stage::Waiting);
        if self.control.len() != program.len() * CONTROL_BYTES {
            self.control.resize(program.len() * CONTROL_BYTES, 0);
        }
        self.cursors.restart(program);
        self.incoming.clear();
        self.incoming.extend(program.streams().map(|first| first as usize).map(|first| Incoming {
            next: Some(first),
            oldest: first,
            posted: 0,
        }));
        if !self.outgoing.is_empty() {
            self.outgoing.clear();
        }
        // SAFETY: the caller's
        unsafe { self.advance(transport, task) }
    }

    /// Goes on with the program that was started, as far as that is possible without waiting; true if it is complete.
    ///
    /// # Safety
    /// As [`Executor::start`], with the same task.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn progress<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<bool> {
        while !self.all_started() {
            if !self.test_awaited(transport, task)? {
                return Ok(false);
            }
            // SAFETY: the caller's
            unsafe { self.advance(transport, task)? };
        }
        while self.ended < task.program.len() {
            if let Stage::Open(request) = self.stages[self.ended] {
                if !transport.test(request)? {
                    return Ok(false);
                }
                self.complete(transport, task, self.ended);
            }
            self.ended += 1;
        }
        Ok(true)
    }

    /// Waits until the program that was started is complete.
    ///
    /// # Safety
    /// As [`Executor::start`], with the same task.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn finish<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<()> {
        while !self.all_started() {
            self.wait_for_one(transport, task)?;
            // SAFETY: the caller's
            unsafe { self.advance(transport, task)? };
        }
        for op in self.ended..task.program.len() {
            if let Stage::Open(request) = self.stages[op] {
                transport.wait(request)?;
                self.complete(transport, task, op);
            }
        }
        self.ended = task.program.len();
        Ok(())
    }

    fn all_started(&self) -> bool {
        self.cursors.is_empty() && self.incoming.is_empty()
    }

    /// Starts all that may be started.
    ///
    /// # Safety
    /// As [`Executor::start`].
    unsafe fn advance<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<()> {
        loop {
            // SAFETY: the caller's
            unsafe { self.post(transport, task)? };
            let Some(op) = self.ready(task.program) else { return Ok(()) };
            // SAFETY: as above
            unsafe { self.begin(transport, task, op)? };
            self.cursors.advance(task.program, op);
        }
    }

    /// Posts all receives that may be posted.
    ///
    /// # Safety
    /// As [`Executor::start`].
    unsafe fn post<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<()> {
        for k in 0..self.incoming.len() {
            while let Some(op) = self.incoming[k].next
                && self.blocker(task.program, op).is_none()
                && !self.is_full(task.program, k)
            {
                // SAFETY: the caller's
                unsafe { self.begin(transport, task, op)? };
                self.incoming[k].next = task.program.next(op);
                self.incoming[k].posted += 1;
            }
        }
        if !self.incoming.is_empty() {
            self.incoming.retain(|stream| stream.next.is_some());
        }
        Ok(())
    }

    /// True if as many receives of a stream are open as may be.
    fn is_full(&mut self, program: &Program, k: usize) -> bool {
        while self.incoming[k].posted > 0
            && matches!(self.stages[self.incoming[k].oldest], Stage::Complete)
            && let Some(next) = program.next(self.incoming[k].oldest)
        {
            self.incoming[k].oldest = next;
            self.incoming[k].posted -= 1;
        }
        self.incoming[k].next.is_some_and(|next| self.incoming[k].posted >= program.in_flight_at(next))
    }

    /// The oldest send of the stream of `op`, if as many are under way as may be.
    fn too_many(&mut self, program: &Program, op: usize) -> Option<usize> {
        if self.outgoing.is_empty() {
            return None;
        }
        let Action::Send { to, .. } = program.action(op) else { return None };
        let started = &mut self.outgoing.get_mut(&(to, program.lane(op)))?.started;
        while started.front().is_some_and(|&oldest| matches!(self.stages[oldest], Stage::Complete)) {
            started.pop_front();
        }
        started.front().copied().filter(|_| started.len() >= program.in_flight_at(op))
    }

    /// The first operation that `op` comes after and that is not complete.
    fn blocker(&self, program: &Program, op: usize) -> Option<usize> {
        program.after(op).iter().map(|&d| d as usize).find(|&d| !matches!(self.stages[d], Stage::Complete))
    }

    /// The send or delay to start next: of those whose turn it is in their lanes and that wait for nothing, the first in the program.
    fn ready(&mut self, program: &Program) -> Option<usize> {
        let mut first: Option<usize> = None;
        for k in 0..self.cursors.lanes() {
            let op = self.cursors.lane(k);
            if first.is_none_or(|f| op < f) && self.blocker(program, op).is_none() && self.too_many(program, op).is_none() {
                first = Some(op);
            }
        }
        first
    }

    /// The operations that others wait for, and their requests, to be given back to `awaited`.
    fn wanted(&mut self, transport: &impl Transport, program: &Program) -> Result<(Vec<R>, Vec<usize>)> {
        let (mut requests, mut ops) = std::mem::take(&mut self.awaited);
        requests.clear();
        ops.clear();
        // what has not started is waited for by what it waits for itself
        let mut want = |stages: &[Stage<R>], op: Option<usize>| {
            if let Some(op) = op
                && let Stage::Open(request) = stages[op]
                && !ops.contains(&op)
            {
                ops.push(op);
                requests.push(request);
            }
        };
        for k in 0..self.cursors.lanes() {
            let op = self.cursors.lane(k);
            want(&self.stages, self.blocker(program, op));
            let oldest = self.too_many(program, op);
            want(&self.stages, oldest);
        }
        for k in 0..self.incoming.len() {
            want(&self.stages, self.incoming[k].next.and_then(|op| self.blocker(program, op)));
            let oldest = self.is_full(program, k).then_some(self.incoming[k].oldest);
            want(&self.stages, oldest);
        }
        if ops.is_empty() {
            return Err(Error::Rank { rank: transport.rank(), reason: "operations of its program wait for each other".into() });
        }
        Ok((requests, ops))
    }

    /// Waits until one of the operations is complete that others wait for.
    fn wait_for_one<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<()> {
        let (mut requests, ops) = self.wanted(transport, task.program)?;
        let k = match requests[..] {
            [request] => transport.wait(request).map(|()| 0)?,
            _ => transport.wait_any(&mut requests)?,
        };
        self.complete(transport, task, ops[k]);
        self.awaited = (requests, ops);
        Ok(())
    }

    /// True if some operations are complete that others wait for.
    fn test_awaited<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task) -> Result<bool> {
        let (requests, ops) = self.wanted(transport, task.program)?;
        let mut some = false;
        for (&request, &op) in requests.iter().zip(&ops) {
            if transport.test(request)? {
                self.complete(transport, task, op);
                some = true;
            }
        }
        self.awaited = (requests, ops);
        Ok(some)
    }

    /// Starts an operation; a delay is complete after it.
    ///
    /// # Safety
    /// As [`Executor::start`].
    unsafe fn begin<T: Transport<Request = R>>(&mut self, transport: &mut T, task: &mut Task, op: usize) -> Result<()> {
        let lane = task.program.lane(op);
        let tag = self.tag + Tag::from(lane);
        stamp(&mut task.trace, op, transport, |t| &mut t.start);
        match task.program.action(op) {
            Action::Send { to, span } => {
                let at = self.place(op, span)?;
                let mut answered = false;
                if task.program.len() > task.program.in_flight_at(op) {
                    let stream = self.outgoing.entry((to, lane)).or_default();
                    answered = stream.unanswered > UNANSWERED;
                    stream.unanswered = if answered { 0 } else { stream.unanswered + span.len };
                    stream.started.push_back(op);
                }
                // SAFETY: `place` checked the span; every request is completed before the caller gets its buffers back
                self.stages[op] = Stage::Open(unsafe {
                    if answered { transport.send_synchronous(to, tag, at, span.len)? } else { transport.send(to, tag, at, span.len)? }
                });
            }
            Action::Recv { from, span } => {
                let at = self.written(op, span)?;
                // SAFETY: as above; valid schedules use no byte that is being written
                self.stages[op] = Stage::Open(unsafe { transport.receive(from, tag, at, span.len)? });
            }
            Action::Copy { from, into } => {
                let (from, to) = self.two_places(op, from, into)?;
                // SAFETY: both spans were checked, and do not overlap
                unsafe { std::ptr::copy_nonoverlapping(from, to, into.len) };
                self.complete(transport, task, op);
            }
            Action::Combine { left, into } => {
                let (left, to) = self.two_places(op, left, into)?;
                // SAFETY: as above
                let (left, to) = unsafe { (from_raw_parts(left, into.len), from_raw_parts_mut(to, into.len)) };
                (task.combine)(left, to)?;
                self.complete(transport, task, op);
            }
            Action::Delay { seconds } => {
                transport.delay(seconds);
                self.complete(transport, task, op);
            }
        }
        Ok(())
    }

    fn complete<T: Transport>(&mut self, transport: &T, task: &mut Task, op: usize) {
        self.stages[op] = Stage::Complete;
        stamp(&mut task.trace, op, transport, |t| &mut t.end);
    }

    fn place(&mut self, op: usize, span: Span) -> Result<*mut u8> {
        let place = match span.buffer {
            Buffer::Input | Buffer::Output => self.buffers.place(span),
            Buffer::Scratch if span.end() <= size_of_val(self.scratch.as_slice()) => {
                Some(self.scratch.as_mut_ptr().cast::<u8>().wrapping_add(span.offset))
            }
            Buffer::Control if span.len <= CONTROL_BYTES => Some(self.control.as_mut_ptr().wrapping_add(op * CONTROL_BYTES)),
            Buffer::Scratch | Buffer::Control => None,
        };
        place.ok_or_else(|| {
            Error::invalid(format!(
                "execute operation {op}: bytes {} to {} lie outside its {}",
                span.offset,
                span.end(),
                span.buffer.name()
            ))
        })
    }

    /// The place of what an operation writes.
    fn written(&mut self, op: usize, span: Span) -> Result<*mut u8> {
        if span.buffer == Buffer::Input {
            return Err(Error::invalid(format!("execute operation {op}: it writes into the input")));
        }
        self.place(op, span)
    }

    /// The places of what an operation reads and of what it writes, as many bytes; of nothing, any place does.
    fn two_places(&mut self, op: usize, from: Span, into: Span) -> Result<(*const u8, *mut u8)> {
        if from.overlaps(&into) {
            return Err(Error::invalid(format!("execute operation {op}: it writes into what it reads")));
        }
        let places = (self.place(op, from)?.cast_const(), self.written(op, into)?);
        let nothing = std::ptr::NonNull::<u8>::dangling().as_ptr();
        Ok(if into.len == 0 { (nothing, nothing) } else { places })
    }
}

/// A program of one message alone, as of two ranks or of a tree's leaf, in one call: beside what a short one takes, to keep a request of it takes long.
/// `None` if it is another program, or a message of other memory than the caller's.
///
/// # Safety
/// As [`Executor::run`].
#[inline]
unsafe fn single_message<T: Transport>(transport: &mut T, task: &Task, buffers: Buffers, tag: Tag) -> Option<Result<()>> {
    let program = task.program;
    if program.len() != 1 || task.trace.is_some() {
        return None;
    }
    let tag = tag + Tag::from(program.lane(0));
    // SAFETY: `place` checks the span; the caller vouches for the memory
    unsafe {
        match program.action(0) {
            Action::Send { to, span } => Some(transport.blocking_send(to, tag, buffers.place(span)?, span.len)),
            Action::Recv { from, span } if span.buffer == Buffer::Output => {
                Some(transport.blocking_receive(from, tag, buffers.place(span)?, span.len))
            }
            _ => None,
        }
    }
}

fn stamp<T: Transport>(trace: &mut Option<&mut Trace>, op: usize, transport: &T, field: impl Fn(&mut Trace) -> &mut Vec<f64>) {
    if let Some(trace) = trace {
        field(trace)[op] = transport.now();
    }
}
