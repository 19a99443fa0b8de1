//! Why what is done is done, in words.

use super::table::{percent, percent_or_dash};
use crate::collective::{Collective, bcast};
use crate::plan::{LONGEST_MESSAGE, Location, Plan, Routed};
use crate::policy::{Choice, CompiledPolicy, Decision, Evidence, GroupPolicy, NO_OTHER, Policy, TwoLevelRow};
use crate::units;
use std::collections::BTreeSet;

/// How what is taken was chosen.
#[derive(Clone, Copy)]
pub enum Chosen {
    /// It is the library's own.
    Native,
    /// Where messages are lost: by the mean of all runs.
    InTheMean,
    /// By the median of the runs that decide, or by prediction.
    Fastest,
}

impl Chosen {
    /// Of what was decided in a group.
    pub fn of(policy: &Policy, group: usize, d: &Decision, bytes: usize) -> Chosen {
        let group = &policy.groups[group];
        let irregular = || group.losses.is_some() || group.row(d.collective, bytes).is_some_and(Choice::is_irregular);
        match d {
            _ if d.algorithm.is_native() => Chosen::Native,
            _ if d.from_row && irregular() => Chosen::InTheMean,
            _ => Chosen::Fastest,
        }
    }
}

/// What would be done next, and how far behind it was; nothing where no other was looked at.
pub fn next_best(runner_up: &str, margin: f64, chosen: Chosen) -> String {
    if runner_up == NO_OTHER {
        return String::new();
    }
    let faster = percent(-margin);
    let behind = match chosen {
        _ if margin >= 0.0 => format!("slower by {}", percent_or_dash(Some(margin))),
        Chosen::Native => {
            format!("faster by {faster} alone, but not clearly, or not where calls follow each other: the library's own is preferred")
        }
        Chosen::InTheMean => {
            format!("faster by {faster} in the median of its runs, not in their mean, which decides where messages are lost")
        }
        Chosen::Fastest => format!("faster by {faster} in its runs, but not in those that decided"),
    };
    format!("  next best: {runner_up}, {behind}\n")
}

/// Why everybody calls the library's own although something else was chosen for the class of a size.
pub fn too_long() -> String {
    let most = units::bytes(LONGEST_MESSAGE + 1);
    format!("a message of ours might be as long as {most}, which MPI does not count: the MPI library's own is used")
}

/// Where a policy knows nothing of a collective.
pub fn no_row(collective: &Collective) -> String {
    format!("the policy has no row for it: tune it with --collectives {}", collective.name)
}

/// Why what is planned has no messages to replay, if it has none.
pub fn not_replayed(plan: &Plan, collective: &Collective) -> Option<String> {
    match plan.predicted_s {
        _ if plan.too_long => Some(too_long()),
        _ if !plan.form.has_native() => None,
        Some(_) if !plan.form.is_native() => Some("the MPI library's own is part of it, which has no messages to replay".into()),
        Some(_) => Some(format!("the MPI library's own {} has no messages to replay", collective.name)),
        None => Some(no_row(collective)),
    }
}

/// What is taken of ranks that share a host, in groups that were measured with one on each.
pub fn share_hosts(policy: &Policy, hosts: &[String], members: &[Location]) -> Vec<String> {
    let alone = |group: &&GroupPolicy| group.hosts.len() > 1 && BTreeSet::from_iter(&group.hosts).len() == group.hosts.len();
    let shared = |of: usize| {
        let mut known = BTreeSet::new();
        hosts.iter().zip(members).filter(|(_, at)| at.group == of).any(|(host, _)| !known.insert(host))
    };
    let groups = policy.groups.iter().enumerate().filter(|(of, group)| alone(group) && shared(*of));
    let words = |(_, group): (usize, &GroupPolicy)| {
        format!(
            "hosts of \"{}\" have several ranks, and it was measured with one on each: what they send each other is taken to go over its network; \
             tune it with as many ranks on a host as programs have",
            group.name
        )
    };
    groups.map(words).collect()
}

/// What is left out where an algorithm is looked at alone.
pub const FREE_WORK: &str =
    "collwise: copying and combining are taken to be free: of an algorithm alone nobody says what they take, a policy does";

/// Where the policy has rows, but none that was made from such a root, or among such ranks.
pub fn not_as_measured(collective: &Collective) -> String {
    let made = if collective.rooted { "from rank 0, among" } else { "among" };
    format!("  chosen by prediction: the policy's row for it was made {made} all its ranks, in their order\n")
}

/// What a row was predicted to take at the size it was made at, and what it took.
fn predicted_and_measured(at_bytes: usize, e: &Evidence) -> String {
    let measured = e.measured_s.map_or("not measured".into(), |t| format!("measured {}", units::seconds(t)));
    format!("  at {}: predicted {}, {measured}\n", units::bytes(at_bytes), units::seconds(e.predicted_s))
}

