//! The report: its page says what the policy says, needs nothing else, stays small, and works in a real browser.
#![cfg(feature = "cli")]

#[path = "common/command.rs"]
mod command;
mod common;
#[path = "common/many_hosts.rs"]
mod many_hosts;

use collwise::bench;
use collwise::collective::{Collective, allreduce, bcast, scatter};
use collwise::model::MODELS;
use collwise::plan::{everybody, plan};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::report::{Block, Inputs, Report, Traced, View};
use collwise::units;
use command::{fails, ok};
use common::file;
use many_hosts::with_hosts;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

fn policy(name: &str) -> Policy {
    Policy::read(&file(&format!("policies/{name}.toml"))).unwrap()
}

fn page(policy: Policy, benches: &[(String, bench::Report)]) -> String {
    report(policy, benches).html().unwrap()
}

fn report(policy: Policy, benches: &[(String, bench::Report)]) -> Report {
    let policy = CompiledPolicy::new(policy).unwrap();
    let inputs = Inputs {
        policy: &policy,
        made_by: None,
        samples: None,
        benches,
        traces: &[],
        runs: &[],
        placed: (1, collwise::qnm::Spread::Block),
        against: None,
    };
    Report::of(&inputs).unwrap()
}

#[test]
fn the_page_says_what_the_policy_says() {
    let policy = policy("ccgrid2007");
    let report = report(policy.clone(), &[]);
    let figure = |id: &str| report.figures().find(|f| f.id == id).unwrap();
    let rows = |id: &str| figure(id).table.rows.clone();
    // latencies, in whatever order rows are
    let latencies = rows("latencies");
    let at = |name: &str| latencies.iter().position(|r| r[0].text.starts_with(&format!("{name} "))).unwrap();
    for link in &policy.links {
        let first = |name: &str| &policy.groups.iter().find(|g| g.name == name).unwrap().hosts[0];
        let (a, b) = (at(first(&link.between[0])), at(first(&link.between[1])));
        assert_eq!(latencies[a][b + 1].text, units::seconds(link.latency_s));
    }
    let orsay = &policy.groups[0];
    assert_eq!(latencies[at("orsay-1")][at("orsay-20") + 1].text, units::seconds(orsay.latency_s.unwrap()));
    assert_eq!((latencies.len(), rows("links").len()), (78, policy.links.len()));
    // a decision, with its times
    let row = orsay.row(&bcast::COLLECTIVE, 4 << 20).unwrap();
    let decided = rows("decisions-bcast").into_iter().find(|r| r[0].text == "orsay, 20 ranks").unwrap();
    let said = &decided[decided.len() - 1].text;
    for part in
        [row.algorithm.clone(), units::bytes(row.segment_bytes), units::seconds(row.evidence.predicted_s), row.evidence.runner_up.clone()]
    {
        assert!(said.contains(&part), "{part} is not in {said}");
    }
    // scores and parameters of all models
    let tables: Vec<_> =
        report.sections.iter().flat_map(|s| &s.blocks).filter_map(|b| if let Block::Table(t) = b { Some(t) } else { None }).collect();
    let table = |title: &str| &tables.iter().find(|t| t.title == title).unwrap().table;
    let models: Vec<&str> = MODELS.iter().map(|m| m.name).filter(|m| orsay.models.iter().any(|f| f.model == *m)).collect();
    assert_eq!(table("Scores").header[2..], models);
    let hockney = orsay.models.iter().find(|m| m.model == "hockney").unwrap();
    for (name, estimate) in &hockney.parameters {
        let found = table("Parameters").rows.iter().find(|r| r[0].text == "orsay" && r[1].text == "hockney" && r[2].text == *name).unwrap();
        assert_eq!(found[3].text, units::number(estimate.value));
    }
    // what is not given says what would give it
    let html = report.html().unwrap();
    for option in ["--samples FILE", "--bench bench.json", "--trace FOLDER", "--app REPORT", "--against OLD"] {
        assert!(html.contains(option), "{option}");
    }
}

