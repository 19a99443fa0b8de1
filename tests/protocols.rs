//! Where a library changes its protocol tuning finds it, whatever the size.

use collwise::collective::bcast;
use collwise::measure::{Session, SimulatedProbe};
use collwise::model::TABLE_SIZES;
use collwise::platform::{Placement, Platform};
use collwise::tune::{TuneOptions, tune};

/// Sizes beside a jump that is no power of two are found by halves.
#[test]
fn an_eager_limit_of_any_size_is_found() {
    for limit in [3000, 8 << 10, 12 << 10, 20_000, 64 << 10, 100_000] {
        let text = format!(
            "format = 1\nname = \"switch\"\n[hosts]\nsend_overhead_s = 2e-6\nsend_overhead_s_per_byte = 1e-10\nrecv_overhead_s = 2e-6\n\
             recv_overhead_s_per_byte = 1.5e-10\ngap_s = 1e-6\ngap_s_per_byte = 8.5e-10\neager_limit_bytes = {limit}\n[[group]]\nname = \"g\"\ncount = 12\n\
             latency_s = 2e-5\n"
        );
        let platform = Platform::parse("switch.toml", &text).unwrap();
        let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
        let options = TuneOptions { collectives: &[&bcast::COLLECTIVE], ..TuneOptions::default() };
        let (_, policy) = tune(&mut Session::new(&mut probe), options).unwrap();
        let tables = policy.groups[0].models.iter().find(|m| m.model == "tables").unwrap();
        let values = tables.values();
        let sizes = values.list(TABLE_SIZES).unwrap();
        let above = sizes.partition_point(|&size| size <= f64::from(limit));
        let (low, high) = (sizes[above - 1], sizes[above]);
        assert!(high - low <= (high / 64.0).max(64.0), "{limit}: between {low} and {high}");
    }
}
