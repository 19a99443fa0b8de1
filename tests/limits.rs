//! Sizes and numbers of ranks from the command line: too large ones are told, and take neither memory nor time.
#![cfg(feature = "cli")]

mod common;

use common::file;
use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Runs the command with at most so many MB of memory, and not for long.
fn within(megabytes: usize, arguments: &[&str]) -> Output {
    let mut shell = Command::new("timeout");
    let script = format!("ulimit -v {}; exec \"$@\"", megabytes * 1000);
    shell.args(["60", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_collwise")]).args(arguments);
    shell.output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const MODEL: [&str; 7] = ["predict", "--model", "hockney", "--param", "alpha_s=1e-5", "--param", "beta_s_per_byte=1e-9"];

#[test]
fn every_policy_predicts_and_explains_any_size_within_half_a_gigabyte() {
    for entry in std::fs::read_dir(file("policies")).unwrap() {
        let policy = entry.unwrap().path().display().to_string();
        if !policy.ends_with(".toml") {
            continue;
        }
        for bytes in ["128MiB", "1GiB", "100GB", "15000000GiB"] {
            let start = Instant::now();
            let predicted = &json(&within(500, &["predict", &policy, "--bytes", bytes, "--json"]))[0];
            assert!(predicted["predicted_s"].as_f64().unwrap() > 0.0, "{predicted}");
            assert_eq!(predicted["replayed_s"].is_null(), predicted["not_replayed"].is_string(), "{predicted}");
            json(&within(500, &["explain", &policy, "--bytes", bytes, "--json"]));
            json(&within(500, &["compare", &policy, "--bytes", bytes, "--json"]));
            // a bound on what hangs, not a measurement
            assert!(start.elapsed() < Duration::from_secs(40), "{policy} {bytes}");
        }
    }
}

#[test]
fn what_is_not_replayed_is_said() {
    let policy = file("policies/ccgrid2007.toml").display().to_string();
    let output = within(500, &["predict", &policy, "--bytes", "100GB"]);
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains(" s         -"), "{said}");
    for words in ["12207032 segments of 8KiB", "78 ranks", "939941464 messages", "at most", "bytes each", "ask for"] {
        assert!(why.contains(words), "{words}: {why}");
    }
}

#[test]
fn messages_are_counted_and_not_estimated() {
    let predict = |ranks: &str, algorithm: &[&str], bytes: &str| {
        within(500, &[&MODEL[..], &["--ranks", ranks, "--bytes", bytes, "--json", "--algorithm"], algorithm].concat())
    };
    // scatter and doubling among the first 8,192: 13 rounds each, every byte twice but for the own block; then the whole message to the rest
    let found = &json(&predict("10000", &["scatter_doubling"], "1MiB"))[0];
    let (alpha, all) = (1e-5, 1e-9 * f64::from(1 << 20));
    let want = 2.0 * (13.0 * alpha + all * (1.0 - 1.0 / 8192.0)) + alpha + all;
    let got = found["predicted_s"].as_f64().unwrap();
    assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
    assert!(found["messages"].as_u64().unwrap() < 10_000 * 14, "{found}");
    json(&predict("1400", &["scatter_ring"], "1MiB"));

    for (ranks, algorithm) in [
        ("1000000", "scatter_doubling"),
        ("10000", "scatter_ring"),
        ("2", "segmented_flat"),
        ("3", "split_binary"),
        ("1000", "segmented_chain"),
        ("1000", "segmented_binomial"),
        ("1", "segmented_chain"),
    ] {
        for bytes in ["8MiB", "100GB"] {
            let segment = if algorithm.starts_with("scatter") { &[][..] } else { &["--segment", "1B"] };
            let output = predict(ranks, &[&[algorithm], segment].concat(), bytes);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && said.contains("messages, at most"), "{algorithm} {ranks} {bytes}: {said}");
        }
    }
}

/// A platform on which nothing takes time: times measured there have no ratios.
const TIMELESS: &str = "format = 1\nname = \"timeless\"\n[hosts]\nsend_overhead_s = 0\nsend_overhead_s_per_byte = 0\nrecv_overhead_s = 0\n\
     recv_overhead_s_per_byte = 0\ngap_s = 0\ngap_s_per_byte = 0\ncopy_s_per_byte = 0\ncombine_s_per_byte = 0\n[[group]]\nname = \"a\"\ncount = 3\nlatency_s = 0\n\
     [[group]]\nname = \"b\"\ncount = 2\nlatency_s = 0\n[[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 0\n";

/// A word that is no number where one should be.
fn nonsense(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_whitespace() || "%,;:()".contains(c)).find(|w| ["inf", "-inf", "nan", "NaN"].contains(w))
}

