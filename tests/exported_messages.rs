//! `collwise export` to tools that draw or simulate: platforms, and messages as GOAL and as a tree.
#![cfg(feature = "cli")]

#[path = "common/command.rs"]
mod command;
mod common;

use command::{fails, ok, platform};
use common::file;

#[test]
fn export_writes_a_platform_that_names_every_host() {
    let folder = tempfile::tempdir().unwrap();
    ok(&["export", &platform("ccgrid2007"), "--to", "simgrid", "-o", "."], folder.path());
    let xml = std::fs::read_to_string(folder.path().join("ccgrid2007.xml")).unwrap();
    assert_eq!(xml.matches("<host ").count(), 78);
    assert_eq!(xml.matches("<zoneRoute ").count(), 30);
    let by_node = std::fs::read_to_string(folder.path().join("ccgrid2007.node.hosts")).unwrap();
    assert!(by_node.starts_with("orsay-1\ngrenoble-a-1\ngrenoble-b-1\ngrenoble-c-1\ntoulouse-1\nsophia-1\norsay-2\n"));
}

#[test]
fn export_writes_messages_as_goal_with_a_tag_each() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let chain = ["export", "--to", "goal", "--algorithm", "segmented_chain", "--ranks", "3", "--bytes", "1KiB", "--segment", "512"];
    let text = ok(&chain, at);
    assert!(text.starts_with("num_ranks 3\n\nrank 0 {\nl0: send 512b to 1 tag 0\nl1: send 512b to 1 tag 1\n"), "{text}");
    for line in ["recv 512b from 0 tag 0", "recv 512b from 0 tag 1", "send 512b to 2 tag 1", "recv 512b from 1 tag 1"] {
        assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
    }
    assert_eq!(ok(&[&chain[..], &["-o", "chain.goal"]].concat(), at), "");
    assert_eq!(std::fs::read_to_string(at.join("chain.goal")).unwrap(), text);
    let rooted = ok(&[&chain[..], &["--root", "2"]].concat(), at);
    assert!(rooted.contains("rank 2 {\nl0: send 512b to 0 tag 0\n"), "{rooted}");
    // what a policy does, all its ranks group by group
    let policy = file("policies/ccgrid2007.toml").display().to_string();
    let text = ok(&["export", &policy, "--to", "goal", "--bytes", "1MiB", "--root", "77"], at);
    assert!(text.starts_with("num_ranks 78\n"), "{text}");
    assert!(text.matches(": send ").count() >= 77 && text.matches(": send ").count() == text.matches(": recv ").count());
    // a collective without a message, by one algorithm and of a policy
    let barrier = ["export", "--to", "goal", "--collective", "barrier"];
    let text = ok(&[&barrier[..], &["--algorithm", "dissemination", "--ranks", "4"]].concat(), at);
    assert_eq!((text.matches(": send 0b").count(), text.matches(": recv 0b").count()), (8, 8), "{text}");
    let all = ok(&[&barrier[..], &[&policy]].concat(), at);
    assert!(all.starts_with("num_ranks 78\n") && all.matches(": send 0b").count() >= 2 * 72, "{all}");
    fails(&[&barrier[..], &[&policy, "--bytes", "8"]].concat(), at, 1, &["it has no message"]);
    fails(&[&barrier[..], &[&policy, "--root", "1"]].concat(), at, 1, &["it has no root"]);
    let goal = ["export", "--to", "goal"];
    fails(&goal, at, 1, &["--bytes"]);
    fails(&[&goal[..], &["--bytes", "1"]].concat(), at, 1, &["give a policy, or --algorithm"]);
    fails(&[&goal[..], &["--bytes", "1", "--algorithm", "flat"]].concat(), at, 2, &["--ranks"]);
    fails(&[&goal[..], &["--bytes", "1", "--algorithm", "native", "--ranks", "2"]].concat(), at, 1, &["export native"]);
    fails(&[&chain[..], &["--root", "3"]].concat(), at, 1, &["export a bcast from rank 3 of 3 ranks"]);
    fails(&[&goal[..], &["--bytes", "1", &policy, "--root", "78"]].concat(), at, 1, &["rank 78 of 78"]);
    let own = file("policies/two-core-vm.toml").display().to_string();
    fails(
        &[&goal[..], &["--bytes", "1MiB", &own]].concat(),
        at,
        1,
        &["export the bcast of 1MiB", "the MPI library's own bcast has no messages"],
    );
    fails(&["export", "--to", "simgrid"], at, 1, &["give a platform"]);
}

