//! `collwise explain`

use super::algorithm::CollectiveArgs;
use super::reasons::{Chosen, Reasons, larger_than_measured, next_best, no_row, of_crossing, of_row, share_hosts, too_long};
use super::table::{GROUPS_ON_A_SCREEN, percent, table};
use super::terminal::{heat, shows_pictures, tree};
use super::{Outcome, print, print_json};
use crate::collective::{Collective, Shape, bcast};
use crate::intercluster::{Job, Sent, gantt};
use crate::plan::{Flow, Location, OWN, Plan, Routed, everybody, members, plan};
use crate::policy::{CompiledPolicy, Policy};
use crate::report::first_tree;
use crate::topology::Declared;
use crate::two_level::{InterGroup, InterGroupAlgorithm, Near};
use crate::units;
use anyhow::ensure;
use std::fmt::Write;
use std::path::PathBuf;

/// Say what would run for a size, and why.
#[derive(clap::Args)]
pub struct Args {
    /// The policy.
    policy: PathBuf,
    /// Size of the message, such as 512KiB; without it, what is done at all sizes is shown, in short.
    #[arg(long, value_parser = units::parse_bytes)]
    bytes: Option<usize>,
    #[command(flatten)]
    collective: CollectiveArgs,
    /// The root, as a rank of all the policy's ranks group by group, or of --hosts.
    #[arg(long, default_value_t = 0)]
    root: usize,
    /// For ranks on these hosts, a line HOST for each, instead of all the policy's ranks; `collwise check --hosts` says where they are placed.
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Show all groups, where they are many, and why each does what it does.
    #[arg(long)]
    verbose: bool,
    /// Print no pictures, which only a terminal gets.
    #[arg(long)]
    plain: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let compiled = CompiledPolicy::new(Policy::read(&args.policy)?)?;
    let collective = args.collective.collective;
    let members = match &args.hosts {
        Some(file) => {
            let hosts = Declared::read(file)?.hosts;
            let members = members(&compiled.policy, &hosts)?;
            share_hosts(&compiled.policy, &hosts, &members).iter().for_each(|warning| eprintln!("collwise: warning: {warning}"));
            members
        }
        None => everybody(&compiled.policy),
    };
    ensure!(!members.is_empty(), "explain what ranks do: the file of hosts lists none");
    args.collective.check_root(args.root)?;
    match args.bytes {
        given if !collective.sized() => {
            args.collective.sizes(given.as_slice())?;
            one_size(args, &compiled, &members, 0)?;
        }
        Some(bytes) => one_size(args, &compiled, &members, bytes)?,
        None => {
            // where there are no rows nothing is planned that would say it
            ensure!(args.root < members.len(), "plan {} from rank {} of {} ranks", collective.one(), args.root, members.len());
            let classes = classes(&compiled, &members, collective, args.root)?;
            if classes.is_empty() {
                return without_rows(args);
            }
            if args.json { print_json(&classes)? } else { print(&short(&compiled, &members, (collective, args.root), &classes)?)? }
        }
    }
    Ok(Outcome::Done)
}

/// What is done with all sizes where the policy has no rows.
fn without_rows(args: &Args) -> anyhow::Result<Outcome> {
    let collective = args.collective.collective;
    if args.json {
        let done = format!("{OWN}: {}", no_row(collective));
        print_json(&[serde_json::json!({ "from_bytes": 0, "at_bytes": null, "predicted_s": null, "done": done })])?;
    } else {
        print(&format!("{OWN}\n  {}\n", no_row(collective)))?;
    }
    Ok(Outcome::Done)
}

/// What is done in a class of sizes.
#[derive(serde::Serialize)]
pub struct Class {
    from_bytes: usize,
    at_bytes: usize,
    predicted_s: Option<f64>,
    done: String,
}

/// All sizes, in short. What is larger than any that a row was made at is a class where something else is done there.
///
/// # Errors
/// A policy by which nothing can be planned.
pub fn classes(
    compiled: &CompiledPolicy,
    members: &[Location],
    collective: &'static Collective,
    root: usize,
) -> anyhow::Result<Vec<Class>> {
    let class = |(from_bytes, at_bytes): (usize, usize)| {
        let (predicted_s, done) = of_size(compiled, members, (collective, root), at_bytes)?;
        Ok(Class { from_bytes, at_bytes, predicted_s, done })
    };
    let mut all = compiled.policy.size_classes(collective).into_iter().map(class).collect::<anyhow::Result<Vec<Class>>>()?;
    if let Some(largest) = all.last().map(|last| last.at_bytes).filter(|_| collective.sized()) {
        let above = class((largest.saturating_add(1), largest.saturating_mul(2)))?;
        if all.last().is_some_and(|last| last.done != above.done) {
            all.push(above);
        }
    }
    Ok(all)
}

