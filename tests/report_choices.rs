//! The report's choices: what decision maps say, and what changed against another policy.
#![cfg(feature = "cli")]

#[path = "common/command.rs"]
mod command;
mod common;

use collwise::bench;
use collwise::collective::{COLLECTIVES, scatter};
use collwise::plan::{Location, everybody, plan};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::report::{Block, Inputs, Report, Table};
use collwise::units;
use command::ok;
use common::file;

fn policy(name: &str) -> Policy {
    Policy::read(&file(&format!("policies/{name}.toml"))).unwrap()
}

fn report_against(policy: Policy, old: Option<&Policy>) -> Report {
    let policy = CompiledPolicy::new(policy).unwrap();
    let old = old.map(|old| CompiledPolicy::new(old.clone()).unwrap());
    let placed = (1, collwise::qnm::Spread::Block);
    let against = old.as_ref().map(|old| ("old.toml", old));
    let inputs = Inputs { policy: &policy, made_by: None, samples: None, benches: &[], traces: &[], runs: &[], placed, against };
    Report::of(&inputs).unwrap()
}

fn report(policy: Policy) -> Report {
    report_against(policy, None)
}

/// What is said of hosts and links, with its table if there is one.
fn changes(new: &Policy, old: &Policy) -> (String, Table) {
    let report = report_against(new.clone(), Some(old));
    let all = report.sections.iter().flat_map(|s| &s.blocks).filter_map(|block| match block {
        Block::Missing(words) if words.starts_with("Against old.toml: ") => Some((words.clone(), Table::new(&[]))),
        Block::Table(of) if of.title == "What changed of hosts and links" => Some((of.words.clone(), of.table.clone())),
        _ => None,
    });
    let [all] = &all.collect::<Vec<_>>()[..] else { panic!("hosts and links are compared once") };
    all.clone()
}

/// What is measured again and found alike is not said, and a group that has another name is the same.
#[test]
fn hosts_that_moved_and_links_that_changed_are_said() {
    let old = policy("ccgrid2007");
    let (words, table) = changes(&old, &old);
    assert!(words.contains(" 0 hosts came, went or are elsewhere; of 35 latencies and bandwidths"), "{words}");
    assert!(words.contains(" 0 changed by more than 1.2 times") && table.rows.is_empty(), "{words}");
    let mut new = old.clone();
    let last = |policy: &Policy, k: usize| policy.groups[k].hosts.len() - 1;
    let (a, b) = (last(&new, 0), last(&new, 4));
    let moved = new.groups[0].hosts[a].clone();
    new.groups[0].hosts[a] = std::mem::replace(&mut new.groups[4].hosts[b], moved);
    let gone = last(&new, 5);
    new.groups[5].hosts[gone] = "stranger".into();
    new.groups[3].name = "renamed".into();
    new.links.iter_mut().flat_map(|l| &mut l.between).filter(|name| **name == "grenoble-c").for_each(|name| *name = "renamed".into());
    new.links[2].latency_s *= 1.1;
    new.links[3].latency_s *= 1.5;
    new.groups[1].latency_s = new.groups[1].latency_s.map(|t| t * 2.0);
    new.links[9].model.tables.get_mut("g").unwrap().value.iter_mut().for_each(|gap| *gap *= 2.0);
    let (words, table) = changes(&new, &old);
    let rows: Vec<String> = table.rows.iter().map(|r| r.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>().join("; ")).collect();
    for said in [
        "host orsay-20; orsay; toulouse",
        "host toulouse-20; toulouse; orsay",
        "host sophia-19; sophia; not there",
        "host stranger; not there; sophia",
    ] {
        assert!(rows.iter().any(|row| row == said), "{said}: {rows:?}");
    }
    let latency =
        |seconds: f64, times: f64| format!("{}; {}, {times:.2} times as much", units::seconds(seconds), units::seconds(times * seconds));
    for said in [
        format!("latency inside grenoble-a; {}", latency(old.groups[1].latency_s.unwrap(), 2.0)),
        format!("latency of orsay to toulouse; {}", latency(old.links[3].latency_s, 1.5)),
    ] {
        assert!(rows.contains(&said), "{said}: {rows:?}");
    }
    assert!(rows.iter().any(|row| row.starts_with("bandwidth of grenoble-b to grenoble-c; ")), "{rows:?}");
    assert!(
        words.contains(" 4 hosts came, went or are elsewhere; of 35 ") && words.contains(", 3 changed by more") && rows.len() == 7,
        "{words} {rows:?}"
    );
}

