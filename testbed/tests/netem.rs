//! The same grid with netem in place of the router, on a kernel of its own where the machine's has none (`scripts/on-uml.sh`).

use collwise::platform::Platform;
use std::path::Path;
use std::process::Command;

const PLATFORM: &str = r#"
format = 1
name = "three-sites"
[[group]]
name = "north"
count = 2
latency_s = 1e-3
[[group]]
name = "west"
count = 2
latency_s = 1e-3
[[group]]
name = "south"
count = 1
[[link]]
between = ["north", "west"]
latency_s = 8e-3
[[link]]
between = ["north", "south"]
latency_s = 19e-3
[[link]]
between = ["west", "south"]
latency_s = 13e-3
"#;

#[test]
#[ignore = "needs user-mode Linux; `make netem-test` runs it"]
fn netem_gives_each_way_its_latency() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let gridemu = env!("CARGO_BIN_EXE_gridemu");
    let collwise = Path::new(gridemu).with_file_name("collwise");
    std::fs::write(folder.path().join("p.toml"), PLATFORM).unwrap();
    // what this prints is the platform that MPI finds
    let script = format!(
        "set -e; cd /run; export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
         {gridemu} up {}/p.toml --hosts --network netem >said 2>&1 || {{ cat said; exit 1; }}
         {gridemu} mpirun -n 5 {} discover -o found.toml >said 2>&1 || {{ cat said; exit 1; }}
         {gridemu} stats >said; grep -q 'qdisc netem' said || {{ cat said; exit 1; }}
         {gridemu} down; test -z \"$(ip netns)\"; cat found.toml\n",
        folder.path().display(),
        collwise.display()
    );
    std::fs::write(folder.path().join("script.sh"), script).unwrap();
    let output = Command::new(root.join("scripts/on-uml.sh")).arg(folder.path().join("script.sh")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));

    let (wanted, found) = (Platform::parse("wanted", PLATFORM).unwrap(), Platform::parse("found", &said).unwrap());
    assert_eq!(found.group_ranks(), [vec![0, 1], vec![2, 3], vec![4]]);
    for (i, j) in (0..9).map(|k| (k / 3, k % 3)).filter(|&(i, j)| (i, j) != (2, 2)) {
        let (want, got) = (wanted.group_latency(i, j), found.group_latency(i, j));
        // that kernel takes some tenths of a millisecond itself
        assert!((want..want * 1.1 + 0.5e-3).contains(&got), "{i} to {j}: {got} s, not {want}");
    }
}
