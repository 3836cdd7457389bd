//! Scatter and gather as written: each client keeps a loop of its own [DCTCP §4.2.1], or asks at random times [DCTCP §4.3].

use narrows_core::units::{Bytes, Span, Time};

use super::{MAX_FLOWS, Scene, few_enough, positive, start};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use crate::experiment::selector::Selector;
use crate::experiment::traffic::Arrivals;
use crate::select;
use narrows_plan::arrivals::per_second;
use narrows_plan::{Incast as Planned, Kind};
use schemars::JsonSchema;
use serde::Deserialize;

/// A client asks many servers at once and waits for all: `repeats` times without a pause, or at random times.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Incast {
    /// Who asks; several clients each ask on their own.
    pub clients: Located<Selector>,
    /// Who answers; a client never asks itself.
    pub servers: Located<Selector>,
    /// Only the first so many of the servers.
    pub count: Option<Located<u32>>,
    /// Size of each request.
    pub request: Option<Located<Quantity<Bytes>>>,
    /// Size of each response.
    pub response: Option<Located<Quantity<Bytes>>>,
    /// Size of all responses together, shared evenly and rounded up to a byte.
    pub total: Option<Located<Quantity<Bytes>>>,
    /// Rounds of a closed loop.
    pub repeats: Option<Located<u32>>,
    /// Requests at random times, independent of earlier ones: `poisson` with a `rate`, each client's.
    pub arrivals: Option<Located<Arrivals>>,
    /// When the first round begins, or the random ones may.
    pub start: Option<Located<Quantity<Time>>>,
    /// Each server waits up to this before it answers.
    pub jitter: Option<Located<Quantity<Span>>>,
}

/// Most rounds of one client.
const MAX_REPEATS: u32 = 10_000_000;
/// The default size of a request: that of the partition/aggregate pattern [DCTCP §2.2].
const REQUEST: Bytes = Bytes::new(1_600);

/// Each client's loop and its name: the traffic's, with the client's host if there are several.
pub(super) fn resolve(name: &str, written: &Located<Incast>, scene: &Scene<'_>) -> Judged<Vec<(String, Kind)>> {
    let clients = select::hosts(scene.graph, &written.clients)?;
    let servers = select::hosts(scene.graph, &written.servers)?;
    let (repeats, mean_interarrival) = match (&written.repeats, &written.arrivals) {
        (Some(repeats), None) => (rounds(repeats)?, None),
        (None, Some(arrivals)) => (0, Some(interval("incast", arrivals)?)),
        _ => return Err(Problem::one_of("incast", &["repeats", "arrivals"]).at(&written.span)),
    };
    let start = start(written.start.as_ref(), scene)?;
    let request = written.request.as_ref().map(positive("a request")).transpose()?.unwrap_or(REQUEST);
    let mut loops = vec![];
    for client in &clients {
        let mut servers: Vec<u32> = servers.iter().copied().filter(|server| server != client).collect();
        if let Some(count) = &written.count {
            if count.value == 0 || count.value as usize > servers.len() {
                return Err(Problem::out_of_range("count", count.value, "1", servers.len()).at(&count.span));
            }
            servers.truncate(count.value as usize);
        }
        if servers.is_empty() {
            return Err(Problem::no_pairs("a client has no server other than itself").at(&written.servers.span));
        }
        let response = match (&written.response, &written.total) {
            (Some(response), None) => positive("a response")(response)?,
            (None, Some(total)) => Bytes::new(positive("a response")(total)?.get().div_ceil(servers.len() as u64)),
            _ => return Err(Problem::one_of("incast", &["response", "total"]).at(&written.span)),
        };
        if let (Some(mean), Some(arrivals)) = (mean_interarrival, &written.arrivals) {
            #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
            let answers = (servers.len() * clients.len()) as f64;
            few_enough("flows", per_second(mean) * answers, MAX_FLOWS, &arrivals.span, scene)?;
        }
        let jitter = written.jitter.as_ref().map_or(Span::ZERO, |by| by.value.0);
        let name = if clients.len() > 1 { format!("{name}/{}", scene.name(*client)) } else { name.to_owned() };
        let client = *client;
        let incast = Planned { client, servers, request, response, repeats, mean_interarrival, start, jitter };
        loops.push((name, Kind::Incast(incast)));
    }
    Ok(loops)
}

/// Rounds of a closed loop.
fn rounds(repeats: &Located<u32>) -> Judged<u32> {
    match repeats.value {
        0 => Err(Problem::zero("the number of rounds").at(&repeats.span)),
        value if value > MAX_REPEATS => {
            let most = MAX_REPEATS.into();
            Err(Problem::too_many("rounds", value.into(), most).at(&repeats.span))
        }
        repeats => Ok(repeats),
    }
}

/// Mean time between the requests of a client that sends them at random times.
pub(super) fn interval(key: &str, arrivals: &Located<Arrivals>) -> Judged<Span> {
    let Arrivals::Poisson(poisson) = &arrivals.value else {
        let kind = if matches!(arrivals.value, Arrivals::OnOff(_)) { "on-off" } else { "log-normal" };
        return Err(Problem::not_here(kind, &format!("in `{key}`")).at(&arrivals.span));
    };
    let refused = [
        ("load", poisson.load.as_ref().map(|load| &load.span)),
        ("part", poisson.part.as_ref().map(|part| &part.span)),
        ("of", poisson.of.as_ref().map(|of| &of.span)),
    ];
    for (refused, span) in refused {
        if let Some(span) = span {
            return Err(Problem::not_here(refused, &format!("in `{key}`, whose clients ask at a `rate`")).at(span));
        }
    }
    let Some(rate) = &poisson.rate else {
        return Err(Problem::missing("rate", "poisson = { rate = \"7/s\" }").at(&arrivals.span));
    };
    rate.value.0.interval().ok_or_else(|| Problem::zero("the rate of arrivals").at(&rate.span))
}
