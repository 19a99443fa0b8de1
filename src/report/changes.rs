//! What one policy does otherwise than another.

use super::Titled;
use super::tables::Table;
use crate::collective::{COLLECTIVES, Collective};
use crate::policy::{Choice, PER_GROUP, Policy};
use crate::units;
use std::collections::BTreeSet;

/// A page has no room for more.
const MOST: usize = 400;

/// A row for each range of sizes in which something else is done.
pub(super) fn table(name: &str, old: &Policy, new: &Policy) -> Titled {
    let mut table = Table::new(&["collective", "among", "from", "before", "now"]);
    let groups: Vec<(String, Option<usize>, Option<usize>)> = {
        let place = |p: &Policy, name: &str| p.groups.iter().position(|g| g.name == name);
        let names: Vec<String> =
            new.groups.iter().chain(old.groups.iter().filter(|g| place(new, &g.name).is_none())).map(|g| g.name.clone()).collect();
        names.into_iter().map(|n| (n.clone(), place(old, &n), place(new, &n))).collect()
    };
    let (mut alike, mut left_out) = (0, 0);
    for collective in COLLECTIVES.iter().copied() {
        let mut places = vec![("all groups".to_string(), over_all(old, collective), over_all(new, collective))];
        let rows = |p: &Policy, g: Option<usize>| g.map_or(Vec::new(), |g| inside(p, g, collective));
        places.extend(groups.iter().map(|(name, a, b)| (name.clone(), rows(old, *a), rows(new, *b))));
        for (among, before, now) in places {
            let starts: BTreeSet<usize> = before.iter().chain(&now).map(|r| r.0).collect();
            let at = |rows: &[(usize, String)], bytes: usize| {
                rows.iter().rev().find(|r| r.0 <= bytes).map_or("no row".to_string(), |r| r.1.clone())
            };
            let mut last = None;
            for bytes in starts {
                let pair = (at(&before, bytes), at(&now, bytes));
                if pair.0 == pair.1 {
                    alike += 1;
                } else if last.as_ref() != Some(&pair) {
                    if table.rows.len() < MOST {
                        table.row([collective.name.to_string(), among.clone(), units::bytes(bytes), pair.0.clone(), pair.1.clone()]);
                    } else {
                        left_out += 1;
                    }
                }
                last = Some(pair);
            }
        }
    }
    let more = if left_out > 0 { format!(" {left_out} more are not shown.") } else { String::new() };
    let words = format!("Against {name}: {} ranges of sizes are done otherwise, {alike} alike.{more}", table.rows.len() + left_out);
    Titled { title: "What changed".into(), words, table }
}

fn over_all(policy: &Policy, collective: &'static Collective) -> Vec<(usize, String)> {
    let words = |r: &crate::policy::TwoLevelRow| {
        if r.native {
            return "the library's own".to_string();
        }
        let inside = match r.intra_group.as_deref() {
            Some(PER_GROUP) => " with whole messages, inside as each group is best".into(),
            Some(inside) => {
                let rest = rest(&[("radix", r.intra_radix), ("under way", r.intra_in_flight), ("to at once", r.intra_peers.unwrap_or(0))]);
                format!(" and {inside}{}{rest}", in_segments(r.intra_segment_bytes, 0))
            }
            None => String::new(),
        };
        let between = format!("{}{}", in_segments(r.segment_bytes, r.in_flight), rest(&[("radix", r.radix), ("to at once", r.peers)]));
        format!("{}{between}{inside}{}", r.inter_group, if r.by_speed { ", by speed" } else { "" })
    };
    policy.two_level(collective).iter().map(|r| (r.from_bytes, words(r))).collect()
}

fn inside(policy: &Policy, group: usize, collective: &'static Collective) -> Vec<(usize, String)> {
    let words = |r: &Choice| {
        let rest = rest(&[("radix", r.radix), ("to at once", r.peers)]);
        format!("{}{}{rest}{}", r.algorithm, in_segments(r.segment_bytes, r.in_flight), if r.by_speed { ", by speed" } else { "" })
    };
    policy.groups[group].rows(collective).iter().map(|r| (r.from_bytes, words(r))).collect()
}

/// What else a row says, of what is not 0.
fn rest(all: &[(&str, usize)]) -> String {
    all.iter().filter(|(_, value)| *value > 0).map(|(name, value)| format!(", {name} {value}")).collect()
}

fn in_segments(segment: usize, window: usize) -> String {
    match (segment, window) {
        (0, _) => String::new(),
        (segment, 0) => format!(" in {}", units::bytes(segment)),
        (segment, window) => format!(" in {} ×{window}", units::bytes(segment)),
    }
}