/// A view's time is said to be measured where it is, with what the chart's models say.
#[test]
fn what_was_measured_is_not_called_predicted() {
    let policy = Policy::read(&file("docs/gallery/grid/policy.toml")).unwrap();
    let row = policy.two_level(&bcast::COLLECTIVE).iter().find(|r| r.at_bytes == 4 << 20).unwrap();
    let takes = format!("takes {} (measured)", units::seconds(row.evidence.measured_s.unwrap()));
    let report = report(policy, &[]);
    let choosers = report.sections.iter().flat_map(|s| &s.blocks).filter_map(|b| if let Block::Chooser(c) = b { Some(c) } else { None });
    let view = choosers.flat_map(|c| &c.views).find(|v| v.words.starts_with("bcast of 4MiB from rank 0 ")).unwrap();
    let chart = view.figures.iter().find(|f| f.id.starts_with("gantt-")).unwrap();
    let end = chart.words.strip_prefix("All done after ").unwrap().split(". ").next().unwrap();
    assert!(view.words.contains(&takes), "{}", view.words);
    assert!(view.words.ends_with(&format!("by the models of the chart {end}.")), "{} {end}", view.words);
}

#[test]
fn parameters_are_short_in_every_policy_that_is_shipped() {
    for path in Policy::files(&file("policies")).unwrap() {
        let report = report(Policy::read(&path).unwrap(), &[]);
        let blocks = report.sections.iter().flat_map(|s| &s.blocks);
        let mut tables = blocks.filter_map(|b| if let Block::Table(t) = b { Some(t) } else { None });
        let parameters = tables.find(|t| t.title == "Parameters").unwrap();
        let longest = parameters.table.rows.iter().flatten().max_by_key(|cell| cell.text.len()).unwrap();
        assert!(longest.text.len() <= 200, "{}: {}", path.display(), longest.text);
    }
}

/// The table that is called so.
fn table(report: &Report, title: &str) -> collwise::report::Table {
    let blocks = report.sections.iter().flat_map(|s| &s.blocks);
    blocks.filter_map(|b| if let Block::Table(t) = b { Some(t) } else { None }).find(|t| t.title == title).unwrap().table.clone()
}

/// Every group and link has its row, the worst first, and is drawn first where some are left out.
#[test]
fn what_no_model_fits_is_marked_and_drawn() {
    let mut policy = policy("ccgrid2007");
    let (groups, links) = (policy.groups.iter().filter(|g| !g.models.is_empty()).count(), policy.links.len());
    let rows = table(&report(policy.clone(), &[]), "How well models fit").rows;
    assert_eq!(rows.len(), groups + links);
    assert!(rows.iter().all(|r| r.last().unwrap().text.is_empty()));
    for score in &mut policy.groups[1].scores {
        (score.error, score.error_se) = (Some(0.3), 0.01);
        score.error_by_bytes.fill(0.3);
    }
    let unsure = &mut policy.links[8].model;
    unsure.tables.values_mut().for_each(|t| t.high.iter_mut().for_each(|high| *high *= 1.5));
    let between = policy.links[8].between.clone();
    let report = report(policy.clone(), &[]);
    let rows = table(&report, "How well models fit").rows;
    assert_eq!((rows[0][0].text.as_str(), rows[0][4].text.as_str()), (policy.groups[1].name.as_str(), "30 %"));
    assert_eq!(rows[0].last().unwrap().text, "none fits collectives");
    let first = report.figures().find(|f| f.title.starts_with("Between ")).unwrap();
    assert!(between.iter().all(|name| first.title.contains(name.as_str())), "{}", first.title);
    assert!(first.words.contains("The first of 15 links that fit worst"), "{}", first.words);
    assert_eq!(report.figures().filter(|f| f.title.starts_with("Between ")).count(), 12);
}

#[test]
fn ranks_of_one_host_are_said_once() {
    let rows = table(&report(policy("two-core-vm"), &[]), "Groups").rows;
    assert_eq!(rows[0].last().unwrap().text, "vm x8");
}

