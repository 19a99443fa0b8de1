//! What an executor is asked to run, and the memory that it runs on.

use crate::error::{Error, Result};
use crate::schedule::{Buffer, Program, Span, Trace};

/// `into := left op into` for the elements in two spans as long as each other.
pub type Combine<'a> = &'a dyn Fn(&[u8], &mut [u8]) -> Result<()>;

/// A program to run.
pub struct Task<'a> {
    /// The program.
    pub program: &'a Program,
    /// How elements are combined.
    pub combine: Combine<'a>,
    /// Where the start and end of each operation are noted (the end as this rank notices it), if anywhere.
    pub trace: Option<&'a mut Trace>,
}

impl<'a> Task<'a> {
    /// A program that combines nothing, without a trace.
    pub fn new(program: &'a Program) -> Task<'a> {
        Task { program, combine: &nothing_to_combine, trace: None }
    }

    /// The same with a trace.
    pub fn traced(self, trace: Option<&'a mut Trace>) -> Task<'a> {
        Task { trace, ..self }
    }

    /// The same with an operation.
    pub fn combining(self, combine: Combine<'a>) -> Task<'a> {
        Task { combine, ..self }
    }
}

pub(super) fn nothing_to_combine(_: &[u8], _: &mut [u8]) -> Result<()> {
    Err(Error::invalid("execute a program that combines elements: no operation was given"))
}

/// The memory of one rank that a program works on; scratch is the executor's own.
#[derive(Debug, Clone, Copy)]
pub struct Buffers {
    input: *const u8,
    input_len: usize,
    output: *mut u8,
    output_len: usize,
}

impl Buffers {
    /// An input and an output, in bytes. What is never looked at (`len` 0) may be null.
    pub fn new((input, input_len): (*const u8, usize), (output, output_len): (*mut u8, usize)) -> Buffers {
        Buffers { input, input_len, output, output_len }
    }

    /// One buffer that is what the caller gives and what it gets.
    pub fn in_place(data: *mut u8, len: usize) -> Buffers {
        Buffers::new((std::ptr::null(), 0), (data, len))
    }

    /// The input and the output of this rank as borrowed slices, which must not be used otherwise while a program runs on them.
    pub fn of(input: &[u8], output: &mut [u8]) -> Buffers {
        Buffers::new((input.as_ptr(), input.len()), (output.as_mut_ptr(), output.len()))
    }

    /// Where the output begins.
    pub fn output(&self) -> *mut u8 {
        self.output
    }

    /// Where the input begins.
    pub fn input(&self) -> *const u8 {
        self.input
    }

    /// Bytes of the output.
    pub fn output_len(&self) -> usize {
        self.output_len
    }

    /// Where a span of input or output begins; `None` if it lies outside.
    pub(super) fn place(&self, span: Span) -> Option<*mut u8> {
        let (begin, len) = match span.buffer {
            Buffer::Input => (self.input.cast_mut(), self.input_len),
            Buffer::Output => (self.output, self.output_len),
            Buffer::Scratch | Buffer::Control => return None,
        };
        (span.end() <= len).then(|| begin.wrapping_add(span.offset))
    }
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers::in_place(std::ptr::null_mut(), 0)
    }
}
