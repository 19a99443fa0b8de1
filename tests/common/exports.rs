//! What is decided for MPI libraries.

use collwise::collective::Collective;
use collwise::export::Choice;

/// An algorithm of a library by its name, with a fan-out and a segment.
pub fn choice(target: &collwise::export::Target, collective: &Collective, name: &str, fan_out: usize, segment: usize) -> Choice {
    let all = (target.algorithms)(collective);
    Choice { algorithm: all.iter().find(|a| a.name == name).unwrap_or_else(|| panic!("no {name}")), segment, fan_out }
}