/// What is drawn is the bound that groups were found with, which a policy says where it is not the usual one.
#[test]
fn the_bound_of_groups_is_the_one_that_was_used() {
    let mut policy = policy("hcl16");
    assert!(!policy.to_toml().unwrap().contains("bound = "));
    let picture = |policy: &Policy| report(policy.clone(), &[]).figures().find(|f| f.id == "latencies").unwrap().clone();
    let usual = picture(&policy);
    policy.provenance.bound = Some(1.5);
    let policy = Policy::parse("p", &policy.to_toml().unwrap()).unwrap();
    let other = picture(&policy);
    assert!(usual.words.contains(" 1.2 times ") && other.words.contains(" 1.5 times ") && usual.svg != other.svg);
}

#[test]
fn names_from_files_are_text() {
    const NAME: &str = "<script>alert(\"1\")</script>&'";
    let mut policy = policy("hcl16");
    let old = std::mem::replace(&mut policy.groups[0].name, NAME.into());
    policy.links.iter_mut().flat_map(|l| l.between.iter_mut()).filter(|n| **n == old).for_each(|n| *n = NAME.into());
    policy.provenance.library = NAME.into();
    let row = |contestant: &str, seconds| bench::Row { root: 0, bytes: 8, contestant: contestant.into(), seconds: vec![seconds], wrong: 0 };
    let rows = vec![row("native", 2e-3), row(NAME, 1e-3)];
    let hosts = vec![NAME.into(), "b".into()];
    let bench = bench::Report { collective: NAME.into(), library: NAME.into(), date: NAME.into(), hosts, rows };
    let report = report(policy, &[(NAME.into(), bench)]);
    let html = report.html().unwrap();
    assert!(!html.contains(NAME) && !html.contains("<script>alert"), "a name became a part of the page");
    assert!(html.contains("&lt;script&gt;alert"));
    for figure in report.figures() {
        assert!(!figure.svg.contains("<script"), "{}", figure.id);
        assert!(figure.id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{}", figure.id);
    }
}

#[test]
fn pages_are_small_and_there_at_once_and_the_same_again() {
    let large = (with_hosts(policy("ccgrid2007"), 600), 8_000_000);
    let shipped = Policy::files(&file("policies")).unwrap().into_iter().map(|path| (Policy::read(&path).unwrap(), 2_000_000));
    for (policy, most) in shipped.chain([large]) {
        let ranks = policy.provenance.ranks;
        let begin = Instant::now();
        let html = page(policy.clone(), &[]);
        eprintln!("{ranks} ranks: {} bytes after {:.2} s", html.len(), begin.elapsed().as_secs_f64());
        assert!(html.len() <= most, "{ranks} ranks: {} bytes", html.len());
        assert!(html.contains(&format!("<dd>{ranks}</dd>")));
        if ranks < 100 {
            assert_eq!(html, page(policy, &[]));
        }
        // nothing is asked of anybody
        let asks = ["src=\"", "href=\"http", "url(", "@import", "fetch("].into_iter().find(|asks| html.contains(asks));
        assert_eq!(asks, None);
    }
}

/// Where a page would be too long, pictures of schedules from other roots, of models and then of all schedules give way, and the rest stays; what is written alone does not.
#[test]
fn pictures_give_way_to_the_page_s_size() {
    let mut report = report(policy("ccgrid2007"), &[]);
    let (pictures, full) = (report.figures().count(), report.html().unwrap());
    let views = |html: &str| html.matches("data-packed=").count();
    let fits = |html: &str| html.matches("<figure id=\"model-").count();
    let mut seen = Vec::new();
    for less in [40_000, 760_000, 900_000] {
        report.most_bytes = full.len() - less;
        let html = report.html().unwrap();
        assert!(html.len() <= report.most_bytes, "{} bytes", html.len());
        assert!(
            views(&html) == views(&full) && html.contains("<figure id=\"latencies\"") && html.contains("<figure id=\"decisions-bcast\"")
        );
        assert!(fits(&html) == fits(&full) || html.contains("--svg FOLDER writes them"));
        seen.push(fits(&html));
    }
    // schedules from other roots first
    assert!(seen[0] == fits(&full) && seen[1] < seen[0] && seen[2] == 0, "{seen:?} of {}", fits(&full));
    assert_eq!(report.figures().count(), pictures);
}

/// True if tags are closed in the order in which they were opened.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1).map(|t| t.split('>').next().unwrap()) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) if open.pop() != Some(name) => return false,
            (false, false) => open.push(name),
            _ => {}
        }
    }
    open.is_empty()
}

