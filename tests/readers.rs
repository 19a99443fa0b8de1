//! Readers meet anything without panicking: mutated real files, and noise; and what they accept can be used. There are ten, of platforms,
//! policies, sample files (with the hierarchies in them), problems between groups, latency matrices, host files, reports of mpiP,
//! the profiles that these are written from, comparisons, and traces; and the sizes and times of the command line.

mod common;

use collwise::accuracy::{accuracy, by_place, regrets};
use collwise::cluster::{Bound, METHODS};
use collwise::collective::{COLLECTIVES, Parameters, Shape, bcast};
use collwise::discover::{discover, discover_matrix};
use collwise::intercluster::{Problem, exact, gantt, lower_bound, solve};
use collwise::measure::{Experiment, Probe, Recorded, Samples, Session, Settings, SimulatedProbe};
use collwise::model::MODELS;
use collwise::plan::{Location, PolyModel, members, plan};
use collwise::platform::{Placement, Platform, simgrid};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::predict::completion;
use collwise::qnm::{Application, Machine, Profile, Report, Run, Spread, report};
use collwise::schedule::{check, completes, pieces};
use collwise::topology::Declared;
use collwise::topology::parse_matrix;
use collwise::tune::{TuneOptions, tune};
use collwise::two_level::TwoLevel;
use proptest::prelude::*;
use std::sync::OnceLock;

/// A schedule of more messages is not built here, nor a platform of more hosts: that would take long, and find no more.
const MOST_MESSAGES: usize = 20_000;
const MOST_HOSTS: usize = 40;

/// A change of a text: which, and where to.
type Edit = (u8, usize, usize, usize);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec((0u8..6, any::<usize>(), any::<usize>(), any::<usize>()), 1..5)
}

/// What parsers stumble over.
const TOKENS: [&str; 19] = [
    "-1",
    "nan",
    "inf",
    "1e999",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "0",
    "18446744073709551615",
    "[[group]]",
    "[1-3,7]",
    "",
    ",",
    "\u{0}",
    "é",
];
/// Numbers that are written right and mean something else.
const NUMBERS: [&str; 12] =
    ["0", "1", "9", "-1", "1e308", "18446744073709551615", "9223372036854775807", "4294967296", "1e-300", "0.5", "1000", "1e6"];

/// The places of all numbers outside of words.
fn numbers(text: &str) -> Vec<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let is_part = |b: u8| b.is_ascii_digit() || b"+-.eE".contains(&b);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && (at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_'));
        let end = at + bytes[at..].iter().take_while(|&&b| is_part(b)).count().max(1);
        if begins {
            found.push(at..end);
        }
        at = end;
    }
    found
}

/// The places of all words in quotes, without them.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
    quotes.windows(2).map(|pair| pair[0] + 1..pair[1]).filter(|r| r.len() < 30 && !text[r.clone()].contains('\n')).collect()
}

/// A text with some changes: bytes cut or replaced, numbers replaced by others, words by others of the text, lines lost, doubled and
/// moved.
fn mutated(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_string();
    for &(kind, a, b, c) in edits {
        match kind {
            0 => {
                let mut bytes = text.into_bytes();
                let at = a % (bytes.len() + 1);
                let end = (at + b % 12).min(bytes.len());
                bytes.splice(at..end, TOKENS[c % TOKENS.len()].bytes());
                text = String::from_utf8_lossy(&bytes).into_owned();
            }
            1 | 2 => {
                let all = numbers(&text);
                if !all.is_empty() {
                    text.replace_range(all[a % all.len()].clone(), NUMBERS[b % NUMBERS.len()]);
                }
            }
            3 => {
                // two numbers of the file change places, or one takes the other's
                let all = numbers(&text);
                if !all.is_empty() {
                    let other = text[all[b % all.len()].clone()].to_string();
                    text.replace_range(all[a % all.len()].clone(), &other);
                }
            }
            4 => {
                let all = words(&text);
                if !all.is_empty() {
                    let other = text[all[b % all.len()].clone()].to_string();
                    text.replace_range(all[a % all.len()].clone(), &other);
                }
            }
            _ => {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                if lines.is_empty() {
                    continue;
                }
                let line = lines.remove(a % lines.len());
                let places = lines.len() + 1;
                (0..b % 3).for_each(|k| lines.insert(c.wrapping_add(k) % places, line));
                text = lines.concat();
            }
        }
    }
    text
}

