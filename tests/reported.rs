//! The report: what of files, groups and parts is on its page, and that all of it together stays small.
#![cfg(feature = "cli")]

#[path = "common/command.rs"]
mod command;
mod common;
#[path = "common/many_hosts.rs"]
mod many_hosts;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use collwise::bench;
use collwise::collective::{COLLECTIVES, Collective, bcast};
use collwise::plan::{everybody, plan};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::report::{Block, Chooser, Figure, Inputs, Report, Traced};
use command::ok;
use common::file;
use many_hosts::with_hosts;
use serde_json::json;
use std::path::Path;

fn policy(name: &str) -> Policy {
    Policy::read(&file(&format!("policies/{name}.toml"))).unwrap()
}

fn report(policy: Policy, benches: &[(String, bench::Report)]) -> Report {
    with_traces(policy, benches, &[])
}

fn with_traces(policy: Policy, benches: &[(String, bench::Report)], traces: &[Traced]) -> Report {
    let policy = CompiledPolicy::new(policy).unwrap();
    let placed = (1, collwise::qnm::Spread::Block);
    let inputs = Inputs { policy: &policy, made_by: None, samples: None, benches, traces, runs: &[], placed, against: None };
    Report::of(&inputs).unwrap()
}

fn figure<'a>(report: &'a Report, id: &str) -> &'a Figure {
    report.figures().find(|f| f.id == id).unwrap_or_else(|| panic!("{id}"))
}

fn chooser(report: &Report) -> &Chooser {
    let blocks = report.sections.iter().flat_map(|s| &s.blocks);
    blocks.filter_map(|b| if let Block::Chooser(c) = b { Some(c) } else { None }).next().unwrap()
}

/// A comparison among hosts, of which one is as fast as the library and one faster.
fn compared(collective: &str, hosts: Vec<String>, contestant: &str) -> bench::Report {
    let row = |contestant: &str, bytes, seconds| bench::Row {
        root: 0,
        bytes,
        contestant: contestant.into(),
        seconds: vec![seconds; 7],
        wrong: 0,
    };
    let sizes = [1, 1 << 10, 64 << 10, 1 << 20];
    let rows =
        sizes.iter().flat_map(|&bytes| [row("native", bytes, 2e-3), row("adaptive", bytes, 1e-3), row(contestant, bytes, 2e-3)]).collect();
    bench::Report { collective: collective.into(), library: "x".into(), date: "2026-03-01 10:00:00 UTC".into(), hosts, rows }
}

/// What is not seen, or turns words around, is a sign that is seen: in the page, packed or not, and in pictures.
#[test]
fn what_is_not_seen_in_names_is_made_visible() {
    const HIDDEN: &str = "a\u{1b}[31m\u{7}\u{202e}b\nc";
    const SEEN: &str = "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}c";
    let mut policy = policy("ccgrid2007");
    let old = std::mem::replace(&mut policy.groups[0].name, HIDDEN.into());
    policy.links.iter_mut().flat_map(|l| l.between.iter_mut()).filter(|n| **n == old).for_each(|n| *n = HIDDEN.into());
    policy.groups[1].hosts[0] = HIDDEN.into();
    let hosts = vec![policy.groups[0].hosts[0].clone(), policy.groups[0].hosts[1].clone()];
    let report = report(policy, &[(HIDDEN.into(), compared(HIDDEN, hosts, HIDDEN))]);
    let html = report.html().unwrap();
    let hidden = |text: &str| text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(hidden(&html), None);
    assert!(!html.contains(HIDDEN) && html.contains(SEEN));
    for figure in report.figures() {
        assert_eq!(hidden(&figure.svg), None, "{}", figure.id);
    }
    assert!(figure(&report, "latencies").svg.contains(SEEN) && figure(&report, "wins-1-root0").svg.contains(SEEN));
}

#[test]
fn the_library_has_a_line_with_its_name() {
    let policy = policy("ccgrid2007");
    let hosts = policy.groups.iter().flat_map(|g| g.hosts.clone()).collect();
    let report = report(policy, &[("all".into(), compared("bcast", hosts, "flat"))]);
    let svg = &figure(&report, "wins-1-root0").svg;
    assert!(["the library", "collwise", "flat", "bound"].iter().all(|name| svg.contains(&format!(">{name}"))), "{svg}");
}