/// What a size takes, as far as is known, and how it is done.
fn of_size(
    compiled: &CompiledPolicy,
    members: &[Location],
    (collective, root): (&'static Collective, usize),
    bytes: usize,
) -> anyhow::Result<(Option<f64>, String)> {
    let plan = plan(compiled, members, collective, &collective.shape(members.len(), root, bytes))?;
    Ok((plan.predicted_s, plan.words()))
}

/// A table of more lines than this is not short: what differs in its segments alone is one way then, as on networks where losses hang on sizes.
const SHORT: usize = 20;

/// The words for what is done without its segment, and the segment.
fn without_segment(done: &str) -> (&str, Option<&str>) {
    let cut = done
        .rmatch_indices(" in ")
        .map(|(at, word)| (at, at + word.len()))
        .find(|&(_, end)| done[end..].starts_with(|c: char| c.is_ascii_digit()));
    cut.map_or((done, None), |(at, end)| (&done[..at], Some(&done[end..])))
}

/// The size of segments alone: where that differs, so does how many are under way.
fn segment(done: &str) -> Option<&str> {
    without_segment(done).1?.split(", ").next()
}

/// A line for each way, with the sizes from which it is taken and up to which, and what both take; beyond all rows, what the largest that was looked at
/// takes.
pub fn short(
    compiled: &CompiledPolicy,
    members: &[Location],
    of: (&'static Collective, usize),
    classes: &[Class],
) -> anyhow::Result<String> {
    let mut chunks: Vec<&[Class]> = classes.chunk_by(|a, b| a.done == b.done).collect();
    if chunks.len() > SHORT {
        chunks = classes.chunk_by(|a, b| without_segment(&a.done).0 == without_segment(&b.done).0).collect();
    }
    let words = |alike: &[Class]| {
        let (first, last) = (&alike[0].done, &alike[alike.len() - 1].done);
        let joined = || Some((segment(first)?, segment(last)?));
        let segments = joined().filter(|(first, last)| first != last).map(|(first, last)| format!(" in {first} to {last}"));
        segments.map_or_else(|| first.clone(), |segments| without_segment(first).0.to_string() + &segments)
    };
    let row = |(k, alike): (usize, &&[Class])| {
        let (first, last) = (&alike[0], &alike[alike.len() - 1]);
        let up_to = chunks.get(k + 1).map(|next| next[0].from_bytes.saturating_sub(1));
        let (takes, _) = of_size(compiled, members, of, first.from_bytes)?;
        let to = up_to.map_or(Ok(last.predicted_s), |bytes| of_size(compiled, members, of, bytes).map(|(to, _)| to))?;
        Ok(vec![units::bytes(first.from_bytes), up_to.map_or("-".into(), units::bytes), words(alike), or_dash(takes), or_dash(to)])
    };
    let rows = chunks.iter().enumerate().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(table(&["from", "up to", "what is done", "takes", "to"], 3, &rows))
}

/// What the smallest and the largest size that was looked at take, and in how many ways all are done.
pub fn span(classes: &[Class]) -> String {
    let kinds = classes.chunk_by(|a, b| a.done == b.done).count();
    let end = |class: &Class| format!("{} at {}", or_dash(class.predicted_s), units::bytes(class.at_bytes));
    match classes {
        [] => "nothing is known".into(),
        [only] => format!("{}, takes {}", only.done, end(only)),
        [first, .., last] if kinds == 1 => format!("{} to {}, all by {}", end(first), end(last), first.done),
        [first, .., last] => format!("{} to {}, in {kinds} ways", end(first), end(last)),
    }
}

/// A time, if it is known.
pub fn or_dash(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), units::seconds)
}

