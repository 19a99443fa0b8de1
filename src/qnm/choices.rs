//! Which algorithms MPI libraries choose, by ranks and bytes.
//!
//! Open MPI's fixed decisions were found by counting messages, bytes and partners of its collectives (4.1.4, on 2 to 33 ranks up to
//! 4 MiB, on 65 up to 1 MiB, on 128 up to 128 KiB, on 256 up to 16 KiB) with `tests/programs/traffic.c`; a test counts again on up to 48.
//! Beyond, the last row holds. MPICH's are those of Thakur, Rabenseifner, Gropp (2005).

use super::algorithms::*;
use super::partners::Partners;

/// From so many bytes on.
type ByBytes = &'static [(f64, Algorithm)];

/// The choices for calls of some names (without `MPI_`): from so many ranks on, from so many bytes on.
pub struct Table {
    pub names: &'static [&'static str],
    pub choices: &'static [(f64, ByBytes)],
}

/// The last row that begins at or before a value.
fn last<T: Copy>(rows: &[(f64, T)], value: f64) -> T {
    rows[rows.partition_point(|row| row.0 <= value).max(1) - 1].1
}

/// The algorithm for so many ranks and bytes.
pub fn chosen(choices: &[(f64, ByBytes)], p: f64, m: f64) -> Algorithm {
    last(last(choices, p), m)
}

/// Calls that make communicators: all agree on the members, and on a number.
pub const MAKE_COMMUNICATORS: &[&str] = &[
    "Comm_split",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_create",
    "Comm_create_group",
    "Cart_create",
    "Graph_create",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Cart_sub",
    "Comm_split_type",
];

/// A few words of each process to all, and their least number.
fn agree(p: f64, _: f64) -> Sent {
    const WORDS: f64 = 8.0;
    gather_doubling(p, WORDS).then(doubling(p, WORDS))
}

/// The same by way of the root.
fn agree_at_root(p: f64, _: f64) -> Sent {
    Sent::in_rounds(Partners::Anyone, p - 1.0, 0.0)
}

/// Bytes are those of all blocks.
fn at_once_of_all(p: f64, m: f64) -> Sent {
    at_once(p, m / p)
}
fn direct_of_all(p: f64, m: f64) -> Sent {
    direct(p, m / p)
}
fn ring_of_all(p: f64, m: f64) -> Sent {
    ring(p, m / p)
}
fn halving_of_all(p: f64, m: f64) -> Sent {
    halving(p, m / p)
}
fn butterfly_of_all(p: f64, m: f64) -> Sent {
    butterfly(p, m / p)
}

/// Pairs of neighbours need an even number.
fn neighbours_or_ring(p: f64, block: f64) -> Sent {
    if p % 2.0 == 0.0 { neighbours(p, block) } else { ring(p, block) }
}

fn linear_there_and_back(p: f64, m: f64) -> Sent {
    linear(p, m).then(linear(p, m))
}

fn open_mpi_bcast(p: f64, m: f64) -> Sent {
    chosen(OPEN_MPI_BCAST, p, m)(p, m)
}

fn open_mpi_reduce(p: f64, m: f64) -> Sent {
    chosen(OPEN_MPI_REDUCE, p, m)(p, m)
}

/// A reduction and a broadcast.
fn reduce_bcast(p: f64, m: f64) -> Sent {
    open_mpi_reduce(p, m).then(open_mpi_bcast(p, m))
}

/// Blocks to the root, and all of them from there.
fn gather_bcast(p: f64, block: f64) -> Sent {
    linear(p, block).then(open_mpi_bcast(p, p * block))
}

/// A reduction of all blocks, and a block to each.
fn reduce_scatter_linear(p: f64, block: f64) -> Sent {
    open_mpi_reduce(p, p * block).then(linear(p, block))
}
fn reduce_scatter_binomial(p: f64, block: f64) -> Sent {
    open_mpi_reduce(p, p * block).then(gather_binomial(p, block))
}

/// Powers of two need no butterfly.
fn butterfly_or_halving(p: f64, block: f64) -> Sent {
    if p.log2().fract() == 0.0 { halving(p, block) } else { butterfly(p, block) }
}

