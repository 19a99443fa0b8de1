//! What messages share on their way, and a replay does not know: the port that they come in by, and the link between two groups.

use super::{Location, PolyModel};
use crate::error::Result;
use crate::model::CostModel;
use crate::predict::completion;
use crate::schedule::{Action, Schedule};
use crate::topology::{FAR_S, Link, Rank};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// When all bytes of some messages are through something that carries one at a time, at the earliest.
#[derive(Debug, Clone, Copy)]
struct Passage {
    /// Until the first one is there, but for its bytes.
    latency: f64,
    bytes: f64,
}

impl Passage {
    fn add(passage: Option<Passage>, latency: f64, bytes: f64) -> Option<Passage> {
        Some(passage.map_or(Passage { latency, bytes }, |p| Passage { latency: p.latency.min(latency), bytes: p.bytes + bytes }))
    }
}

/// What a schedule takes: as replayed, but no less than all bytes need that come in by one port, or cross between two far groups.
///
/// # Errors
/// As [`completion`].
pub fn seconds(schedule: &Schedule, members: &[Location], costs: &PolyModel) -> Result<f64> {
    let mut known: FxHashMap<(Rank, Rank, usize), [f64; 4]> = FxHashMap::default();
    // links between groups alike to all of their ranks are asked about once
    let mut first_of: FxHashMap<usize, Rank> = FxHashMap::default();
    let firsts: Vec<Rank> = members.iter().enumerate().map(|(rank, m)| *first_of.entry(m.group).or_insert(rank)).collect();
    let mut ports: Vec<Option<Passage>> = vec![None; members.len()];
    let mut links: FxHashMap<(usize, usize), Option<Passage>> = FxHashMap::default();
    for (from, program) in schedule.programs.iter().enumerate() {
        for action in program.actions() {
            let Action::Send { to, span } = action else { continue };
            let far = firsts[from] != firsts[to];
            let key = if far { (firsts[from], firsts[to], span.len) } else { (from, to, span.len) };
            let [latency, port, line, line_latency] = match known.entry(key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let (link, back) = (Link { from: key.0, to: key.1 }, Link { from: key.1, to: key.0 });
                    let (there, none) = (costs.cost(link, span.len), costs.cost(link, 0));
                    // a port takes in as it sends out
                    let port = (costs.cost(back, span.len).gap - costs.cost(back, 0).gap).max(0.0);
                    let line = (there.gap.max(there.link_gap) - none.gap.max(none.link_gap)).max(0.0);
                    *new.insert([(there.transit - port).max(0.0), port, line, (there.transit - line).max(0.0)])
                }
            };
            ports[to] = Passage::add(ports[to], latency, port);
            if far && line_latency >= FAR_S {
                let link = links.entry((firsts[from], firsts[to])).or_default();
                *link = Passage::add(*link, line_latency, line);
            }
        }
    }
    let shared = ports.into_iter().chain(links.into_values()).flatten().map(|p| p.latency + p.bytes);
    Ok(shared.fold(completion(schedule, costs)?, f64::max))
}
