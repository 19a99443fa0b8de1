//! What several tests share.
#![allow(dead_code, unsafe_code)] // each test uses its part; executing a schedule takes a raw buffer

#[cfg(feature = "mpi")]
pub mod mpi;
pub mod schedules;

use collwise::collective::{Parameters, Shape, bcast};
use collwise::transport::{Executor, Transport};
use std::path::PathBuf;

/// A file of this repository.
pub fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A platform of three groups with 4, 3 and 1 hosts.
pub const THREE_GROUPS: &str = "format = 1\nname = \"three\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 6e-6\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\n\
    [[group]]\nname = \"a\"\ncount = 4\nlatency_s = 50e-6\n[[group]]\nname = \"b\"\ncount = 3\nlatency_s = 30e-6\n[[group]]\nname = \"c\"\ncount = 1\n\
    [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\n[[link]]\nbetween = [\"a\", \"c\"]\nlatency_s = 8e-3\n[[link]]\nbetween = [\"b\", \"c\"]\nlatency_s = 2e-3\n";

/// The byte at a place of a message.
pub fn byte(place: usize, mark: usize) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 7) as u8 ^ (mark.wrapping_mul(37)) as u8
}

/// Runs every algorithm for every rank count up to `most`, every root, and sizes 0, 1, odd and large, on the transport of one of
/// `most` ranks, and checks every byte.
pub fn deliver_everything<T: Transport>(transport: &mut T, most: usize) {
    let me = transport.rank();
    let mut executor = Executor::default();
    let mut mark = 0;
    for ranks in 1..=most {
        for root in 0..ranks {
            for algorithm in bcast::ALGORITHMS.iter().filter(|a| a.builder.is_some()) {
                // the large size with a root of each kind: first, middle and last
                let large = [0, ranks / 2, ranks - 1].contains(&root);
                for (bytes, segment) in [(0, 0), (1, 0), (1001, 64), (70_001, 4096)].into_iter().take(if large { 4 } else { 3 }) {
                    mark += 1;
                    if me >= ranks {
                        continue;
                    }
                    let shape = Shape { ranks, root, bytes };
                    let program = algorithm.builder.unwrap()(me, &shape, &Parameters { segment, radix: 3 });
                    let mut data: Vec<u8> = if me == root { (0..bytes).map(|k| byte(k, mark)).collect() } else { vec![0xAA; bytes] };
                    // SAFETY: the buffer is this rank's own
                    unsafe { executor.run(transport, &program, data.as_mut_ptr(), bytes, None) }
                        .unwrap_or_else(|e| panic!("{} {shape:?}: {e}", algorithm.name));
                    let wrong = (0..bytes).find(|&k| data[k] != byte(k, mark));
                    assert_eq!(wrong, None, "{} {shape:?} rank {me}: first wrong byte", algorithm.name);
                }
            }
        }
    }
}
