//! Scatter and gather [DCTCP §4.2.1]: each client keeps a loop of its own.

use narrows_core::units::{Bytes, Span, Time};

use super::{Scene, positive};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::traffic::Incast as Written;
use crate::plan::Incast;
use crate::select;

/// Most rounds of one client.
const MOST_REPEATS: u32 = 10_000_000;
/// A request where nothing is said: the query of the partition/aggregate pattern [DCTCP §2.2].
const REQUEST: Bytes = Bytes::new(1_600);

/// Each client's loop and its name: the traffic's, with the client's host if there are several.
pub(super) fn resolve(name: &str, written: &Located<Written>, scene: &Scene<'_>) -> Judged<Vec<(String, Incast)>> {
    let clients = select::hosts(scene.graph, &written.clients)?;
    let servers = select::hosts(scene.graph, &written.servers)?;
    let repeats = match written.repeats.value {
        0 => return Err(Problem::Zero { what: "the number of rounds" }.at(&written.repeats.span)),
        repeats if repeats > MOST_REPEATS => {
            let (value, most) = (repeats.into(), MOST_REPEATS.into());
            return Err(Problem::TooMany { what: "rounds", value, most }.at(&written.repeats.span));
        }
        repeats => repeats,
    };
    let start = written.start.as_ref().map_or(Time::ZERO, |at| at.value.0);
    if let (true, Some(at)) = (start >= scene.end, &written.start) {
        let (start, end) = (start.to_string(), scene.end.to_string());
        return Err(Problem::EndsBeforeStart { what: "the run", start, end }.at(&at.span));
    }
    let request = written.request.as_ref().map(positive("a request")).transpose()?.unwrap_or(REQUEST);
    let mut loops = vec![];
    for client in &clients {
        let mut servers: Vec<u32> = servers.iter().copied().filter(|server| server != client).collect();
        if let Some(count) = &written.count {
            if count.value == 0 || count.value as usize > servers.len() {
                let (what, value, most) = ("count".to_owned(), count.value.to_string(), servers.len().to_string());
                return Err(Problem::OutOfRange { what, value, least: "1".to_owned(), most }.at(&count.span));
            }
            servers.truncate(count.value as usize);
        }
        if servers.is_empty() {
            return Err(Problem::NoPairs { why: "a client has no server other than itself" }.at(&written.servers.span));
        }
        let response = match (&written.response, &written.total) {
            (Some(response), None) => positive("a response")(response)?,
            (None, Some(total)) => Bytes::new(positive("a response")(total)?.get().div_ceil(servers.len() as u64)),
            _ => return Err(Problem::OneOf { what: "incast", keys: &["response", "total"] }.at(&written.span)),
        };
        scene.reachable(servers.iter().map(|server| (*server, *client)), &written.span)?;
        let jitter = written.jitter.as_ref().map_or(Span::ZERO, |by| by.value.0);
        let name = if clients.len() > 1 { format!("{name}/{}", scene.name(*client)) } else { name.to_owned() };
        loops.push((name, Incast { client: *client, servers, request, response, repeats, start, jitter }));
    }
    Ok(loops)
}
