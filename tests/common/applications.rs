//! What tests of applications share.

use collwise::qnm::{Call, Machine, Run, Said};

/// True if two numbers differ by no more than a share of the second.
pub fn close(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b.abs()
}

/// A machine of alike nodes.
pub fn alike(cores: usize, nodes: Option<usize>) -> Machine<'static> {
    Machine::alike(cores, nodes, 50e-6, 125e6).unwrap()
}

/// A run whose calls all are alike.
pub fn run_of(ranks: usize, wall_s: f64, mpi_s: f64, count: f64, bytes: f64) -> Run {
    let calls = vec![Call { name: "Send".into(), count, bytes, said: Said::Report, part: None, nth: 0, size: 0, seconds: mpi_s }];
    run_with(ranks, wall_s, mpi_s, calls)
}

/// A run of these calls.
pub fn run_with(ranks: usize, wall_s: f64, mpi_s: f64, calls: Vec<Call>) -> Run {
    let by_size = calls.clone();
    let (file, command, distances, unlisted) = (format!("{ranks}"), "app".into(), Vec::new(), (0.0, 0.0));
    Run { file, command, ranks, wall_s, mpi_s, imbalance_s: 0.0, calls, by_size, distances, undivided: Vec::new(), files_s: 0.0, unlisted }
}
