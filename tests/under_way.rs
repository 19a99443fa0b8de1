//! Several collectives under way at the same time, started and progressed in an order that each rank draws for itself.
#![allow(unsafe_code)] // executing a schedule takes a raw buffer

mod common;
#[cfg(feature = "mpi")]
#[path = "programs/resident.rs"]
mod resident;

use collwise::collective::{Parameters, Shape, bcast};
use collwise::schedule::Program;
use collwise::transport::threads::transports;
use collwise::transport::{Buffers, Executor, Tag, Task, Transport};
use common::byte;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const AT_ONCE: usize = 7;

/// One of them on one rank.
struct Broadcast<R> {
    program: Program,
    executor: Executor<R>,
    data: Vec<u8>,
    tag: Tag,
    mark: usize,
}

impl<R: Copy> Broadcast<R> {
    /// The `k`-th of a round, drawn alike on all ranks.
    fn draw(random: &mut impl Rng, me: usize, ranks: usize, k: usize) -> Broadcast<R> {
        let with_builder: Vec<_> = bcast::ALGORITHMS.iter().filter_map(|a| a.builder).collect();
        let builder = with_builder[random.random_range(0..with_builder.len())];
        let bytes = [0, 1, 1000, 70_000][random.random_range(0..4)];
        let shape = Shape::new(ranks, random.random_range(0..ranks), bytes);
        let program = builder(me, &shape, &Parameters::of(random.random_range(16..5000), 3));
        let data = (0..bytes).map(|b| if me == shape.root { byte(b, k) } else { 0xAA }).collect();
        Broadcast { program, executor: Executor::default(), data, tag: k as Tag * 4, mark: k }
    }

    fn start<T: Transport<Request = R>>(&mut self, transport: &mut T) {
        // SAFETY: `data` is this one's own, and kept until it is complete
        unsafe { self.executor.start(transport, &mut Task::new(&self.program), Buffers::of(&[], &mut self.data), self.tag) }.unwrap();
    }

    /// True if it is complete: every byte is there then.
    fn progress<T: Transport<Request = R>>(&mut self, transport: &mut T) -> bool {
        // SAFETY: as above
        let complete = unsafe { self.executor.progress(transport, &mut Task::new(&self.program)) }.unwrap();
        if complete {
            let wrong = self.data.iter().enumerate().position(|(b, &found)| found != byte(b, self.mark));
            assert_eq!(wrong, None, "broadcast {}: first wrong byte", self.mark);
        }
        complete
    }
}

fn several_at_once<T: Transport>(transport: &mut T, ranks: usize, rounds: u64) {
    let me = transport.rank();
    for round in 0..rounds {
        let mut alike = Xoshiro256PlusPlus::seed_from_u64(round);
        let mut own = Xoshiro256PlusPlus::seed_from_u64(round * 1000 + me as u64 + 1);
        let mut waiting: Vec<Broadcast<T::Request>> =
            (0..AT_ONCE).map(|k| Broadcast::draw(&mut alike, me, ranks, round as usize * AT_ONCE + k)).collect();
        let mut open = Vec::new();
        while !waiting.is_empty() || !open.is_empty() {
            let k = own.random_range(0..waiting.len() + open.len());
            if k < waiting.len() {
                let mut next = waiting.swap_remove(k);
                next.start(transport);
                open.push(next);
            } else if open[k - waiting.len()].progress(transport) {
                // a buffer goes when its broadcast is complete, and not before
                open.swap_remove(k - waiting.len());
            } else {
                std::thread::yield_now();
            }
        }
    }
}

#[test]
fn over_threads() {
    std::thread::scope(|scope| {
        for mut transport in transports(6) {
            scope.spawn(move || several_at_once(&mut transport, 6, 60));
        }
    });
}

#[cfg(feature = "mpi")]
#[test]
fn over_mpi() {
    use common::mpi::{must_succeed, on_ranks};
    use mpi::traits::*;
    must_succeed(on_ranks("over_mpi", 5, &[], |world| {
        let private = world.duplicate();
        // SAFETY: `private` outlives the transport
        let mut transport = unsafe { collwise::transport::mpi::MpiTransport::new(private.as_raw()) }.unwrap();
        several_at_once(&mut transport, 5, 40);
        world.barrier();
    }));
}

/// What is progressed only is what is run: the same operations, in the blocking way, after it was started.
#[test]
fn what_was_started_can_be_waited_for() {
    std::thread::scope(|scope| {
        for mut transport in transports(4) {
            scope.spawn(move || {
                let mut alike = Xoshiro256PlusPlus::seed_from_u64(7);
                for k in 0..50 {
                    let mut one = Broadcast::draw(&mut alike, transport.rank(), 4, k);
                    one.start(&mut transport);
                    if k % 2 == 0 {
                        one.progress(&mut transport);
                    }
                    // SAFETY: as in `start`
                    unsafe { one.executor.finish(&mut transport, &mut Task::new(&one.program)) }.unwrap();
                    assert!(one.progress(&mut transport), "what is finished is complete");
                }
            });
        }
    });
}

/// Small messages leave at once, and wait in the memory of a receiver that is slow: of all that are sent it keeps a few megabytes.
#[cfg(feature = "mpi")]
#[test]
fn what_waits_for_a_slow_receiver_is_bounded() {
    use collwise::schedule::Span;
    use common::mpi::{must_succeed, on_ranks};
    use mpi::traits::*;
    use resident::resident;
    const SEGMENT: usize = 4 << 10;
    const SENT: usize = 64 << 20;
    const KEPT: usize = 24 << 20;
    // what Open MPI keeps of messages between hosts; between processes of one host its memory is the sender's
    let over_tcp: [(&str, &std::path::Path); 1] = [("OMPI_MCA_btl", "tcp,self".as_ref())];
    must_succeed(on_ranks("what_waits_for_a_slow_receiver_is_bounded", 2, &over_tcp, |world| {
        let mut program = Program::new();
        program.in_flight(2);
        let mut combined: Vec<u32> = Vec::new();
        for k in 0..SENT / SEGMENT {
            if world.rank() == 0 {
                program.send(1, Span::output(0, SEGMENT), &[]);
            } else {
                let slot = Span::scratch(k % 2 * SEGMENT, SEGMENT);
                let before: Vec<u32> = combined.iter().rev().nth(1).copied().into_iter().collect();
                let received = program.recv(0, slot, &before);
                combined.push(program.combine(slot, Span::output(0, SEGMENT), &[received]));
            }
        }
        let (before, most) = (resident(), std::cell::Cell::new(0));
        let slowly = |_: &[u8], _: &mut [u8]| -> collwise::error::Result<()> {
            std::thread::sleep(std::time::Duration::from_micros(50));
            most.set(resident().max(most.get()));
            Ok(())
        };
        let private = world.duplicate();
        let mut output = vec![1; SEGMENT];
        // SAFETY: `private` outlives the transport, and `output` the run
        unsafe {
            let mut transport = collwise::transport::mpi::MpiTransport::new(private.as_raw()).unwrap();
            Executor::default().run(&mut transport, &mut Task::new(&program).combining(&slowly), Buffers::of(&[], &mut output), 0).unwrap();
        }
        let more = most.get().saturating_sub(before);
        assert!(more < KEPT, "the receiver keeps {} MiB", more >> 20);
        world.barrier();
    }));
}