const OPEN_MPI_BCAST: &[(f64, ByBytes)] = &[
    (2.0, &[(0.0, binomial)]),
    (4.0, &[(0.0, binary), (64.0, binomial), (128.0, binary), (2048.0, binomial), (8192.0, linear), (1048576.0, chain)]),
    (8.0, &[(0.0, knomial4), (8.0, binary), (64.0, knomial4), (4096.0, binary), (16384.0, binomial), (32768.0, linear)]),
    (16.0, &[(0.0, knomial4), (4096.0, binomial), (1048576.0, scatter_doubling)]),
    (32.0, &[(0.0, binomial), (2048.0, knomial4)]),
    (64.0, &[(0.0, knomial4)]),
    (128.0, &[(0.0, binary), (16384.0, linear), (32768.0, binary), (65536.0, knomial4)]),
    (256.0, &[(0.0, knomial4), (16384.0, split_binary)]),
];

const OPEN_MPI_REDUCE: &[(f64, ByBytes)] = &[
    (2.0, &[(0.0, binomial)]),
    (4.0, &[(0.0, binary), (4096.0, chain), (65536.0, binomial), (262144.0, linear), (524288.0, binomial), (1048576.0, linear)]),
    (8.0, &[(0.0, binary), (8192.0, binomial)]),
    (16.0, &[(0.0, binary), (4096.0, binomial)]),
    (32.0, &[(0.0, binomial)]),
];