/// What is done for a size.
fn one_size(args: &Args, compiled: &CompiledPolicy, members: &[Location], bytes: usize) -> anyhow::Result<()> {
    let collective = args.collective.collective;
    let plan = plan(compiled, members, collective, &collective.shape(members.len(), args.root, bytes))?;
    if let Some(routed) = plan.routed() {
        return if args.json {
            print_json(&json(&compiled.policy, &plan, routed))
        } else {
            print(&text(&compiled.policy, &plan, routed, args.verbose)?)?;
            if shows_pictures(args.plain) { print(&pictures(compiled, members, (collective, args.root), bytes)?) } else { Ok(()) }
        };
    }
    let Reasons { runner_up, margin, native_s, text } = Reasons::of(compiled, members, collective, bytes, &plan);
    if args.json {
        return print_json(&serde_json::json!({
            "collective": collective.name, "bytes": bytes, "ranks": members.len(), "predicted_s": plan.predicted_s, "form": plan.words(),
            "native": plan.is_native(), "from_row": plan.from_row, "runner_up": runner_up, "margin": margin, "native_s": native_s,
        }));
    }
    let size = if collective.sized() { format!(" of {}", units::bytes(bytes)) } else { String::new() };
    let ranks = members.len();
    print(&format!("{}{size} of {ranks} ranks: {}\n{}\n{text}", collective.name, or_dash(plan.predicted_s), plan.words()))?;
    if shows_pictures(args.plain) { print(&pictures(compiled, members, (collective, args.root), bytes)?) } else { Ok(()) }
}

/// A tree of more ranks is drawn by groups.
const RANKS_IN_A_TREE: usize = 24;

