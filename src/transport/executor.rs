//! Executes one rank's program by the rules of [`crate::schedule`].

use super::{Tag, Transport};
use crate::error::{Error, Result};
use crate::schedule::{Action, Buffer, Cursors, Lane, Program, Span, Trace, WINDOW};
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

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

/// The state of one execution; kept between calls to spare allocations.
///
/// A program is run in one go, or started and then progressed or finished. Several executors may be under way on one transport, each with
/// tags of its own.
#[derive(Debug)]
pub struct Executor<R> {
    /// The message.
    data: *mut u8,
    len: usize,
    /// The tag of lane 0.
    tag: Tag,
    stages: Vec<Stage<R>>,
    control: Vec<u8>,
    cursors: Cursors,
    /// Receives that are still to be posted, by stream.
    incoming: Vec<Incoming>,
    /// Sends that were started, by receiver and lane, the oldest first; those that are complete leave when the oldest is asked for. Only in
    /// programs that have more of them than may be under way.
    outgoing: FxHashMap<(Rank, Lane), VecDeque<usize>>,
    /// The requests that are waited for, and their operations.
    awaited: (Vec<R>, Vec<usize>),
    /// Once all have started: the operations before this one were seen to be complete.
    ended: usize,
}

impl<R> Default for Executor<R> {
    fn default() -> Self {
        let (stages, control, cursors, incoming, outgoing, awaited) = Default::default();
        Executor { data: std::ptr::null_mut(), len: 0, tag: 0, stages, control, cursors, incoming, outgoing, awaited, ended: 0 }
    }
}

/// What is run.
struct Run<'a> {
    program: &'a Program,
    trace: Option<&'a mut Trace>,
}

