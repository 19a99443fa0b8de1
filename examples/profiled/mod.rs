//! The MPI calls of the mini-applications, each timed and noted: at the end rank 0 writes a report in mpiP's layout to the file that
//! `COLLWISE_PROFILE` names. Each application uses some of the calls. Under SimGrid SMPI, computing takes as long as its
//! floating point operations take at 1 Gflop/s.
#![allow(dead_code)]

use collwise::qnm::{Profile, report};
use collwise::run::AdaptiveCollectives;
use mpi::collective::SystemOperation;
use mpi::datatype::{Partition, PartitionMut};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::cell::RefCell;
use std::ffi::{c_char, c_double, c_void};
use std::panic::Location;

/// A communicator whose calls are noted.
pub struct Profiled {
    world: SimpleCommunicator,
    profile: RefCell<Profile>,
    start: f64,
    operations: Option<unsafe extern "C" fn(c_double)>,
}

impl Profiled {
    /// Starts MPI; from now on time counts. Not by `mpi::initialize`, which keeps the thread that called it: under SMPI, where each rank has
    /// a copy of the program, that takes one of glibc's 1,024 thread keys for each.
    ///
    /// # Errors
    /// MPI does not start, or the launcher is another library's.
    pub fn start() -> Result<Profiled, Box<dyn std::error::Error>> {
        collwise::transport::mpi::abort_on_panic();
        // SAFETY: the first call of MPI, and the only one of this function
        #[allow(unsafe_code)]
        if unsafe { mpi::ffi::MPI_Init(std::ptr::null_mut(), std::ptr::null_mut()) } != 0 {
            return Err("MPI does not start".into());
        }
        let world = SimpleCommunicator::world();
        let profile = Profile { node: mpi::environment::processor_name().unwrap_or_default(), ..Profile::default() };
        let operations = simulated_operations();
        let mut started = Profiled { world, profile: RefCell::new(profile), start: 0.0, operations };
        collwise::transport::mpi::check_launcher(started.size())?;
        started.world.barrier();
        started.start = mpi::time();
        Ok(started)
    }

    /// This process.
    pub fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// All of them.
    pub fn size(&self) -> usize {
        self.world.size() as usize
    }

    /// So many floating point operations were done; a simulated clock does not see that by itself.
    pub fn computed(&self, operations: f64) {
        if let Some(execute) = self.operations {
            // SAFETY: SimGrid's smpi_execute_flops, called on an MPI rank between calls of MPI.
            #[allow(unsafe_code)]
            unsafe {
                execute(operations);
            }
        }
    }

    /// Notes a call of the place that called the caller.
    #[track_caller]
    fn timed<T>(&self, call: &str, bytes: usize, run: impl FnOnce() -> T) -> T {
        let place = Location::caller();
        let start = mpi::time();
        let result = run();
        self.profile.borrow_mut().note(call, place.file(), place.line(), mpi::time() - start, bytes);
        result
    }

    /// The sum over all processes.
    #[track_caller]
    pub fn sum(&self, value: f64) -> f64 {
        let mut all = 0.0;
        self.timed("Allreduce", 8, || self.world.all_reduce_into(&value, &mut all, SystemOperation::sum()));
        all
    }

    /// Sends from process 0 to all: adaptively where `COLLWISE_POLICY` names a policy, else by `MPI_Bcast`.
    #[track_caller]
    pub fn broadcast(&self, data: &mut [f64]) -> Result<(), collwise::error::Error> {
        let adaptive = std::env::var_os("COLLWISE_POLICY").is_some();
        self.timed("Bcast", size_of_val(data), || {
            if adaptive {
                return self.world.adaptive_bcast(0, data);
            }
            self.world.process_at_rank(0).broadcast_into(data);
            Ok(())
        })
    }

    /// Adds up vectors of all processes into that of process 0.
    #[track_caller]
    pub fn reduce(&self, data: &mut [f64]) {
        let own = data.to_vec();
        let root = self.world.process_at_rank(0);
        self.timed("Reduce", size_of_val(data), || {
            if self.rank() == 0 {
                root.reduce_into_root(&own[..], data, SystemOperation::sum())
            } else {
                root.reduce_into(&own[..], SystemOperation::sum())
            }
        });
    }

    /// Sends to one process and receives from another, or does only one of both.
    #[track_caller]
    pub fn exchange(&self, to: Option<usize>, sent: &[f64], from: Option<usize>, received: &mut [f64]) {
        let world = &self.world;
        match (to, from) {
            (Some(to), Some(from)) => self.timed("Sendrecv", size_of_val(sent), || {
                mpi::point_to_point::send_receive_into(
                    sent,
                    &world.process_at_rank(to as i32),
                    received,
                    &world.process_at_rank(from as i32),
                );
            }),
            (Some(to), None) => self.timed("Send", size_of_val(sent), || world.process_at_rank(to as i32).send(sent)),
            (None, Some(from)) => self.timed("Recv", 0, || {
                world.process_at_rank(from as i32).receive_into(received);
            }),
            (None, None) => {}
        }
    }

    /// Sends to each process its part of a buffer and gets theirs; parts are (number, position).
    #[track_caller]
    pub fn all_to_all(&self, sent: &[f64], parts: &[(usize, usize)], received: &mut [f64], their_parts: &[(usize, usize)]) {
        let split = |parts: &[(usize, usize)]| -> (Vec<i32>, Vec<i32>) { parts.iter().map(|p| (p.0 as i32, p.1 as i32)).unzip() };
        let ((counts, places), (their_counts, their_places)) = (split(parts), split(their_parts));
        self.timed("Alltoallv", size_of_val(sent), || {
            let mine = Partition::new(sent, &counts[..], &places[..]);
            let mut theirs = PartitionMut::new(received, &their_counts[..], &their_places[..]);
            self.world.all_to_all_varcount_into(&mine, &mut theirs);
        });
    }

    /// Writes the report, if one is asked for.
    pub fn finish(self) -> Result<(), Box<dyn std::error::Error>> {
        let mut profile = self.profile.take();
        profile.app_s = mpi::time() - self.start;
        let Some(path) = std::env::var_os("COLLWISE_PROFILE") else { return Ok(()) };
        let text = serde_json::to_vec(&profile)?;
        if self.world.rank() > 0 {
            let root = self.world.process_at_rank(0);
            root.send(&(text.len() as u64));
            root.send(&text[..]);
            return Ok(());
        }
        let mut profiles = vec![profile];
        for rank in 1..self.world.size() {
            let other = self.world.process_at_rank(rank);
            // with the length first: SMPI cannot ask for it
            let mut text = vec![0u8; other.receive::<u64>().0 as usize];
            other.receive_into(&mut text[..]);
            profiles.push(serde_json::from_slice(&text)?);
        }
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        collwise::files::write_text(path.as_ref(), &report(&command, &profiles)?)?;
        Ok(())
    }
}

impl Drop for Profiled {
    fn drop(&mut self) {
        // SAFETY: MPI was started with this value, and nothing of it is used after
        #[allow(unsafe_code)]
        unsafe {
            mpi::ffi::MPI_Finalize();
        }
    }
}

/// SimGrid's function that lets simulated time pass, where the program runs under it.
#[allow(unsafe_code)]
fn simulated_operations() -> Option<unsafe extern "C" fn(c_double)> {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: a null handle asks for the default search order (RTLD_DEFAULT of Linux), the name is a C string, and the function that
    // SimGrid has under this name takes one double.
    unsafe {
        let found = dlsym(std::ptr::null_mut(), c"smpi_execute_flops".as_ptr());
        (!found.is_null()).then(|| std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_double)>(found))
    }
}
