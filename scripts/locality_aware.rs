//! The adaptive alltoall in turns with the library's own and with every alltoall of MPI Advance's locality-aware library: see locality-aware.sh.
//!
//! Ranks begin together by the clock of the machine, which all of them must share, be it in different network namespaces. A repetition takes from
//! there until the last rank is done.

use collwise::run::AdaptiveCollectives;
use mpi::collective::SystemOperation;
use mpi::ffi::{MPI_Comm, MPI_Datatype, RSMPI_UINT8_T};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::ffi::{c_int, c_void};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// From asking all ranks to begin until they do: longer than such a message takes.
const LEAD: Duration = Duration::from_millis(80);
const WARM_UPS: usize = 2;

// AlltoallMethod of locality_aware.h without GPUs; the first two know no localities
const METHODS: [&str; 12] = [
    "pairwise",
    "nonblocking",
    "hierarchical pairwise",
    "hierarchical nonblocking",
    "multileader pairwise",
    "multileader nonblocking",
    "node-aware pairwise",
    "node-aware nonblocking",
    "locality-aware pairwise",
    "locality-aware nonblocking",
    "multileader locality pairwise",
    "multileader locality nonblocking",
];
const WITHOUT_LOCALITY: usize = 2;

#[repr(C)]
struct Theirs(c_void);

unsafe extern "C" {
    fn MPIL_Comm_init(comm: *mut *mut Theirs, of: MPI_Comm) -> c_int;
    fn MPIL_Comm_update_locality(comm: *mut Theirs, together: c_int) -> c_int;
    fn MPIL_Set_alltoall_algorithm(method: c_int) -> c_int;
    fn MPIL_Alltoall(
        input: *const c_void,
        count: c_int,
        of: MPI_Datatype,
        output: *mut c_void,
        their_count: c_int,
        their: MPI_Datatype,
        comm: *mut Theirs,
    ) -> c_int;
}

enum Contestant {
    Adaptive,
    Native,
    Theirs(c_int, *mut Theirs),
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

/// What a rank sends to another.
fn byte(from: usize, to: usize, at: usize, mark: usize) -> u8 {
    (from * 131 + to * 31 + at * 7 + mark * 17) as u8
}

fn contestants(world: &SimpleCommunicator, localities: &[usize]) -> Vec<(String, Contestant)> {
    let mut all = vec![("adaptive".to_string(), Contestant::Adaptive), ("native".into(), Contestant::Native)];
    for (k, together) in localities.iter().enumerate() {
        let mut comm = std::ptr::null_mut();
        // SAFETY: the communicator lives until MPI ends, theirs is used on it only
        let codes = unsafe { (MPIL_Comm_init(&mut comm, world.as_raw()), MPIL_Comm_update_locality(comm, *together as c_int)) };
        assert_eq!(codes, (0, 0), "MPIL_Comm_init");
        for (method, name) in METHODS.iter().enumerate() {
            if method < WITHOUT_LOCALITY && k == 0 {
                all.push((name.to_string(), Contestant::Theirs(method as c_int, comm)));
            } else if method >= WITHOUT_LOCALITY {
                all.push((format!("{name}, {together} together"), Contestant::Theirs(method as c_int, comm)));
            }
        }
    }
    all
}

/// Calls it once: the seconds until the last rank is done on rank 0, and whether this rank began late.
fn once(world: &SimpleCommunicator, contestant: &Contestant, input: &[u8], output: &mut [u8], block: usize) -> (f64, bool) {
    world.barrier();
    let mut begin = now() + LEAD.as_secs_f64();
    world.process_at_rank(0).broadcast_into(&mut begin);
    let wait = begin - now();
    std::thread::sleep(Duration::from_secs_f64(wait.max(0.0)));
    match contestant {
        Contestant::Adaptive => world.adaptive_alltoall(input, output).expect("an alltoall"),
        Contestant::Native => world.all_to_all_into(input, output),
        // SAFETY: both buffers have a block for each rank
        Contestant::Theirs(method, comm) => unsafe {
            MPIL_Set_alltoall_algorithm(*method);
            let (from, to) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
            let code = MPIL_Alltoall(from, block as c_int, RSMPI_UINT8_T, to, block as c_int, RSMPI_UINT8_T, *comm);
            assert_eq!(code, 0, "MPIL_Alltoall");
        },
    }
    let took = now() - begin;
    let mut last = 0.0;
    world.all_reduce_into(&took, &mut last, SystemOperation::max());
    (last, wait < 0.0)
}

fn main() {
    let universe = mpi::initialize().expect("MPI starts once");
    let world = universe.world();
    let (me, ranks) = (world.rank() as usize, world.size() as usize);
    let numbers = |text: Option<String>| -> Vec<usize> {
        let text = text.expect("usage: locality_aware SIZES RANKS_TOGETHER REPETITIONS");
        text.split(',').map(|n| n.parse().expect("a number")).collect()
    };
    let mut arguments = std::env::args().skip(1);
    let (sizes, localities) = (numbers(arguments.next()), numbers(arguments.next()));
    let repetitions = numbers(arguments.next())[0];
    // theirs take nodes of as many ranks each
    let localities: Vec<usize> = localities.into_iter().filter(|&l| l > 0 && ranks % l == 0).collect();
    let all = contestants(&world, &localities);
    for block in sizes {
        let mut seconds = vec![Vec::new(); all.len()];
        let (mut wrong, mut late) = (vec![0usize; all.len()], 0);
        let (mut input, mut output) = (vec![0; ranks * block], vec![0; ranks * block]);
        for repetition in 0..WARM_UPS + repetitions {
            for (k, (_, contestant)) in all.iter().enumerate() {
                let mark = repetition * all.len() + k;
                (0..input.len()).for_each(|i| input[i] = byte(me, i / block, i % block, mark));
                output.fill(0);
                let (took, was_late) = once(&world, contestant, &input, &mut output, block);
                let bad = (0..output.len()).any(|i| output[i] != byte(i / block, me, i % block, mark));
                let (mine, mut sums) = ([usize::from(bad) as u64, usize::from(was_late) as u64], [0, 0]);
                world.all_reduce_into(&mine, &mut sums, SystemOperation::sum());
                wrong[k] += sums[0] as usize;
                late += sums[1];
                if repetition >= WARM_UPS {
                    seconds[k].push(took);
                }
            }
        }
        if me != 0 {
            continue;
        }
        let median = |k: usize| {
            let mut sorted = seconds[k].clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        let own = median(0);
        println!(
            "alltoall, {ranks} ranks, blocks of {block} B: median of {repetitions}, times what the adaptive one takes; {late} began late"
        );
        let mut best: Option<(f64, &str)> = None;
        for (k, (name, contestant)) in all.iter().enumerate() {
            println!("{name:<48}{:>10.3} ms{:>10.3}x{}", median(k) * 1e3, median(k) / own, if wrong[k] > 0 { "  WRONG BYTES" } else { "" });
            let counts = matches!(contestant, Contestant::Theirs(..)) && wrong[k] == 0;
            if counts && best.is_none_or(|(b, _)| median(k) < b) {
                best = Some((median(k), name));
            }
        }
        if let Some((seconds, name)) = best {
            println!("{:<48}{:>10.3} ms{:>10.3}x  ({name})\n", "the best of theirs", seconds * 1e3, seconds / own);
        }
    }
}
