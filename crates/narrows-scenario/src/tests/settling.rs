//! What is said of traffic whose unfinished work takes long to settle.

use super::*;
use crate::summary::{Settling, Summary};
use narrows_plan::{Pattern, Plan, SizeDistribution};

/// Two senders, one receiver, 1 Gbit/s, flows of 1 MB at this load of the receiver's link.
fn star(load: f64, end: &str, warmup: &str) -> String {
    format!(
        r#"[topology.star]
hosts = 3
fabric = {{ rate = "1Gbps" }}

[[traffic]]
name = "web"
arrivals = {{ poisson = {{ rate = "{:.5}/s" }} }}
size = {{ fixed = "1MB" }}
from = ["h1", "h2"]
to = "h3"

[[arm]]
name = "cubic"
cc = "cubic"

[run]
end = "{end}"
warmup = "{warmup}"
"#,
        load / SECONDS
    )
}

/// What 1 MB takes of a link of 1 Gbit/s, in full packets: 1448 B of 1538.
const SECONDS: f64 = 8e-3 * 1_538.0 / 1_448.0;

fn settling(text: &str) -> Settling {
    Summary::of(&plans(text)[0]).settling.unwrap()
}

fn said(text: &str) -> Vec<String> {
    expand(text, &Overrides::default()).unwrap().warnings.into_iter().map(|warning| warning.text).collect()
}

/// M/D/1: λ·S²/(1 − ρ)² = ρ·S/(1 − ρ)². The link that two senders share takes longest, not theirs at half the load.
#[test]
fn equal_sizes_are_correlated_over_the_time_of_a_flow_by_the_free_part_squared() {
    let found = settling(&star(0.9, "100s", "0s"));
    assert!(found.link.ends_with("h3"), "{}", found.link);
    assert!((found.load - 0.9).abs() < 1e-6);
    let seconds = found.correlation_seconds.unwrap();
    assert!((seconds / (0.9 * SECONDS / 0.01) - 1.0).abs() < 1e-4, "{seconds}");
}

/// By E[S²]/E[S]², which is 4/3 of sizes uniform from 0.
#[test]
fn sizes_that_differ_are_correlated_for_longer_by_their_second_moment() {
    let mut plan = plans(&star(0.9, "100s", "0s")).remove(0);
    let of = |plan: &Plan| Summary::of(plan).settling.unwrap().correlation_seconds.unwrap();
    let equal = of(&plan);
    let Pattern::Open(open) = &mut plan.traffic[0].pattern else { panic!("it comes at random") };
    open.sizes = SizeDistribution { name: "uniform".to_owned(), points: vec![(0, 0.0), (2_000_000, 1.0)] };
    assert!((of(&plan) / equal - 4.0 / 3.0).abs() < 1e-3, "{}", of(&plan) / equal);
}

/// What servers respond to one request comes together: as flows of its whole size.
#[test]
fn responses_of_many_servers_count_as_one() {
    let incast = r#"
[[traffic]]
name = "query"
incast = { clients = "h1", servers = "h*", count = 4, total = "1MB", arrivals = { poisson = { rate = "50/s" } } }
"#;
    let text = star(0.9, "100s", "0s").replace("hosts = 3", "hosts = 5");
    let (head, tail) = text.split_at(text.find("[[arm]]").unwrap());
    let head = &head[..head.find("[[traffic]]").unwrap()];
    let found = settling(&format!("{head}{incast}{tail}"));
    assert!(found.link.ends_with("h1"), "{}", found.link);
    let seconds = 50.0 * SECONDS * SECONDS / (1.0 - 50.0 * SECONDS).powi(2);
    assert!((found.correlation_seconds.unwrap() / seconds - 1.0).abs() < 1e-4, "{found:?} {seconds}");
}

#[test]
fn a_short_warm_up_is_told_by_what_work_it_brings_and_is_no_warning() {
    // 0.9·8.5 ms/0.01 is 0.76 s.
    let short = star(0.9, "100s", "0.1s");
    assert!(settling(&short).filled < 0.6 && settling(&star(0.9, "100s", "10s")).filled > 0.99);
    assert_eq!(said(&short), [""; 0]);
}

#[test]
fn more_than_a_link_carries_never_settles() {
    let text = star(1.1, "100s", "10s");
    assert_eq!(settling(&text).correlation_seconds, None);
    let told = said(&text);
    assert!(told.len() == 1 && told[0].contains("is offered 110 % of what it carries"), "{told:?}");
}

#[test]
fn traffic_that_is_stated_has_nothing_to_settle() {
    let listed = star(0.9, "100s", "0s");
    let (at, to) = (listed.find("arrivals").unwrap(), listed.find("size").unwrap());
    let listed = format!("{}{}", &listed[..at], &listed[to..]).replace("size = { fixed = \"1MB\" }", "long = {}");
    assert_eq!(Summary::of(&plans(&listed)[0]).settling, None);
}
