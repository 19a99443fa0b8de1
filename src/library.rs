//! Which MPI library a text is about: what the library says of itself, as samples and policies repeat it; and what its launchers say.

/// What a simulated platform has in a library's place.
pub const SIMULATOR: &str = "simulator";

/// An MPI library, as far as anything hangs on which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// None: the platform is simulated.
    Simulator,
    /// SimGrid's, whose time is virtual.
    Smpi,
    /// Open MPI.
    OpenMpi,
    /// MPICH and its kin.
    Mpich,
    /// One that is not known.
    Other,
}

impl Library {
    /// The one that says this of itself.
    ///
    /// ```
    /// use collwise::library::{Library, SIMULATOR};
    /// assert_eq!(Library::of("SMPI Version 3.32"), Library::Smpi);
    /// assert_eq!(Library::of("MPICH Version:\t4.0.2"), Library::Mpich);
    /// assert_eq!(Library::of("Open MPI v4.1.4"), Library::OpenMpi);
    /// assert_eq!(Library::of(SIMULATOR), Library::Simulator);
    /// ```
    pub fn of(text: &str) -> Library {
        let says = |name: &str| text.contains(name);
        match text {
            SIMULATOR => Library::Simulator,
            _ if says("SMPI") => Library::Smpi,
            _ if ["MPICH", "MVAPICH", "Intel(R) MPI"].into_iter().any(says) => Library::Mpich,
            _ if says("Open MPI") => Library::OpenMpi,
            _ => Library::Other,
        }
    }

    /// True if a rank that is through early in one call begins the next one early. SMPI as it comes moves no message before its receive is posted: calls in a
    /// row wait for each other there, whatever they do.
    ///
    /// ```
    /// use collwise::library::Library;
    /// assert!(Library::OpenMpi.lets_calls_overlap() && !Library::of("SMPI Version 3.32").lets_calls_overlap());
    /// ```
    pub fn lets_calls_overlap(self) -> bool {
        self != Library::Smpi
    }

    /// True if what waits for a message that fails calls the error handler of MPI_COMM_WORLD, whatever communicator the message is on: MPICH's
    /// `MPI_Wait`, `MPI_Test`, `MPI_Waitall`, `MPI_Request_get_status` and their kin do (4.0.2).
    pub fn waits_call_the_worlds_handler(self) -> bool {
        self == Library::Mpich
    }
}

/// The environment says by this that each program of a job has `libcollwise_preload.so` preloaded.
pub const ALL_PRELOADED: &str = "COLLWISE_PRELOADED";

/// True on rank 0, as launchers say it before MPI runs or without it; everywhere if none does. One rank of a program that another library's launcher started has
/// that one's number, and 0 from its own library.
pub fn is_first_rank() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"];
    !ranks.iter().any(|name| std::env::var(name).is_ok_and(|rank| rank != "0"))
}
