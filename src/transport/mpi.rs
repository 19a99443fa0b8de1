//! Ranks as MPI processes.
//!
//! Only `PMPI_*` calls through the raw interface: the safe one drops return codes, and the profiling names cannot be caught by
//! an interposer of our own.

use super::{Tag, Transport, native};
use crate::error::{Error, Result};
use crate::topology::Rank;
use mpi::ffi;
use std::ffi::{CStr, c_char, c_int, c_void};

/// A communicator as a transport. It does not own the communicator.
#[derive(Debug, Clone, Copy)]
pub struct MpiTransport {
    comm: ffi::MPI_Comm,
    rank: Rank,
    /// What is added to tags.
    tag: c_int,
}

/// Turns a return code into a result with MPI's own words.
///
/// # Errors
/// [`Error::Mpi`] for any code but success.
#[inline]
pub fn check(call: &'static str, code: c_int) -> Result<()> {
    if code == ffi::MPI_SUCCESS as c_int { Ok(()) } else { Err(failure(call, code)) }
}

#[cold]
fn failure(call: &'static str, code: c_int) -> Error {
    let mut text = [0u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let (mut len, mut rank): (c_int, c_int) = (0, 0);
    // SAFETY: the buffer has the size that MPI asks for; a constant of the library
    unsafe {
        native::PMPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut len);
        native::PMPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank);
    }
    let reason = String::from_utf8_lossy(&text[..(len.max(0) as usize).min(text.len())]).into_owned();
    Error::Mpi { rank: rank as Rank, call, code, reason }
}

impl MpiTransport {
    /// Wraps a communicator.
    ///
    /// # Safety
    /// `comm` must be a valid intra-communicator for as long as this is used.
    ///
    /// # Errors
    /// MPI's reason.
    pub unsafe fn new(comm: ffi::MPI_Comm) -> Result<MpiTransport> {
        let mut rank: c_int = 0;
        // SAFETY: the caller vouches for `comm`
        check("MPI_Comm_rank", unsafe { native::PMPI_Comm_rank(comm, &mut rank) })?;
        // SAFETY: as above
        Ok(unsafe { MpiTransport::of_rank(comm, rank as Rank) })
    }

    /// Wraps a communicator in which this process's rank is known.
    ///
    /// # Safety
    /// As [`MpiTransport::new`].
    pub unsafe fn of_rank(comm: ffi::MPI_Comm, rank: Rank) -> MpiTransport {
        MpiTransport { comm, rank, tag: 0 }
    }

    /// The same with tags from `tag` on: for several that share a communicator.
    pub fn with_tag(self, tag: c_int) -> MpiTransport {
        MpiTransport { tag, ..self }
    }

    /// The communicator.
    #[inline]
    pub fn comm(&self) -> ffi::MPI_Comm {
        self.comm
    }

    #[inline]
    fn count(&self, len: usize) -> Result<c_int> {
        c_int::try_from(len)
            .map_err(|_| Error::Rank { rank: self.rank, reason: format!("one message of {len} bytes is more than MPI counts") })
    }
}

/// The largest tag: MPI promises 32,767 at least.
pub fn tag_bound() -> c_int {
    static FOUND: std::sync::OnceLock<c_int> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        let (mut bound, mut found): (*mut c_int, c_int) = (std::ptr::null_mut(), 0);
        // SAFETY: MPI writes the address of an `int` that lasts
        unsafe {
            let code = native::PMPI_Comm_get_attr(ffi::RSMPI_COMM_WORLD, ffi::MPI_TAG_UB as c_int, (&raw mut bound).cast(), &mut found);
            if code == ffi::MPI_SUCCESS as c_int && found != 0 && !bound.is_null() { *bound } else { 32_767 }
        }
    })
}

/// The clock: the only one that is virtual under a simulated MPI.
pub fn now() -> f64 {
    // SAFETY: MPI is initialised wherever a transport exists
    unsafe { native::PMPI_Wtime() }
}

type Usleep = unsafe extern "C" fn(u32) -> c_int;

fn drop_code(_: c_int) {}

/// Under SMPI, computing takes no time and reading the clock nearly none: only its own sleep lets time pass.
fn virtual_sleep() -> Option<Usleep> {
    static FOUND: std::sync::OnceLock<Option<Usleep>> = std::sync::OnceLock::new();
    // SAFETY: the symbol, where it exists, is a function of this type
    *FOUND.get_or_init(|| symbol(c"smpi_usleep").map(|found| unsafe { std::mem::transmute::<*mut c_void, Usleep>(found) }))
}

