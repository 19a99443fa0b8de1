//! Names: those that programs find here instead of in the MPI library, and where that library has them.

use crate::say;
use collwise::loaded::{file_of, loaded};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The MPI library's function of a name.
pub fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with a zero
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if next.is_null() { private(name) } else { Some(next) }
}

/// The MPI library's variable of a name. Programs may hold a copy that the library uses too (a copy relocation): theirs comes first.
pub fn variable(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with a zero
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if first.is_null() { private(name) } else { Some(first) }
}

/// A name in a library that a plugin brought along and kept to itself (`dlopen` with `RTLD_LOCAL`, as Python does): it is found by its file
/// only, and kept loaded from then on.
fn private(name: &CStr) -> Option<*mut c_void> {
    let own = file_of(private as *const c_void)?;
    for (file, _) in loaded() {
        // SAFETY: names that end with a zero; what is loaded already is not loaded again, and runs no code
        unsafe {
            let library = libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() {
                continue;
            }
            let found = libc::dlsym(library, name.as_ptr());
            if !found.is_null() && file_of(found) != Some(own) {
                return Some(found);
            }
            libc::dlclose(library);
        }
    }
    None
}

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
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        let Some(found) = function(self.name) else {
            say(&format!("failed to find {}: preload this library under programs that are linked with MPI", self.name.to_string_lossy()));
            std::process::abort();
        };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines an MPI function under both of its names: the one that programs in C call, and the one behind it that MPI's Fortran functions
/// call. `by` says what is done; its argument calls the MPI library's, or where there are adaptive collectives, theirs of the name after `or`. What a
/// program's error handler throws passes through.
macro_rules! define {
    ($name:ident = $own:ident($($argument:ident: $type:ty),* $(,)?) $(or $adaptive:ident)? by |$call:ident| $body:block) => {
        #[doc = concat!("Takes the place of `", stringify!($own), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $own($($argument: $type),*) -> std::ffi::c_int {
            type Own = unsafe extern "C-unwind" fn($($type),*) -> std::ffi::c_int;
            static OWN: $crate::names::Namesake = $crate::names::Namesake::new(concat!(stringify!($own), "\0"));
            // SAFETY: functions of this name have these arguments, with which the caller calls the namesake
            let with = |function| unsafe { std::mem::transmute::<*mut std::ffi::c_void, Own>(function)($($argument),*) };
            let $call = || {
                $(
                    static ADAPTIVE: $crate::engine::Adaptive = $crate::engine::Adaptive::new(concat!(stringify!($adaptive), "\0"));
                    if let Some(inside) = ADAPTIVE.enter() {
                        return with(inside.function);
                    }
                )?
                with(OWN.find())
            };
            $body
        }

        #[doc = concat!("Takes the place of `", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $type),*) -> std::ffi::c_int {
            // SAFETY: the caller's arguments
            unsafe { $own($($argument),*) }
        }
    };
}
pub(crate) use define;
