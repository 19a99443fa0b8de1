//! What several tests share.
#![allow(dead_code, unsafe_code, unused_imports)] // each test uses its part; executing a schedule takes a raw buffer

pub mod applications;
mod bytes;
#[cfg(feature = "cli")]
pub mod exports;
pub mod launch;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod rules;
pub mod schedules;
pub mod three_groups;

pub use bytes::byte;
pub use three_groups::THREE_GROUPS;

use collwise::collective::{COLLECTIVES, Collective, Parameters, Shape};
use collwise::schedule::{Buffer, Elements, Fold, Layout, Specification};
use collwise::transport::{Buffers, Executor, Task, Transport};
use proptest::prelude::ProptestConfig;
use std::path::PathBuf;

/// A file of this repository.
pub fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// So many cases, or those that `PROPTEST_CASES` asks for.
pub fn cases(few: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = few;
    }
    config
}

/// True if what ranks give and what they get are two buffers, or one in place.
pub fn has_input(collective: &Collective) -> bool {
    (0..2).any(|rank| (collective.layout)(&Shape::new(2, 0, 1), rank).input > 0)
}

/// What the algorithms of a collective are tried with among so many ranks, with a segment: sizes 0, one element, odd and large, in place and not, with
/// an operation that commutes and one that does not; the broadcast from every root, others from roots in turns.
pub fn shapes(collective: &Collective, ranks: usize) -> Vec<(Shape, usize)> {
    let mut shapes = Vec::new();
    if !has_input(collective) {
        for root in 0..if collective.rooted { ranks } else { 1 } {
            // the large size with a root of each kind: first, middle and last
            let large = [0, ranks / 2, ranks - 1].contains(&root);
            let sizes = [(0, 0), (1, 0), (1001, 64), (70_001, 4096)];
            let most = if !collective.sized() { 1 } else { 3 + usize::from(large) };
            shapes.extend(sizes.into_iter().take(most).map(|(bytes, segment)| (Shape::new(ranks, root, bytes), segment)));
        }
        return shapes;
    }
    let operations = [Elements { bytes: 4, commute: true }, Elements { bytes: 2, commute: false }];
    for (size, (count, segment)) in [(0, 0), (1, 0), (101, 64), (1501, 1024)].into_iter().enumerate() {
        for (k, in_place) in [false, true].into_iter().enumerate() {
            for elements in operations.into_iter().take(if collective.combines { 2 } else { 1 }) {
                let turn = 2 * k + usize::from(elements.commute);
                // nothing and much, once each
                if !(1..3).contains(&size) && turn != if collective.combines { ranks % 4 } else { 2 * (ranks % 2) + 1 } {
                    continue;
                }
                let elements = if collective.combines { elements } else { Elements::default() };
                let root = if collective.rooted { [0, ranks / 2, ranks - 1][(ranks + turn) % 3] } else { 0 };
                shapes.push((Shape { elements, in_place, ..Shape::new(ranks, root, count * elements.bytes) }, segment));
            }
        }
    }
    shapes
}

/// One of what is longer than libraries send without asking, 64 KiB in each block, for collectives whose ranks give and get two buffers.
pub fn large(collective: &Collective, ranks: usize) -> Option<(Shape, usize)> {
    if !has_input(collective) || !collective.sized() {
        return None;
    }
    let elements = if collective.combines { Elements { bytes: 4, commute: ranks.is_multiple_of(2) } } else { Elements::default() };
    let root = if collective.rooted { ranks / 2 } else { 0 };
    Some((Shape { elements, in_place: ranks % 4 < 2, ..Shape::new(ranks, root, 17_501 * 4) }, 16_384))
}

/// What lies in bytes that some ranks' values were combined in, where each rank's own are [`byte`]s.
pub fn value(elements: Elements, mark: usize, of: &Fold, from: usize, len: usize) -> Vec<u8> {
    let operation = schedules::operation(elements);
    let own = |of: usize| (0..len).map(|k| byte(from + k, mark + 31 * of)).collect::<Vec<u8>>();
    let ranks: Vec<usize> = of.ranks().collect();
    let (last, before) = ranks.split_last().unwrap();
    before.iter().rev().fold(own(*last), |mut folded, &rank| {
        operation(&own(rank), &mut folded).unwrap();
        folded
    })
}

/// A rank's input and output before, as a specification says, with bytes that nobody gave where it says nothing.
pub fn filled(specification: &Specification, me: usize, mark: usize) -> (Vec<u8>, Vec<u8>) {
    let Layout { input, output } = specification.layouts[me];
    let (mut input, mut output) = (vec![0xAA; input], vec![0xAA; output]);
    for piece in &specification.before[me] {
        let buffer = if piece.buffer == Buffer::Input { &mut input } else { &mut output };
        buffer[piece.at..piece.at + piece.len].copy_from_slice(&value(specification.elements, mark, &piece.of, piece.from, piece.len));
    }
    (input, output)
}