/// What would be next has its segments and how many are under way, as what is chosen has; where a file does not say them the page says that.
#[test]
fn the_next_best_is_named_as_a_whole() {
    let rows = figure(&report(policy("ccgrid2007"), &[]), "decisions-allreduce").table.rows.clone();
    let next: Vec<&str> = rows.iter().flatten().filter_map(|cell| cell.text.split_once("; ")).map(|(_, next)| next).collect();
    assert!(next.len() > 50 && next.iter().any(|next| next.contains(" under way takes ")), "{next:?}");
    assert!(next.iter().filter(|next| next.starts_with("segmented_")).all(|next| next.contains(" in ")), "{next:?}");
    let older = report(policy("ccgrid2007-smpi"), &[]);
    let unsaid = "segmented_chain in segments that the policy does not say takes ";
    assert!(older.figures().flat_map(|f| &f.table.rows).flatten().any(|cell| cell.text.contains(unsaid)));
}

/// Each group has a root to choose, up to a number of them; what is left out is named.
#[test]
fn each_group_has_a_root() {
    let mut policy = policy("ccgrid2007");
    let all = report(policy.clone(), &[]);
    let roots = &chooser(&all).roots;
    assert!(
        roots.len() == 6 && policy.groups.iter().all(|g| roots.iter().any(|root| root.ends_with(&format!("({})", g.name)))),
        "{roots:?}"
    );
    for (k, _) in roots.iter().enumerate() {
        let drawn = |v: &&collwise::report::View| v.root == Some(k) && !v.figures.is_empty();
        assert!(chooser(&all).views.iter().filter(drawn).count() >= 8, "root {k}");
    }
    // more groups than there is room for
    let (group, link) = (policy.groups[5].clone(), policy.links[0].clone());
    let names: Vec<String> = policy.groups.iter().map(|g| g.name.clone()).collect();
    for k in 0..34 {
        let name = format!("more-{k}");
        let others = names.iter().cloned().chain((0..k).map(|other| format!("more-{other}")));
        policy.links.extend(others.map(|other| collwise::policy::LinkPolicy { between: [other, name.clone()], ..link.clone() }));
        policy.groups.push(collwise::policy::GroupPolicy {
            hosts: vec![format!("host-{k}")],
            models: Vec::new(),
            choices: Default::default(),
            name,
            ..group.clone()
        });
    }
    policy.provenance.ranks += 34;
    let many = report(policy, &[]);
    assert_eq!(chooser(&many).roots.len(), 9);
    let said = &many.sections.iter().find(|s| s.id == "schedule").unwrap().words;
    assert!(said.contains("(more-3, more-4, ") && said.contains(" and 19 more)"), "{said}");
}

/// Wall times of an application have intervals, and so have their parts.
#[test]
fn parts_of_wall_times_have_intervals() {
    let folder = tempfile::tempdir().unwrap();
    ok(
        &with_reports(&["report", &file("policies/ccgrid2007.toml").display().to_string(), "-o", "page.html", "--svg", "pictures"]),
        folder.path(),
    );
    let html = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    let (_, table) = html.split_once("<figure id=\"application-1-parts\"").unwrap();
    let (table, _) = table.split_once("</figure>").unwrap();
    let rows: Vec<&str> = table.split("<tr>").filter(|row| row.contains("<td>95 % interval</td>")).collect();
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.contains(" to ")), "{rows:?}");
}

/// A command with the reports of the example's runs.
fn with_reports<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let all = std::fs::read_dir(file("examples/reports")).unwrap().map(|entry| entry.unwrap().path());
    let mut reports: Vec<String> =
        all.filter(|path| path.extension().is_some_and(|e| e == "mpiP")).map(|path| path.display().to_string()).collect();
    reports.sort();
    assert!(reports.len() >= 3);
    let reports = reports.into_iter().map(|path| &*path.leak());
    arguments.iter().copied().chain(["--app"]).chain(reports).collect()
}

