//! Moving bytes: the small interface that schedules are executed on, and the executor.
//!
//! Buffers are raw pointers, since a message under way outlives the borrow of any one call; the executor completes every
//! request before it returns.
#![allow(unsafe_code)] // messages under way hold pointers into the caller's buffers

pub mod clocks;
mod control;
mod executor;
#[cfg(feature = "mpi")]
pub(crate) mod library;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(feature = "mpi")]
pub mod native;
pub mod offsets;
mod ping;
mod task;
pub mod threads;

use crate::error::Result;
use crate::topology::Rank;

pub use control::Control;
pub use executor::Executor;
pub use ping::Ping;
pub use task::{Buffers, Combine, Task};

/// Tells the messages of one rank to another apart: those of a program by their lane, those of several programs under way by where their tags
/// begin.
pub type Tag = u32;

/// Point-to-point messages among ranks, in order for each pair and tag.
pub trait Transport {
    /// A message under way.
    type Request: Copy;

    /// This rank.
    fn rank(&self) -> Rank;

    /// Seconds on this rank's clock: comparable only with this rank's other stamps.
    fn now(&self) -> f64;

    /// Keeps this rank busy for some seconds, and the processor as far as nobody else wants it: where ranks share processors, the one
    /// that this rank waits for may need it.
    fn delay(&mut self, seconds: f64) {
        let until = self.now() + seconds;
        while self.now() < until {
            std::thread::yield_now();
        }
    }

    /// Starts a send.
    ///
    /// # Safety
    /// `data` must be valid for reads of `len` bytes until the request is complete.
    ///
    /// # Errors
    /// The transport's reason.
    unsafe fn send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<Self::Request>;

    /// As [`Transport::send`], of a message that is complete when its receive has begun, however small it is.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    unsafe fn send_synchronous(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<Self::Request>;

    /// Starts a receive.
    ///
    /// # Safety
    /// `data` must be valid for writes of `len` bytes until the request is complete, and not be used meanwhile.
    ///
    /// # Errors
    /// The transport's reason.
    unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<Self::Request>;

    /// A send that is complete when this returns.
    ///
    /// # Safety
    /// As [`Transport::send`].
    ///
    /// # Errors
    /// The transport's reason.
    unsafe fn blocking_send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<()> {
        // SAFETY: the caller's
        let request = unsafe { self.send(to, tag, data, len)? };
        self.wait(request)
    }

    /// A receive that is complete when this returns.
    ///
    /// # Safety
    /// As [`Transport::receive`].
    ///
    /// # Errors
    /// The transport's reason.
    unsafe fn blocking_receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<()> {
        // SAFETY: the caller's
        let request = unsafe { self.receive(from, tag, data, len)? };
        self.wait(request)
    }

    /// Waits until a message is complete.
    ///
    /// # Errors
    /// The transport's reason.
    fn wait(&mut self, request: Self::Request) -> Result<()>;

    /// True if a message is complete, and its request is given up; does not wait.
    ///
    /// # Errors
    /// The transport's reason.
    fn test(&mut self, request: Self::Request) -> Result<bool>;

    /// Waits until one of some messages is complete, and tells which.
    ///
    /// # Errors
    /// The transport's reason.
    fn wait_any(&mut self, requests: &mut [Self::Request]) -> Result<usize>;
}