fn read(path: &str) -> String {
    std::fs::read_to_string(common::file(path)).unwrap()
}

/// Real files of all kinds, over a small platform of three groups.
struct Files {
    platform: String,
    policy: String,
    /// The lines of a sample file: the settings, and many samples.
    samples: Vec<String>,
    compiled: CompiledPolicy,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let platform = Platform::parse("three", common::THREE_GROUPS).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Node, 1).unwrap();
        let settings = serde_json::to_string(&probe.settings()).unwrap();
        let mut session = Session::new(&mut probe);
        let (_, policy) = tune(&mut session, TuneOptions::default()).unwrap();
        let of = |sample| serde_json::to_string(sample).unwrap();
        let samples: Vec<String> = std::iter::once(settings).chain(session.samples().iter().map(of)).map(|l| l + "\n").collect();
        assert!(samples.iter().filter(|l| l.contains("two_level")).count() > 50, "broadcasts over groups");
        let (platform, text) = (platform.to_toml().unwrap(), policy.to_toml().unwrap());
        Files { platform, policy: text, samples, compiled: CompiledPolicy::new(policy).unwrap() }
    })
}

fn everybody(policy: &Policy) -> Vec<Location> {
    let of = |(group, g): (usize, &collwise::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
    policy.groups.iter().enumerate().flat_map(of).collect()
}

fn use_platform(platform: &Platform) {
    if platform.host_count() > MOST_HOSTS {
        return;
    }
    let (_, _, machine) = (platform.latencies(), simgrid::xml(platform), Machine::of_platform(platform, 2));
    if let Ok(machine) = machine {
        machine.place(5, Spread::Block).unwrap();
    }
    assert_eq!(&Platform::parse("p", &platform.to_toml().unwrap()).unwrap(), platform);
    if let Ok(mut probe) = SimulatedProbe::new(platform, Placement::Node, 1) {
        let _ = discover(&mut Session::new(&mut probe), None, METHODS[0], Bound::default());
        let (ranks, parameters) = ((0..platform.host_count()).collect(), Parameters::of(1000, 0));
        let broadcast = Experiment::Collective {
            collective: &bcast::COLLECTIVE,
            ranks,
            root: 0,
            bytes: 9000,
            algorithm: "segmented_binary".into(),
            parameters,
        };
        let times = probe.run(&[vec![broadcast]], 2);
        assert!(times.is_err() || times.unwrap()[0].seconds.iter().all(|t| *t >= 0.0));
    }
}

fn use_policy(policy: Policy) {
    let everybody = everybody(&policy);
    if everybody.len() > MOST_HOSTS {
        return;
    }
    assert!(Policy::parse("again", &policy.to_toml().unwrap()).is_ok(), "what is read can be written");
    let compiled = CompiledPolicy::new(policy).unwrap();
    for (k, g) in compiled.policy.groups.iter().enumerate().filter(|(_, g)| !g.rows(&bcast::COLLECTIVE).is_empty()) {
        let d = compiled.decide(&bcast::COLLECTIVE, k, &(0..g.hosts.len()).collect::<Vec<_>>(), 5000).unwrap();
        assert!(d.predicted_s.is_finite());
    }
    let part: Vec<Location> = everybody.iter().copied().step_by(2).collect();
    for (members, bytes) in [(&everybody, 0), (&everybody, 5000), (&everybody, 40_000), (&part, 5000)] {
        let least =
            compiled.policy.two_level(&bcast::COLLECTIVE).iter().map(|r| r.segment_bytes).filter(|s| *s > 0).min().unwrap_or(bytes.max(1));
        if pieces(bytes, least) * members.len() > MOST_MESSAGES {
            continue;
        }
        let shape = Shape::new(members.len(), members.len() - 1, bytes);
        let Ok(plan) = plan(&compiled, members, &bcast::COLLECTIVE, &shape) else { continue };
        let two_level = &plan.routed().unwrap().two_level;
        two_level.validate(members.len()).unwrap();
        use_hierarchy(two_level, members.len(), &compiled, members);
    }
    let machine = Machine::of_policy(&compiled, 2).unwrap();
    let placed = machine.place(6, Spread::Cyclic).unwrap();
    machine.message_s(&placed, collwise::qnm::Partners::Anyone, collwise::qnm::Neighbourhood::Cube, 1e4);
}

fn use_hierarchy(two_level: &TwoLevel, ranks: usize, compiled: &CompiledPolicy, members: &[Location]) {
    if two_level.message_count() <= MOST_MESSAGES {
        let schedule = two_level.schedule(ranks).unwrap();
        check(&schedule, &two_level.specification(ranks)).unwrap();
        completion(&schedule, &PolyModel::new(compiled, members, &bcast::COLLECTIVE, two_level.bytes).unwrap()).unwrap();
    }
}

fn use_samples(settings: Settings, samples: Samples, tunes: bool) {
    let compiled = &files().compiled;
    let Ok(members) = members(&compiled.policy, &settings.hosts) else { return };
    for sample in samples.iter() {
        match &sample.experiment {
            Experiment::TwoLevel { two_level } => use_hierarchy(two_level, members.len(), compiled, &members),
            // these say themselves how many there are
            e if e.ranks().len() * e.messages() <= MOST_MESSAGES && !matches!(e, Experiment::Collective { .. }) => {
                completes(&e.schedule().unwrap()).unwrap();
            }
            e => drop(e.native(0)),
        }
    }
    // what replays long is replayed long
    let long = |e: &Experiment| matches!(e, Experiment::TwoLevel { two_level } if two_level.message_count() > MOST_MESSAGES);
    if !samples.iter().any(|s| long(&s.experiment)) {
        let _ = by_place(compiled, &members, &samples);
        for collective in COLLECTIVES.iter().copied() {
            let _ = (accuracy(compiled, &members, &samples, collective), regrets(compiled, &members, &samples, collective));
        }
    }
    if tunes {
        let native = samples.iter().any(|s| s.experiment.is_native());
        let mut recorded = Recorded { settings, native };
        let _ = tune(&mut Session::new(&mut recorded).with_samples(samples), TuneOptions::default());
    }
}

fn use_report(text: &str) {
    let Ok(run) = Report::parse("r", text).and_then(|r| Run::of(&r)) else { return };
    let others = ["examples/reports/2.mpiP", "examples/reports/8.mpiP"];
    let others = others.map(|path| Run::of(&Report::parse(path, &read(path)).unwrap()).unwrap());
    let machine = Machine::alike(4, Some(40), 1e-5, 1e9).unwrap();
    for runs in [vec![run.clone()], [&others[..], &[run]].concat()] {
        if let Ok(app) = Application::fit(runs, &machine, Spread::Block) {
            let _ = app.left_out(&machine, Spread::Block);
            for ranks in [1, 4, 64] {
                let _ = app.predict(ranks, &machine, Spread::Cyclic);
            }
        }
    }
}

/// A report's section of what is won, of a small policy.
fn use_page(benches: &[(String, collwise::bench::Report)]) {
    static SMALL: OnceLock<CompiledPolicy> = OnceLock::new();
    let policy = SMALL.get_or_init(|| CompiledPolicy::new(Policy::parse("p", &read("policies/two-core-vm.toml")).unwrap()).unwrap());
    let inputs = collwise::report::Inputs {
        policy,
        made_by: None,
        samples: None,
        benches,
        traces: &[],
        runs: &[],
        placed: (1, collwise::qnm::Spread::Block),
        against: None,
    };
    collwise::report::Report::of(&inputs).unwrap().html().unwrap();
}

proptest! {
    #![proptest_config(common::cases(300))]

    #[test]
    fn platforms(edits in edits(), real in 0usize..3) {
        let text = [&files().platform, &read("platforms/hcl16.toml"), &read("platforms/ccgrid2007.toml")][real].clone();
        Platform::parse("p", &mutated(&text, &edits)).iter().for_each(use_platform);
    }

    #[test]
    fn problems_between_groups(edits in edits()) {
        let text = "format = 1\nroot = 0\ngap_s = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]\nlatency_s = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]\nlocal_s = [2, 3, 1]\nlocal_busy_s = [1, 0, 1]\n";
        if let Ok(p) = Problem::parse("p", &mutated(text, &edits)) {
            let best = solve(&p).best;
            prop_assert!(best.completion.is_finite() && lower_bound(&p) <= best.completion * 1.000_001);
            exact(&p).iter().for_each(|optimum| assert!(optimum.completion <= best.completion));
            gantt(&p, &best, &(0..p.groups).map(|k| k.to_string()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn latency_matrices(edits in edits(), method in 0..METHODS.len()) {
        let text = "0 1e-5 2e-5 5e-3\n1e-5 0 1e-5 5e-3\n2e-5 1e-5 0 4e-3\n5e-3 5e-3 4e-3 0 # far\n";
        if let Ok(matrix) = parse_matrix("m", &mutated(text, &edits)) {
            let found = discover_matrix(&matrix, METHODS[method], Bound::default());
            let written = found.platform("m", "m").to_toml().unwrap();
            prop_assert!(Platform::parse("written", &written).is_ok(), "{}", written);
        }
    }

    #[test]
    fn host_files(edits in edits()) {
        let text = "a-1 left\na-2 left # two ranks\na-2 left\nb.x.org right\nc\n";
        if let Ok(declared) = Declared::parse("h", &mutated(text, &edits)) {
            let mut platform = Platform::parse("three", common::THREE_GROUPS).unwrap();
            platform.groups.truncate(1);
            platform.groups[0].count = declared.hosts.len().max(1);
            let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
            let _ = discover(&mut Session::new(&mut probe), Some(&declared), METHODS[0], Bound::default());
            let _ = members(&files().compiled.policy, &declared.hosts);
        }
    }

    #[test]
    fn reports(edits in edits(), real in 0usize..6) {
        let names = ["examples/reports/2", "examples/reports/4", "examples/reports/8", "examples/reports/16", "tests/data/mpip/hpccg.4.full", "tests/data/mpip/hpccg.4.concise"];
        use_report(&mutated(&read(&format!("{}.mpiP", names[real])), &edits));
    }

    #[test]
    fn profiles(edits in edits()) {
        let mut one = Profile { node: "n1".into(), app_s: 2.5, ..Profile::default() };
        [("Bcast", 7, 0.5, 4096), ("Send", 9, 0.1, 8), ("Bcast", 7, 0.25, 64)].iter().for_each(|s| one.note(s.0, "a.c", s.1, s.2, s.3));
        let text = serde_json::to_string(&vec![one.clone(), Profile { node: "n2".into(), ..one }]).unwrap();
        if let Ok(profiles) = serde_json::from_str::<Vec<Profile>>(&mutated(&text, &edits)) {
            report("./app", &profiles).iter().for_each(|text| use_report(text));
        }
    }

    #[test]
    fn comparisons(edits in edits()) {
        let row = |name: &str, t: f64| format!(r#"{{"root": 0, "bytes": 1024, "contestant": "{name}", "seconds": [{t}, 1e-3, 2e-3], "wrong": 0}}"#);
        let text = format!(r#"{{"library": "x", "hosts": ["a", "b"], "rows": [{}, {}]}}"#, row("adaptive", 1e-3), row("native", 3e-3));
        if let Ok(found) = collwise::bench::Report::parse("b", &mutated(&text, &edits)) {
            use_page(&[("b".into(), found)]);
        }
    }

    #[test]
    fn traces(edits in edits()) {
        let span = r#"{"buffer": "output", "offset": 0, "len": 8}"#;
        let line = |action: String| {
            format!(r#"{{"actions": [{action}], "collective": "bcast", "root": 0, "bytes": 8, "ranks": 2, "start_s": [1.5], "end_s": [2.5]}}"#) + "\n"
        };
        let folder = tempfile::tempdir().unwrap();
        let sent = line(format!(r#"{{"Send": {{"to": 1, "span": {span}}}}}"#));
        std::fs::write(folder.path().join("rank-0.jsonl"), mutated(&sent, &edits)).unwrap();
        std::fs::write(folder.path().join("rank-1.jsonl"), line(format!(r#"{{"Recv": {{"from": 0, "span": {span}}}}}"#))).unwrap();
        let _ = collwise::report::Traced::read_folder(folder.path());
    }

    #[test]
    fn noise(noise in "\\PC{0,200}", lines in "([0-9a-z\"{}\\[\\]=.,: -]{0,20}\n){0,10}") {
        for text in [&noise, &lines] {
            let _ = (Platform::parse("p", text), Policy::parse("p", text), Samples::parse("s", text), Problem::parse("p", text));
            let _ = (parse_matrix("m", text), Declared::parse("h", text), Report::parse("r", text));
            let _ = (collwise::units::parse_bytes(text), collwise::units::parse_seconds(text));
        }
    }
}

proptest! {
    #![proptest_config(common::cases(100))]

    #[test]
    fn policies(mut edits in edits(), real in 0usize..3, lines_stay in any::<bool>()) {
        let text = [&files().policy, &files().policy, &read("policies/hcl16.toml")][real].clone();
        // numbers and words only: an entry that is lost or there twice is told before any value is looked at
        edits.iter_mut().filter(|_| lines_stay).for_each(|edit| edit.0 = 1 + edit.0 % 4);
        if let Ok(policy) = Policy::parse("p", &mutated(&text, &edits)) {
            use_policy(policy);
        }
    }

    /// Some lines of a real file: all that a mutation may turn into another experiment is among them.
    #[test]
    fn sample_files(edits in edits(), picked in prop::collection::vec(any::<usize>(), 1..6), broadcasts in any::<bool>(), repair in any::<bool>()) {
        let all = &files().samples;
        let lines: Vec<&String> = all[1..].iter().filter(|l| !broadcasts || l.contains("two_level")).collect();
        let text: String = std::iter::once(&all[0]).chain(picked.iter().map(|k| lines[k % lines.len()])).cloned().collect();
        let text = mutated(&text, &edits);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, &text).unwrap();
        if let Ok((settings, samples)) = Samples::read(&path, repair) {
            use_samples(settings, samples, false);
        }
    }

    /// A whole file, of which only the samples change, so that it is gone through to the end.
    #[test]
    fn recordings(edits in edits()) {
        let all = &files().samples;
        let text = format!("{}{}", all[0], mutated(&all[1..].concat(), &edits));
        if let Ok((settings, samples)) = Samples::parse("s", &text) {
            use_samples(settings, samples, true);
        }
    }
}

#[test]
fn every_model_stands_in_the_policy_that_is_mutated() {
    let policy = &files().compiled.policy;
    let found = |name: &str| policy.groups.iter().any(|g| g.models.iter().any(|m| m.model == name));
    assert!(MODELS.iter().all(|m| found(m.name)));
    assert!(!policy.two_level(&bcast::COLLECTIVE).is_empty() && !policy.links.is_empty());
}

#[test]
fn sizes_that_make_no_sense_are_refused_by_policies() {
    let text = read("policies/hcl16.toml");
    let huge = (usize::MAX).to_string();
    for (from, to, word) in [
        ("bytes = [96, \"3KiB\"", "bytes = [\"3KiB\", 96".to_string(), "ascend"),
        ("bytes = [96, \"3KiB\"", format!("bytes = [96, {huge}"), "no memory"),
        ("at = 1,", format!("at = {huge},"), "no memory"),
        ("ranks = 16", format!("ranks = {huge}"), "there are no"),
    ] {
        assert!(text.contains(from), "{from}");
        let all = text.rmatch_indices(from).map(|(at, _)| at);
        for at in all {
            let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
            let e = Policy::parse("p", &changed).unwrap_err().to_string();
            assert!(e.contains("p, line ") && e.contains(word), "{to}: {e}");
        }
    }
}

/// Wrapped around, their sum would be less than there are hosts.
#[test]
fn counts_whose_sum_is_too_large_are_refused_by_platforms() {
    let text = read("platforms/hcl16.toml");
    let changed = text.replacen("\ncount = 2\n", &format!("\ncount = {}\n", i64::MAX), 2);
    assert!(changed.matches(&i64::MAX.to_string()).count() == 2, "{changed}");
    let e = Platform::parse("p", &changed).unwrap_err().to_string();
    assert!(e.contains("more hosts in variants"), "{e}");
}

#[test]
fn every_policy_and_platform_of_the_repository_is_valid() {
    let files = |folder: &str| -> Vec<std::path::PathBuf> {
        let all = std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap().map(|e| e.unwrap().path());
        all.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect()
    };
    let (policies, platforms) = (files("policies"), files("platforms"));
    assert!(policies.len() >= 6 && platforms.len() >= 4);
    policies.iter().for_each(|p| drop(collwise::policy::Policy::read(p).unwrap()));
    platforms.iter().for_each(|p| drop(collwise::platform::Platform::read(p).unwrap()));
}
