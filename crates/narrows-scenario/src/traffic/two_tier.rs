//! Scatter and gather in two tiers as written.

use std::collections::BTreeMap;

use narrows_core::app::two_tier::TwoTier as Planned;
use narrows_core::units::{Bytes, Time};

use super::incast::interval;
use super::{MAX_FLOWS, Scene, few_enough, positive, start};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use crate::experiment::selector::Selector;
use crate::experiment::traffic::Arrivals;
use crate::select;
use narrows_plan::Kind;
use narrows_plan::arrivals::per_second;
use schemars::JsonSchema;
use serde::Deserialize;

/// A random host asks a random aggregator in each rack, which asks the other hosts of its rack before it answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TwoTier {
    /// Who takes part; default: all hosts. As many of each rack, at least two.
    pub hosts: Option<Located<Selector>>,
    /// Size of each request; default: 20 KB.
    pub request: Option<Located<Quantity<Bytes>>>,
    /// Size of each answer; default: 20 KB.
    pub response: Option<Located<Quantity<Bytes>>>,
    /// Queries at random times: `poisson` with a `rate`, of all hosts together.
    pub arrivals: Located<Arrivals>,
    /// When the first may begin; default: at once.
    pub start: Option<Located<Quantity<Time>>>,
}

/// Both ways [Short and Fat].
const MESSAGE: Bytes = Bytes::new(20_000);

/// The queries, under the traffic's own name.
pub(super) fn resolve(name: &str, written: &Located<TwoTier>, scene: &Scene<'_>) -> Judged<Vec<(String, Kind)>> {
    let (hosts, span) = match &written.hosts {
        Some(hosts) => (select::hosts(scene.graph, hosts)?, &hosts.span),
        None => (select::all_hosts(scene.graph), &written.span),
    };
    let mut racks = BTreeMap::<u16, Vec<u32>>::new();
    for host in hosts {
        if scene.graph.nodes[host as usize].rack == 0 {
            let sentence = format!("`{}` stands in no rack, and `two-tier` asks an aggregator in each", scene.name(host));
            return Err(Problem::new(sentence, "state the `rack` of its switch, or choose `hosts` in racks").at(span));
        }
        racks.entry(scene.graph.nodes[host as usize].rack).or_default().push(host);
    }
    let racks: Vec<Vec<u32>> = racks.into_values().collect();
    let least = racks.iter().map(Vec::len).min().unwrap_or_default();
    if least < 2 || racks.iter().any(|rack| rack.len() != least) {
        let sentence = format!("its racks have between {least} and {} hosts", racks.iter().map(Vec::len).max().unwrap_or(0));
        let help = "choose `hosts` so that each rack has as many, at least two: an aggregator asks the others of its rack";
        return Err(Problem::new(sentence, help).at(span));
    }
    let mean_interarrival = interval("two-tier", &written.arrivals)?;
    let size = |written: &Option<Located<Quantity<Bytes>>>, what| {
        written.as_ref().map(positive(what)).transpose().map(|size| size.unwrap_or(MESSAGE))
    };
    let (request, response) = (size(&written.request, "a request")?, size(&written.response, "an answer")?);
    let start = start(written.start.as_ref(), scene)?;
    let kind = Kind::TwoTier(Planned { racks, request, response, mean_interarrival, start });
    #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
    let flows = kind.rounds().pairs().len() as f64;
    few_enough("flows", per_second(mean_interarrival) * flows, MAX_FLOWS, &written.arrivals.span, scene)?;
    Ok(vec![(name.to_owned(), kind)])
}
