//! Readers meet anything without panicking: mutated real files, and noise.

mod common;

use collwise::discover::Declared;
use collwise::intercluster::Problem;
use collwise::measure::Samples;
use collwise::platform::Platform;
use collwise::policy::{CompiledPolicy, Policy};
use collwise::topology::parse_matrix;
use proptest::prelude::*;

/// A text with some of its bytes cut, doubled or replaced by what parsers stumble over.
fn mutated(text: &str, edits: &[(usize, usize, usize)]) -> String {
    const TOKENS: [&str; 18] =
        ["-1", "nan", "inf", "1e999", "\"", "[", "]", "{", "}", "=", "\n", "0", "18446744073709551615", "[[group]]", "", ",", "\u{0}", "é"];
    let mut bytes = text.as_bytes().to_vec();
    for &(at, cut, token) in edits {
        let at = at % (bytes.len() + 1);
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, TOKENS[token % TOKENS.len()].bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((any::<usize>(), 0usize..12, any::<usize>()), 1..5)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(common::file(path)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn platforms(edits in edits()) {
        if let Ok(platform) = Platform::parse("p", &mutated(&read("platforms/ccgrid2007.toml"), &edits)) {
            // what is accepted can be used
            if platform.host_count() < 1000 {
                let _ = platform.latencies();
                let _ = collwise::sim::Simulator::new(&platform, collwise::platform::Placement::Node);
                prop_assert_eq!(Platform::parse("p", &platform.to_toml().unwrap()).unwrap(), platform);
            }
        }
    }

    #[test]
    fn policies(edits in edits()) {
        let text = read("policies/hcl16.toml");
        if let Ok(policy) = Policy::parse("p", &mutated(&text, &edits)) {
            let compiled = CompiledPolicy::new(policy).unwrap();
            for (k, g) in compiled.policy.groups.iter().enumerate().filter(|(_, g)| g.hosts.len() < 100) {
                let d = compiled.decide(k, &(0..g.hosts.len()).collect::<Vec<_>>(), 5000).unwrap();
                prop_assert!(d.predicted_s.is_finite());
            }
        }
    }

    #[test]
    fn samples(edits in edits()) {
        let head = r#"{"format":1,"platform":"t","hosts":["a","b","c"],"library":"simulator","timer":"v","date":"d"}"#;
        let line = r#"{"experiment":{"kind":"broadcast","ranks":[0,1,2],"root":1,"bytes":10,"algorithm":"flat","parameters":{"segment":0,"radix":0}},"seconds":[1e-5,2e-5],"stop":"precise"}"#;
        let _ = Samples::parse("s", &mutated(&format!("{head}\n{line}\n{line}\n"), &edits));
    }

    #[test]
    fn problems_matrices_and_host_files(edits in edits(), noise in "\\PC{0,200}") {
        let problem = "format = 1\nroot = 0\ngap_s = [[0, 1], [1, 0]]\nlatency_s = [[0, 1], [1, 0]]\nlocal_s = [2, 3]\n";
        if let Ok(p) = Problem::parse("p", &mutated(problem, &edits)) {
            prop_assert!(collwise::intercluster::solve(&p).best.completion.is_finite());
        }
        let _ = parse_matrix("m", &mutated("0 1e-5 2e-5\n1e-5 0 1e-5\n2e-5 1e-5 0\n", &edits));
        let _ = Declared::parse("h", &mutated("a left\nb right\n", &edits));
        let _ = (Platform::parse("p", &noise), Policy::parse("p", &noise), Samples::parse("s", &noise), Problem::parse("p", &noise));
        let _ = (parse_matrix("m", &noise), collwise::units::parse_bytes(&noise));
    }
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
