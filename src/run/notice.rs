//! What a user is told about communicators that use the library's own collectives: each reason once for each process, however many
//! communicators have it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Why a communicator uses the library's own collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A policy cannot be read, or is not the same one everywhere.
    Policy,
    /// A host is in no group of the policy.
    Host,
    /// It joins two groups.
    InterCommunicator,
    /// Some of its processes are not in MPI_COMM_WORLD.
    Outside,
    /// MPI has no context for a private communicator left, or so few that the program may need them.
    Contexts,
    /// Several threads may make communicators at the same time.
    Threads,
    /// The launcher is another library's.
    Launcher,
    /// The policy lacks what a plan needs.
    Plan,
    /// A trace cannot be written.
    Trace,
}

/// A reason with its words.
#[derive(Debug, Clone)]
pub struct Reason {
    /// Of which kind.
    pub why: Why,
    /// In words.
    pub text: String,
}

impl Reason {
    /// A reason.
    pub fn new(why: Why, text: impl Into<String>) -> Reason {
        Reason { why, text: text.into() }
    }

    /// Tells it on standard error, if no reason of its kind was told in this process.
    pub fn tell_once(&self, ranks: usize) {
        once(self.why, || {
            format!(
                "a communicator of {ranks} ranks uses the MPI library's own collectives: {} (said once by this process for all like it)",
                self.text
            )
        });
    }
}

/// Prints a line, the first time for each kind.
pub fn once(why: Why, line: impl FnOnce() -> String) {
    static TOLD: Mutex<BTreeSet<Why>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(why) {
        eprintln!("collwise: {}", line());
    }
}
