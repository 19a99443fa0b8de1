//! Queueing networks against closed forms, birth-death chains and enumerated product forms.

use collwise::qnm::{Classes, Network, Service, Station, approximate, exact};
use proptest::prelude::*;

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-300)
}

fn network(think_s: f64, stations: Vec<Station>) -> Network {
    Network { think_s, stations }
}

fn servers(demand_s: f64, count: usize) -> Station {
    Station { demand_s, count: 1, service: Service::servers(count) }
}

/// Throughput and mean queue of `customers` that think and are served by `servers`, from the birth-death chain solved state by state:
/// p(k+1) / p(k) = (N - k) / Z * S / min(k + 1, m).
fn repair_shop(customers: usize, think: f64, service: f64, servers: usize) -> (f64, f64) {
    let mut logs = vec![0.0f64];
    for k in 0..customers {
        let rate = (customers - k) as f64 / think * service / (k + 1).min(servers) as f64;
        logs.push(logs[k] + rate.ln());
    }
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let p: Vec<f64> = logs.iter().map(|l| (l - largest).exp()).collect();
    let sum: f64 = p.iter().sum();
    let queue = p.iter().enumerate().map(|(k, p)| k as f64 * p / sum).sum::<f64>();
    ((customers as f64 - queue) / think, queue)
}

#[test]
fn repair_shops_are_their_birth_death_chains() {
    for (customers, think, service, count) in
        [(1, 3.0, 1.0, 1), (5, 10.0, 1.0, 1), (40, 10.0, 1.0, 1), (7, 4.0, 2.0, 3), (300, 10.0, 1.0, 16), (2000, 1.0, 1.0, 64)]
    {
        let (throughput, queue) = repair_shop(customers, think, service, count);
        let station = if count == 1 { Station::queue(service) } else { servers(service, count) };
        let found = exact(&network(think, vec![station]), customers).unwrap();
        assert!(close(found.throughput, throughput, 1e-9), "{customers} {count}: {} {throughput}", found.throughput);
        assert!(close(found.stations[0].queue, queue, 1e-9), "{customers} {count}: {} {queue}", found.stations[0].queue);
    }
}

#[test]
fn saturated_servers_keep_all_digits() {
    // the throughput of m servers can only be m / S there
    for (customers, count) in [(1_000, 8), (3_000, 100)] {
        let found = exact(&network(1.0, vec![servers(1.0, count)]), customers).unwrap();
        assert!(close(found.throughput, count as f64, 1e-9), "{}", found.throughput);
        assert!(close(found.stations[0].utilisation, 1.0, 1e-9));
    }
}

#[test]
fn balanced_networks_have_their_closed_form() {
    // K stations of demand D without thinking: X = N / (D (N + K - 1)) (Lazowska et al. 1984, section 5.4)
    for (stations, customers) in [(1, 1), (3, 5), (64, 64), (1024, 1024), (10, 10_000)] {
        let alike = Station { demand_s: 0.25, count: stations, service: Service::Queue };
        let found = exact(&network(0.0, vec![alike]), customers).unwrap();
        let expected = customers as f64 / (0.25 * (customers + stations - 1) as f64);
        assert!(close(found.throughput, expected, 1e-9), "{stations} {customers}: {} {expected}", found.throughput);
    }
}