/// Open MPI 4.1.
pub const OPEN_MPI: &[Table] = &[
    Table {
        names: &["Barrier"],
        choices: &[
            (2.0, &[(0.0, linear_there_and_back)]),
            (8.0, &[(0.0, doubling)]),
            (64.0, &[(0.0, dissemination)]),
            (256.0, &[(0.0, up_and_down)]),
        ],
    },
    Table { names: &["Bcast"], choices: OPEN_MPI_BCAST },
    Table { names: &["Reduce"], choices: OPEN_MPI_REDUCE },
    Table {
        names: &["Allreduce"],
        choices: &[
            (2.0, &[(0.0, doubling), (4096.0, ring_reduce), (8192.0, doubling), (16384.0, ring_reduce), (262144.0, rabenseifner_shared)]),
            (4.0, &[(0.0, doubling), (8192.0, rabenseifner_shared)]),
            (16.0, &[(0.0, doubling), (4096.0, rabenseifner_shared)]),
            (32.0, &[(0.0, doubling), (128.0, rabenseifner_shared)]),
            (64.0, &[(0.0, doubling), (262144.0, rabenseifner_shared)]),
            (128.0, &[(0.0, reduce_bcast), (131072.0, doubling)]),
            (256.0, &[(0.0, reduce_bcast), (4096.0, rabenseifner_shared)]),
        ],
    },
    Table {
        names: &["Allgather"],
        choices: &[
            (2.0, &[(0.0, ring)]),
            (4.0, &[(0.0, gather_doubling)]),
            (32.0, &[(0.0, gather_doubling), (1024.0, neighbours_or_ring), (65536.0, ring)]),
            (64.0, &[(0.0, gather_doubling), (512.0, neighbours_or_ring), (65536.0, ring)]),
            (128.0, &[(0.0, gather_doubling), (512.0, neighbours_or_ring), (131072.0, ring)]),
            (256.0, &[(0.0, gather_doubling), (1024.0, neighbours_or_ring)]),
        ],
    },
    Table {
        names: &["Allgatherv"],
        choices: &[
            (2.0, &[(0.0, ring)]),
            (3.0, &[(0.0, gather_bcast), (256.0, ring)]),
            (
                4.0,
                &[
                    (0.0, gather_bcast),
                    (256.0, neighbours_or_ring),
                    (4096.0, ring),
                    (8192.0, neighbours_or_ring),
                    (16384.0, gather_doubling),
                    (262144.0, neighbours_or_ring),
                ],
            ),
            (8.0, &[(0.0, gather_bcast), (1024.0, gather_doubling)]),
            (16.0, &[(0.0, gather_bcast), (128.0, gather_doubling), (262144.0, ring)]),
            (32.0, &[(0.0, gather_bcast), (256.0, gather_doubling), (8192.0, ring)]),
            (64.0, &[(0.0, gather_bcast), (256.0, gather_doubling), (4096.0, ring)]),
            (128.0, &[(0.0, gather_doubling), (1024.0, neighbours_or_ring), (65536.0, ring)]),
            (256.0, &[(0.0, gather_doubling), (1024.0, ring)]),
        ],
    },
    Table {
        names: &["Alltoall"],
        choices: &[(2.0, &[(0.0, direct)]), (16.0, &[(0.0, bruck), (512.0, direct)]), (64.0, &[(0.0, bruck), (1024.0, direct)])],
    },
    Table { names: &["Alltoallv", "Alltoallw"], choices: &[(2.0, &[(0.0, direct_of_all)])] },
    Table {
        names: &["Gather"],
        choices: &[
            (2.0, &[(0.0, linear), (131072.0, linear_in_parts)]),
            (4.0, &[(0.0, gather_binomial), (1024.0, linear), (8192.0, gather_binomial), (32768.0, linear), (262144.0, linear_in_parts)]),
            (8.0, &[(0.0, gather_binomial)]),
            (256.0, &[(0.0, gather_binomial), (2048.0, linear), (8192.0, gather_binomial)]),
        ],
    },
    Table {
        names: &["Scatter"],
        choices: &[
            (2.0, &[(0.0, linear)]),
            (4.0, &[(0.0, gather_binomial), (2048.0, linear), (4096.0, gather_binomial), (8192.0, linear)]),
            (8.0, &[(0.0, gather_binomial), (16384.0, linear)]),
            (32.0, &[(0.0, gather_binomial), (512.0, linear), (8192.0, gather_binomial), (16384.0, linear)]),
            (64.0, &[(0.0, gather_binomial), (512.0, linear)]),
        ],
    },
    Table { names: &["Gatherv", "Scatterv"], choices: &[(2.0, &[(0.0, linear)])] },
    Table {
        names: &["Reduce_scatter"],
        choices: &[
            (2.0, &[(0.0, ring_of_all), (65536.0, halving_of_all), (131072.0, ring_of_all)]),
            (4.0, &[(0.0, halving_of_all), (262144.0, ring_of_all)]),
            (32.0, &[(0.0, halving_of_all), (2048.0, butterfly_of_all), (524288.0, ring_of_all)]),
            (64.0, &[(0.0, halving_of_all), (512.0, butterfly_of_all), (2048.0, halving_of_all), (4096.0, butterfly_of_all)]),
            (128.0, &[(0.0, butterfly_of_all)]),
        ],
    },
    Table {
        names: &["Reduce_scatter_block"],
        choices: &[
            (2.0, &[(0.0, halving), (131072.0, reduce_scatter_linear)]),
            (
                4.0,
                &[
                    (0.0, halving),
                    (8.0, doubling_of_blocks),
                    (32.0, butterfly_or_halving),
                    (256.0, halving),
                    (8192.0, butterfly_or_halving),
                    (16384.0, halving),
                    (1048576.0, reduce_scatter_linear),
                ],
            ),
            (
                8.0,
                &[
                    (0.0, halving),
                    (32.0, butterfly_or_halving),
                    (128.0, halving),
                    (524288.0, reduce_scatter_linear),
                    (4194304.0, butterfly_or_halving),
                ],
            ),
            (
                16.0,
                &[
                    (0.0, reduce_scatter_binomial),
                    (32.0, halving),
                    (524288.0, reduce_scatter_linear),
                    (2097152.0, halving),
                    (4194304.0, butterfly_or_halving),
                ],
            ),
            (
                32.0,
                &[
                    (0.0, reduce_scatter_binomial),
                    (16.0, butterfly_or_halving),
                    (65536.0, reduce_scatter_linear),
                    (262144.0, butterfly_or_halving),
                ],
            ),
        ],
    },
    Table { names: &["Scan", "Exscan"], choices: &[(2.0, &[(0.0, chain)])] },
    Table { names: MAKE_COMMUNICATORS, choices: &[(2.0, &[(0.0, agree)])] },
    Table { names: &["Ibarrier"], choices: &[(2.0, &[(0.0, dissemination)])] },
    Table { names: &["Ibcast"], choices: &[(2.0, &[(0.0, linear)]), (5.0, &[(0.0, binomial)])] },
    Table {
        // from as many elements as there are ranks, or nearly; of four bytes
        names: &["Ireduce"],
        choices: &[
            (2.0, &[(0.0, binomial), (65536.0, pipeline)]),
            (3.0, &[(0.0, binomial), (8.0, halving_gather)]),
            (4.0, &[(0.0, binomial), (16.0, halving_gather)]),
            (8.0, &[(0.0, binomial), (32.0, halving_gather)]),
            (16.0, &[(0.0, binomial), (64.0, halving_gather)]),
            (32.0, &[(0.0, binomial), (128.0, halving_gather)]),
            (64.0, &[(0.0, binomial), (256.0, halving_gather)]),
            (128.0, &[(0.0, binomial), (512.0, halving_gather)]),
            (256.0, &[(0.0, binomial), (1024.0, halving_gather)]),
        ],
    },
    Table {
        names: &["Iallreduce"],
        choices: &[(2.0, &[(0.0, up_and_down)]), (4.0, &[(0.0, up_and_down), (65536.0, rabenseifner_shared)])],
    },
    Table { names: &["Iallgather", "Ialltoall"], choices: &[(2.0, &[(0.0, direct)])] },
];

