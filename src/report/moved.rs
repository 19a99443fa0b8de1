//! What one policy says otherwise than another of hosts and links: who came, went or moved, and what became slower or faster.

use super::platform::bytes_per_s;
use super::tables::Table;
use super::{Block, Titled, picture::bits};
use crate::cluster::Bound;
use crate::policy::{CompiledPolicy, GroupPolicy, Policy, fold};
use crate::units;
use std::collections::BTreeMap;

/// A page has no room for more rows, and a row for more patterns of hosts.
const MOST: usize = 200;
const MOST_PATTERNS: usize = 12;

/// Hosts that are not where they were, and latencies and bandwidths that differ by more than those of hosts that are alike: by less they are called one network where groups
/// are found, and two runs of one tuning differ by as much.
pub(super) fn block(name: &str, old: &CompiledPolicy, new: &CompiledPolicy) -> Block {
    let counterparts = counterparts(&old.policy, &new.policy);
    let mut table = Table::new(&["what", "before", "now"]);
    let moved = moved(&mut table, (&old.policy, &new.policy), &counterparts);
    let (changed, compared) = changed(&mut table, (old, new), &counterparts);
    let left_out = table.rows.len().saturating_sub(MOST);
    table.rows.truncate(MOST);
    let more = if left_out > 0 { format!(" {left_out} rows more are not shown.") } else { String::new() };
    let words = format!(
        "Against {name}: {moved} hosts came, went or are elsewhere; of {compared} latencies and bandwidths (at 1 MiB) that both know, {changed} changed by more than {} times, \
         the most first. By less hosts are alike: two runs of one tuning differ by as much.{more}",
        Bound::default().ratio
    );
    if table.rows.is_empty() {
        return Block::Missing(words.replace(", the most first", ""));
    }
    Block::Table(Titled { title: "What changed of hosts and links".into(), words, table })
}

/// Of each old group the new one that is it: the one of its name, or where none is called so, that which has most of its hosts and no old name.
fn counterparts(old: &Policy, new: &Policy) -> Vec<Option<usize>> {
    let called = |policy: &Policy, name: &str| policy.groups.iter().position(|g| g.name == name);
    let alike = |group: &GroupPolicy, other: &GroupPolicy| other.hosts.iter().filter(|host| group.hosts.contains(host)).count();
    let renamed = |group: &GroupPolicy| {
        let others = new.groups.iter().enumerate().filter(|(_, other)| called(old, &other.name).is_none());
        others.map(|(k, other)| (alike(group, other), k)).filter(|(hosts, _)| *hosts > 0).max_by_key(|&(hosts, k)| (hosts, usize::MAX - k))
    };
    old.groups.iter().map(|group| called(new, &group.name).or_else(|| Some(renamed(group)?.1))).collect()
}

/// Where a host is: its group, whether it only stands in there for others, and its ranks.
type Place = (usize, bool, usize);

fn places(policy: &Policy) -> BTreeMap<&str, Place> {
    let mut all: BTreeMap<&str, Place> = BTreeMap::new();
    for (k, group) in policy.groups.iter().enumerate() {
        group.hosts.iter().for_each(|host| all.entry(host).or_insert((k, false, 0)).2 += 1);
    }
    for (k, group) in policy.groups.iter().enumerate() {
        for host in &group.also {
            all.entry(host).or_insert((k, true, 1));
        }
    }
    all
}

/// A row for hosts that went from one place to another one; gives how many hosts did.
fn moved(table: &mut Table, (old, new): (&Policy, &Policy), counterparts: &[Option<usize>]) -> usize {
    let (before, now) = (places(old), places(new));
    let words = |policy: &Policy, place: Option<&Place>| match place {
        None => "not there".to_string(),
        Some(&(group, stands_in, ranks)) => {
            let ranks = if ranks > 1 { format!(", {ranks} ranks each") } else { String::new() };
            policy.groups[group].name.clone() + if stands_in { ", standing in for its hosts" } else { "" } + &ranks
        }
    };
    let mut rows: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut hosts: Vec<&str> = before.keys().chain(now.keys()).copied().collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let (from, to) = (before.get(host), now.get(host));
        let stays = |a: &Place, b: &Place| counterparts[a.0] == Some(b.0) && (a.1, a.2) == (b.1, b.2);
        if !from.zip(to).is_some_and(|(a, b)| stays(a, b)) {
            rows.entry((words(old, from), words(new, to))).or_default().push(host.into());
        }
    }
    let count = rows.values().map(Vec::len).sum();
    for ((from, to), hosts) in rows {
        let patterns = fold(&hosts);
        let more = patterns.len().saturating_sub(MOST_PATTERNS);
        let more = if more > 0 { format!(" and {more} patterns more") } else { String::new() };
        let all = patterns[..patterns.len().min(MOST_PATTERNS)].join(", ");
        table.row([format!("host{} {all}{more}", if hosts.len() == 1 { "" } else { "s" }), from, to]);
    }
    count
}

/// A row for each latency and bandwidth that changed, the most first; gives how many did, of how many.
fn changed(table: &mut Table, (old, new): (&CompiledPolicy, &CompiledPolicy), counterparts: &[Option<usize>]) -> (usize, usize) {
    let bound = Bound::default();
    let mut rows: Vec<(f64, [String; 3])> = Vec::new();
    let mut compared = 0;
    let mut compare = |what: String, [before, now]: [Option<f64>; 2], words: fn(f64) -> String, limit: &dyn Fn(f64) -> f64| {
        let (Some(before), Some(now)) = (before, now) else { return };
        compared += 1;
        let (least, most) = (before.min(now), before.max(now));
        if most > limit(least) {
            rows.push((most / least, [what, words(before), format!("{}, {:.2} times as much", words(now), now / before)]));
        }
    };
    let groups = &old.policy.groups;
    for (group, k) in groups.iter().zip(counterparts).filter_map(|(group, k)| Some((group, (*k)?))) {
        let latencies = [group.latency_s, new.policy.groups[k].latency_s];
        compare(format!("latency inside {}", group.name), latencies, units::seconds, &|least| bound.limit(least));
    }
    let place = |policy: &Policy, name: &String| policy.groups.iter().position(|g| g.name == *name);
    let ends = |policy: &Policy, names: &[String; 2]| Some([place(policy, &names[0])?, place(policy, &names[1])?]);
    let latencies: BTreeMap<[usize; 2], f64> = (new.policy.links.iter())
        .filter_map(|link| ends(&new.policy, &link.between).map(|[a, b]| ([a.min(b), a.max(b)], link.latency_s)))
        .collect();
    for link in &old.policy.links {
        let Some([a, b]) = ends(&old.policy, &link.between) else { continue };
        let (Some(c), Some(d)) = (counterparts[a], counterparts[b]) else { continue };
        let Some(&latency_s) = latencies.get(&[c.min(d), c.max(d)]) else { continue };
        let names = link.between.join(" to ");
        compare(format!("latency of {names}"), [Some(link.latency_s), Some(latency_s)], units::seconds, &|least| bound.limit(least));
        let rates = [bytes_per_s(old, a, b), bytes_per_s(new, c, d)];
        compare(format!("bandwidth of {names}"), rates, bits, &|least| bound.ratio * least);
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let count = rows.len();
    rows.into_iter().for_each(|(_, row)| table.row(row));
    (count, compared)
}
