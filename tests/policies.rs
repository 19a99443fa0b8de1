//! The policy file: people can read it, and it says what it was made of.

mod common;

use collwise::collective::{COLLECTIVES, Collective, Parameters, Shape, bcast};
use collwise::model::{Among, Cost, CostModel, Fitted};
use collwise::plan::{Location, PolyModel, everybody, plan};
use collwise::policy::{CompiledPolicy, GroupPolicy, Policy, TwoLevelRow};
use collwise::predict::completion;
use collwise::topology::Link;
use std::collections::HashMap;
use std::path::PathBuf;

/// No line is longer, but for a single string that is.
const WIDTH: usize = 160;

fn stored() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(common::file("policies")).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    all.sort();
    assert!(all.len() >= 6);
    all
}

fn read(path: &str) -> Policy {
    Policy::read(&common::file(path)).unwrap()
}

fn long_line(text: &str) -> Option<&str> {
    let is_string = |line: &str| line.matches('"').count() == 2 && line.trim_start().trim_end_matches(',').ends_with('"');
    text.lines().find(|line| line.chars().count() > WIDTH && !is_string(line))
}

#[test]
fn stored_policies_stand_as_they_are_written_in_lines_that_people_can_read() {
    for path in stored() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(long_line(&text), None, "{}", path.display());
        let body = &text[text.find("format = ").unwrap()..];
        assert_eq!(Policy::read(&path).unwrap().to_toml().unwrap(), body, "{}", path.display());
        // decisions first, models last, lists of hosts as ranges
        let places = ["\n[provenance]", "\n[[group]]", "\n[[errors.", "\n[[calibration.", "\n[[model.", "\n[[measured."];
        let places: Vec<usize> = places.iter().map(|part| text.find(part).unwrap()).collect();
        assert!(places.is_sorted() && text.find("\n[collective.").is_none_or(|at| at < places[0]), "{}", path.display());
        assert!(!text.contains("-1\", \""), "{}", path.display());
    }
}

/// All times of a policy multiplied.
fn slower(policy: &Policy, factor: f64) -> Policy {
    let mut policy = policy.clone();
    let model = |m: &mut Fitted| {
        let times = m.parameters.iter_mut().filter(|(name, _)| *name != "w");
        times.for_each(|(_, e)| [&mut e.value, &mut e.low, &mut e.high].into_iter().for_each(|x| *x *= factor));
        let tables = m.tables.iter_mut().filter(|(name, _)| *name != collwise::model::TABLE_SIZES);
        tables.flat_map(|(_, t)| [&mut t.value, &mut t.low, &mut t.high]).flatten().for_each(|x| *x *= factor);
    };
    for g in &mut policy.groups {
        g.models.iter_mut().chain(&mut g.inside_host).for_each(model);
        g.choices.values_mut().flatten().for_each(|row| row.evidence.predicted_s *= factor);
    }
    policy.links.iter_mut().for_each(|l| model(&mut l.model));
    for row in policy.collectives.values_mut().flat_map(|c| &mut c.two_level) {
        row.evidence.predicted_s *= factor;
        row.evidence.measured_s.iter_mut().for_each(|t| *t *= factor);
    }
    policy
}

/// In these pipelines segments from above and segments to two below come to a port at about the same time: the last digit of a cost decides
/// which goes first, and with it some per cent of the whole.
const IN_TURNS: [&str; 2] = ["segmented_binary", "split_binary"];