/// A function of the MPI library that not every one has, by its name.
pub fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with a zero
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Transport for MpiTransport {
    type Request = ffi::MPI_Request;

    fn rank(&self) -> Rank {
        self.rank
    }

    fn now(&self) -> f64 {
        now()
    }

    fn delay(&mut self, seconds: f64) {
        match virtual_sleep() {
            // SAFETY: SMPI's own usleep
            Some(sleep) => drop_code(unsafe { sleep((seconds * 1e6).round() as u32) }),
            None => {
                let until = now() + seconds;
                while now() < until {
                    std::thread::yield_now();
                }
            }
        }
    }

    #[inline]
    unsafe fn send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ffi::MPI_Request> {
        let (count, tag) = (self.count(len)?, self.tag + tag as c_int);
        // SAFETY: the caller vouches for the buffer; the request is written before it is read
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (data, byte) = (data.cast::<c_void>(), ffi::RSMPI_UINT8_T);
            check("MPI_Isend", native::PMPI_Isend(data, count, byte, to as c_int, tag, self.comm, &mut request))?;
            Ok(request)
        }
    }

    unsafe fn send_synchronous(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<ffi::MPI_Request> {
        let (count, tag) = (self.count(len)?, self.tag + tag as c_int);
        // SAFETY: as in `send`
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (data, byte) = (data.cast::<c_void>(), ffi::RSMPI_UINT8_T);
            check("MPI_Issend", native::PMPI_Issend(data, count, byte, to as c_int, tag, self.comm, &mut request))?;
            Ok(request)
        }
    }

    #[inline]
    unsafe fn receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<ffi::MPI_Request> {
        let count = self.count(len)?;
        // SAFETY: as in `send`
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (byte, tag) = (ffi::RSMPI_UINT8_T, self.tag + tag as c_int);
            let code = native::PMPI_Irecv(data.cast::<c_void>(), count, byte, from as c_int, tag, self.comm, &mut request);
            check("MPI_Irecv", code)?;
            Ok(request)
        }
    }

    #[inline]
    unsafe fn blocking_send(&mut self, to: Rank, tag: Tag, data: *const u8, len: usize) -> Result<()> {
        let (count, tag) = (self.count(len)?, self.tag + tag as c_int);
        // SAFETY: the caller vouches for the buffer
        let code = unsafe { native::PMPI_Send(data.cast(), count, ffi::RSMPI_UINT8_T, to as c_int, tag, self.comm) };
        check("MPI_Send", code)
    }

    #[inline]
    unsafe fn blocking_receive(&mut self, from: Rank, tag: Tag, data: *mut u8, len: usize) -> Result<()> {
        let (count, tag) = (self.count(len)?, self.tag + tag as c_int);
        // SAFETY: as above
        let code = unsafe {
            let (byte, status) = (ffi::RSMPI_UINT8_T, ffi::RSMPI_STATUS_IGNORE);
            native::PMPI_Recv(data.cast(), count, byte, from as c_int, tag, self.comm, status)
        };
        check("MPI_Recv", code)
    }

    #[inline]
    fn wait(&mut self, mut request: ffi::MPI_Request) -> Result<()> {
        // SAFETY: the request came from `send` or `receive` and is given up here
        let code = unsafe { native::PMPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Wait", code)
    }

    #[inline]
    fn test(&mut self, mut request: ffi::MPI_Request) -> Result<bool> {
        let mut complete: c_int = 0;
        // SAFETY: as in `wait`, if it is complete
        let code = unsafe { native::PMPI_Test(&mut request, &mut complete, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Test", code)?;
        Ok(complete != 0)
    }

    #[inline]
    fn wait_any(&mut self, requests: &mut [ffi::MPI_Request]) -> Result<usize> {
        let mut index: c_int = 0;
        // SAFETY: the requests came from `send` or `receive`; the complete one is given up here
        let code = unsafe { native::PMPI_Waitany(requests.len() as c_int, requests.as_mut_ptr(), &mut index, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Waitany", code)?;
        usize::try_from(index).map_err(|_| Error::Rank { rank: self.rank, reason: "MPI_Waitany: no request was open".into() })
    }
}

/// Prints a reason and ends the whole job: for what leaves the other ranks nothing but to wait for ever.
pub fn abort(reason: &str) -> ! {
    eprintln!("collwise: {reason}");
    // SAFETY: only called between MPI_Init and MPI_Finalize; does not return
    unsafe { native::PMPI_Abort(ffi::RSMPI_COMM_WORLD, 101) };
    std::process::exit(101)
}

/// True if MPI says that it has begun. Under SMPI not any more when MPI_Finalize deletes attributes, where no call may follow.
pub(crate) fn is_initialized() -> bool {
    let mut initialized: c_int = 0;
    // SAFETY: MPI_Initialized may be called at any time
    unsafe { native::PMPI_Initialized(&mut initialized) };
    initialized != 0
}

/// Makes a panic on any rank end the job: unwinding would run MPI_Finalize, which waits for the others for ever. Install before
/// MPI is initialised, in every program.
pub fn abort_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        if is_initialized() {
            abort("a rank panicked, the job ends");
        }
    }));
}