/// The platform and the schedule, as a terminal can show them.
fn pictures(compiled: &CompiledPolicy, members: &[Location], of: (&'static Collective, usize), bytes: usize) -> anyhow::Result<String> {
    let policy = &compiled.policy;
    let groups: Vec<(&str, usize)> = policy.groups.iter().map(|g| (g.name.as_str(), g.hosts.len())).collect();
    let seconds = |a: usize, b: usize| if a == b { policy.groups[a].latency_s } else { policy.link(a, b).map(|l| l.latency_s) };
    let branches = first_tree(compiled, members, of, bytes, RANKS_IN_A_TREE)?;
    Ok(format!("\n{}\n{}", heat(&groups, seconds), tree(&branches)))
}

/// The plan as JSON.
fn json(policy: &Policy, plan: &Plan, routed: &Routed) -> serde_json::Value {
    let name = |k: usize| policy.groups[routed.groups[k].group].name.clone();
    let groups: Vec<_> = routed
        .groups
        .iter()
        .enumerate()
        .map(|(k, g)| {
            let d = g.decision.as_ref();
            serde_json::json!({
                "group": name(k), "ranks": routed.two_level.groups[k].len(), "coordinator": routed.two_level.groups[k][0],
                "algorithm": d.map(|d| d.algorithm.name), "segment_bytes": d.map(|d| d.parameters.segment),
                "radix": d.map(|d| d.parameters.radix), "in_flight": d.map(|d| d.parameters.in_flight), "peers": d.map(|d| d.parameters.peers), "by_speed": d.map(|d| d.parameters.by_speed), "model": d.map(|d| &d.model),
                "predicted_s": d.map(|d| d.predicted_s), "estimated_by": d.map(|d| &d.estimated_by), "runner_up": d.map(|d| &d.runner_up), "margin": d.map(|d| d.margin),
            })
        })
        .collect();
    let solution = routed.schedule_between.as_ref().map(|(_, s)| s);
    let timed = |s: &Sent| serde_json::json!({ "from": name(s.from), "to": name(s.to), "start_s": s.start_s, "arrive_s": s.arrive_s });
    let sends: Vec<_> = match (solution, &routed.two_level.inter_group) {
        (Some(s), _) => s.best.sends.iter().map(timed).collect(),
        (None, InterGroup::Tree(jobs)) => jobs
            .iter()
            .filter_map(|j| {
                if let Job::Send { from, to } = j { Some(serde_json::json!({ "from": name(*from), "to": name(*to) })) } else { None }
            })
            .collect(),
        (None, InterGroup::Relay) => Vec::new(),
        (None, InterGroup::Line(order)) => {
            order.windows(2).map(|pair| serde_json::json!({ "from": name(pair[0]), "to": name(pair[1]) })).collect()
        }
    };
    serde_json::json!({
        "collective": plan.form.collective().name, "ranks": routed.shape.ranks, "form": plan.words(),
        "bytes": routed.shape.bytes, "root": routed.shape.root, "predicted_s": plan.predicted_s, "native": plan.is_native(), "native_s": routed.native_s,
        "from_row": (routed.groups.len() > 1 || routed.decided.is_some()).then_some(routed.from_row),
        "measured_up_to_bytes": routed.beyond.map(|b| b.measured_bytes),
        "inter_group": routed.decided.map(|w| w.inter_group.name()), "segment_bytes": routed.choice().map(|w| w.segment),
        "in_flight": routed.choice().map(|w| w.flow.in_flight), "in_flight_near": routed.two_level.near.iter().map(|near| near.in_flight).collect::<Vec<_>>(), "peers": routed.choice().map(|w| w.flow.peers), "by_speed": routed.choice().map(|w| w.by_speed),
        "intra_group": routed.decided.map(|_| routed.two_level.intra_group[0].algorithm),
        "heuristic": solution.map(|s| s.heuristic), "sends": sends, "groups": groups,
    })
}

fn text(policy: &Policy, plan: &Plan, routed: &Routed, verbose: bool) -> anyhow::Result<String> {
    let mut out = String::new();
    if routed.untuned {
        let Shape { bytes, root, ranks, .. } = routed.shape;
        writeln!(out, "broadcast of {} from rank {root} to {ranks} ranks: -\n{OWN}", units::bytes(bytes))?;
        writeln!(out, "  {}", no_row(&bcast::COLLECTIVE))?;
        return Ok(out);
    }
    let name = |k: usize| policy.groups[routed.groups[k].group].name.clone();
    writeln!(
        out,
        "broadcast of {} from rank {} to {} ranks: {}",
        units::bytes(routed.shape.bytes),
        routed.shape.root,
        routed.shape.ranks,
        or_dash(plan.predicted_s)
    )?;
    if let Some(beyond) = &routed.beyond {
        out += &larger_than_measured(beyond.measured_bytes, beyond.own_s, beyond.native_s);
    }
    if routed.native_s.is_some() {
        writeln!(out, "the MPI library's own broadcast over all ranks is used")?;
    }
    if plan.too_long {
        writeln!(out, "{}", too_long())?;
    }
    let crosses = routed.groups.len() > 1 || routed.decided.is_some();
    let row = policy.two_level(&bcast::COLLECTIVE).iter().rev().find(|r| r.from_bytes <= routed.shape.bytes).filter(|_| crosses);
    if let Some(row) = row {
        let crosses = routed.decided.map_or("\nthe whole message, inside each group as it is best there\n".into(), |choice| {
            crossing(routed, choice.inter_group, &name)
        });
        out += &(crosses + &of_crossing(routed, row.at_bytes, &row.evidence));
    }
    if routed.decided.is_some() {
        return Ok(out);
    }
    let (groups, brief) = (routed.groups.len(), !verbose && routed.groups.len() > GROUPS_ON_A_SCREEN);
    if brief {
        out.push('\n');
    }
    for k in 0..if brief { GROUPS_ON_A_SCREEN } else { groups } {
        let (done, why) = inside(policy, routed, k, &name(k));
        out += &if brief { done } else { format!("\n{done}{why}") };
    }
    if brief {
        writeln!(out, "and {} more groups, which --verbose lists", groups - GROUPS_ON_A_SCREEN)?;
    }
    if let Some((problem, solution)) = &routed.schedule_between {
        let names: Vec<String> = (0..routed.groups.len()).map(name).collect();
        writeln!(out, "\nbetween the groups ({}):\n{}", solution.heuristic, gantt(problem, &solution.best, &names))?;
    }
    Ok(out)
}

/// What is done inside a group, in a line, and why, in more.
fn inside(policy: &Policy, routed: &Routed, k: usize, name: &str) -> (String, String) {
    let (g, ranks) = (&routed.groups[k], routed.two_level.groups[k].len());
    let Some(d) = &g.decision else { return (format!("{name}: one rank, nothing to do inside\n"), String::new()) };
    let segment = if d.parameters.segment > 0 { format!(" in segments of {}", units::bytes(d.parameters.segment)) } else { String::new() };
    let radix = if d.parameters.radix > 0 { format!(" of radix {}", d.parameters.radix) } else { String::new() };
    let in_flight = under_way(d.parameters.in_flight, d.parameters.peers);
    let by_speed = if d.parameters.by_speed { BY_SPEED } else { "" };
    // what stands in between is closed by a comma
    let comma = if in_flight.is_empty() { "" } else { "," };
    let (algorithm, takes) = (d.algorithm.name, units::seconds(d.predicted_s));
    let done = format!("{name}: {algorithm}{radix}{segment}{in_flight}{comma} over {ranks} ranks{by_speed}: {takes}\n");
    if d.algorithm.is_native() && policy.groups[g.group].models.is_empty() {
        let estimate = d.estimated_by.as_ref().map(|other| format!(", its time estimated by the link to {other}")).unwrap_or_default();
        return (done, format!("  this group was measured with one rank: what several do is left to the MPI library{estimate}\n"));
    }
    let error = policy.groups[g.group].scores.iter().find(|s| s.collective == d.collective && s.model == d.model).and_then(|s| s.error);
    let error = error.map(|e| format!(", which errs by {} on what it was not fitted to", percent(e))).unwrap_or_default();
    let mut why = format!("  by model {}{error}\n", d.model);
    why += &of_row(policy, g.group, d, routed.shape.bytes);
    why += &next_best(&d.runner_up, d.margin, Chosen::of(policy, g.group, d, routed.shape.bytes));
    if !d.from_row {
        why += &format!("  computed from the models: no row is for {ranks} ranks\n");
    }
    (done, why)
}

/// Who has which place, if not all are in their order.
const BY_SPEED: &str = ", the fastest processors where most is sent";

/// How segments cross the groups.
fn crossing(routed: &Routed, inter_group: InterGroupAlgorithm, name: &impl Fn(usize) -> String) -> String {
    let h = &routed.two_level;
    let (segment, flow) = routed.choice().map_or((0, Flow::default()), |w| (w.segment, w.flow));
    let by_speed = routed.decided.is_some_and(|w| w.by_speed);
    let segments = if segment == 0 { 1 } else { h.bytes.div_ceil(segment).max(1) };
    let over_all = inter_group == InterGroupAlgorithm::OverAll;
    let pieces = if segments > 1 {
        format!(
            "{segments} segments of {}{}{}",
            units::bytes(segment),
            under_way(flow.in_flight, flow.peers),
            between_near_ranks(&h.near, flow.in_flight > 0)
        )
    } else {
        "one piece".into()
    };
    if over_all {
        let order = if by_speed { BY_SPEED } else { ", group after group" };
        return format!("\n{} over all {} ranks{order}, in {pieces}\n", h.intra_group[0].algorithm.name, routed.shape.ranks);
    }
    let by_speed = if by_speed { BY_SPEED } else { "" };
    let inside = h.intra_group[0].algorithm.name;
    let mut out = format!("\n{} between groups, in {pieces}; inside every group: {inside}{by_speed}\n", inter_group.name());
    match &h.inter_group {
        InterGroup::Line(order) => {
            let names: Vec<String> = order.iter().map(|&k| name(k)).collect();
            out += &format!("  one chain through all ranks of {}\n", names.join(", then "));
        }
        InterGroup::Relay => {
            out += &format!("  {} deals the segments out to the other {} groups", name(0), h.groups.len() - 1);
            out += ", and each passes its share on to the rest\n";
        }
        InterGroup::Tree(jobs) => {
            for (k, _) in h.groups.iter().enumerate() {
                let to = |job: &Job| match job {
                    Job::Send { from, to } if *from == k => Some(name(*to)),
                    _ => None,
                };
                let to: Vec<String> = jobs.iter().filter_map(to).collect();
                if !to.is_empty() {
                    let to: Vec<String> = to.chunk_by(|a, b| a == b).map(|part| times(part.len(), &part[0])).collect();
                    out += &format!("  {} sends to {}\n", name(k), to.join(", "));
                }
            }
        }
    }
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (k, ranks) in h.groups.iter().enumerate() {
        match counts.iter_mut().find(|c| c.0 == name(k)) {
            Some(c) => c.1 += ranks.len(),
            None => counts.push((name(k), ranks.len())),
        }
    }
    let counts: Vec<String> = counts.into_iter().map(|(name, ranks)| format!("{name} {ranks}")).collect();
    out + &format!("  ranks: {}\n", counts.join(", "))
}

/// How many messages are under way to each peer, and to how many peers, if that is held back.
fn under_way(in_flight: usize, peers: usize) -> String {
    match (in_flight, peers) {
        (0, 0) => String::new(),
        (0, peers) => format!(", to {peers} at a time"),
        (in_flight, 0) => format!(", {in_flight} under way to each peer"),
        (in_flight, peers) => format!(", {in_flight} under way to each peer, to {peers} at a time"),
    }
}

/// Where fewer are, since links are short.
fn between_near_ranks(near: &[Near], said: bool) -> String {
    let under_way = if said { "" } else { " under way" };
    match near {
        [] => String::new(),
        [nearest] => format!(", {}{under_way} between ranks that are near", nearest.in_flight),
        [nearest, .., farther] => format!(", {} to {}{under_way} between ranks that are near", nearest.in_flight, farther.in_flight),
    }
}

/// A group that hears the message in one place, or in several.
fn times(places: usize, name: &str) -> String {
    if places == 1 { name.into() } else { format!("{places} ranks of {name}") }
}