/// The same of the row that a group's decision comes from; nothing of the library's own, which is not predicted.
pub fn of_row(policy: &Policy, group: usize, d: &Decision, bytes: usize) -> String {
    let row = policy.groups[group].row(d.collective, bytes).filter(|_| d.from_row && !d.algorithm.is_native());
    row.map(|row| predicted_and_measured(row.at_bytes, &row.evidence)).unwrap_or_default()
}

/// Why a broadcast crosses groups so.
pub fn of_crossing(plan: &Routed, at_bytes: usize, e: &Evidence) -> String {
    if !plan.from_row {
        return not_as_measured(&bcast::COLLECTIVE);
    }
    let mut out = predicted_and_measured(at_bytes, e);
    out += &next_best(&e.runner_up, e.margin, Chosen::Fastest);
    if let Some(t) = e.native_s {
        out += &format!("  the MPI library's own broadcast over all ranks: {}\n", units::seconds(t));
    }
    out
}

/// Of a message larger than any that were measured: what both take at the largest size.
pub fn larger_than_measured(largest: usize, own_s: f64, native_s: f64) -> String {
    let (largest, own, native) = (units::bytes(largest), units::seconds(own_s), units::seconds(native_s));
    format!("larger than the {largest} that were measured: there the policy's way takes {own}, the MPI library's own {native}\n")
}

/// What a form that was chosen rests on: the next best, how much longer that takes, and what the library's own takes over all ranks.
#[derive(Default)]
pub struct Reasons {
    pub runner_up: Option<String>,
    pub margin: Option<f64>,
    pub native_s: Option<f64>,
    /// In words.
    pub text: String,
}

impl Reasons {
    /// Of a plan for messages of this size among these ranks.
    pub fn of(compiled: &CompiledPolicy, members: &[Location], collective: &'static Collective, bytes: usize, plan: &Plan) -> Reasons {
        let group = members[0].group;
        let row = compiled.policy.groups[group].row(collective, bytes);
        if plan.too_long {
            return Reasons { text: format!("  {}\n", too_long()), ..Reasons::default() };
        }
        if let Some(d) = &plan.decision {
            let computed = if d.from_row {
                String::new()
            } else if row.is_some() {
                not_as_measured(collective)
            } else {
                "  computed from the models: the policy has no row for it\n".into()
            };
            let next = next_best(&d.runner_up, d.margin, Chosen::of(&compiled.policy, group, d, bytes));
            let text = of_row(&compiled.policy, group, d, bytes) + &next + &computed;
            return Reasons { runner_up: Some(d.runner_up.clone()), margin: Some(d.margin), native_s: None, text };
        }
        if let Some(next) = plan.next.as_ref().filter(|_| members.iter().all(|m| m.group == group)) {
            let of_processors =
                "  chosen by prediction: the group's processors differ, and what all ranks do alike waits for the slowest\n";
            let text = next_best(&next.words, next.margin, Chosen::Fastest) + of_processors;
            return Reasons { runner_up: Some(next.words.clone()), margin: Some(next.margin), native_s: None, text };
        }
        match compiled.two_level(collective, bytes) {
            Some(row) if bytes > row.at_bytes && compiled.policy.two_level(collective).last() == Some(row) => Reasons::above(row, plan),
            Some(row) if plan.from_row => {
                let e = &row.evidence;
                let native = e.native_s.map(|t| format!("  the MPI library's own over all ranks: {}\n", units::seconds(t)));
                let text = next_best(&e.runner_up, e.margin, Chosen::Fastest) + &native.unwrap_or_default();
                Reasons { runner_up: Some(e.runner_up.clone()), margin: Some(e.margin), native_s: e.native_s, text }
            }
            Some(_) => Reasons { text: not_as_measured(collective), ..Reasons::default() },
            None if plan.form.is_native() => Reasons { text: format!("  {}\n", no_row(collective)), ..Reasons::default() },
            None => Reasons { text: "  computed from the models: the policy has no row for it\n".into(), ..Reasons::default() },
        }
    }

    /// Of a message larger than any that were measured over groups, the largest of them being that of a row.
    fn above(row: &TwoLevelRow, plan: &Plan) -> Reasons {
        let e = &row.evidence;
        let (largest, own_s) = (row.at_bytes, e.measured_s.unwrap_or(e.predicted_s));
        let measured = match e.native_s {
            Some(native_s) => larger_than_measured(largest, own_s, native_s),
            None => format!("larger than the {} that were measured\n", units::bytes(largest)),
        };
        let predicted = if plan.from_row { "" } else { "  chosen by prediction\n" };
        Reasons { native_s: e.native_s, text: format!("  {measured}{predicted}"), ..Reasons::default() }
    }
}
