//! Schedules for sizes that somebody asks for: counted while they are built, so that none takes more memory than a machine has.

use super::body::Sharing;
use super::op::{Kind, PLACES};
use super::{Program, Schedule};
use crate::error::{Error, Result};
use crate::topology::Rank;
use crate::units;

/// A schedule that is replayed, and the replay, hold about so many bytes for each message. What ranks that do the same do is there once, and of those that do
/// alike the times of one: 8 in a ring, 20 to 50 where each message has a stream of its own, as in an alltoall in pairs; 50 to 190 where no ranks do alike, 74
/// where each rank passes one message on down a tree, 130 to 230 where one rank sends it to all or receives it from all, and combines it, and 490 where each
/// is of another length, as in the chain of a scatter.
const BYTES_PER_MESSAGE: &str = "8 to 510";
/// And so many operations for each of those that are held at most: an alltoall by Bruck's algorithm copies thousands of blocks for a message.
const OPERATIONS: usize = 8;
/// So many messages are held at most, if nothing else is said: 16 MB to 1 GB, and half a second to three seconds of replaying. Whoever asks for more has most likely slipped in a unit.
pub const MOST_MESSAGES: usize = 2_000_000;

/// Messages are tried in so many segments where nothing else bounds them: a pipeline is then filled for a small part of its time, and more would only
/// take longer to predict.
pub const MOST_SEGMENTS: usize = 256;

/// The number of segments that `bytes` are cut into; `segment` 0 means one.
pub fn pieces(bytes: usize, segment: usize) -> usize {
    if segment == 0 { 1 } else { bytes.div_ceil(segment).max(1) }
}

impl Schedule {
    /// Builds each rank's program for a message of `bytes`, cut into segments of `segment` (0: whole), as long as they hold at most
    /// `most` messages in all. `at_least` is a number of messages known beforehand, so that no single program is too large.
    ///
    /// # Errors
    /// [`Error::TooLarge`], with what makes it so and what to do; or the error of a program.
    pub fn bounded(
        ranks: usize,
        (bytes, segment): (usize, usize),
        (at_least, most): (usize, usize),
        program: impl Fn(Rank) -> Result<Program>,
    ) -> Result<Schedule> {
        let refused = |counted: usize| {
            let cut = if segment == 0 || segment >= bytes {
                String::new()
            } else {
                format!(" in {} segments of {}", pieces(bytes, segment), units::bytes(segment))
            };
            Error::TooLarge(format!(
                "replay {}{cut} over {ranks} ranks: that is at least {counted} messages, at most {most} are held in memory \
                 ({BYTES_PER_MESSAGE} bytes each); ask for fewer bytes, longer segments or fewer ranks (--most-messages allows one algorithm more)",
                units::bytes(bytes)
            ))
        };
        if at_least > most {
            return Err(refused(at_least));
        }
        let (mut programs, mut messages, mut operations) = (Sharing::with_room(ranks), 0, 0);
        for me in 0..ranks {
            let program = program(me)?;
            if !program.is_addressable() {
                return Err(Error::TooLarge(format!(
                    "replay {} over {ranks} ranks: rank {me} copies, combines or waits more often than operations can name; ask for longer segments or fewer ranks",
                    units::bytes(bytes)
                )));
            }
            (messages, operations) = (messages + program.messages(), operations + program.len());
            if messages > most {
                return Err(refused(messages));
            }
            if operations / OPERATIONS > most {
                return Err(Error::TooLarge(format!(
                    "replay {} over {ranks} ranks: the first {} of them do {operations} operations, most of them copies, and at most {} are held in memory (12 to 44 \
                     bytes each); ask for fewer ranks or another algorithm (--most-messages, which {OPERATIONS} operations come with, allows one algorithm more)",
                    units::bytes(bytes),
                    me + 1,
                    most.saturating_mul(OPERATIONS)
                )));
            }
            programs.push(program);
        }
        Ok(Schedule { programs: programs.programs })
    }
}

impl Program {
    /// True if its operations can name all that has no room in them, and all streams.
    fn is_addressable(&self) -> bool {
        let body = self.body();
        body.words.len().max(body.sends.len()).max(body.receives.len()) <= PLACES
    }

    /// True if it copies or combines.
    pub fn works(&self) -> bool {
        self.body().ops.iter().any(|op| matches!(op.kind(), Kind::Copy | Kind::Combine))
    }

    /// The number of messages that it sends.
    pub fn messages(&self) -> usize {
        self.body().ops.iter().filter(|op| op.sends()).count()
    }
}