/// What each rank did, as it is planned, a microsecond an operation.
fn trace(policy: &CompiledPolicy, collectives: &[&'static Collective], sizes: &[usize], folder: &Path) {
    let all = everybody(&policy.policy);
    std::fs::create_dir_all(folder).unwrap();
    let mut lines = vec![String::new(); all.len()];
    for &collective in collectives {
        for &bytes in sizes {
            let shape = collective.shape(all.len(), 0, bytes);
            let form = plan(policy, &all, collective, &shape).unwrap().form;
            for (rank, line) in lines.iter_mut().enumerate() {
                let actions: Vec<_> = form.program(rank, &shape).unwrap().actions().collect();
                let times: Vec<f64> = (0..actions.len()).map(|k| k as f64 * 1e-6).collect();
                *line += &serde_json::json!({ "collective": collective.name, "root": 0, "actions": actions, "bytes": bytes, "ranks": all.len(), "start_s": times, "end_s": times })
                    .to_string();
                line.push('\n');
            }
        }
    }
    lines.iter().enumerate().for_each(|(rank, line)| std::fs::write(folder.join(format!("rank-{rank}.jsonl")), line).unwrap());
}

/// Samples as they are measured, comparisons, traces and runs of an application, all on one page.
#[test]
fn all_together_is_small() {
    const MOST: u64 = 2_000_000;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (platform, policy_file) =
        (file("platforms/ccgrid2007.toml").display().to_string(), file("policies/ccgrid2007.toml").display().to_string());
    ok(&["tune", "--platform", &platform, "--collectives", "bcast", "--samples", "samples.jsonl", "-o", "bcast.toml"], at);
    let compiled = CompiledPolicy::new(policy("ccgrid2007")).unwrap();
    let traced: Vec<&'static Collective> =
        COLLECTIVES.iter().copied().filter(|c| ["bcast", "reduce", "allreduce", "scatter"].contains(&c.name)).collect();
    trace(&compiled, &traced, &[1 << 10, 64 << 10], &at.join("traces"));
    let hosts: Vec<String> = compiled.policy.groups.iter().flat_map(|g| g.hosts.clone()).collect();
    for (name, collective) in [("b.json", "bcast"), ("a.json", "allreduce")] {
        // as they were measured over 24 ranks
        let text = std::fs::read_to_string(file("docs/gallery/grid/site-by-site.json")).unwrap();
        let mut measured: serde_json::Value = serde_json::from_str(&text).unwrap();
        (measured["hosts"], measured["collective"]) = (hosts.clone().into(), collective.into());
        std::fs::write(at.join(name), measured.to_string()).unwrap();
    }
    let command = [
        "report",
        &policy_file,
        "--samples",
        "samples.jsonl",
        "--bench",
        "b.json",
        "--bench",
        "a.json",
        "--trace",
        "traces",
        "-o",
        "page.html",
    ];
    ok(&with_reports(&command), at);
    let page = std::fs::metadata(at.join("page.html")).unwrap().len();
    eprintln!("{page} bytes");
    assert!(page <= MOST, "{page} bytes");
    let html = std::fs::read_to_string(at.join("page.html")).unwrap();
    for id in ["latencies", "model-1", "regret", "wins-1-root0", "wins-2-root0", "application-1-wall", "application-1-parts"] {
        assert!(html.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
}

/// What was traced on the emulated grid, as its one call from rank 0, or from another one.
fn traced(root: usize, folder: &Path) -> (Policy, Vec<Traced>) {
    let grid = file("docs/gallery/grid");
    for rank in 0..24 {
        let name = format!("rank-{rank}.jsonl");
        let text = std::fs::read_to_string(grid.join("traces").join(&name)).unwrap();
        assert!(text.contains("\"root\":0"), "{text}");
        std::fs::write(folder.join(name), text.replace("\"root\":0", &format!("\"root\":{root}"))).unwrap();
    }
    (Policy::read(&grid.join("policy.toml")).unwrap(), Traced::read_folder(folder).unwrap())
}

/// A root that was traced may be chosen for every size.
#[test]
fn roots_that_were_traced_have_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, traces) = traced(7, folder.path());
    let report = with_traces(policy, &[], &traces);
    let chooser = chooser(&report);
    let root = chooser.roots.iter().position(|root| root.starts_with("rank 7, ")).unwrap();
    for size in ["1B", "64KiB", "256KiB", "4MiB"] {
        let at = chooser.sizes.iter().position(|s| s == size);
        let view = chooser.views.iter().find(|v| v.root == Some(root) && v.size == at && v.words.starts_with("bcast ")).unwrap();
        assert_eq!(view.figures.len(), if size == "256KiB" { 3 } else { 2 }, "{}", view.words);
    }
}

/// What was traced stays as long as there is room, and no longer.
#[test]
fn what_was_traced_gives_way_last() {
    let folder = tempfile::tempdir().unwrap();
    let (policy, traces) = traced(7, folder.path());
    let mut report = with_traces(policy, &[], &traces);
    let mut seen = |most: usize| {
        report.most_bytes = most;
        let html = report.html().unwrap();
        (html.len(), has_packed(&html, "id=\"traced-bcast"), has_packed(&html, "id=\"gantt-bcast-root1"))
    };
    let (all, ..) = seen(usize::MAX);
    let (least, is_traced, is_drawn) = seen(0);
    assert!(!is_traced && !is_drawn);
    let steps: Vec<_> = (0..=20).map(|k| seen(least + (all - least) * k / 20)).collect();
    assert!(steps.iter().all(|&(_, is_traced, is_drawn)| is_traced || !is_drawn), "{steps:?}");
    assert!(steps.iter().any(|&(_, is_traced, is_drawn)| is_traced && !is_drawn) && steps[20].2, "{steps:?}");
}

/// True if a page has a text among what is packed in it.
fn has_packed(html: &str, text: &str) -> bool {
    let packed = html.split("data-packed=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    packed.map(|packed| BASE64_STANDARD.decode(packed).unwrap()).any(|bytes| {
        let html = miniz_oxide::inflate::decompress_to_vec(&bytes).unwrap();
        String::from_utf8(html).unwrap().contains(text)
    })
}