#[test]
fn every_picture_is_one_alone_of_every_policy_that_is_shipped() {
    for path in Policy::files(&file("policies")).unwrap() {
        let report = report(Policy::read(&path).unwrap(), &[]);
        for figure in report.figures() {
            let svg = &figure.svg;
            assert!(svg.starts_with("<svg ") && svg.contains("xmlns=") && is_well_formed(svg), "{}: {}", path.display(), figure.id);
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{}: {}", path.display(), figure.id);
            assert!(!figure.table.rows.is_empty() && !figure.title.is_empty(), "{}: {}", path.display(), figure.id);
            if let Some(cells) = &figure.cells {
                assert_eq!(figure.table.rows.len() + 1, cells.y.len(), "{}", figure.id);
                assert!(figure.table.rows.iter().all(|row| row.len() == cells.x.len()), "{}", figure.id);
            }
        }
    }
}

#[test]
fn wrong_files_are_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file("policies/icluster2.toml").display().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bad.json", "{\n \"library\": 1 }");
    write("none.json", "{\"library\": \"x\", \"hosts\": [\"a\"], \"rows\": []}");
    write(
        "time.json",
        "{\"library\": \"x\", \"hosts\": [\"a\"], \"rows\": [{\"root\": 0, \"bytes\": 1, \"contestant\": \"c\", \"seconds\": [-1], \"wrong\": 0}]}",
    );
    std::fs::create_dir(folder.path().join("traces")).unwrap();
    fails(&["report", &policy, "--bench", "bad.json"], folder.path(), 1, &["bad.json, line 2", "collwise bench --json"]);
    fails(&["report", &policy, "--bench", "none.json"], folder.path(), 1, &["none.json", "`rows` is empty"]);
    fails(&["report", &policy, "--bench", "time.json"], folder.path(), 1, &["time.json", "\"c\"", "`seconds`"]);
    fails(&["report", &policy, "--trace", "traces"], folder.path(), 1, &["traces", "rank-*.jsonl", "COLLWISE_TRACE"]);
    fails(&["report", &policy, "--samples", "bad.json"], folder.path(), 1, &["bad.json, line 1"]);
    fails(&["report", &policy, "-o", "no/page.html"], folder.path(), 1, &["no/page.html"]);
    let call = |start: f64| format!("{{\"actions\":[],\"bytes\":1,\"ranks\":1,\"start_s\":[{start}],\"end_s\":[]}}\n");
    write("traces/rank-0.jsonl", &call(1.0));
    fails(&["report", &policy, "--trace", "traces"], folder.path(), 1, &["rank-0.jsonl, line 1", "as long as each other"]);
    // nothing that is read, or was just made, is lost
    let at = folder.path();
    std::fs::copy(&policy, at.join("own.toml")).unwrap();
    fails(&["report", "own.toml", "-o", "./own.toml"], at, 1, &["own.toml", "another file"]);
    let platform = file("platforms/hcl16.toml").display().to_string();
    fails(&["tune", "--platform", &platform, "-o", "p.toml", "--report", "p.toml"], at, 1, &["p.toml", "another file"]);
    fails(&["tune", "--platform", &platform, "-o", "p.toml", "--samples", "s.jsonl", "--report", "s.jsonl"], at, 1, &["s.jsonl"]);
    assert!(Policy::read(&at.join("own.toml")).is_ok() && !at.join("p.toml").exists());
    // of other hosts
    let other = file("policies/hcl16.toml").display().to_string();
    fails(&["report", &policy, "--against", &other], at, 1, &["hcl16.toml", "none of the policy's hosts"]);
    write(
        "other.json",
        "{\"library\": \"x\", \"hosts\": [\"a\"], \"rows\": [{\"root\": 0, \"bytes\": 1, \"contestant\": \"c\", \"seconds\": [1], \"wrong\": 0}]}",
    );
    fails(&["report", &policy, "--bench", "other.json"], at, 1, &["other.json", "\"a\""]);
    fails(&["report", &policy, "--bench", "other.json", "--bench", "./other.json"], at, 1, &["other.json twice", "name it once"]);
    fails(&["report", &policy, "--svg", "own.toml"], at, 1, &["own.toml", "folder"]);
    assert!(!at.join("report.html").exists());
}

