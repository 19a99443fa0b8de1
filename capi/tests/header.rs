//! `include/collwise.h` says what the library has. `UPDATE_HEADER=1 cargo test -p collwise-c --test header` writes it anew.

use std::path::Path;

const INTRODUCTION: &str = "\
/* The adaptive collectives: MPI's functions by the names collwise_..., with the same arguments, the same codes and the same error handlers.

   collwise_init, or the environment variable COLLWISE_POLICY, names the policy. Without one, or with one that does not fit a communicator's hosts,
   the MPI library's own collectives run, and rank 0 is told why on standard error.

   Made of capi/src: change that. */";

#[test]
fn the_header_is_made_of_the_functions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(INTRODUCTION.into()),
        include_guard: Some("COLLWISE_H".into()),
        sys_includes: vec!["mpi.h".into(), "stddef.h".into()],
        no_includes: true,
        cpp_compat: true,
        documentation_style: cbindgen::DocumentationStyle::C99,
        usize_is_size_t: true,
        line_length: 130,
        ..cbindgen::Config::default()
    };
    let builder = cbindgen::Builder::new().with_config(config).with_src(folder.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap().replace("[`", "").replace("`]", "");
    let file = folder.join("../include/collwise.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == made, "include/collwise.h is not what capi/src says: UPDATE_HEADER=1 cargo test -p collwise-c --test header");
}
