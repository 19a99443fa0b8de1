//! Executes one rank's program: receives are posted ahead, sends go out in program order, each once what it comes after is
//! complete.

use super::Transport;
use crate::error::{Error, Result};
use crate::schedule::{Action, Buffer, Program, Span, Trace};

/// How many receives are posted ahead. Enough that a pipeline's next segments find their buffers, few enough that matching
/// stays short.
pub const WINDOW: usize = 32;

/// The state of one execution; kept between calls to spare allocations.
#[derive(Debug)]
pub struct Executor<R> {
    requests: Vec<Option<R>>,
    control: Vec<u8>,
}

impl<R> Default for Executor<R> {
    fn default() -> Self {
        Executor { requests: Vec::new(), control: Vec::new() }
    }
}

/// The caller's message during one execution.
struct Message {
    data: *mut u8,
    len: usize,
}

impl<R> Executor<R> {
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
        mut trace: Option<&mut Trace>,
    ) -> Result<()> {
        self.requests.clear();
        self.requests.resize_with(program.len(), || None);
        self.control.resize(program.len(), 0);
        let message = Message { data, len };
        let mut posted = 0; // operations before this one are sends, or receives that are posted
        for op in 0..program.len() {
            // SAFETY: the caller vouches for `data`
            unsafe { self.post_ahead(transport, program, &message, &mut posted, op, &mut trace)? };
            let action = program.action(op);
            if matches!(action, Action::Recv { .. }) {
                continue;
            }
            for &before in program.after(op) {
                self.complete(transport, before as usize, &mut trace)?;
            }
            stamp(&mut trace, op, transport, |t| &mut t.start);
            match action {
                Action::Send { to, span } => {
                    let at = self.place(&message, op, span)?;
                    // SAFETY: `place` checked the span; the request is completed below, before the caller gets `data` back
                    self.requests[op] = Some(unsafe { transport.send(to, at, span.len)? });
                }
                Action::Delay { seconds } => {
                    transport.delay(seconds);
                    stamp(&mut trace, op, transport, |t| &mut t.end);
                }
                Action::Recv { .. } => {}
            }
        }
        for op in 0..program.len() {
            // SAFETY: as above
            unsafe { self.post_ahead(transport, program, &message, &mut posted, op, &mut trace)? };
            self.complete(transport, op, &mut trace)?;
        }
        Ok(())
    }

    /// Posts receives in program order, up to [`WINDOW`] operations after `op`. One that comes after others is posted when `op`
    /// has reached it, and holds back those behind it, since receives match in order.
    ///
    /// # Safety
    /// As [`Executor::run`].
    unsafe fn post_ahead<T: Transport<Request = R>>(
        &mut self,
        transport: &mut T,
        program: &Program,
        message: &Message,
        posted: &mut usize,
        op: usize,
        trace: &mut Option<&mut Trace>,
    ) -> Result<()> {
        while *posted < program.len() && *posted <= op + WINDOW {
            let k = *posted;
            if let Action::Recv { from, span } = program.action(k) {
                if !program.after(k).is_empty() {
                    if k > op {
                        return Ok(());
                    }
                    for &before in program.after(k) {
                        self.complete(transport, before as usize, trace)?;
                    }
                }
                let at = self.place(message, k, span)?;
                stamp(trace, k, transport, |t| &mut t.start);
                // SAFETY: `place` checked the span; programs write no byte twice at a time, and every request is completed
                self.requests[k] = Some(unsafe { transport.receive(from, at, span.len)? });
            }
            *posted += 1;
        }
        Ok(())
    }

    fn complete<T: Transport<Request = R>>(&mut self, transport: &mut T, op: usize, trace: &mut Option<&mut Trace>) -> Result<()> {
        if let Some(request) = self.requests[op].take() {
            transport.wait(request)?;
            stamp(trace, op, transport, |t| &mut t.end);
        }
        Ok(())
    }

    fn place(&mut self, message: &Message, op: usize, span: Span) -> Result<*mut u8> {
        match span.buffer {
            Buffer::Data if span.offset + span.len <= message.len => Ok(message.data.wrapping_add(span.offset)),
            Buffer::Control if span.len <= 1 => Ok(self.control.as_mut_ptr().wrapping_add(op)),
            _ => Err(Error::invalid(format!("execute operation {op}: its span lies outside the {} bytes", message.len))),
        }
    }
}

fn stamp<T: Transport>(trace: &mut Option<&mut Trace>, op: usize, transport: &T, field: impl Fn(&mut Trace) -> &mut Vec<f64>) {
    if let Some(trace) = trace {
        field(trace)[op] = transport.now();
    }
}