/// No broadcast that is predicted is faster than the bound of its comparison.
#[test]
fn the_bound_is_one() {
    let policy = policy("ccgrid2007");
    let compared = compared(&policy);
    let takes: Vec<f64> = compared.rows.iter().filter(|r| r.contestant == "adaptive").map(|r| r.seconds[0]).collect();
    let report = report(policy, &[("all".into(), compared)]);
    let figure = report.figures().find(|f| f.id.starts_with("wins")).unwrap();
    assert_eq!(figure.table.rows.len(), takes.len());
    for (row, takes) in figure.table.rows.iter().zip(takes) {
        let bound = units::parse_seconds(&row[1].text).unwrap();
        assert!(bound > 0.0 && bound <= takes * 1.005, "{}: {bound} {takes}", row[0].text);
        assert!(bound >= 0.25 * takes, "{}: {bound} {takes}", row[0].text);
    }
}

/// What two ranks traced of one message from the first to the second, with what else each says of it.
fn one_message(said: [serde_json::Value; 2]) -> Vec<Traced> {
    let folder = tempfile::tempdir().unwrap();
    let span = json!({ "buffer": "output", "offset": 0, "len": 8 });
    let actions = [json!({ "Send": { "to": 1, "span": span } }), json!({ "Recv": { "from": 0, "span": span } })];
    for (rank, (mut line, action)) in said.into_iter().zip(actions).enumerate() {
        (line["actions"], line["bytes"], line["ranks"]) = (json!([action]), json!(8), json!(2));
        std::fs::write(folder.path().join(format!("rank-{rank}.jsonl")), format!("{line}\n")).unwrap();
    }
    Traced::read_folder(folder.path()).unwrap()
}

#[test]
fn clocks_by_which_messages_come_before_they_are_sent_are_set() {
    let traced = one_message([json!({ "start_s": [100.0], "end_s": [100.5] }), json!({ "start_s": [7.0], "end_s": [8.0] })]);
    assert_eq!((traced.len(), traced[0].root, traced[0].clocks_set, traced[0].ops.len()), (1, Some(0), 1, 2));
    assert_eq!(traced[0].ops[1].end_s, traced[0].ops[0].start_s);
}

/// Writes what all ranks did of a collective, as a program does with `COLLWISE_TRACE`.
fn write_trace(compiled: &CompiledPolicy, collective: &'static Collective, bytes: usize, is_named: bool, folder: &Path) {
    let all = everybody(&compiled.policy);
    let shape = collective.shape(all.len(), 0, bytes);
    let form = plan(compiled, &all, collective, &shape).unwrap().form;
    for rank in 0..all.len() {
        let actions: Vec<_> = form.program(rank, &shape).unwrap().actions().collect();
        let times: Vec<f64> = (0..actions.len()).map(|k| k as f64 * 1e-6).collect();
        let mut line = json!({ "actions": actions, "bytes": shape.bytes, "ranks": all.len(), "start_s": times, "end_s": times });
        if is_named {
            line["collective"] = collective.name.into();
            line["root"] = 0.into();
        }
        std::fs::write(folder.join(format!("rank-{rank}.jsonl")), format!("{line}\n")).unwrap();
    }
}

