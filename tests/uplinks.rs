//! Links that share a way are measured as what each takes alone, whatever else is measured beside them.

use collwise::collective::bcast;
use collwise::measure::{Session, SimulatedProbe};
use collwise::platform::{Placement, Platform};
use collwise::topology::Link;
use collwise::tune::{TuneOptions, tune};

/// Bytes per second that links share.
const SHARED: f64 = 50e6;

/// Four sites of six hosts, where those of some links share a trunk.
fn sites(shares: impl Fn(usize, usize) -> bool) -> Platform {
    let mut text =
        String::from("format = 1\nname = \"uplinks\"\nsource = \"made up\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 5e-6\n");
    text += "gap_s = 1e-6\ngap_s_per_byte = 8.5e-9\n";
    for site in 0..4 {
        text += &format!("[[group]]\nname = \"g{site}\"\ncount = 6\nlatency_s = 50e-6\n");
    }
    for (a, b) in (0..4).flat_map(|a| (a + 1..4).map(move |b| (a, b))) {
        let trunk = if shares(a, b) { "trunk = \"shared\"\n" } else { "" };
        text += &format!("[[link]]\nbetween = [\"g{a}\", \"g{b}\"]\nlatency_s = 5e-3\nbandwidth_bytes_per_s = {SHARED}\n{trunk}");
    }
    Platform::parse("uplinks", &text).unwrap()
}

fn check(platform: &Platform) {
    let mut probe = SimulatedProbe::new(platform, Placement::Slot, 1).unwrap();
    let options = TuneOptions { collectives: &[&bcast::COLLECTIVE], ..TuneOptions::default() };
    let (_, policy) = tune(&mut Session::new(&mut probe), options).unwrap();
    assert_eq!((policy.groups.len(), policy.links.len()), (4, 6));
    for link in &policy.links {
        let costs = link.model.costs().unwrap();
        let seconds = |bytes: usize| costs.cost(Link { from: 0, to: 1 }, bytes).transit;
        let each = (seconds(4 << 20) - seconds(1 << 20)) / (3 << 20) as f64;
        assert!((each * SHARED - 1.0).abs() < 0.1, "{:?}: {} MB/s", link.between, 1e-6 / each);
    }
}

#[test]
fn the_links_of_one_site_share_its_way_out() {
    check(&sites(|a, _| a == 0));
}

#[test]
fn links_between_different_sites_share_a_way() {
    check(&sites(|a, b| a < 2 && b >= 2));
}

#[test]
fn links_that_share_nothing_are_as_they_were() {
    check(&sites(|_, _| false));
}
