//! Whether anything in a plan follows its seed: where nothing does, every seed gives the same results.

use std::collections::BTreeSet;

use narrows_core::queue::scheduler::Queues;
use narrows_core::units::Span;
use narrows_plan::{Graph, Link, Pattern, Plan, Traffic};

/// Whether a plan may draw random numbers; `false` is certain.
pub fn may_draw(plan: &Plan) -> bool {
    let links = &plan.network.links;
    !is_tree(&plan.network) || links.iter().any(link_draws) || plan.traffic.iter().any(traffic_draws)
}

/// Whether there is one path at most between any two nodes.
fn is_tree(graph: &Graph) -> bool {
    let ways: BTreeSet<(u32, u32)> = graph.links.iter().map(|link| (link.from, link.to)).collect();
    graph.links.len() == ways.len() && ways.len() + 2 <= 2 * graph.nodes.len()
}

fn link_draws(link: &Link) -> bool {
    let marks_at_random = link.aqm.is_some_and(|aqm| aqm.draws());
    let hashes = link.scheduler.as_ref().is_some_and(|scheduler| scheduler.queues() == Queues::Flows);
    let functions = hashes || link.congestion_point.is_some() || link.bridge.is_some();
    !link.all_functions().is_empty() || link.jitter > Span::ZERO || functions || marks_at_random
}

fn traffic_draws(traffic: &Traffic) -> bool {
    let draws = match &traffic.pattern {
        Pattern::Open(_) => true,
        Pattern::List(flows) => flows.iter().any(|flow| flow.spread > Span::ZERO),
        Pattern::App(kind) => kind.rounds().draws(),
    };
    let in_c = traffic.controller.program.as_ref().is_some_and(|program| program.text.contains("random"));
    let built_in = narrows_core::cc::spec(&traffic.controller.name).is_some_and(|spec| spec.draws);
    draws || in_c || built_in
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use narrows_core::cc::SPECS;

    use super::*;
    use crate::tests::plans;

    /// Nothing of it is random.
    const TEXT: &str = r#"
        [topology.dumbbell]
        pairs = 2
        fabric = { aqm = { threshold = { mark-at = "20pkt" } } }
        [[traffic]]
        long = {}
        from = "left-*"
        to = "right-*"
        [[arm]]
        name = "it"
        cc = "cubic"
        [run]
        end = "1s"
    "#;

    #[test]
    fn what_may_follow_the_seed_is_known() {
        let draws = |from: &str, to: &str| {
            assert!(TEXT.contains(from));
            may_draw(&plans(&TEXT.replacen(from, to, 1))[0])
        };
        assert!(!draws("long = {}", "long = {}"));
        let incast = "incast = { clients = \"right-1\", servers = \"left-*\", total = \"60KB\", repeats = 3";
        let asks = |more: &str| {
            let text = TEXT.replace("from = \"left-*\"", "").replace("to = \"right-*\"", "");
            may_draw(&plans(&text.replace("long = {}", &format!("{incast}{more} }}")))[0])
        };
        assert!(!asks(""));
        assert!(asks(", jitter = \"1ms\""));
        for (from, to) in [
            ("fabric = {", "fabric = { loss = 0.01,"),
            ("long = {}", "long = { spread = \"1ms\" }"),
            ("\"cubic\"", "\"bbr\""),
            ("pairs = 2", "pairs = 2\nhost = { stack-delay = { jitter = \"5us\" } }"),
            ("long = {}", "arrivals = { poisson = { rate = \"9/s\" } }\nsize = { fixed = \"9KB\" }"),
        ] {
            assert!(draws(from, to), "{to}");
        }
    }

    #[test]
    fn links_between_the_same_switches_are_a_choice() {
        let mut plan = plans(TEXT).remove(0);
        let again = plan.network.links.last().expect("it has links").clone();
        plan.network.links.push(again);
        assert!(may_draw(&plan));
    }

    #[test]
    fn the_controllers_that_draw_are_those_that_take_random_numbers() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows-core/src/cc");
        let files =
            std::fs::read_dir(folder).expect("the sources are there").map(|entry| entry.expect("a file").path());
        let drawing = files
            .filter(|path| path.is_file())
            .filter(|path| std::fs::read_to_string(path).expect("a source is text").contains("random: context.random"));
        let name = |path: PathBuf| path.file_stem().expect("it has a name").to_string_lossy().replace('_', "-");
        let names: BTreeSet<String> = drawing.map(name).collect();
        let say_so = SPECS.iter().filter(|spec| spec.draws).map(|spec| spec.name.to_owned());
        assert_eq!(names, say_so.collect());
    }
}