/// A comparison in which the library takes twice what is predicted of broadcasts.
fn compared(policy: &Policy) -> bench::Report {
    let (compiled, all) = (CompiledPolicy::new(policy.clone()).unwrap(), everybody(policy));
    let hosts = policy.groups.iter().flat_map(|g| g.hosts.clone()).collect();
    let row =
        |contestant: &str, bytes, seconds| bench::Row { root: 0, bytes, contestant: contestant.into(), seconds: vec![seconds], wrong: 0 };
    let of_size = |bytes: usize| {
        let plan = plan(&compiled, &all, &bcast::COLLECTIVE, &bcast::COLLECTIVE.shape(all.len(), 0, bytes)).unwrap();
        let takes = plan.predicted_s.unwrap();
        [row("native", bytes, 2.0 * takes), row("adaptive", bytes, takes)]
    };
    let rows = [1, 1 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20].into_iter().flat_map(of_size).collect();
    bench::Report { collective: "bcast".into(), library: "x".into(), date: "2026-03-01 10:00:00 UTC".into(), hosts, rows }
}

/// Each process's clock begins with it: what ranks did is told by their systems'.
#[test]
fn traces_are_on_one_clock() {
    let own = |began: f64, start: f64| json!({ "start_s": [start], "end_s": [start + 0.25], "clock_began_s": began });
    let traced = one_message([own(1.7e9, 100.0), own(1.7e9 + 3.0, 97.5)]);
    assert_eq!((traced[0].clocks_set, traced[0].ops[0].start_s, traced[0].ops[1].end_s), (0, 0.0, 0.75));
}

/// What any collective did has what is predicted of the same beside it; a line that names none is held against the broadcast.
#[test]
fn traces_stand_beside_what_is_predicted_of_their_collective() {
    let compiled = CompiledPolicy::new(policy("ccgrid2007")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blocks = |collective: &'static Collective, is_named: bool| {
        write_trace(&compiled, collective, 8 << 10, is_named, folder.path());
        let traces = Traced::read_folder(folder.path()).unwrap();
        let placed = (1, collwise::qnm::Spread::Block);
        let inputs =
            Inputs { policy: &compiled, made_by: None, samples: None, benches: &[], traces: &traces, runs: &[], placed, against: None };
        let report = Report::of(&inputs).unwrap();
        let choosers =
            report.sections.iter().flat_map(|s| &s.blocks).filter_map(|b| if let Block::Chooser(c) = b { Some(c) } else { None });
        let views: Vec<_> = choosers.flat_map(|c| &c.views).collect();
        let has = |view: &&&View, begin: &str| view.figures.iter().any(|f| f.id.starts_with(begin));
        let [view] = views.iter().filter(|view| has(view, "traced-")).collect::<Vec<_>>()[..] else { return None };
        assert!(view.words.starts_with(&format!("{} of 8KiB", collective.name)), "{}", view.words);
        let silent = views.iter().filter(|view| view.words.ends_with("nothing was traced.")).count();
        assert_eq!(silent, views.len() - 1);
        Some(view.figures.iter().map(|f| f.id.split('-').next().unwrap().to_string()).collect::<Vec<_>>())
    };
    let beside = Some(["tree", "gantt", "traced"].map(String::from).to_vec());
    for collective in [&scatter::COLLECTIVE, &allreduce::COLLECTIVE] {
        assert_eq!(blocks(collective, true), beside);
    }
    assert_eq!(blocks(&bcast::COLLECTIVE, false), beside);
    assert_eq!(blocks(&allreduce::COLLECTIVE, false), None);
}

/// What somebody prints and reads.
const MOST_SHEETS: u64 = 25;

fn browser() -> Option<&'static str> {
    let has = |path: &str| Path::new(path).exists();
    let selenium =
        || std::process::Command::new("/usr/bin/python3").args(["-c", "import selenium"]).output().is_ok_and(|o| o.status.success());
    (has("/usr/bin/chromium") && has("/usr/bin/chromedriver") && selenium()).then_some("/usr/bin/python3")
}

