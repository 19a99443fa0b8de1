//! Names that programs find here instead of in the MPI library.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the MPI library whose name is taken here.
pub struct Namesake {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Namesake {
    /// The function of a name that ends with a zero.
    pub const fn new(name: &'static str) -> Namesake {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("the name must end with a zero") };
        Namesake { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address. A program whose MPI library has no such function is ended: it could not have been started without this library either.
    pub fn find(&self) -> *mut c_void {
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: a name that ends with a zero
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            if found.is_null() {
                eprintln!(
                    "collwise: failed to find {}: preload this library under programs that are linked with MPI",
                    self.name.to_string_lossy()
                );
                std::process::abort();
            }
            self.found.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// Defines an MPI function under both of its names: the one that programs in C call, and the one behind it that MPI's Fortran functions
/// call. `by` says what is done; its argument calls the MPI library's.
macro_rules! define {
    ($name:ident = $own:ident($($argument:ident: $type:ty),* $(,)?) by |$call:ident| $body:block) => {
        #[doc = concat!("Takes the place of `", stringify!($own), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $own($($argument: $type),*) -> std::ffi::c_int {
            static OWN: $crate::names::Namesake = $crate::names::Namesake::new(concat!(stringify!($own), "\0"));
            // SAFETY: MPI's function of this name has these arguments
            let own = unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) -> std::ffi::c_int>(OWN.find()) };
            // SAFETY: the caller's arguments, with which it calls the namesake
            let $call = || unsafe { own($($argument),*) };
            $body
        }

        #[doc = concat!("Takes the place of `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            // SAFETY: the caller's arguments
            unsafe { $own($($argument),*) }
        }
    };
}
pub(crate) use define;