#[test]
fn what_is_unknown_is_a_dash() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("p.toml"), TIMELESS).unwrap();
    let run = |arguments: &[&str]| {
        let output = within(2000, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(nonsense(&said), None, "{arguments:?}: {said}");
        said
    };
    let (policy, samples) = (at("policy.toml"), at("s.jsonl"));
    run(&["tune", "--platform", &at("p.toml"), "--samples", &samples, "-o", &policy]);
    run(&["compare", &policy]);
    run(&["compare", &policy, "--json"]);
    run(&["compare", "--platform", &at("p.toml"), "--regret", "--bytes", "1KiB"]);
    run(&["explain", &policy, "--bytes", "1KiB"]);

    // measured to take no time where a model says otherwise
    let grid = file("platforms/pmeo2006.toml").display().to_string();
    run(&["tune", "--platform", &grid, "--samples", &samples, "--fresh", "-o", &policy]);
    let text = std::fs::read_to_string(&samples).unwrap();
    let timeless = |line: &str| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        for key in ["seconds", "remeasured", "confirmed", "in_a_row"] {
            if let Some(times) = sample.get_mut(key).and_then(Value::as_array_mut) {
                times.iter_mut().for_each(|t| *t = 0.0.into());
            }
        }
        format!("{sample}\n")
    };
    std::fs::write(&samples, text.lines().map(timeless).collect::<String>()).unwrap();
    let said = run(&["accuracy", &policy, &samples]);
    assert!(said.contains(" - ") || said.contains(" -\n"), "{said}");
    let found: Value = serde_json::from_str(&run(&["accuracy", &policy, &samples, "--json"])).unwrap();
    // its own documented unknowns: no model is there, a regret is null or 0
    assert!(found["sizes"].as_array().unwrap().iter().all(|s| s["error"].as_object().unwrap().is_empty()), "{found}");
}

#[test]
fn scores_that_are_no_numbers_are_refused_at_their_line() {
    let text = std::fs::read_to_string(file("policies/hcl16.toml")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let place = |first: &[&str]| lines.windows(first.len()).position(|some| some == first).unwrap();
    let score = place(&["[[errors.hcl]]", "collective = \"bcast\""]);
    let model = place(&["[[model.hcl]]", "model = \"logp\""]);
    assert!(lines[score + 3].starts_with("mean = ["));
    let with = |value: &str| lines[score + 3].replacen("[", &format!("[{value}, "), 1).rsplit_once(", ").unwrap().0.to_string() + "]";
    let (inf, nan, large) = (with("inf"), with("nan"), with("1.79769e308"));
    for (line, to, at) in [
        (score + 3, inf.as_str(), score),
        (score + 3, nan.as_str(), score),
        (score + 3, large.as_str(), score),
        (model + 1, "model = \"gone\"", model),
    ] {
        let mut changed = lines.clone();
        changed[line] = to;
        let e = collwise::policy::Policy::parse("p", &changed.join("\n")).err().map(|e| e.to_string());
        assert!(e.as_ref().is_some_and(|e| e.contains(&format!("p, line {}:", at + 1))), "{to}: {e:?}");
    }
}