/// Who hears from whom is said of many ranks, too.
#[test]
fn the_table_behind_a_tree_of_many_ranks_says_it() {
    let report = report(with_hosts(policy("ccgrid2007"), 30), &[]);
    let table = &figure(&report, "tree-bcast-root0-1").table;
    assert_eq!(table.header, ["ranks", "hears first from", "the first at"]);
    let says = |row: &[collwise::report::Cell]| row[1].text.split(", ").all(|name| name.contains('-') && name.contains(' '));
    assert!(table.rows.len() > 50 && table.rows[1..].iter().all(|row| says(row)), "{:?}", table.rows);
}

/// Of messages in too many segments to be drawn the first ones are.
#[test]
fn what_goes_in_many_segments_is_drawn_by_the_first_ones() {
    let report = report(with_hosts(policy("ccgrid2007"), 300), &[]);
    let mut begun = 0;
    for view in &chooser(&report).views {
        let is_begun = view.words.contains(". Tree and chart are of its first ");
        begun += usize::from(is_begun);
        assert!(!is_begun || view.figures.len() == 2, "{}", view.words);
        let why = ["own messages are not known.", "too many messages to be drawn here", "decides it."];
        assert!(!view.figures.is_empty() || why.iter().any(|why| view.words.contains(why)), "{}", view.words);
    }
    assert!(begun >= 3, "{begun}");
}

/// Ranks on other hosts than the policy's order has them, or on some of these: what they did stands beside what is predicted of them there.
#[test]
fn traces_say_which_hosts_ranks_were_on() {
    let policy = Policy::read(&file("docs/gallery/grid/policy.toml")).unwrap();
    let compiled = CompiledPolicy::new(policy.clone()).unwrap();
    let mut hosts: Vec<String> = policy.groups.iter().flat_map(|g| g.hosts.clone()).collect();
    hosts.reverse();
    for ranks in [hosts.len(), 15] {
        let folder = tempfile::tempdir().unwrap();
        let members = collwise::plan::members(&policy, &hosts[..ranks]).unwrap();
        let shape = bcast::COLLECTIVE.shape(ranks, 2, 100_000);
        let form = plan(&compiled, &members, &bcast::COLLECTIVE, &shape).unwrap().form;
        for (rank, host) in hosts[..ranks].iter().enumerate() {
            let actions: Vec<_> = form.program(rank, &shape).unwrap().actions().collect();
            let times: Vec<f64> = (0..actions.len()).map(|k| k as f64 * 1e-6).collect();
            let call = json!({ "collective": "bcast", "root": 2, "bytes": shape.bytes, "ranks": ranks, "host": host, "actions": actions, "start_s": times, "end_s": times });
            std::fs::write(folder.path().join(format!("rank-{rank}.jsonl")), format!("{call}\n")).unwrap();
        }
        let report = with_traces(policy.clone(), &[], &Traced::read_folder(folder.path()).unwrap());
        let is_traced = |view: &&collwise::report::View| view.figures.iter().any(|f| f.id.starts_with("traced-"));
        let view = chooser(&report).views.iter().find(is_traced).unwrap();
        assert_eq!(view.figures.len(), 3, "{}", view.words);
        assert!(view.words.contains(&format!("among {ranks} ranks")) && !view.words.contains("other messages"), "{}", view.words);
    }
    // the order that the policy has them in is another one
    let members = collwise::plan::members(&policy, &hosts).unwrap();
    assert!(members != everybody(&policy));
}
