//! What a report shows of a sweep.

use super::*;

const SWEEP: &str = r#"[topology.two-datacenters]
servers = 4

[[traffic]]
name = "web"
arrivals = { poisson = { load = 0.9, of = "wan" } }
size = { cdf = "web-search" }
between = "datacenters"
[[arm]]
name = "CUBIC"
cc = "cubic"
[run]
end = "1s"
[sweep]
"fabric.delay, wan.delay" = ["5us", "50us"]
"traffic.web.arrivals.poisson.load" = [0.5, 0.7]
[report]
"#;

fn charts(report: &str, sets: &[(&str, &str)]) -> Charts {
    let sets = sets.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    expand(&format!("{SWEEP}{report}\n"), &overrides).expect("the experiment is right").charts
}

#[test]
fn an_axis_is_chosen_by_any_of_its_paths_and_is_called_as_its_first() {
    let found = charts("x = \"wan.delay\"\npanels = \"traffic.web.arrivals.poisson.load\"", &[]);
    assert_eq!(found.x.as_deref(), Some("fabric.delay"));
    assert_eq!(found.panels.as_deref(), Some("traffic.web.arrivals.poisson.load"));
    assert_eq!(charts("", &[]), Charts::default());
}

#[test]
fn measures_have_their_lines() {
    // The table's own line is the seventeenth.
    let found = charts("y = [\n  \"fct_mean\",\n  \"goodput_long\",\n]", &[("run.end", "2s")]);
    assert_eq!(found.y, [("fct_mean".to_owned(), 19), ("goodput_long".to_owned(), 20)]);
}

#[test]
fn an_axis_that_the_caller_fixes_chooses_nothing() {
    let found = charts(
        "x = \"traffic.web.arrivals.poisson.load\"\npanels = \"wan.delay\"",
        &[("fabric.delay", "5us"), ("wan.delay", "5us")],
    );
    assert_eq!((found.x.as_deref(), found.panels), (Some("traffic.web.arrivals.poisson.load"), None));
}

#[test]
fn what_is_no_axis_is_refused() {
    let said: Vec<String> = [
        "x = \"wan.dealy\"",
        "panels = \"servers\"",
        "x = \"fabric.delay\"\npanels = \"wan.delay\"",
        "z = \"fabric.delay\"",
        "y = \"fct_mean\"",
    ]
    .iter()
    .map(|report| refused(&format!("{SWEEP}{report}\n")))
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}