/// Two files of one name are told apart by where they are.
#[test]
fn comparisons_of_one_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let policy = file("policies/icluster2.toml").display().to_string();
    let hosts = self::policy("icluster2").groups[0].hosts.clone();
    let rows = ["native", "adaptive"].map(|of| bench::Row { root: 0, bytes: 8, contestant: of.into(), seconds: vec![1e-3], wrong: 0 });
    let bench = bench::Report { collective: "bcast".into(), library: "x".into(), date: String::new(), hosts, rows: rows.to_vec() };
    for name in ["a/x.json", "b/x.json", "c/y.json"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, serde_json::to_string(&bench).unwrap()).unwrap();
    }
    let arguments = ["report", &policy, "--bench", "a/x.json", "--bench", "b/x.json", "--bench", "c/y.json"];
    ok(&arguments, folder.path());
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap().replace("&#x2f;", "/");
    for name in [": a/x.json", ": b/x.json", ": y"] {
        assert!(html.contains(&format!("{name}</h3>")), "{name}");
    }
}

/// A map's words explain the rows that it has, and a margin that nobody knows looks otherwise than a large one.
#[test]
fn a_map_explains_what_it_shows() {
    let words = |report: &Report, id: &str| report.figures().find(|f| f.id == id).unwrap().words.clone();
    let (several, one) = (report(policy("ccgrid2007")), report(policy("icluster2")));
    let [several, one] = [words(&several, "decisions-bcast"), words(&one, "decisions-bcast")];
    for part in ["By slot", "each are so many hosts of each group", "Over groups"] {
        assert!(several.contains(part) && !one.contains(part), "{part}: {several} {one}");
    }
    let mut policy = policy("icluster2");
    let map = |policy: &Policy| report(policy.clone()).figures().find(|f| f.id == "decisions-bcast").unwrap().svg.clone();
    let mut of_margin = |runner_up: &str, margin: f64| {
        for row in policy.groups[0].choices.values_mut().flatten() {
            (row.evidence.runner_up, row.evidence.margin) = (runner_up.into(), margin);
        }
        map(&policy)
    };
    let [large, larger, unknown] = [of_margin("chain", 1.0), of_margin("chain", 2.0), of_margin("none", 1.0)];
    assert!(large == larger && large != unknown);
}

/// Each cell of a decision map says at which size its times are, and what is done above all sizes that were measured is what a call does.
#[test]
fn decisions_are_of_the_sizes_that_they_say() {
    let policy = policy("ccgrid2007");
    let rows = report(policy.clone()).figures().find(|f| f.id == "decisions-scatter").unwrap().table.rows.clone();
    let compiled = CompiledPolicy::new(policy.clone()).unwrap();
    let all: Vec<Location> = everybody(&policy);
    let over_all = policy.two_level(&scatter::COLLECTIVE);
    let last = over_all.last().unwrap().at_bytes;
    let mut above = 0;
    for (column, bytes) in [1, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20].into_iter().enumerate() {
        let said = &rows[0][column + 1].text;
        let row = over_all.iter().rev().find(|r| r.from_bytes <= bytes).unwrap();
        let plan = plan(&compiled, &all, &scatter::COLLECTIVE, &scatter::COLLECTIVE.shape(all.len(), 0, bytes)).unwrap();
        if bytes > last && !plan.from_row {
            above += 1;
            assert!(said.contains(&units::seconds(plan.predicted_s.unwrap())), "{bytes}: {said}");
        } else {
            assert!(said.contains(&units::seconds(row.evidence.predicted_s)), "{bytes}: {said}");
            let decided = format!("as decided at {}", units::bytes(row.at_bytes));
            assert_eq!(said.contains(&decided), row.at_bytes != bytes, "{bytes}: {said}");
        }
    }
    assert!(above > 0);
    // fewer ranks, too
    let half: Vec<Location> = all.iter().copied().filter(|m| m.position < (policy.groups[m.group].hosts.len() / 2).max(1)).collect();
    let row = rows.iter().find(|r| r[0].text == format!("half each, {} ranks", half.len())).unwrap();
    let planned = plan(&compiled, &half, &scatter::COLLECTIVE, &scatter::COLLECTIVE.shape(half.len(), 0, 8 << 10)).unwrap();
    assert!(row[3].text.contains(&units::seconds(planned.predicted_s.unwrap())), "{}", row[3].text);
    assert!(
        ["all groups, 78", "by slot, 32", "quarter each, 18", "one each, 6"]
            .iter()
            .all(|name| rows.iter().any(|r| r[0].text.starts_with(name)))
    );
}