/// The MPI library's own words about itself, first line.
pub fn library_version() -> String {
    let mut text = vec![0u8; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize];
    let mut len: c_int = 0;
    // SAFETY: the buffer has the size that MPI asks for
    unsafe { native::PMPI_Get_library_version(text.as_mut_ptr().cast::<c_char>(), &mut len) };
    let text = String::from_utf8_lossy(&text[..(len.max(0) as usize).min(text.len())]).into_owned();
    let first: Vec<&str> = text.lines().next().unwrap_or_default().split(',').take(1).collect();
    first.concat().trim_end_matches('\0').trim().to_string()
}

/// This process's host, as MPI calls it.
pub fn processor_name() -> String {
    let mut text = vec![0u8; ffi::MPI_MAX_PROCESSOR_NAME as usize];
    let mut len: c_int = 0;
    // SAFETY: the buffer has the size that MPI asks for
    unsafe { native::PMPI_Get_processor_name(text.as_mut_ptr().cast::<c_char>(), &mut len) };
    String::from_utf8_lossy(&text[..(len.max(0) as usize).min(text.len())]).into_owned()
}

/// The host of each rank of a communicator, on every rank. Collective.
///
/// # Errors
/// MPI's reason.
pub fn gather_names(comm: ffi::MPI_Comm) -> Result<Vec<String>> {
    gather_texts(comm, &processor_name())
}

/// Each rank's text, on every rank; texts are cut after some hundred bytes. Collective.
///
/// # Errors
/// MPI's reason.
pub fn gather_texts(comm: ffi::MPI_Comm, own: &str) -> Result<Vec<String>> {
    const WIDTH: usize = 512;
    let (mut size, mut padded) = (0, [0u8; WIDTH]);
    let len = own.len().min(WIDTH);
    padded[..len].copy_from_slice(&own.as_bytes()[..len]);
    // SAFETY: buffers of the sizes that are passed
    unsafe {
        check("MPI_Comm_size", native::PMPI_Comm_size(comm, &mut size))?;
        let mut all = vec![0u8; WIDTH * size as usize];
        let (w, byte) = (WIDTH as c_int, ffi::RSMPI_UINT8_T);
        let code = native::PMPI_Allgather(padded.as_ptr().cast(), w, byte, all.as_mut_ptr().cast(), w, byte, comm);
        check("MPI_Allgather", code)?;
        let text = |b: &[u8]| String::from_utf8_lossy(b).trim_end_matches('\0').to_string();
        Ok(all.chunks_exact(WIDTH).map(text).collect())
    }
}

/// Refuses to go on where a launcher of another MPI library started so many runs of one rank each.
///
/// # Errors
/// [`Error::Invalid`] with the remedy.
pub fn check_launcher(size: usize) -> Result<()> {
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"] {
        let told = std::env::var(variable).ok().and_then(|v| v.parse::<usize>().ok());
        if let Some(told) = told.filter(|&told| size == 1 && told > 1) {
            return Err(Error::invalid(format!(
                "start {told} ranks: the launcher says {told} ({variable}), but this program is alone; it is built for {}: use that \
                 library's mpirun, or build collwise again with the MPICC of the launcher's library",
                library_version()
            )));
        }
    }
    Ok(())
}
