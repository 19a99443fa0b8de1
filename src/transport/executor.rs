//! Executes one rank's program: receives are posted ahead, sends go out in the order of their lane, each once what it comes after
//! is complete and not too many are under way to one peer.

use super::Transport;
use crate::error::{Error, Result};
use crate::schedule::{Action, Buffer, Cursors, Program, Span, Trace};
use crate::topology::Rank;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How many receives are open at a time: posted ahead of the sends that pass on what they bring. Enough that a pipeline's next
/// segments find their buffers, few enough that matching stays short. As many sends are under way to one peer: those beyond would find no
/// buffer there, and be kept, copied and searched by the MPI library (1 GiB in segments of 8 KiB took 42 times as long as in one piece).
pub const WINDOW: usize = 64;

/// The state of one execution; kept between calls to spare allocations.
#[derive(Debug)]
pub struct Executor<R> {
    requests: Vec<Option<R>>,
    control: Vec<u8>,
    cursors: Cursors,
    /// Sends that were started, by peer, the oldest first; those that are complete leave when the oldest is asked for.
    started: FxHashMap<Rank, VecDeque<usize>>,
    /// The requests that lanes wait for, and their operations.
    awaited: (Vec<R>, Vec<usize>),
}

impl<R> Default for Executor<R> {
    fn default() -> Self {
        let (requests, control, cursors, started, awaited) = Default::default();
        Executor { requests, control, cursors, started, awaited }
    }
}

/// One execution: what is run, on what, and how far it is.
struct Run<'a> {
    program: &'a Program,
    data: *mut u8,
    len: usize,
    trace: Option<&'a mut Trace>,
    /// Operations before this one are sends, or receives that are posted.
    posted: usize,
    /// Receives that are posted and not complete.
    open: usize,
}

impl Run<'_> {
    /// An operation is complete.
    fn close(&mut self, op: usize) {
        self.open -= usize::from(matches!(self.program.action(op), Action::Recv { .. }));
    }
}

