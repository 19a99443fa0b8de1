//! Programs in C and Fortran with the library as it is installed: the examples, and what compares every call with the MPI library's own.

#![allow(dead_code)] // these tests use a part of what all share

#[path = "../../tests/common/launch.rs"]
mod launch;
#[path = "../../tests/common/three_groups.rs"]
mod three_groups;

use launch::{ONE_AT_A_TIME, mpicc, mpirun, text};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use three_groups::three_groups;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// What a command says; it must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("start {command:?}: {e}; scripts/setup.sh installs it"));
    assert!(output.status.success(), "{command:?}: {} {}", output.status, text(&output));
    text(&output)
}

/// The library as this test was built with it, in a folder of its own.
fn installed() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let built = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    let (from, prefix) = (format!("FROM={built}"), format!("PREFIX={}", folder.path().display()));
    run(Command::new("make").args(["-s", "install-files", &from, &prefix]).current_dir(project()));
    folder
}

/// The words of `pkg-config` for the installed library.
fn flags(folder: &Path, asked: &[&str]) -> Vec<String> {
    let path = folder.join("lib/pkgconfig");
    run(Command::new("pkg-config").args(asked).arg("collwise").env("PKG_CONFIG_PATH", path)).split_whitespace().map(String::from).collect()
}

/// Compiles a source of the project into the folder.
fn compile(folder: &Path, source: &str, program: &str, flags: &[String]) {
    let compiler = if source.ends_with(".f90") { mpicc().replace("mpicc", "mpifort") } else { mpicc() };
    let warnings: &[&str] =
        if source.ends_with(".c") { &["-Wall", "-Wextra", "-Werror", "-std=c99"] } else { &["-Wall", "-Wno-unused-dummy-argument"] };
    run(Command::new(compiler)
        .args(["-pthread", "-o", program])
        .args(warnings)
        .arg(project().join(source))
        .args(flags)
        .current_dir(folder));
}

/// What a program says on so many ranks, which are dealt out over the policy's groups.
fn launch(folder: &Path, ranks: usize, program: &str) -> String {
    let (policy, hosts) = three_groups(folder, ranks);
    let trace = folder.join("trace");
    std::fs::create_dir_all(&trace).unwrap();
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut command = mpirun(ranks);
    command.arg(format!("./{program}")).arg(policy).current_dir(folder);
    command.env("COLLWISE_HOSTS", hosts).env("LD_LIBRARY_PATH", folder.join("lib")).env("COLLWISE_TRACE", trace);
    run(&mut command)
}

/// Plans that the program of this folder carried out.
fn plans(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("trace")).unwrap().map(|f| std::fs::read_to_string(f.unwrap().path()).unwrap().lines().count()).sum()
}

#[test]
fn every_collective_in_c_has_the_librarys_results() {
    let folder = installed();
    compile(folder.path(), "capi/tests/every.c", "every", &flags(folder.path(), &["--cflags", "--libs"]));
    for ranks in [1, 2, 5, 8] {
        let said = launch(folder.path(), ranks, "every");
        assert!(said.contains(" calls, 0 wrong, "), "{said}");
    }
    // it needs the library for its MPI library, whichever else is installed later
    let needed = run(Command::new("readelf").args(["-d", "every"]).current_dir(folder.path()));
    assert!(needed.contains("[libcollwise-openmpi.so]") || needed.contains("[libcollwise-mpich.so]"), "{needed}");
    // most calls of the last three: there are 1,386 on each rank
    assert!(plans(folder.path()) > 8000, "{}", plans(folder.path()));
}

#[test]
fn every_collective_in_fortran_has_the_librarys_results() {
    let folder = installed();
    compile(folder.path(), "capi/tests/every.f90", "every", &flags(folder.path(), &["--cflags", "--libs"]));
    for ranks in [1, 6] {
        assert!(launch(folder.path(), ranks, "every").contains("0 wrong"));
    }
    assert!(plans(folder.path()) > 100, "{}", plans(folder.path()));
}

#[test]
fn errors_are_the_librarys() {
    let folder = installed();
    compile(folder.path(), "capi/tests/errors.c", "errors", &flags(folder.path(), &["--cflags", "--libs"]));
    assert!(launch(folder.path(), 5, "errors").contains("all as MPI has it"));
    assert!(plans(folder.path()) > 1000, "{}", plans(folder.path()));
}

#[test]
fn the_examples_say_the_average_with_both_kinds_of_library() {
    let folder = installed();
    let library = folder.path().join("lib/libcollwise.a").display().to_string();
    let mut alone = flags(folder.path(), &["--cflags", "--libs", "--static"]);
    alone.iter_mut().filter(|flag| *flag == "-lcollwise").for_each(|flag| *flag = library.clone());
    compile(folder.path(), "examples/c/average.c", "shared", &flags(folder.path(), &["--cflags", "--libs"]));
    compile(folder.path(), "examples/c/average.c", "static", &alone);
    for program in ["shared", "static"] {
        let said = launch(folder.path(), 4, program);
        assert!(said.contains("average 501, largest rank 3\na broadcast of 1 MiB: ") && said.contains(", about "), "{said}");
    }
    compile(folder.path(), "examples/fortran/average.f90", "fortran", &flags(folder.path(), &["--cflags", "--libs"]));
    assert!(launch(folder.path(), 4, "fortran").contains("average 501.0"));
}

#[test]
fn cmake_finds_it() {
    let folder = installed();
    let (source, build) = (folder.path().join("source"), folder.path().join("build"));
    std::fs::create_dir(&source).unwrap();
    std::fs::copy(project().join("examples/c/average.c"), source.join("average.c")).unwrap();
    let lists = "cmake_minimum_required(VERSION 3.18)\nproject(average C)\nfind_package(collwise REQUIRED)\n\
                 add_executable(shared average.c)\ntarget_link_libraries(shared collwise::collwise)\n\
                 add_executable(static average.c)\ntarget_link_libraries(static collwise::static)\n";
    std::fs::write(source.join("CMakeLists.txt"), lists).unwrap();
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", folder.path().display());
    run(Command::new("cmake").arg(&prefix).arg("-S").arg(&source).arg("-B").arg(&build).env("CC", mpicc()));
    run(Command::new("cmake").arg("--build").arg(&build));
    for program in ["shared", "static"] {
        std::fs::copy(build.join(program), folder.path().join(program)).unwrap();
        assert!(launch(folder.path(), 2, program).contains("average 500"));
    }
}