#[test]
fn the_page_works_in_a_browser_by_keyboard() {
    let Some(python) = browser() else {
        eprintln!(
            "SKIPPED 1 test: the report in a browser: chromium, chromium-driver or python3-selenium is not installed (scripts/setup.sh installs them)"
        );
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let policy_file = file("policies/ccgrid2007.toml").display().to_string();
    let compiled = CompiledPolicy::new(policy("ccgrid2007")).unwrap();
    std::fs::create_dir(folder.path().join("traces")).unwrap();
    write_trace(&compiled, &bcast::COLLECTIVE, 64 << 10, true, &folder.path().join("traces"));
    std::fs::write(folder.path().join("bench.json"), serde_json::to_string(&compared(&compiled.policy)).unwrap()).unwrap();
    let runs = file("examples/reports/8.mpiP").display().to_string();
    let given = ["--trace", "traces", "--bench", "bench.json", "--app", &runs];
    let said = ok(&[&["report", &policy_file, "-o", "page.html", "--svg", "pictures"], &given[..]].concat(), folder.path());
    assert!(said.contains("page.html") && std::fs::read_dir(folder.path().join("pictures")).unwrap().count() > 30, "{said}");
    let page = folder.path().join("page.html");
    let shots = std::env::var_os("REPORT_SCREENSHOTS").map_or_else(|| folder.path().join("shots"), Into::into);
    std::fs::create_dir_all(&shots).unwrap();
    let output = std::process::Command::new(python).arg(file("tests/report/browser.py")).arg(&page).arg(&shots).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for nothing in ["failed", "logged", "photographs"] {
        assert_eq!(found[nothing], json!([]), "{nothing}");
    }
    // seven sections, two widths, two schemes
    assert_eq!(std::fs::read_dir(&shots).unwrap().count(), 28);
    // every value of unfolded tables is on paper, in parts that a sheet has room for, and all is as before afterwards
    let printed = &found["printed"];
    assert_eq!(printed["values"], printed["values on paper"]);
    assert_eq!((&printed["widest on paper"], &printed["left behind"]), (&15.into(), &0.into()));
    assert!((5..=MOST_SHEETS).contains(&printed["sheets"].as_u64().unwrap()), "{printed}");
    let policy = policy("ccgrid2007");
    let inside = units::seconds(policy.groups[0].latency_s.unwrap());
    assert_eq!(found["pairs"]["latencies"][0], format!("orsay-1 (orsay) – orsay-2 (orsay): {inside}"));
    let (first, last) = (&policy.groups[0], policy.groups.last().unwrap());
    let across = units::seconds(compiled.link_cost(0, policy.groups.len() - 1, 0).transit);
    let pair = format!("{} ({}) – {} ({}): {across}", first.hosts[0], first.name, last.hosts.last().unwrap(), last.name);
    assert_eq!(found["pairs"]["by pointer"], pair);
    // each section has pictures in its photographs; of the schedule the tree, the chart, and what was traced
    for section in ["platform", "models", "choices", "wins", "applications"] {
        assert!(found["pictures"][section].as_u64().unwrap() > 0, "{section}: {}", found["pictures"]);
    }
    assert_eq!(found["pictures"]["schedule"], 3);
    // one view at a time, of each collective and size, with its tree, its chart, and their tables
    let seen = found["slider"].as_object().unwrap();
    let sizes = ["1B", "1KiB", "8KiB", "64KiB", "512KiB", "4MiB"];
    for collective in policy.collectives.keys() {
        let steps = seen[collective.name].as_array().unwrap();
        assert_eq!(steps.len(), if collective.sized() { sizes.len() } else { 1 }, "{}", collective.name);
        for (views, size) in steps.iter().zip(sizes) {
            let [view] = &views.as_array().unwrap()[..] else { panic!("{views}") };
            let of = if collective.sized() { format!("{} of {size}", collective.name) } else { collective.name.into() };
            let pictures = if of == "bcast of 64KiB" { 3 } else { 2 };
            assert!(view[0].as_str().unwrap().starts_with(&of) && view[1] == pictures && view[2] == pictures, "{of}: {view}");
        }
    }
    assert_eq!(seen.len(), policy.collectives.len() + 1);
    let last = seen["from the last root"][0][0][0].as_str().unwrap();
    assert!(last.starts_with("bcast of ") && !last.contains("from rank 0 "), "{last}");
}