/// Bruck's or doubling for less than 80 KiB in all, a ring for more.
fn mpich_allgather(p: f64, block: f64) -> Sent {
    if p * block < 81_920.0 { gather_doubling(p, block) } else { ring(p, block) }
}

/// MPICH.
pub const MPICH: &[Table] = &[
    Table { names: &["Barrier"], choices: &[(2.0, &[(0.0, dissemination)])] },
    Table { names: &["Bcast"], choices: &[(2.0, &[(0.0, binomial)]), (8.0, &[(0.0, binomial), (12288.0, scatter_ring)])] },
    Table { names: &["Reduce"], choices: &[(2.0, &[(0.0, binomial), (2049.0, halving_gather)])] },
    Table { names: &["Allreduce"], choices: &[(2.0, &[(0.0, doubling), (2049.0, rabenseifner)])] },
    Table { names: &["Allgather", "Allgatherv"], choices: &[(2.0, &[(0.0, mpich_allgather)])] },
    Table { names: &["Alltoall"], choices: &[(2.0, &[(0.0, direct)]), (8.0, &[(0.0, bruck), (257.0, direct)])] },
    Table { names: &["Alltoallv", "Alltoallw"], choices: &[(2.0, &[(0.0, at_once_of_all)])] },
    Table { names: &["Gather", "Scatter"], choices: &[(2.0, &[(0.0, gather_binomial)])] },
    Table { names: &["Gatherv", "Scatterv"], choices: &[(2.0, &[(0.0, linear)])] },
    Table { names: &["Reduce_scatter"], choices: &[(2.0, &[(0.0, halving_of_all), (524288.0, ring_of_all)])] },
    Table { names: &["Reduce_scatter_block"], choices: &[(2.0, &[(0.0, halving)])] },
    Table { names: &["Scan", "Exscan"], choices: &[(2.0, &[(0.0, dissemination)])] },
    Table { names: MAKE_COMMUNICATORS, choices: &[(2.0, &[(0.0, agree)])] },
];

/// An algorithm and what it is called.
pub type Named = (&'static str, Algorithm);

/// Algorithms that libraries have beside those that these ones choose, by calls; for libraries, versions and settings that choose otherwise.
pub const OTHERS: &[(&[&str], &[Named])] = &[
    (&["Alltoall"], &[("pairs in turn", direct), ("all at once", at_once), ("Bruck's", bruck)]),
    (&["Alltoallv", "Alltoallw"], &[("pairs in turn", direct_of_all), ("all at once", at_once_of_all)]),
    (
        &["Allgather"],
        &[("ring", ring), ("doubling", gather_doubling), ("all at once", at_once), ("gather and broadcast", gather_and_binomial)],
    ),
    (
        &["Bcast"],
        &[
            ("binomial tree", binomial),
            ("scatter and ring", scatter_ring),
            ("binary tree", binary),
            ("pipeline", pipeline),
            ("flat", linear),
        ],
    ),
    (&["Reduce"], &[("binomial tree", binomial), ("halving and gather", halving_gather), ("pipeline", pipeline), ("flat", linear)]),
    (
        &["Allreduce"],
        &[
            ("doubling", doubling),
            ("Rabenseifner's", rabenseifner),
            ("ring", ring_reduce),
            ("tree and back", up_and_down),
            ("flat and back", linear_there_and_back),
        ],
    ),
    (&["Barrier"], &[("dissemination", dissemination), ("tree and back", up_and_down), ("flat and back", linear_there_and_back)]),
    (MAKE_COMMUNICATORS, &[("one after the other at the root", agree_at_root)]),
    (&["Gather", "Scatter"], &[("binomial tree", gather_binomial), ("flat", linear)]),
    (&["Reduce_scatter"], &[("halving", halving_of_all), ("ring", ring_of_all)]),
    (&["Reduce_scatter_block"], &[("halving", halving), ("ring", ring), ("tree and scatter", reduce_scatter_binomial)]),
];

fn gather_and_binomial(p: f64, block: f64) -> Sent {
    gather_binomial(p, block).then(binomial(p, p * block))
}