/// A cell that is not decided shows nothing of another size, and what goes from group to group as a whole has one name.
#[test]
fn what_is_not_decided_says_what_decides_it() {
    let report = report(policy("ccgrid2007"));
    let (mut left, mut all) = (0, 0);
    for figure in report.figures().filter(|f| f.id.starts_with("decisions-")) {
        all += figure.table.rows.len() * (figure.table.header.len() - 1);
        for (row, column) in figure.table.rows.iter().flat_map(|row| (1..row.len()).map(move |column| (row, column))) {
            let (said, size) = (&row[column].text, &figure.table.header[column]);
            if said.starts_with("not decided: ") {
                left += 1;
                assert!(said.contains(&format!("--bytes {size}`")) && !said.contains("predicted"), "{size}: {said}");
            }
            assert!(!said.contains("as each is best") || said.starts_with("whole and as each is best, in one piece"), "{said}");
            assert!(!said.contains(&format!(", in {size}")), "{size}: {said}");
        }
    }
    assert!(left > 0 && 30 * left < all, "{left} of {all}");
}

/// A map says of what all ranks do by which radix, whether by the speed of processors, and in which order, as `explain` does.
#[test]
fn cells_say_what_is_done_as_explain_does() {
    let marks = |said: &str| {
        let words: Vec<&str> = said.split([' ', ',', ';', ':']).collect();
        let radices = words.windows(2).filter(|two| two[0] == "radix").map(|two| format!("radix {}", two[1]));
        let others = ["by speed", "the farthest first"].into_iter().filter(|mark| said.contains(mark)).map(String::from);
        radices.chain(others).collect::<Vec<_>>()
    };
    let mut seen = 0;
    let mut fewer = 0;
    for name in ["hcl16", "ccgrid2007"] {
        let policy = policy(name);
        let report = report(policy.clone());
        let (members, compiled) = (everybody(&policy), CompiledPolicy::new(policy).unwrap());
        for collective in COLLECTIVES.iter().copied() {
            let Some(map) = report.figures().find(|f| f.id == format!("decisions-{}", collective.name)) else { continue };
            let row = map.table.rows.iter().find(|row| row[0].text.ends_with(&format!(", {} ranks", members.len()))).unwrap();
            for (cell, size) in row.iter().zip(&map.table.header).skip(1) {
                let bytes = if collective.sized() { units::parse_bytes(size).unwrap() } else { 0 };
                let words = plan(&compiled, &members, collective, &collective.shape(members.len(), 0, bytes)).unwrap().words();
                let name = cell.text.split([':', ';']).next().unwrap();
                let name = name.split(", as decided").next().unwrap();
                assert_eq!(marks(name), marks(&words), "{} of {size}: {} is {words}", collective.name, cell.text);
                seen += usize::from(!marks(&words).is_empty());
            }
            // what fewer ranks of a group do, and how long that takes
            for row in &map.table.rows {
                let mut groups = compiled.policy.groups.iter().enumerate();
                let of_group = groups.find_map(|(k, g)| Some((k, row[0].text.strip_prefix(&format!("{}, ", g.name))?, g.hosts.len())));
                let Some((group, Some(ranks), hosts)) = of_group.map(|(k, of, hosts)| (k, of.split(' ').next(), hosts)) else { continue };
                let ranks: usize = ranks.parse().unwrap();
                let members: Vec<_> = (0..ranks).map(|position| Location { group, position }).collect();
                for (cell, size) in row.iter().zip(&map.table.header).skip(1).filter(|_| ranks < hosts) {
                    let bytes = if collective.sized() { units::parse_bytes(size).unwrap() } else { 0 };
                    let plan = plan(&compiled, &members, collective, &collective.shape(ranks, 0, bytes)).unwrap();
                    let Some(takes) = cell.text.split("predicted ").nth(1) else { continue };
                    assert_eq!(
                        takes.split(';').next().unwrap(),
                        units::seconds(plan.seconds()),
                        "{}: {}, {size}: {}",
                        collective.name,
                        row[0].text,
                        plan.words()
                    );
                    fewer += 1;
                }
            }
        }
    }
    assert!(seen > 20, "{seen} of them have something to say");
    assert!(fewer > 300, "{fewer} times");
}

/// Whatever is chosen on the page of a policy of tens of hosts, its tree and its chart are there.
#[test]
fn every_size_and_root_has_its_tree_and_its_chart() {
    for path in Policy::files(&file("policies")).unwrap() {
        let policy = Policy::read(&path).unwrap();
        let mut report = report(policy);
        let blocks = report.sections.iter().flat_map(|s| &s.blocks);
        let chooser = blocks.filter_map(|b| if let Block::Chooser(c) = b { Some(c) } else { None }).next().unwrap();
        for view in &chooser.views {
            let drawn: Vec<&str> = view.figures.iter().map(|f| f.id.split_once('-').unwrap().0).collect();
            let is_native = view.words.ends_with("The MPI library's own messages are not known.");
            assert!(drawn == ["tree", "gantt"] || is_native, "{}: {}", path.display(), view.words);
        }
        let page = report.html().unwrap();
        report.most_bytes = usize::MAX;
        assert!(page == report.html().unwrap(), "{}: pictures gave way", path.display());
    }
}