/// The collectives whose roots [`shapes`] tries in turns, from every root: of a few elements in segments of two, in place and not, and by an operation that commutes
/// and one that does not.
pub fn shapes_from_every_root(collective: &Collective, ranks: usize) -> Vec<(Shape, usize)> {
    if !has_input(collective) || !collective.rooted {
        return Vec::new();
    }
    let shape = |root: usize| {
        let elements = if collective.combines { Elements { bytes: 4, commute: root % 4 < 2 } } else { Elements::default() };
        let shape = Shape { elements, in_place: (root + ranks).is_multiple_of(2), ..Shape::new(ranks, root, 5 * elements.bytes) };
        (shape, 2 * elements.bytes)
    };
    (0..ranks).map(shape).collect()
}

/// Runs every algorithm of every collective for every rank count up to `most` on the transport of one of `most` ranks, with [`shapes`] and for some counts what is
/// [`large`], and checks every byte against the collective's specification; where ranks give and get two buffers, for those rank counts that are wanted.
pub fn deliver_everything<T: Transport>(transport: &mut T, most: usize, wanted: impl Fn(usize) -> bool) {
    let wanted = |collective: &Collective, ranks| !has_input(collective) || wanted(ranks);
    deliver(transport, most, |collective, ranks| if wanted(collective, ranks) { shapes(collective, ranks) } else { Vec::new() });
    deliver(transport, most, |collective, ranks| large(collective, ranks).into_iter().filter(|_| ranks % 16 < 2 || ranks == 5).collect());
}

/// The same with shapes that are said.
pub fn deliver<T: Transport>(transport: &mut T, most: usize, shapes: impl Fn(&Collective, usize) -> Vec<(Shape, usize)>) {
    let me = transport.rank();
    let mut executor = Executor::default();
    let mut mark = 0;
    for (collective, ranks) in COLLECTIVES.iter().copied().flat_map(|c| (1..=most).map(move |ranks| (c, ranks))) {
        for (shape, segment) in shapes(collective, ranks) {
            mark += 1;
            if me >= ranks {
                continue;
            }
            let operation = schedules::operation(shape.elements);
            let specification = (collective.specification)(&shape);
            let (input, output) = filled(&specification, me, mark);
            let wanted: Vec<Vec<u8>> = specification.after[me].iter().map(|p| value(shape.elements, mark, &p.of, p.from, p.len)).collect();
            for algorithm in collective.built().filter(|a| (a.fits)(&shape)) {
                let program = algorithm.program(me, &shape, &Parameters::of(segment, 3)).unwrap();
                let mut output = output.clone();
                let mut task = Task::new(&program).combining(&operation);
                // SAFETY: the buffers are this rank's own
                unsafe { executor.run(transport, &mut task, Buffers::of(&input, &mut output), 0) }
                    .unwrap_or_else(|e| panic!("{} {} {shape:?}: {e}", collective.name, algorithm.name));
                for (piece, wanted) in specification.after[me].iter().zip(&wanted) {
                    let wrong = (0..piece.len).find(|&k| output[piece.at + k] != wanted[k]);
                    assert_eq!(wrong, None, "{} {} {shape:?} rank {me}: first wrong byte", collective.name, algorithm.name);
                }
            }
        }
    }
}

/// Hosts of one switch (or of several sites), in threes, whose processors are 1 to 8 times apart.
pub fn unlike_processors(sites: usize, seed: u64) -> collwise::platform::Platform {
    use rand::{Rng, SeedableRng};
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut text = String::from("format = 1\nname = \"unlike\"\nsource = \"made up\"\n[hosts]\ngap_s = 1e-6\ngap_s_per_byte = 8.5e-9\n");
    text += "eager_limit_bytes = 65536\n";
    for site in 0..sites {
        text += &format!("[[group]]\nname = \"g{site}\"\ncount = {}\nlatency_s = 150e-6\n", 24 / sites);
        for kind in 0..8 / sites {
            let times = 8f64.powf(random.random_range(0.0..1.0));
            let (fixed, each) = (10e-6 * times, 2e-9 * times);
            text += &format!(
                "[[group.variant]]\nname = \"v{site}-{kind}\"\ncount = 3\nhosts = {{ send_overhead_s = {fixed}, recv_overhead_s = {fixed}, "
            );
            text += &format!("send_overhead_s_per_byte = {each}, recv_overhead_s_per_byte = {each} }}\n");
        }
    }
    for (a, b) in (0..sites).flat_map(|a| (a + 1..sites).map(move |b| (a, b))) {
        text += &format!("[[link]]\nbetween = [\"g{a}\", \"g{b}\"]\nlatency_s = 5e-3\nbandwidth_bytes_per_s = 117e6\n");
    }
    collwise::platform::Platform::parse("unlike", &text).unwrap()
}
