//! A small grid: three sites, six ranks of real Open MPI over real TCP. Needs root and network namespaces, so it runs only when asked
//! for: `make test` asks where they are allowed, and says so where not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PLATFORM: &str = r#"
format = 1
name = "three-sites"
[[group]]
name = "north"
count = 3
latency_s = 50e-6
[[group]]
name = "west"
count = 2
latency_s = 50e-6
[[group]]
name = "south"
count = 1
[[link]]
between = ["north", "west"]
latency_s = 4e-3
bandwidth_bytes_per_s = 100e6
[[link]]
between = ["north", "south"]
latency_s = 9e-3
bandwidth_bytes_per_s = 100e6
[[link]]
between = ["west", "south"]
latency_s = 6e-3
bandwidth_bytes_per_s = 100e6
"#;

/// Takes the platform down however the test ends.
struct Up;

impl Drop for Up {
    fn drop(&mut self) {
        gridemu(&["down"], Path::new("."));
    }
}

fn gridemu(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "300", env!("CARGO_BIN_EXE_gridemu")]).args(arguments).current_dir(folder);
    command.output().unwrap()
}

fn ok(arguments: &[&str], folder: &Path) -> String {
    let output = gridemu(arguments, folder);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn collwise() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_gridemu")).with_file_name("collwise");
    assert!(path.exists(), "{} is not there: run `make build` first (make test does)", path.display());
    path
}

#[test]
#[ignore = "needs root and network namespaces; make test runs it where they are allowed"]
fn three_sites_are_found_tuned_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("p.toml"), PLATFORM).unwrap();
    assert!(ok(&["up", "p.toml"], at).contains("3 nodes"));
    let up = Up;
    let again = gridemu(&["up", "p.toml"], at);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("gridemu down"));

    // each node is a host of its own, at the platform's distance
    assert_eq!(ok(&["exec", "west", "hostname"], at).trim(), "west");
    let (collwise, six) = (collwise().display().to_string(), ["mpirun", "-n", "6"]);
    let found = ok(&[&six[..], &[&collwise, "discover", "--json"]].concat(), at);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let names: Vec<&str> = found["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["north", "west", "south"]);

    let tune = [
        "tune",
        "--collectives",
        "bcast,barrier",
        "--name",
        "three-sites",
        "--precision",
        "0.3",
        "--repetitions",
        "3",
        "-o",
        "policy.toml",
    ];
    ok(&[&six[..], &[&collwise], &tune[..]].concat(), at);
    let policy = std::fs::read_to_string(at.join("policy.toml")).unwrap();
    assert!(policy.contains("\n[collective.bcast]\n") && policy.contains("two_level = ["), "{policy}");

    // every byte arrives, from a root in each group, ranks placed by slot and by node
    for by in ["slot", "node"] {
        let sizes = ["--bytes", "1,70000,1MiB", "--roots", "0,3,5", "--repetitions", "3", "--warm-ups", "1", "--all", "--json"];
        let text = ok(&[&six[..], &["--by", by, &collwise, "bench", "policy.toml"], &sizes[..]].concat(), at);
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let rows = report["rows"].as_array().unwrap();
        assert!(rows.len() >= 9 * 12, "adaptive, native, two-level and Open MPI's nine: {}", rows.len());
        for row in rows {
            assert_eq!(row["wrong"], 0, "{row}");
            // 9 ms apart: nothing is faster than light
            let seconds: Vec<f64> = serde_json::from_value(row["seconds"].clone()).unwrap();
            assert!(seconds.iter().all(|&s| s > 5.5e-3), "{row}");
        }
    }
    assert!(ok(&["stats"], at).contains("north"));
    drop(up);
    assert!(!gridemu(&["exec", "west", "true"], at).status.success(), "everything is down");
}
