//! Flows one by one, in the text or in a file.

use narrows_core::units::{Bytes, Span, Time};

use super::{LARGEST_FLOW, Scene, positive};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::traffic::{Flow, Flows};
use crate::files;
use crate::select;
use crate::units;
use narrows_plan::{FlowStart, NodeKind};

/// Most flows of a file.
const MOST: usize = 1_000_000;
/// What may be wrong with a line.
const COLUMNS: &str = "a line is `source destination priority port bytes start-seconds`";
const HOSTS: &str = "hosts are two different numbers below the number of hosts";
const COUNT: &str = "the first line states how many flows follow, at most 1000000";

pub(super) fn resolve(flows: &Located<Flows>, scene: &Scene<'_>) -> Judged<Vec<FlowStart>> {
    let mut list = match &flows.value {
        Flows::List(list) => list.iter().map(|flow| one(flow, scene)).collect::<Judged<Vec<_>>>()?,
        Flows::File(path) => {
            let hosts = scene.graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
            let text = files::beside(scene.folder, path)?;
            parse(&path.value, &text, hosts).map_err(|problem| problem.at(&path.span))?
        }
    };
    list.sort_by_key(|flow| flow.at);
    Ok(list)
}

fn one(flow: &Located<Flow>, scene: &Scene<'_>) -> Judged<FlowStart> {
    let (source, destination) = (select::host(scene.graph, &flow.from)?, select::host(scene.graph, &flow.to)?);
    if source == destination {
        return Err(Problem::no_pairs("a flow would go to its own host").at(&flow.to.span));
    }
    let at = flow.at.as_ref().map_or(Time::ZERO, |at| at.value.0);
    let size = flow.size.as_ref().map(positive("a size")).transpose()?;
    if let (Some(_), Some(stop)) = (size, &flow.stop) {
        return Err(Problem::not_here("stop", "with `size`").at(&stop.span));
    }
    let stop = flow.stop.as_ref().map(|stop| stop.value.0);
    if let (Some(stop), Some(written)) = (stop, &flow.stop)
        && stop <= at
    {
        return Err(Problem::ends_before_start("a flow", at, stop).at(&written.span));
    }
    let request = flow.request.as_ref().map(positive("a request")).transpose()?;
    Ok(FlowStart { stop, request, ..FlowStart::new(at, source, destination, size) })
}

/// Reads `source destination priority port bytes start-seconds` per line after a line with their number: the format of
/// the HPCC simulator. Priority and port mean nothing here.
///
/// # Errors
/// The first line that cannot be read.
pub fn parse(file: &str, text: &str, hosts: usize) -> Result<Vec<FlowStart>, Problem> {
    let fail = |line: usize, fault| Problem::in_line(file, line, fault, "write it like `0 5 3 100 1000000 0.01`");
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let count = lines.next().and_then(|(_, line)| line.trim().parse::<usize>().ok()).filter(|count| *count <= MOST);
    let count = count.ok_or_else(|| fail(1, COUNT))?;
    let mut flows = vec![];
    for (number, line) in lines {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [source, destination, _, _, bytes, start] = columns[..] else {
            return Err(fail(number, COLUMNS));
        };
        let host = |text: &str| text.parse::<u32>().ok().filter(|host| (*host as usize) < hosts);
        let (Some(source), Some(destination)) = (host(source), host(destination)) else {
            return Err(fail(number, HOSTS));
        };
        if source == destination {
            return Err(fail(number, HOSTS));
        }
        let bytes = bytes.parse::<u64>().ok().map(Bytes::new);
        let size = bytes.filter(|bytes| *bytes > Bytes::ZERO && *bytes <= LARGEST_FLOW);
        let at =
            units::parse::<Time>(&format!("{start}s")).ok().filter(|at| at.since(Time::ZERO) < Span::from_secs(86_400));
        let (Some(size), Some(at)) = (size, at) else { return Err(fail(number, COLUMNS)) };
        flows.push(FlowStart::new(at, source, destination, Some(size)));
    }
    if flows.len() == count { Ok(flows) } else { Err(fail(1, COUNT)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_another_simulator_is_read() {
        let flows = parse("flow.txt", "2\n0 3 3 100 30000 2.005\n3 1 3 101 7 2.1\n", 4).unwrap();
        assert_eq!(flows[0].at, Time::from_ns(2_005_000_000));
        assert_eq!((flows[1].source, flows[1].destination, flows[1].size), (3, 1, Some(Bytes::new(7))));
    }

    #[test]
    fn broken_lists_are_refused_by_line() {
        let fault = |text| match parse("f", text, 4) {
            Err(problem) => problem.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(fault("x"), format!("f:1: {COUNT}"));
        assert_eq!(fault("2\n0 1 3 1 1 0\n"), format!("f:1: {COUNT}"));
        assert_eq!(fault("1\n0 4 3 1 1 0\n"), format!("f:2: {HOSTS}"));
        assert_eq!(fault("1\n1 1 3 1 1 0\n"), format!("f:2: {HOSTS}"));
        assert_eq!(fault("1\n0 1 1 1 0\n"), format!("f:2: {COLUMNS}"));
        assert_eq!(fault("1\n0 1 3 1 1 -1\n"), format!("f:2: {COLUMNS}"));
    }
}
