//! What several tests share.
#![allow(dead_code, unsafe_code)] // each test uses its part; executing a schedule takes a raw buffer

mod bytes;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod schedules;

pub use bytes::byte;

use collwise::collective::{COLLECTIVES, Parameters, Shape};
use collwise::schedule::Buffer;
use collwise::transport::{Buffers, Executor, Task, Transport};
use std::path::PathBuf;

/// A file of this repository.
pub fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A platform of three groups with 4, 3 and 1 hosts.
pub const THREE_GROUPS: &str = "format = 1\nname = \"three\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 6e-6\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\n\
    [[group]]\nname = \"a\"\ncount = 4\nlatency_s = 50e-6\n[[group]]\nname = \"b\"\ncount = 3\nlatency_s = 30e-6\n[[group]]\nname = \"c\"\ncount = 1\n\
    [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\n[[link]]\nbetween = [\"a\", \"c\"]\nlatency_s = 8e-3\n[[link]]\nbetween = [\"b\", \"c\"]\nlatency_s = 2e-3\n";

/// Runs every algorithm of every collective for every rank count up to `most`, every root, and sizes 0, 1, odd and large, on the transport of
/// one of `most` ranks, and checks every byte against the collective's specification.
pub fn deliver_everything<T: Transport>(transport: &mut T, most: usize) {
    let me = transport.rank();
    let mut executor = Executor::default();
    let mut mark = 0;
    for (collective, ranks) in COLLECTIVES.into_iter().flat_map(|c| (1..=most).map(move |ranks| (c, ranks))) {
        for root in 0..if collective.rooted { ranks } else { 1 } {
            for algorithm in collective.built() {
                // the large size with a root of each kind: first, middle and last
                let large = [0, ranks / 2, ranks - 1].contains(&root);
                let sizes = [(0, 0), (1, 0), (1001, 64), (70_001, 4096)];
                for (bytes, segment) in sizes.into_iter().take(if !collective.sized() {
                    1
                } else if large {
                    4
                } else {
                    3
                }) {
                    mark += 1;
                    if me >= ranks {
                        continue;
                    }
                    let shape = Shape::new(ranks, root, bytes);
                    let program = algorithm.builder.unwrap()(me, &shape, &Parameters::of(segment, 3));
                    let specification = (collective.specification)(&shape);
                    let value = |of: usize, from: usize| byte(from, mark + 31 * of);
                    let (mut input, mut output) =
                        (vec![0xAA; specification.layouts[me].input], vec![0xAA; specification.layouts[me].output]);
                    for piece in &specification.before[me] {
                        let buffer = if piece.buffer == Buffer::Input { &mut input } else { &mut output };
                        let of = piece.of.ranks().next().unwrap();
                        (0..piece.len).for_each(|k| buffer[piece.at + k] = value(of, piece.from + k));
                    }
                    // SAFETY: the buffers are this rank's own
                    unsafe { executor.run(transport, &mut Task::new(&program), Buffers::of(&input, &mut output)) }
                        .unwrap_or_else(|e| panic!("{} {shape:?}: {e}", algorithm.name));
                    for piece in &specification.after[me] {
                        let of = piece.of.ranks().next().unwrap();
                        let wrong = (0..piece.len).find(|&k| output[piece.at + k] != value(of, piece.from + k));
                        assert_eq!(wrong, None, "{} {} {shape:?} rank {me}: first wrong byte", collective.name, algorithm.name);
                    }
                }
            }
        }
    }
}