impl<R: Copy> Executor<R> {
    /// Runs a program on the message at `data`. With a trace, the start and end of each operation are recorded (the end as this
    /// rank notices it). A send that another operation comes after is over when its buffer may be used again.
    ///
    /// # Safety
    /// `data` must be valid for reads and writes of `len` bytes, and nothing else may use it during the call.
    ///
    /// # Errors
    /// The transport's, a span that lies outside the message, or operations that wait for each other. Requests that are open then stay
    /// with the transport.
    pub unsafe fn run<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        data: *mut u8,
        len: usize,
        mut trace: Option<&mut Trace>,
    ) -> Result<()> {
        // SAFETY: the caller's
        unsafe {
            self.start(transport, program, data, len, 0, trace.as_deref_mut())?;
            self.finish(transport, program, trace)
        }
    }

    /// Starts a program on the message at `data`: what need not wait for anything begins. Its messages have the tags from `tag` on, one for
    /// each lane; of two programs under way between the same ranks each must have its own.
    ///
    /// # Safety
    /// As [`Executor::run`], but until [`Executor::progress`] says that it is complete, or [`Executor::finish`] returns.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn start<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        data: *mut u8,
        len: usize,
        tag: Tag,
        trace: Option<&mut Trace>,
    ) -> Result<()> {
        (self.data, self.len, self.tag, self.ended) = (data, len, tag, 0);
        self.stages.clear();
        self.stages.resize_with(program.len(), || Stage::Waiting);
        self.control.resize(program.len(), 0);
        self.cursors.restart(program);
        self.incoming.clear();
        self.incoming.extend(program.streams().map(|first| Incoming { next: Some(first), oldest: first, posted: 0 }));
        self.outgoing.clear();
        // SAFETY: the caller's
        unsafe { self.advance(transport, &mut Run { program, trace }) }
    }

    /// Goes on with the program that was started, as far as that is possible without waiting; true if it is complete.
    ///
    /// # Safety
    /// As [`Executor::start`], with the same program.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn progress<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        trace: Option<&mut Trace>,
    ) -> Result<bool> {
        let run = &mut Run { program, trace };
        while !self.all_started() {
            if !self.test_awaited(transport, run)? {
                return Ok(false);
            }
            // SAFETY: the caller's
            unsafe { self.advance(transport, run)? };
        }
        while self.ended < program.len() {
            if let Stage::Open(request) = self.stages[self.ended] {
                if !transport.test(request)? {
                    return Ok(false);
                }
                self.complete(transport, run, self.ended);
            }
            self.ended += 1;
        }
        Ok(true)
    }

    /// Waits until the program that was started is complete.
    ///
    /// # Safety
    /// As [`Executor::start`], with the same program.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub unsafe fn finish<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        trace: Option<&mut Trace>,
    ) -> Result<()> {
        let run = &mut Run { program, trace };
        while !self.all_started() {
            self.wait_for_one(transport, run)?;
            // SAFETY: the caller's
            unsafe { self.advance(transport, run)? };
        }
        for op in self.ended..program.len() {
            if let Stage::Open(request) = self.stages[op] {
                transport.wait(request)?;
                self.complete(transport, run, op);
            }
        }
        self.ended = program.len();
        Ok(())
    }

    fn all_started(&self) -> bool {
        self.cursors.is_empty() && self.incoming.is_empty()
    }

    /// Starts all that may be started.
    ///
    /// # Safety
    /// As [`Executor::start`].
    unsafe fn advance<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run) -> Result<()> {
        loop {
            // SAFETY: the caller's
            unsafe { self.post(transport, run)? };
            let Some(op) = self.ready(run.program) else { return Ok(()) };
            // SAFETY: as above
            unsafe { self.begin(transport, run, op)? };
            self.cursors.advance(run.program, op);
        }
    }

    /// Posts all receives that may be posted.
    ///
    /// # Safety
    /// As [`Executor::start`].
    unsafe fn post<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run) -> Result<()> {
        for k in 0..self.incoming.len() {
            while let Some(op) = self.incoming[k].next
                && self.blocker(run.program, op).is_none()
                && !self.is_full(run.program, k)
            {
                // SAFETY: the caller's
                unsafe { self.begin(transport, run, op)? };
                self.incoming[k].next = run.program.next(op);
                self.incoming[k].posted += 1;
            }
        }
        self.incoming.retain(|stream| stream.next.is_some());
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
        self.incoming[k].next.is_some_and(|next| self.incoming[k].posted >= may_be_under_way(program, next))
    }

    /// The oldest send of the stream of `op`, if as many are under way as may be.
    fn too_many(&mut self, program: &Program, op: usize) -> Option<usize> {
        let Action::Send { to, .. } = program.action(op) else { return None };
        let started = self.outgoing.get_mut(&(to, program.lane(op)))?;
        while started.front().is_some_and(|&oldest| matches!(self.stages[oldest], Stage::Complete)) {
            started.pop_front();
        }
        started.front().copied().filter(|_| started.len() >= may_be_under_way(program, op))
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
    fn wait_for_one<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run) -> Result<()> {
        let (mut requests, ops) = self.wanted(transport, run.program)?;
        let k = match requests[..] {
            [request] => transport.wait(request).map(|()| 0)?,
            _ => transport.wait_any(&mut requests)?,
        };
        self.complete(transport, run, ops[k]);
        self.awaited = (requests, ops);
        Ok(())
    }

    /// True if some operations are complete that others wait for.
    fn test_awaited<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run) -> Result<bool> {
        let (requests, ops) = self.wanted(transport, run.program)?;
        let mut some = false;
        for (&request, &op) in requests.iter().zip(&ops) {
            if transport.test(request)? {
                self.complete(transport, run, op);
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
    unsafe fn begin<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run, op: usize) -> Result<()> {
        let lane = run.program.lane(op);
        let tag = self.tag + Tag::from(lane);
        stamp(&mut run.trace, op, transport, |t| &mut t.start);
        match run.program.action(op) {
            Action::Send { to, span } => {
                let at = self.place(op, span)?;
                // SAFETY: `place` checked the span; every request is completed before the caller gets `data` back
                self.stages[op] = Stage::Open(unsafe { transport.send(to, tag, at, span.len)? });
                if run.program.len() > may_be_under_way(run.program, op) {
                    self.outgoing.entry((to, lane)).or_default().push_back(op);
                }
            }
            Action::Recv { from, span } => {
                let at = self.place(op, span)?;
                // SAFETY: as above; valid schedules use no byte that is being written
                self.stages[op] = Stage::Open(unsafe { transport.receive(from, tag, at, span.len)? });
            }
            Action::Delay { seconds } => {
                transport.delay(seconds);
                self.complete(transport, run, op);
            }
        }
        Ok(())
    }

    fn complete<T: Transport>(&mut self, transport: &T, run: &mut Run, op: usize) {
        self.stages[op] = Stage::Complete;
        stamp(&mut run.trace, op, transport, |t| &mut t.end);
    }

    fn place(&mut self, op: usize, span: Span) -> Result<*mut u8> {
        match span.buffer {
            Buffer::Data if span.offset + span.len <= self.len => Ok(self.data.wrapping_add(span.offset)),
            Buffer::Control if span.len <= 1 => Ok(self.control.as_mut_ptr().wrapping_add(op)),
            _ => Err(Error::invalid(format!("execute operation {op}: its span lies outside the {} bytes", self.len))),
        }
    }
}

/// How many messages of an operation's stream may be under way when it has started.
fn may_be_under_way(program: &Program, op: usize) -> usize {
    let said = program.in_flight_at(op);
    if said == 0 { WINDOW } else { said }
}

fn stamp<T: Transport>(trace: &mut Option<&mut Trace>, op: usize, transport: &T, field: impl Fn(&mut Trace) -> &mut Vec<f64>) {
    if let Some(trace) = trace {
        field(trace)[op] = transport.now();
    }
}
