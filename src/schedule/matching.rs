//! Which send meets which receive.

use super::{Action, Lane, Schedule};
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;

/// For each rank and operation, the rank and operation at the other end of its message. Delays have none.
#[derive(Debug, Clone)]
pub struct Matching {
    partner: Vec<Vec<Option<(u32, u32)>>>,
}

impl Matching {
    /// The other end of an operation's message.
    pub fn partner(&self, rank: usize, op: usize) -> Option<(usize, usize)> {
        self.partner[rank][op].map(|(r, o)| (r as usize, o as usize))
    }
}

/// The receives of one pair and lane (operation, bytes), and how many sends were met.
type Stream = (Vec<(u32, usize)>, usize);

/// Pairs the k-th send from a to b in a lane with the k-th receive at b from a in that lane.
///
/// # Errors
/// [`Error::Invalid`] if a message has no other end, or ends that differ in length.
pub fn matching(schedule: &Schedule) -> Result<Matching> {
    let ranks = schedule.ranks();
    let mut partner: Vec<Vec<Option<(u32, u32)>>> = schedule.programs.iter().map(|p| vec![None; p.len()]).collect();
    // receives of each (from, to, lane) in order; the cursor counts the sends met
    let mut receives: FxHashMap<(u32, u32, Lane), Stream> = FxHashMap::default();
    for (me, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            if let Action::Recv { from, span } = action {
                receives.entry((from as u32, me as u32, program.lane(k))).or_default().0.push((k as u32, span.len));
            }
        }
    }
    for (me, program) in schedule.programs.iter().enumerate() {
        for (k, action) in program.actions().enumerate() {
            let Action::Send { to, span } = action else { continue };
            if to >= ranks {
                return Err(Error::invalid(format!("check the schedule: rank {me} sends to rank {to}, there are {ranks} ranks")));
            }
            let slot = receives.get_mut(&(me as u32, to as u32, program.lane(k)));
            let found = slot.and_then(|(list, next)| {
                *next += 1;
                list.get(*next - 1).copied()
            });
            match found {
                Some((op, len)) if len == span.len => {
                    partner[me][k] = Some((to as u32, op));
                    partner[to][op as usize] = Some((me as u32, k as u32));
                }
                Some((_, len)) => {
                    let sent = span.len;
                    return Err(Error::invalid(format!(
                        "check the schedule: rank {me} sends {sent} bytes to rank {to}, which expects {len}"
                    )));
                }
                None => return Err(Error::invalid(format!("check the schedule: a message from rank {me} to rank {to} is never received"))),
            }
        }
    }
    for ((from, to, _), (list, met)) in &receives {
        if *met < list.len() {
            return Err(Error::invalid(format!("check the schedule: rank {to} waits for a message that rank {from} never sends")));
        }
    }
    Ok(Matching { partner })
}