/// What a policy predicts: each cost of a message, what algorithms take in its groups, and what all ranks take.
fn predictions(policy: &CompiledPolicy) -> Vec<(String, f64)> {
    const SIZES: [usize; 5] = [1, 3000, 100_000, 4 << 20, 64 << 20];
    let mut all = Vec::new();
    let parts = |c: Cost| [c.send_overhead, c.gap, c.link_gap, c.transit, c.recv_overhead];
    for (k, g) in policy.policy.groups.iter().enumerate() {
        let ranks = g.hosts.len().min(12);
        for (model, bytes) in g.models.iter().flat_map(|m| SIZES.map(|bytes| (&m.model, bytes))) {
            let inner = policy.group_costs(k, model).unwrap();
            let costs = Among { inner, positions: (0..ranks).collect() };
            all.extend(parts(inner.cost(Link { from: 0, to: ranks - 1 }, bytes)).map(|t| (format!("{} {model} {bytes}", g.name), t)));
            for algorithm in bcast::COLLECTIVE.built() {
                for segment in [0, bytes.div_ceil(16)].into_iter().filter(|&s| s == 0 || !IN_TURNS.contains(&algorithm.name)) {
                    let (shape, parameters) = (Shape::new(ranks, 0, bytes), Parameters { in_flight: 4, ..Parameters::of(segment, 0) });
                    let time = completion(&algorithm.schedule(&shape, &parameters).unwrap(), &costs).unwrap();
                    all.push((format!("{} {model} {} {bytes} {segment}", g.name, algorithm.name), time));
                }
            }
        }
    }
    let groups = policy.policy.groups.len();
    for (a, b) in (0..groups).flat_map(|a| (0..groups).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let costs = SIZES.into_iter().flat_map(|bytes| parts(policy.link_cost(a, b, bytes)));
        all.extend(costs.map(|t| (format!("link {a} {b}"), t)));
    }
    let of = |(group, g): (usize, &collwise::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
    let members: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
    for bytes in [1, 3000, 100_000, 1 << 20, 4 << 20] {
        all.push((
            format!("all {bytes}"),
            plan(policy, &members, &bcast::COLLECTIVE, &Shape::new(members.len(), 0, bytes)).unwrap().seconds(),
        ));
    }
    for collective in COLLECTIVES.iter().copied().filter(|c| c.tuned && !c.sized()) {
        all.push((collective.name.into(), plan(policy, &members, collective, &Shape::new(members.len(), 0, 0)).unwrap().seconds()));
    }
    all
}

#[test]
fn a_policy_that_is_written_and_read_predicts_the_same_within_a_thousandth() {
    let mut rounded = 0;
    for path in stored() {
        let policy = Policy::read(&path).unwrap();
        for factor in [1.000_449, 1.723_451, 3.414_593, 6.823_185] {
            let unrounded = slower(&policy, factor);
            let text = unrounded.to_toml().unwrap();
            assert_eq!(long_line(&text), None);
            let read = Policy::parse("policy", &text).unwrap();
            rounded += usize::from(read != unrounded);
            let [before, after] = [unrounded, read].map(|p| predictions(&CompiledPolicy::new(p).unwrap()));
            for ((what, before), (_, after)) in before.iter().zip(&after) {
                assert!((after - before).abs() <= 1e-3 * before, "{}: {what}: {before} s, read {after} s", path.display());
            }
        }
    }
    assert!(rounded > 20, "nothing was rounded");
}

#[test]
fn policies_that_differ_in_any_digit_have_different_fingerprints() {
    let policy = read("policies/ccgrid2007.toml");
    let print = |policy: &Policy| policy.fingerprint().unwrap();
    let changed = |change: fn(&mut Policy)| {
        let mut other = policy.clone();
        change(&mut other);
        print(&other)
    };
    assert_eq!(print(&policy), print(&Policy::parse("again", &policy.to_toml().unwrap()).unwrap()));
    let others = [
        changed(|p| p.groups[0].models[0].parameters.values_mut().next().unwrap().value *= 1.0 + 1e-12),
        changed(|p| p.groups[0].choices.values_mut().next().unwrap()[0].evidence.predicted_s *= 1.0 + 1e-12),
        changed(|p| p.collectives.get_mut(&bcast::COLLECTIVE).unwrap().two_level[3].in_flight = 2),
        changed(|p| p.groups[0].hosts.swap(0, 1)),
        changed(|p| p.groups[0].also.push("orsay-21".into())),
        changed(|p| p.groups[1].also.push("orsay-21".into())),
    ];
    assert!(others.iter().all(|other| *other != print(&policy)), "{others:?}");
}

#[test]
fn what_two_ranks_of_one_host_take_is_written_and_used() {
    let mut policy = read("policies/ccgrid2007.toml");
    let g = &mut policy.groups[0];
    let mut quick = g.models.iter().find(|m| m.model == "hockney").unwrap().clone();
    quick.parameters.values_mut().for_each(|p| (p.value, p.low, p.high) = (1e-9, 1e-9, 1e-9));
    g.hosts[3] = g.hosts[0].clone();
    g.inside_host = Some(quick);
    let text = policy.to_toml().unwrap();
    assert!(text.contains("hosts = [\"orsay-[1-3,1,5-20]\"]"), "{text}");
    let read = Policy::parse("text", &text).unwrap();
    assert_eq!(read, policy);
    let read = CompiledPolicy::new(read).unwrap();
    for name in ["hockney", "tables"] {
        let transit = |to| read.group_costs(0, name).unwrap().cost(Link { from: 0, to }, 1).transit;
        assert!(transit(3) < 1e-8 && transit(2) > 1e-5, "{name}: {} {}", transit(3), transit(2));
    }
    let wrong = text.replacen("value = 1e-9", "value = -1e-9", 1);
    let at = text.lines().position(|line| line == "[inside_host.orsay]").unwrap() + 1;
    let said = Policy::parse("text", &wrong).unwrap_err().to_string();
    assert!(said.contains(&format!("text, line {at}: ")) && said.contains("alpha_s = -0.000000001"), "{said}");
}

#[test]
fn hosts_that_may_stand_in_are_written_as_patterns_and_those_of_one_host_are_warned_of() {
    let mut policy = read("policies/ccgrid2007.toml");
    policy.groups[0].also = (1..=128).map(|k| format!("orsay-{k}")).chain(["spare".into()]).collect();
    let text = policy.to_toml().unwrap();
    assert!(text.contains("\nalso = [\"orsay-[1-128]\", \"spare\"]\n"), "{text}");
    assert_eq!(Policy::parse("text", &text).unwrap(), policy);
    assert!(!policy.warnings().iter().any(|warning| warning.contains("one host")));
    let lonely = policy.groups.iter_mut().find(|g| g.hosts.len() == 1).unwrap();
    lonely.also.push("elsewhere".into());
    let said = format!("\"{}\" has one host", lonely.name);
    assert!(policy.warnings().iter().any(|warning| warning.contains(&said)));
}

#[test]
fn rows_that_are_too_wide_for_a_line_are_tables() {
    let mut policy = read("policies/ccgrid2007.toml");
    let barrier = COLLECTIVES.iter().copied().find(|c| !c.sized()).unwrap();
    let row = &mut policy.collectives.get_mut(barrier).unwrap().two_level[0];
    (row.evidence.native_s, row.native) = (Some(0.012_34), true);
    row.evidence.runner_up = "x".repeat(2 * WIDTH);
    let text = policy.to_toml().unwrap();
    assert_eq!(long_line(&text), None);
    assert!(text.contains("\n[evidence.over_groups.barrier.0]\npredicted_s = "), "{text}");
    assert_eq!(Policy::parse("text", &text).unwrap(), policy);
}

#[test]
fn what_cannot_be_built_for_its_ranks_is_refused() {
    let policy = read("policies/icluster2.toml");
    let (text, allgather) = (policy.to_toml().unwrap(), COLLECTIVES.iter().copied().find(|c| c.name == "allgather").unwrap());
    let (row, ranks) = (&policy.groups[0].choices[allgather][0], policy.groups[0].hosts.len());
    let begin = text.find("\nallgather = [").unwrap();
    let odd = |hosts: usize| {
        let rows = text[begin..].replacen(&format!("\"{}\"", row.algorithm), "\"neighbour_exchange\"", 1);
        let named = format!("{}{rows}", &text[..begin]);
        Policy::parse("text", &named.replacen(&format!("icluster2-[1-{ranks}]"), &format!("icluster2-[1-{hosts}]"), 1))
    };
    let said = odd(99).unwrap_err().to_string();
    let line = text[..begin].matches('\n').count() + 3;
    assert!(
        said.contains(&format!("text, line {line}: ")) && said.contains("\"neighbour_exchange\" wants an even number of ranks"),
        "{said}"
    );
    odd(98).unwrap();
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    // of the broadcast and the barrier alone
    let mut policy = read("policies/ccgrid2007.toml");
    let is_kept = |collective: &Collective| ["bcast", "barrier"].contains(&collective.name);
    policy.collectives.retain(|collective, _| is_kept(collective));
    policy.groups.iter_mut().for_each(|g| g.choices.retain(|collective, _| is_kept(collective)));
    let text = policy.to_toml().unwrap();
    let at = |part: &str| text[..text.find(part).unwrap_or_else(|| panic!("{part}"))].matches('\n').count() + 1;
    let row = "  { from = 0, at = 1, inter_group = \"direct\", intra_group = \"flat\" },";
    let signal = &text[text.find("two_level = [").unwrap()..text.find("\n[evidence.over_groups.bcast]").unwrap()];
    let evidence = "[evidence.over_groups.barrier]\n";
    let otherwise = signal.replacen("at = 0", "at = 7", 1).replace(&format!("{evidence}0 = "), &format!("{evidence}7 = "));
    let orsay = &text[text.find("[evidence.group.orsay.bcast]").unwrap()..text.find("\n[evidence.group.sophia").unwrap()];
    let orsays = "hosts = [\"orsay-[1-20]\"]";
    let any = "{ predicted_s = 1.0, runner_up = \"none\", margin = 0.0 }";
    let choice = "  { from = 8, at = 64, algorithm = ";
    let ratio =
        &text[text.find("[calibration_over_groups.bcast.direct]").unwrap()..text.find("\n[calibration_over_groups.bcast.line]").unwrap()];
    for (from, to, line, words) in [
        ("format = 2", "format = 1\nacross = []", at("format = 2"), "format 1 is not known, this version reads format = 2: tune anew"),
        ("format = 2", "format = 1\nname = \"grid\"", at("format = 2") + 1, "a platform, not a policy"),
        ("format = 2", "", 1, "does not say its format"),
        ("format = 2", "format = 3", at("format = 2"), "format 3 is of a newer collwise"),
        ("ranks = 78\n", "ranks = 78\nbound = 0.5\n", at("ranks = 78\n") + 1, "bound must be a factor from 1 to 100"),
        (row, &row.replace("direct", "airmail"), at(row), "find the inter-group algorithm \"airmail\": there are star, direct"),
        (row, &row.replace("flat", "scatter_ring"), at(row), "is no tree"),
        (row, &row.replace(", intra_group = \"flat\"", ""), at(row), "needs intra_group"),
        (row, &row.replace("intra_group", "segment = \"1KiB\", intra_group"), at(row), "in one piece"),
        (row, &row.replace(" },", ", intra_radix = 4 },"), at(row), "a message that crosses groups has"),
        (
            row,
            &row.replace("\"direct\"", "\"over_all\"").replace(" },", ", intra_in_flight = 4 },"),
            at(row),
            "over all ranks, in segments",
        ),
        (row, &row.replace(" },", ", intra_peers = 100000 },"), at(row), "peers is at most"),
        (row, &row.replace(" },", ", in_flight = 100000 },"), at(row), "in_flight is at most"),
        (row, &row.replace(" },", ", native = true },"), at(row), "needs native_s"),
        (row, &row.replace("at = 1,", "at = 2,"), at(row), "no evidence at 2"),
        (row, "", at("\n[evidence.over_groups.bcast]") + 1, "no row was made at 1"),
        (
            "[[errors.orsay]]\ncollective = \"bcast\"\nmodels = [\"hockney\"",
            "[[errors.orsay]]\ncollective = \"bcast\"\nmodels = [\"parsec\"",
            at("[[errors.orsay]]"),
            "has no model \"parsec\"",
        ),
        ("\nplacement = \"", "\nplacement = \"0x", at("\nplacement = ") + 1, "is no placement of ranks"),
        (signal, &otherwise, at(signal) + 1, "a barrier has no message"),
        ("\"dissemination\", radix = 8, intra", "\"native\", radix = 8, intra", at("two_level = [") + 1, "native = true"),
        ("radix = 8, intra_group", "in_flight = 8, intra_group", at("two_level = [") + 1, "no message"),
        ("radix = 8, intra_group", "radix = 8, intra_peers = 1, intra_group", at("two_level = [") + 1, "intra_peers says nothing"),
        ("radix = 8, intra_group", "radix = 1, intra_group", at("two_level = [") + 1, "a radix is 2 at least"),
        (
            "\"dissemination\", radix = 8, intra",
            "\"double_ring\", radix = 8, intra",
            at("two_level = [") + 1,
            "\"double_ring\" has no radix",
        ),
        ("intra_group = \"tree\", intra_radix", "intra_radix", at("two_level = [") + 1, "an intra_radix, and no intra_group"),
        ("\"knomial\", radix = 4", "\"flat\", radix = 4", at("\"knomial\", radix = 4"), "\"flat\" has no radix"),
        ("\"split_binary\", segment", "\"flat\", segment", at("\"split_binary\", segment"), "\"flat\" has no segment"),
        (choice, &choice.replace("8", "\"8 parsecs\""), at(choice), "\"8 parsecs\" as a size"),
        (choice, &choice.replace("8", "-8"), at(choice), "zero or more"),
        (choice, &choice.replace("8", "0"), at(choice), "begin with 0 and ascend"),
        (orsay, &orsay.replace("\n64 = {", &format!("\n\"64B\" = {any}\n64 = {{")), at(orsay), "64 is there twice"),
        ("margin = ", "margin = -7", at("margin = "), "a share, -1 at least"),
        ("\nname = \"grenoble-a\"", "\nname = \"orsay\"", at("\nname = \"grenoble-a\"") + 1, "group \"orsay\" is there twice"),
        (orsay, &orsay.replace("\n64 = {", "\n65 = {"), at(choice), "no evidence at 64"),
        ("\n64 = { predicted_s = ", "\n64 = { predicted_s = -", at("\n64 = {") + 1, "no valid time"),
        ("\"orsay-[1-20]\"", "\"orsay-[1-20\"", at("\"orsay-[1-20]\""), "a '[' wants a ']'"),
        ("\"orsay-[1-20]\"", "\n\"orsay-1\",\n\"orsay-[20-2]\"", at("\"orsay-[1-20]\"") + 2, "ends where it begins"),
        ("\"orsay-[1-20]\"", "\"orsay-[1-20000000000]\"", at("\"orsay-[1-20]\""), "at most 1048576"),
        ("\"orsay-[1-20]\"", "\"orsay-[1-1000000]\", \"x[1-1000000]\"", at("\"orsay-[1-20]\""), "at most 1048576"),
        ("\"grenoble-a-[1-11]\"", "\"orsay-[7-9]\"", at("\"grenoble-a-[1-11]\""), "host \"orsay-7\" is in two groups"),
        (orsays, &format!("{orsays}\nalso = [\"x[2-1]\"]"), at(orsays) + 1, "ends where it begins"),
        (orsays, &format!("{orsays}\nalso = [\"x\", \"x[1-1048560]\"]"), at(orsays) + 1, "at most 1048576"),
        (
            orsays,
            &format!("{orsays}\nalso = [\"orsay-[1-30]\", \"grenoble-a-[11-12]\"]"),
            at(orsays) + 1,
            "host \"grenoble-a-11\" cannot be like",
        ),
        (
            "\n[[link]]\n",
            "\n[[group]]\nname = \"y\"\nhosts = [\"y\"]\nalso = [\"x\"]\n\n[[group]]\nname = \"z\"\nhosts = [\"z\"]\nalso = [\"w\", \"x\"]\n\n[[link]]\n",
            at("\n[[link]]\n") + 9,
            "host \"x\" cannot be like those of two groups, \"y\" and \"z\"",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let said = Policy::parse("p", &text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(said.contains(&format!("p, line {line}: ")) && said.contains(words), "{to}: not line {line}, {words}:\n{said}");
    }
    let sophia = "[evidence.group.sophia.barrier]";
    // the tables of a name that nobody has
    for (from, to, line, words) in [
        ("errors.orsay", "errors.nowhere", at("[[errors.orsay]]"), "there is no group \"nowhere\""),
        ("link_model.sophia.orsay", "link_model.sophia.nowhere", at("between = [\"sophia\", \"orsay\"]") - 1, "[link_model.sophia.orsay]"),
        (
            "over_groups.bcast.path",
            "over_groups.bcast.parsec",
            at("[calibration_over_groups.bcast.path]"),
            "no inter-group algorithm \"parsec\"",
        ),
        (sophia, &format!("[collective.bcast.evidence]\n1 = {any}\n\n{sophia}"), at(sophia), "this is there twice"),
        (sophia, &format!("[evidence.group.nowhere.bcast]\n\n{sophia}"), at(sophia), "there is no group \"nowhere\""),
        (
            "calibration_over_groups.bcast",
            "calibration_over_groups.scatter",
            at("[calibration_over_groups.bcast.direct]"),
            "no [collective.scatter]",
        ),
        (ratio, &ratio.replace("= [1.0,", "= [-1.0,"), at(ratio), "a ratio above zero"),
        (ratio, &ratio.replace("= [1,", "= ["), at(ratio), "sizes that ascend"),
    ] {
        let said = Policy::parse("p", &text.replace(from, to)).unwrap_err().to_string();
        assert!(said.contains(&format!("p, line {line}: ")) && said.contains(words), "{to}: not line {line}, {words}:\n{said}");
    }
}

/// Older versions wrote it beside the rows.
#[test]
fn evidence_is_read_where_older_versions_wrote_it() {
    let policy = read("policies/ccgrid2007.toml");
    let text = policy.to_toml().unwrap();
    let beside = |from: &str, what: &str| {
        let moved = text.split(from).enumerate().map(|(k, part)| match part.split_once(']').filter(|_| k > 0) {
            Some((name, rest)) => {
                let (collective, algorithm) = name.split_once('.').map_or((name, String::new()), |(c, a)| (c, format!(".{a}")));
                format!("[collective.{collective}.{what}{algorithm}]{rest}")
            }
            None => part.to_string(),
        });
        moved.collect::<String>()
    };
    for (from, what) in [("[evidence.over_groups.", "evidence"), ("[calibration_over_groups.", "calibration")] {
        let older = beside(from, what);
        assert!(older.contains(&format!("[collective.bcast.{what}")) && !older.contains(from));
        assert_eq!(Policy::parse("text", &older).unwrap(), policy);
    }
    let alone = read("policies/two-core-vm.toml");
    let older = alone.to_toml().unwrap().replace("[evidence.group.vm.", "[group.evidence.");
    assert_eq!(Policy::parse("text", &older).unwrap(), alone);
    let table = "[group.evidence.bcast]\n";
    let line = older[..older.find(table).unwrap()].matches('\n').count() + 1;
    let nobodys = older.replace(table, &format!("{table}77 = {{ predicted_s = 1.0, runner_up = \"none\", margin = 0.0 }}\n"));
    let said = Policy::parse("text", &nobodys).unwrap_err().to_string();
    assert!(said.contains(&format!("text, line {line}: no row was made at 77")), "{said}");
}

/// Older versions wrote a table for each model; what does not say of which collective it is counts for none.
#[test]
fn scores_are_read_as_older_versions_wrote_them() {
    let policy = read("policies/hcl16.toml");
    let text = policy.to_toml().unwrap();
    let is_errors = |block: &&str| block.trim_start().trim_start_matches('[').starts_with("errors.");
    let mut old: Vec<String> = text.split("\n\n").filter(|block| !is_errors(block)).map(String::from).collect();
    for g in &policy.groups {
        let table = |score| toml::to_string(score).unwrap().replace("[error_by_", &format!("[score.{}.error_by_", g.name));
        old.extend(g.scores.iter().map(|score| format!("[[score.{}]]\n{}", g.name, table(score))));
    }
    assert!(old.len() > 20 && !old.iter().any(|block| block.contains("[errors.")));
    assert!(Policy::parse("old", &old.join("\n\n")).unwrap() == policy);
    let unsaid = old.join("\n\n").replacen("collective = \"bcast\"\nmodel", "model", 1);
    assert!(Policy::parse("old", &unsaid).unwrap_err().to_string().contains("missing field `collective`"));
    // a table that lacks a value
    let at = text.find("\nstandard_error = [").unwrap();
    let (head, rest) = text.split_at(at);
    let cut = format!("{head}{}", rest.replacen("standard_error = [", "standard_error = [0.1, ", 1));
    let said = Policy::parse("p", &cut).unwrap_err().to_string();
    let line = 1 + text[..text.find("[[errors.").unwrap()].matches('\n').count();
    assert!(said.contains(&format!("p, line {line}: ")) && said.contains("a value for each of the models"), "{said}");
}

/// How much is under way to near ranks can be said of one algorithm over all of them.
#[test]
fn a_window_inside_groups_is_read_of_one_algorithm_over_all_ranks_in_segments() {
    let mut policy = read("policies/ccgrid2007.toml");
    let row = policy.collectives.get_mut(&bcast::COLLECTIVE).unwrap().two_level.last_mut().unwrap();
    (row.inter_group, row.intra_group, row.segment_bytes) = ("over_all".into(), Some("segmented_chain".into()), 8 << 10);
    (row.in_flight, row.intra_in_flight, row.peers) = (20, 11, 0);
    let bytes = row.at_bytes;
    let policy = CompiledPolicy::new(Policy::parse("p", &policy.to_toml().unwrap()).unwrap()).unwrap();
    let members = everybody(&policy.policy);
    let plan = plan(&policy, &members, &bcast::COLLECTIVE, &bcast::COLLECTIVE.shape(members.len(), 0, bytes)).unwrap();
    let two_level = &plan.routed().unwrap().two_level;
    assert_eq!((two_level.intra_group[0].parameters.in_flight, two_level.near.iter().map(|n| n.in_flight).collect()), (20, vec![11]));
}

/// From another root such a tree crosses groups elsewhere, and the last row's size is the largest that anything was measured at.
#[test]
fn a_row_of_a_tree_over_all_ranks_holds_from_its_own_root_and_at_sizes_near_its_own() {
    let mut policy = read("policies/pmeo2006.toml");
    let of = |(group, g): (usize, &GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
    let members: Vec<Location> = policy.groups.iter().enumerate().flat_map(of).collect();
    let [reduce, gather] = ["reduce", "gather"].map(|name| COLLECTIVES.iter().copied().find(|c| c.name == name).unwrap());
    let last = policy.collectives.get_mut(reduce).unwrap().two_level.last_mut().unwrap();
    (last.inter_group, last.intra_group, last.segment_bytes) = ("binomial".into(), None, 0);
    let largest = [reduce, gather].map(|c| policy.two_level(c).last().unwrap().at_bytes);
    let policy = CompiledPolicy::new(policy).unwrap();
    let from_row = |c: &'static Collective, root, bytes| plan(&policy, &members, c, &c.shape(members.len(), root, bytes)).unwrap().from_row;
    assert!(from_row(reduce, 0, largest[0]) && !from_row(reduce, 5, largest[0]), "a neighbour's tree crosses groups elsewhere");
    assert!(from_row(gather, 0, largest[1]) && from_row(gather, 0, 2 * largest[1]) && !from_row(gather, 0, 8 * largest[1]));
}

/// What models say of their links by kind, or of all at once, holds for each, also over groups.
#[test]
fn links_of_models_are_of_kinds_and_lossless_where_they_say_so() {
    let (mut alike, mut of_kinds, mut unlike) = (0, 0, 0);
    for path in stored() {
        let policy = CompiledPolicy::new(Policy::read(&path).unwrap()).unwrap();
        let of = |(group, g): (usize, &GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
        let members: Vec<Location> = policy.policy.groups.iter().enumerate().flat_map(of).collect();
        let mut check = |costs: &dyn CostModel, ranks: usize| {
            *match costs.kinds() {
                0 => &mut unlike,
                1 => &mut alike,
                _ => &mut of_kinds,
            } += 1;
            let links = (0..ranks).flat_map(|k| [1, 2, 7, ranks / 2 + 1].map(|apart| Link { from: k, to: (k + apart) % ranks }));
            for bytes in [0, 1, 1000, 65_537, 3 << 20] {
                let mut first = HashMap::new();
                for link in links.clone().filter(|link| link.from != link.to) {
                    let of = (costs.cost(link, bytes), costs.port_in(link, bytes), costs.pipe(link, bytes));
                    assert!(costs.kinds() == 0 || costs.kind(link) < costs.kinds(), "{}", path.display());
                    let known = *first.entry(costs.kind(link)).or_insert(of);
                    assert!(costs.kinds() == 0 || of == known, "{}: {link:?} {of:?} {known:?}", path.display());
                    assert!(costs.kinds() != 1 || of.2.is_none(), "{}: what is shared", path.display());
                    assert!(costs.loses() || costs.loss(link, bytes).is_none(), "{}", path.display());
                }
            }
        };
        check(&PolyModel::new(&policy, &members, &bcast::COLLECTIVE, 1000).unwrap(), members.len());
        for (g, group) in policy.policy.groups.iter().enumerate().filter(|(_, group)| group.hosts.len() > 2) {
            let models = group.models.iter().filter_map(|fitted| policy.group_costs(g, &fitted.model));
            models.for_each(|costs| check(costs, group.hosts.len()));
        }
    }
    assert!(alike > 0 && of_kinds > 0 && unlike > 0, "{alike}, {of_kinds} and {unlike}");
}

/// The ways of forms over groups that were predicted to be the fastest between sizes were once taken there without a run of any.
#[test]
fn forms_over_groups_are_of_a_way_that_was_measured() {
    let mut between = 0;
    for path in ["ccgrid2007", "pmeo2006", "icluster2", "hcl16"].map(|name| format!("policies/{name}.toml")) {
        let policy = read(&path);
        for collective in COLLECTIVES.iter().copied().filter(|c| *c != &bcast::COLLECTIVE) {
            let rows = policy.two_level(collective);
            let way = |row: &TwoLevelRow| (row.inter_group.clone(), row.radix, row.segment_bytes, row.intra_group.clone(), row.intra_radix);
            let measured: Vec<_> = rows.iter().filter(|row| row.evidence.measured_s.is_some()).map(way).collect();
            for row in rows.iter().filter(|row| row.evidence.measured_s.is_none() && !row.native) {
                assert!(measured.contains(&way(row)), "{path}: {} from {} B: {:?}", collective.name, row.from_bytes, way(row));
                between += 1;
            }
        }
    }
    assert!(between > 0);
}

#[test]
fn a_policy_that_lists_a_host_comes_before_one_by_which_it_may_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let mut policy = read("policies/ccgrid2007.toml");
    let mut write = |name: &str, also: &[&str]| {
        policy.provenance.platform = name.into();
        policy.groups[0].also = also.iter().map(|host| host.to_string()).collect();
        std::fs::write(folder.path().join(format!("{name}.toml")), policy.to_toml().unwrap()).unwrap();
    };
    write("b", &["icluster2-7", "orsay-21"]);
    write("c", &["orsay-21"]);
    std::fs::copy("policies/icluster2.toml", folder.path().join("d.toml")).unwrap();
    let found = |host: &str| Policy::of_host(folder.path(), host).map(|policy| policy.provenance.platform);
    assert_eq!(found("icluster2-7").unwrap(), "icluster2");
    assert_eq!([found("orsay-21").unwrap(), found("orsay-21.example").unwrap(), found("orsay-1.example").unwrap()], ["b"; 3]);
    assert!(found("orsay-22").is_err());
}

#[test]
fn rows_hold_for_as_many_ranks_on_each_host_as_they_were_made_with() {
    let policy = CompiledPolicy::new(Policy::read(&common::file("policies/ccgrid2007.toml")).unwrap()).unwrap();
    let ranks = policy.policy.groups[0].hosts.len();
    let from_row = |positions: &[usize]| policy.decide(&bcast::COLLECTIVE, 0, positions, 1 << 16).unwrap().from_row;
    assert!(from_row(&(0..ranks).collect::<Vec<_>>()) && from_row(&(0..ranks).rev().collect::<Vec<_>>()));
    // two on each host of half of them; one that is not of the tuned ones
    assert!(!from_row(&(0..ranks).map(|rank| rank / 2).collect::<Vec<_>>()));
    assert!(!from_row(&(1..=ranks).collect::<Vec<_>>()) && !from_row(&(1..ranks).collect::<Vec<_>>()));
}
