//! The exchange among all hosts as written.

use narrows_core::app::all_to_all::AllToAll as Planned;
use narrows_core::units::{Bytes, Time};

use super::{MAX_FLOWS, Scene, positive, start};
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use crate::experiment::selector::Selector;
use crate::select;
use narrows_plan::{Kind, NodeKind};
use schemars::JsonSchema;
use serde::Deserialize;

/// Each host sends one message to each other host, and does so again when it has sent and received all.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AllToAll {
    /// Who takes part.
    pub hosts: Located<Selector>,
    /// Size of each message.
    pub size: Located<Quantity<Bytes>>,
    /// One message at a time: in round r of an iteration, the i-th of N hosts sends to the (i + r)-th, modulo N. Else all at
    /// once.
    #[serde(default)]
    pub in_rounds: bool,
    /// Iterations; default: one.
    pub repeats: Option<Located<u32>>,
    /// When the first one begins; default: at once.
    pub start: Option<Located<Quantity<Time>>>,
}

/// The exchange, under the traffic's own name.
pub(super) fn resolve(name: &str, written: &Located<AllToAll>, scene: &Scene<'_>) -> Judged<Vec<(String, Kind)>> {
    let hosts = select::hosts(scene.graph, &written.hosts)?;
    if hosts.len() < 2 {
        let most = scene.graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        return Err(Problem::out_of_range("the number of hosts", hosts.len(), "2", most).at(&written.hosts.span));
    }
    let repeats = match &written.repeats {
        None => 1,
        Some(repeats) if repeats.value == 0 => {
            return Err(Problem::zero("the number of iterations").at(&repeats.span));
        }
        Some(repeats) => repeats.value,
    };
    let size = positive("a message")(&written.size)?;
    let start = start(written.start.as_ref(), scene)?;
    let all = Planned { hosts, size, in_rounds: written.in_rounds, repeats, start };
    if all.messages() > MAX_FLOWS {
        let span = written.repeats.as_ref().map_or(&written.span, |repeats| &repeats.span);
        return Err(Problem::too_many("flows", all.messages(), MAX_FLOWS).at(span));
    }
    Ok(vec![(name.to_owned(), Kind::AllToAll(all))])
}
