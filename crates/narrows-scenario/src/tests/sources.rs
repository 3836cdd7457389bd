//! Versions of the results of plans.

use std::path::Path;

use narrows_core::cc::SPECS;
use narrows_plan::{ControllerChoice, Sources};

use super::plans;

const TEXT: &str = r#"
    [topology.graph]
    switches = [{ name = "s" }]
    hosts = [{ name = "a", switch = "s" }, { name = "b", switch = "s" }]
    links = []
    edge = { aqm = { threshold = { mark-at = "20pkt" } } }
    [[arm]]
    name = "cubic"
    cc = "cubic"
    [[arm]]
    name = "dctcp"
    cc = "dctcp"
    [[traffic]]
    from = "a"
    to = "b"
    long = { flows = 2 }
    [run]
    end = "1s"
"#;

#[test]
fn an_edited_component_changes_the_versions_of_the_plans_that_use_it_and_of_no_other() {
    let components = [("cc/cubic", "1"), ("cc/dctcp", "1"), ("edge/dcib", "1"), ("queue/aqm/threshold", "1")];
    let before = Sources::new("0.1.0", ("12345678", &components));
    let plans = plans(TEXT);
    assert_eq!(before.of(&plans[0]).into_keys().collect::<Vec<_>>(), ["cc/cubic", "engine", "queue/aqm/threshold"]);
    assert!(before.version(&plans[0]).starts_with("0.1.0+12345678."));
    for (edited, stale) in [
        ("cc/cubic", [true, false]),
        ("cc/dctcp", [false, true]),
        ("edge/dcib", [false; 2]),
        ("queue/aqm/threshold", [true; 2]),
    ] {
        let components = components.map(|(name, digest)| (name, if name == edited { "2" } else { digest }));
        let after = Sources::new("0.1.0", ("12345678", &components));
        assert_eq!([0, 1].map(|arm| before.version(&plans[arm]) != after.version(&plans[arm])), stale, "{edited}");
    }
    let engine = Sources::new("0.1.0", ("87654321", &components));
    assert!(plans.iter().all(|plan| before.version(plan) != engine.version(plan)));
}

#[test]
fn an_edited_application_changes_the_versions_of_the_plans_that_use_it_and_of_no_other() {
    let components = [("app/all_to_all", "1"), ("app/incast", "1")];
    let version = |components: &[(&str, &str)], traffic: &str| {
        let plans = plans(&TEXT.replace("from = \"a\"\n    to = \"b\"\n    long = { flows = 2 }", traffic));
        Sources::new("0.1.0", ("12345678", components)).version(&plans[0])
    };
    let entries = [
        "all-to-all = { hosts = [\"a\", \"b\"], size = \"30KB\" }",
        "incast = { clients = [\"a\"], servers = [\"b\"], response = \"30KB\", repeats = 2 }",
        "from = \"a\"\n    to = \"b\"\n    long = { flows = 1 }",
    ];
    for (edited, stale) in [("app/all_to_all", [true, false, false]), ("app/incast", [false, true, false])] {
        let after = components.map(|(name, digest)| (name, if name == edited { "2" } else { digest }));
        assert_eq!(entries.map(|entry| version(&components, entry) != version(&after, entry)), stale, "{edited}");
    }
}

#[test]
fn every_controller_names_its_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows-core/src");
    let mut plan = plans(TEXT).remove(0);
    for spec in SPECS {
        plan.traffic[0].controller = ControllerChoice::new(spec.name, false);
        let component =
            plan.components().into_iter().find(|name| name.starts_with("cc/")).expect("it has a controller");
        assert!(folder.join(&component).with_extension("rs").is_file(), "{component}");
    }
}