impl<R: Copy> Executor<R> {
    /// Runs a program on the message at `data`. With a trace, the start and end of each operation are recorded (the end as this
    /// rank notices it). A send that another operation comes after is over when its buffer may be used again.
    ///
    /// # Safety
    /// `data` must be valid for reads and writes of `len` bytes, and nothing else may use it during the call.
    ///
    /// # Errors
    /// The transport's, or a span that lies outside the message. Requests that are open then stay with the transport.
    pub unsafe fn run<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        data: *mut u8,
        len: usize,
        trace: Option<&mut Trace>,
    ) -> Result<()> {
        self.requests.clear();
        self.requests.resize_with(program.len(), || None);
        self.control.resize(program.len(), 0);
        self.cursors.restart(program);
        self.started.clear();
        let mut run = Run { program, data, len, trace, posted: 0, open: 0 };
        while let Some(furthest) = self.cursors.open().max() {
            // SAFETY: the caller vouches for `data`
            unsafe { self.post_ahead(transport, &mut run, furthest)? };
            let op = self.next(transport, &mut run)?;
            stamp(&mut run.trace, op, transport, |t| &mut t.start);
            match program.action(op) {
                Action::Send { to, span } => {
                    let at = self.place(&run, op, span)?;
                    // SAFETY: `place` checked the span; the request is completed below, before the caller gets `data` back
                    self.requests[op] = Some(unsafe { transport.send(to, program.lane(op), at, span.len)? });
                    if program.len() > WINDOW {
                        self.started.entry(to).or_default().push_back(op);
                    }
                }
                Action::Delay { seconds } => {
                    transport.delay(seconds);
                    stamp(&mut run.trace, op, transport, |t| &mut t.end);
                }
                Action::Recv { .. } => {}
            }
            self.cursors.advance(program, op);
        }
        for op in 0..program.len() {
            // SAFETY: as above
            unsafe { self.post_ahead(transport, &mut run, op)? };
            self.complete(transport, &mut run, op)?;
        }
        Ok(())
    }

    /// The oldest send that is under way to the peer of `op`, if there are as many as may be.
    fn too_many(&mut self, program: &Program, op: usize) -> Option<usize> {
        let Action::Send { to, .. } = program.action(op) else { return None };
        let started = self.started.get_mut(&to)?;
        while started.front().is_some_and(|&oldest| self.requests[oldest].is_none()) {
            started.pop_front();
        }
        started.front().copied().filter(|_| started.len() >= WINDOW)
    }

    /// The send or delay to start next: the first in the program of those that wait for nothing. Waits if all do.
    fn next<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run) -> Result<usize> {
        loop {
            let (mut requests, mut ops) = std::mem::take(&mut self.awaited);
            requests.clear();
            ops.clear();
            let mut first: Option<usize> = None;
            for k in 0..self.cursors.lanes() {
                let op = self.cursors.lane(k);
                let before = run.program.after(op).iter().map(|&d| d as usize).find(|&d| self.requests[d].is_some());
                match before.or_else(|| self.too_many(run.program, op)).and_then(|before| Some((self.requests[before]?, before))) {
                    Some((request, before)) => {
                        requests.push(request);
                        ops.push(before);
                    }
                    None => first = Some(first.map_or(op, |f| f.min(op))),
                }
            }
            self.awaited = (requests, ops);
            if let Some(op) = first {
                return Ok(op);
            }
            let (requests, ops) = &mut self.awaited;
            let k = if requests.len() == 1 {
                transport.wait(requests[0])?;
                0
            } else {
                transport.wait_any(requests)?
            };
            let before = ops[k];
            self.requests[before] = None;
            run.close(before);
            stamp(&mut run.trace, before, transport, |t| &mut t.end);
        }
    }

    /// Posts receives in program order: all before `op`, and further ones while fewer than [`WINDOW`] are open. One that comes after
    /// others is posted when `op` has reached it, and holds back those behind it, since receives match in order.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn post_ahead<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run, op: usize) -> Result<()> {
        let program = run.program;
        while run.posted < program.len() && (run.posted <= op || run.open < WINDOW) {
            let k = run.posted;
            if let Action::Recv { from, span } = program.action(k) {
                if !program.after(k).is_empty() {
                    if k > op {
                        return Ok(());
                    }
                    for &before in program.after(k) {
                        self.complete(transport, run, before as usize)?;
                    }
                }
                let at = self.place(run, k, span)?;
                stamp(&mut run.trace, k, transport, |t| &mut t.start);
                // SAFETY: `place` checked the span; programs write no byte twice at a time, and every request is completed
                self.requests[k] = Some(unsafe { transport.receive(from, program.lane(k), at, span.len)? });
                run.open += 1;
            }
            run.posted += 1;
        }
        Ok(())
    }

    fn complete<T: Transport<Request = R>>(&mut self, transport: &mut T, run: &mut Run, op: usize) -> Result<()> {
        if let Some(request) = self.requests[op].take() {
            transport.wait(request)?;
            run.close(op);
            stamp(&mut run.trace, op, transport, |t| &mut t.end);
        }
        Ok(())
    }

    fn place(&mut self, run: &Run, op: usize, span: Span) -> Result<*mut u8> {
        match span.buffer {
            Buffer::Data if span.offset + span.len <= run.len => Ok(run.data.wrapping_add(span.offset)),
            Buffer::Control if span.len <= 1 => Ok(self.control.as_mut_ptr().wrapping_add(op)),
            _ => Err(Error::invalid(format!("execute operation {op}: its span lies outside the {} bytes", run.len))),
        }
    }
}

fn stamp<T: Transport>(trace: &mut Option<&mut Trace>, op: usize, transport: &T, field: impl Fn(&mut Trace) -> &mut Vec<f64>) {
    if let Some(trace) = trace {
        field(trace)[op] = transport.now();
    }
}