/// The ranks and the edges of a picture.
fn drawn(text: &str) -> (Vec<usize>, Vec<(usize, usize)>) {
    assert!(text.starts_with("digraph {\n") && text.ends_with("}\n"), "{text}");
    let (mut depth, mut nodes, mut edges) = (0, Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert_eq!(quotes % 2, 0, "{line}");
        depth += line.ends_with('{') as i32 - line.starts_with('}') as i32;
        assert!(line.ends_with(['{', '}', ';']) && depth >= 0, "{line}");
        let rank = |word: &str| word.strip_prefix('r').and_then(|number| number.parse::<usize>().ok());
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [from, "->", to, ..] => edges.push((rank(from).unwrap(), rank(to).unwrap())),
            [first, ..] => nodes.extend(rank(first)),
            [] => {}
        }
    }
    assert_eq!(depth, 0, "{text}");
    nodes.sort_unstable();
    (nodes, edges)
}

#[test]
fn export_draws_the_tree_of_a_plan_for_graphviz() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let binomial = ["export", "--to", "dot", "--algorithm", "binomial", "--ranks", "8", "--bytes", "8KiB", "--root", "3"];
    let text = ok(&binomial, at);
    let (nodes, edges) = drawn(&text);
    assert_eq!((nodes, edges.len()), ((0..8).collect(), 7), "{text}");
    assert!(edges[0].0 == 3 && text.matches("label=\"8KiB\"").count() == 7 && !text.contains("bold"), "{text}");
    // who sends has received before
    assert!(edges.iter().enumerate().all(|(k, edge)| edge.0 == 3 || edges[..k].iter().any(|before| before.1 == edge.0)), "{edges:?}");
    assert_eq!(ok(&[&binomial[..], &["-o", "tree.dot"]].concat(), at), "");
    assert_eq!(std::fs::read_to_string(at.join("tree.dot")).unwrap(), text);
    if let Ok(picture) = std::process::Command::new("dot").args(["-Tsvg", "tree.dot"]).current_dir(at).output() {
        assert!(picture.status.success() && String::from_utf8_lossy(&picture.stdout).contains("<svg"));
    }
    let chain = ok(&["export", "--to", "dot", "--algorithm", "segmented_chain", "--ranks", "3", "--bytes", "1KiB", "--segment", "256"], at);
    assert!(chain.contains("  r0 -> r1 [label=\"1KiB in 4\"];\n  r1 -> r2 [label=\"1KiB in 4\"];\n"), "{chain}");
    // of a policy with its hosts and groups: every group but the root's hears it from another one
    let policy = file("policies/ccgrid2007.toml").display().to_string();
    let text = ok(&["export", &policy, "--to", "dot", "--bytes", "1MiB", "--root", "77"], at);
    let (nodes, edges) = drawn(&text);
    assert_eq!(nodes, (0..78).collect::<Vec<_>>());
    assert!(edges.len() >= 77 && text.matches(", style=bold").count() >= 5 && text.contains(" in "), "{text}");
    assert!(text.contains("  subgraph cluster_5 {\n    label=\"sophia\";\n    r59 [label=\"59\\nsophia-1\"];"), "{text}");
    let barrier = ok(&["export", &policy, "--to", "dot", "--collective", "barrier"], at);
    assert!(drawn(&barrier).0.len() == 78 && barrier.contains("label=\"0B\""), "{barrier}");
    fails(&["export", "--to", "dot", "--bytes", "1"], at, 1, &["give a policy, or --algorithm"]);
    fails(&["export", "--to", "dot", "--bytes", "1", "--algorithm", "native", "--ranks", "2"], at, 1, &["export native"]);
}
