//! In-band telemetry: switches write it where a controller of the plan reads it, and nowhere else.

use narrows_core::cc::Spec;
use narrows_plan::{Graph, NodeKind, Traffic};

use crate::error::Problem;

/// Has every port of a switch write telemetry, if a controller reads it. Refuses that beside an edge pair, whose port is a plain FIFO.
pub(crate) fn place(graph: &mut Graph, traffic: &[Traffic], controllers: &[&Spec]) -> Result<(), Problem> {
    let reads = |entry: &&Traffic| {
        let needs_telemetry = match &entry.controller.program {
            Some(program) => program.needs_telemetry,
            None => {
                let spec = controllers.iter().find(|spec| spec.name == entry.controller.name);
                spec.is_some_and(|spec| spec.needs_telemetry)
            }
        };
        entry.transport.is_reliable() && needs_telemetry
    };
    let Some(reader) = traffic.iter().find(reads) else { return Ok(()) };
    if let Some(link) = graph.links.iter().find(|link| link.bridge.is_some()) {
        let sentence = format!(
            "`{}` reads what switches write into packets, and the edge pair of `{}` carries no such packets",
            reader.controller.name, link.name
        );
        return Err(Problem::new(sentence, "set `bridge = \"none\"`, or use another controller"));
    }
    for link in &mut graph.links {
        link.telemetry = graph.nodes[link.from as usize].kind == NodeKind::Switch;
    }
    Ok(())
}
