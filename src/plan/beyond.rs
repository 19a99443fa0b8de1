//! Messages larger than any that were measured: there the library's own collective is taken, unless the policy's is predicted to win.
//!
//! What limits large messages (memory, the library's own flow control) did not show at the sizes that were measured, so that a gain
//! must not hang on it.

use super::{Location, PolyModel, Routed, placement, seconds};
use crate::collective::{Parameters, Shape, bcast};
use crate::error::{Error, Result};
use crate::policy::CompiledPolicy;
use crate::predict::completion;
use crate::two_level::ROUTED;

/// The policy's schedule must be predicted to win by so much: what predictions err by at the largest sizes, where ranks compete for memory and
/// processors, and more than one long message gains or loses by being cut.
const MARGIN: f64 = 0.25;

/// What a broadcast takes at the largest size that was measured, in both schedules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beyond {
    /// That size.
    pub measured_bytes: usize,
    /// What the policy's schedule takes there.
    pub own_s: f64,
    /// What the library's own takes there: measured, or else the fastest of what libraries run for large messages, as predicted.
    pub native_s: f64,
}

impl Beyond {
    /// True if the library's own is taken.
    pub fn is_native(&self) -> bool {
        native_is_taken(self.native_s, self.own_s)
    }

    /// What the library's own takes for a message of this size.
    pub(super) fn native_at(&self, bytes: usize) -> f64 {
        self.native_s * bytes as f64 / self.measured_bytes.max(1) as f64
    }
}

/// True if the library's own, which takes `native_s`, is taken instead of what takes `own_s`: unless it takes longer by the margin.
pub(super) fn native_is_taken(native_s: f64, own_s: f64) -> bool {
    native_s < own_s * (1.0 + MARGIN)
}

/// Weighs a plan at the largest size that was measured against the library's own broadcast.
pub(super) fn weigh(policy: &CompiledPolicy, members: &[Location], plan: &Routed) -> Result<Beyond> {
    let bytes = plan.shape.bytes;
    let row = policy.two_level(ROUTED, bytes).filter(|_| plan.groups.len() > 1 || plan.decided.is_some());
    // it was measured from rank 0, which is in the first group; from others another way may be taken
    let from_there = members[plan.shape.root].group == 0;
    let measured = row.filter(|_| from_there && policy.is_as_measured(ROUTED, members.len(), &placement(members)));
    let over_groups = measured.and_then(|row| Some((row.evidence.measured_s?, row.evidence.native_s?)));
    let (own_s, native_s) = match over_groups.or_else(|| inside(policy, members, plan)) {
        Some((own_s, native_s)) => (own_s, native_s),
        None => (predicted(policy, members, plan)?, libraries(policy, members, plan.shape)?),
    };
    // a plan that goes native anyway says so itself
    Ok(Beyond { measured_bytes: bytes, own_s, native_s: plan.native_s.unwrap_or(native_s) })
}

/// What was measured of both inside one group, where all of it is there and the library's own was the next best.
fn inside(policy: &CompiledPolicy, members: &[Location], plan: &Routed) -> Option<(f64, f64)> {
    let group = &policy.policy.groups[members[0].group];
    let positions = members.iter().map(|member| member.position);
    let whole = plan.groups.len() == 1 && policy.is_whole(members[0].group, positions) && members[plan.shape.root].position == 0;
    let evidence = &group.row(ROUTED, plan.shape.bytes).filter(|_| whole)?.evidence;
    let measured_s = evidence.measured_s.filter(|_| evidence.runner_up == ROUTED.native().name)?;
    Some((measured_s, measured_s * (1.0 + evidence.margin)))
}

fn predicted(policy: &CompiledPolicy, members: &[Location], plan: &Routed) -> Result<f64> {
    let Some(choice) = plan.decided else { return Ok(plan.predicted_s) };
    match seconds(policy, members, plan.shape.root, plan.shape.bytes, choice) {
        Err(Error::TooLarge(_)) => Ok(plan.predicted_s),
        found => found,
    }
}

/// The fastest of what MPI libraries run for large messages, over the ranks in their order.
fn libraries(policy: &CompiledPolicy, members: &[Location], shape: Shape) -> Result<f64> {
    let costs = PolyModel::new(policy, members, ROUTED, shape.bytes)?;
    let times = bcast::OF_LIBRARIES.iter().filter_map(|(a, radix)| a.schedule(&shape, &Parameters::of(0, *radix)));
    times.map(|schedule| completion(&schedule, &costs)).try_fold(f64::INFINITY, |best, t| Ok(t?.min(best)))
}