/// All ways to put `n` customers into so many stations.
fn spreads(n: usize, stations: usize) -> Vec<Vec<usize>> {
    if stations == 1 {
        return vec![vec![n]];
    }
    let rest = |k: usize| spreads(n - k, stations - 1).into_iter().map(move |r| [vec![k], r].concat());
    (0..=n).flat_map(rest).collect()
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

/// The normalising constant by enumeration, the thinkers a station of their own.
fn constant(network: &Network, customers: usize) -> f64 {
    let weight = |spread: &Vec<usize>| {
        let of = |(k, &n): (usize, &usize)| {
            if k == 0 {
                return network.think_s.powi(n as i32) / factorial(n);
            }
            let s = &network.stations[k - 1];
            match &s.service {
                Service::Delay => s.demand_s.powi(n as i32) / factorial(n),
                Service::Queue => s.demand_s.powi(n as i32),
                Service::LoadDependent(rates) => (1..=n).map(|j| s.demand_s / rates[j.min(rates.len()) - 1]).product(),
            }
        };
        spread.iter().enumerate().map(of).product::<f64>()
    };
    spreads(customers, network.stations.len() + 1).iter().map(weight).sum()
}

fn services() -> impl Strategy<Value = Service> {
    prop_oneof![Just(Service::Delay), Just(Service::Queue), prop::collection::vec(0.2..4.0f64, 1..4).prop_map(Service::LoadDependent),]
}

proptest! {
    #[test]
    fn networks_are_their_product_form(
        think in 0.0..5.0f64,
        stations in prop::collection::vec((0.05..3.0f64, services()), 1..4),
        customers in 1usize..7,
    ) {
        let stations = stations.into_iter().map(|(demand_s, service)| Station { demand_s, count: 1, service }).collect();
        let network = network(think, stations);
        let found = exact(&network, customers).unwrap();
        let expected = constant(&network, customers - 1) / constant(&network, customers);
        prop_assert!(close(found.throughput, expected, 1e-9), "{} {expected}", found.throughput);
        // nobody is lost, and Little's law holds
        let total = found.throughput * network.think_s + found.stations.iter().map(|s| s.queue).sum::<f64>();
        prop_assert!(close(total, customers as f64, 1e-9), "{total}");
        for s in &found.stations {
            prop_assert!(close(s.queue, s.residence_s * found.throughput, 1e-9));
        }
    }

    #[test]
    fn alike_stations_may_be_counted_or_listed(
        think in 0.0..5.0f64, demand_s in 0.05..3.0f64, count in 1usize..5, customers in 1usize..9, service in services(),
    ) {
        let counted = exact(&network(think, vec![Station { demand_s, count, service: service.clone() }]), customers).unwrap();
        let listed = exact(&network(think, vec![Station { demand_s, count: 1, service }; count]), customers).unwrap();
        prop_assert!(close(counted.throughput, listed.throughput, 1e-9));
        prop_assert!(close(counted.stations[0].queue, listed.stations[0].queue, 1e-9));
        prop_assert!(close(counted.stations[0].utilisation, listed.stations[0].utilisation, 1e-9));
    }

    #[test]
    fn classes_are_their_product_form(
        think in prop::collection::vec(0.1..4.0f64, 2),
        demands in prop::collection::vec(prop::collection::vec(0.05..2.0f64, 3), 2),
        customers in prop::collection::vec(0usize..5, 2),
        is_delay in prop::collection::vec(any::<bool>(), 3),
    ) {
        let classes = Classes { customers: customers.clone(), think_s: think, demand_s: demands, is_delay };
        let found = exact_classes(&classes);
        let all = class_constant(&classes, &customers);
        for c in (0..2).filter(|&c| customers[c] > 0) {
            let mut fewer = customers.clone();
            fewer[c] -= 1;
            let expected = class_constant(&classes, &fewer) / all;
            prop_assert!(close(found[c], expected, 1e-9), "{} {expected}", found[c]);
        }
    }

    #[test]
    fn the_approximation_satisfies_its_equations_and_nears_the_truth(
        think in prop::collection::vec(0.1..4.0f64, 2),
        demands in prop::collection::vec(prop::collection::vec(0.05..2.0f64, 3), 2),
        customers in prop::collection::vec(1usize..6, 2),
    ) {
        let classes = Classes { customers, think_s: think, demand_s: demands, is_delay: vec![false; 3] };
        let near = approximate(&classes).unwrap();
        for c in 0..2 {
            let n = classes.customers[c] as f64;
            let total = near.throughput[c] * classes.think_s[c] + near.queue[c].iter().sum::<f64>();
            prop_assert!(close(total, n, 1e-9), "{total}");
            for k in 0..3 {
                let found = near.queue[1 - c][k] + near.queue[c][k] * (n - 1.0) / n;
                prop_assert!(close(near.residence_s[c][k], classes.demand_s[c][k] * (1.0 + found), 1e-7));
            }
        }
        // its error falls with the number of customers: that of one in a hundred and more of them
        let many = Classes { customers: vec![150, 100], ..classes };
        let [near, exact] = [approximate(&many).unwrap().throughput, exact_classes(&many)].map(|t| t.iter().sum::<f64>());
        prop_assert!(close(near, exact, 0.05), "{near} {exact}");
    }
}

#[test]
fn the_approximation_is_exact_for_balanced_networks_and_lone_customers() {
    let balanced = Classes { customers: vec![12], think_s: vec![0.0], demand_s: vec![vec![0.5; 4]], is_delay: vec![false; 4] };
    assert!(close(approximate(&balanced).unwrap().throughput[0], 12.0 / (0.5 * 15.0), 1e-8));
    let lone = Classes { customers: vec![1], think_s: vec![3.0], demand_s: vec![vec![0.5, 1.5]], is_delay: vec![false; 2] };
    assert!(close(approximate(&lone).unwrap().throughput[0], 1.0 / 5.0, 1e-8));
}

/// Cycles per second of each class, by mean value analysis over all mixes of customers: the reference of the approximation.
fn exact_classes(network: &Classes) -> Vec<f64> {
    let Classes { customers, think_s, demand_s, is_delay } = network;
    // a mix is a number whose digits are customers of each class; queues of all classes together, by mix and station
    let place: Vec<usize> = customers.iter().scan(1, |p, n| Some(std::mem::replace(p, *p * (n + 1)))).collect();
    let mixes: usize = customers.iter().map(|n| n + 1).product();
    let mut queues = vec![vec![0.0; is_delay.len()]; mixes];
    let mut throughput = vec![0.0; customers.len()];
    for mix in 1..mixes {
        for c in 0..customers.len() {
            let n = mix / place[c] % (customers[c] + 1);
            if n == 0 {
                continue;
            }
            let found = &queues[mix - place[c]];
            let residence = |k: usize| demand_s[c][k] * if is_delay[k] { 1.0 } else { 1.0 + found[k] };
            let residence: Vec<f64> = (0..is_delay.len()).map(residence).collect();
            throughput[c] = n as f64 / (think_s[c] + residence.iter().sum::<f64>());
            queues[mix].iter_mut().zip(&residence).for_each(|(queue, r)| *queue += throughput[c] * r);
        }
    }
    throughput
}

/// The normalising constant of two classes by enumeration: at a queue, (n1 + n2)! / (n1! n2!) D1^n1 D2^n2.
fn class_constant(classes: &Classes, customers: &[usize]) -> f64 {
    let stations = classes.is_delay.len();
    let (first, second) = (spreads(customers[0], stations + 1), spreads(customers[1], stations + 1));
    let weight = |a: &Vec<usize>, b: &Vec<usize>| -> f64 {
        let of = |k: usize| {
            let (n, m) = (a[k], b[k]);
            let demand = |c: usize| if k == 0 { classes.think_s[c] } else { classes.demand_s[c][k - 1] };
            let one = demand(0).powi(n as i32) / factorial(n) * demand(1).powi(m as i32) / factorial(m);
            if k == 0 || classes.is_delay[k - 1] { one } else { one * factorial(n + m) }
        };
        (0..=stations).map(of).product()
    };
    first.iter().flat_map(|a| second.iter().map(move |b| (a, b))).map(|(a, b)| weight(a, b)).sum()
}

#[test]
fn what_makes_no_sense_is_refused() {
    let text = |e: collwise::error::Error| e.to_string();
    assert!(text(exact(&network(-1.0, vec![]), 1).unwrap_err()).contains("think time"));
    assert!(text(exact(&network(0.0, vec![]), 1).unwrap_err()).contains("no customer"));
    assert!(text(exact(&network(0.0, vec![servers(1.0, 0)]), 1).unwrap_err()).contains("rates"));
    assert!(text(exact(&network(0.0, vec![Station::queue(f64::NAN)]), 1).unwrap_err()).contains("demand"));
    assert_eq!(exact(&network(1.0, vec![Station::queue(1.0)]), 0).unwrap().throughput, 0.0);
    let many = Classes { customers: vec![1000; 4], think_s: vec![1.0; 4], demand_s: vec![vec![1.0]; 4], is_delay: vec![false] };
    assert!(approximate(&many).is_ok());
}
