//! How many connections each host opens: their numbers have room for so many.

use std::ops::Range;

use narrows_core::units::Time;

use crate::error::{Judged, Problem};
use crate::offered::{flows_per_second, rounds};
use narrows_plan::{Connections, FlowStart, Graph, NodeKind, Pairs, Pattern, Traffic, most_connections};

/// Connections by the host that opens them, expected where flows come at random.
pub(crate) struct Opened<'a> {
    graph: &'a Graph,
    count: Vec<f64>,
}

impl<'a> Opened<'a> {
    pub(crate) fn of(graph: &'a Graph) -> Opened<'a> {
        Opened { graph, count: vec![0.0; graph.nodes.len()] }
    }

    /// Adds what stands at this place; refuses more than a host can number.
    pub(crate) fn add(&mut self, traffic: &[Traffic], end: Time, span: &Range<usize>) -> Judged<()> {
        for kind in traffic {
            self.add_kind(kind, end);
        }
        // Six standard deviations of a Poisson count: what is let through does not fail by chance.
        let hosts = self.graph.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
        let most = most_connections(u32::try_from(hosts).unwrap_or(u32::MAX));
        let most = most - 6 * most.isqrt();
        let Some(host) = self.count.iter().position(|count| *count > f64::from(most)) else { return Ok(()) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, positive")]
        let connections = self.count[host] as u64;
        let host = &self.graph.nodes[host].name;
        let sentence = format!("host `{host}` would open about {connections} connections, and {most} are allowed");
        Err(Problem::new(sentence, "choose a smaller pool, fewer hosts, a lower load or an earlier end").at(span))
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn add_kind(&mut self, kind: &Traffic, end: Time) {
        let pool = match kind.connections {
            Connections::Fresh | Connections::FreshEstablished => None,
            Connections::Persistent { pool } => Some(f64::from(pool)),
            Connections::InOrder => Some(1.0),
        };
        match &kind.pattern {
            Pattern::Open(open) => {
                let flows = flows_per_second(open) * end.as_ps() as f64 / 1e12;
                let asked = open.request.is_some();
                match &open.pairs {
                    Pairs::Listed(listed) => {
                        let each = pool.unwrap_or(flows / listed.len().max(1) as f64);
                        for (source, destination) in listed {
                            self.count[(if asked { *destination } else { *source }) as usize] += each;
                        }
                    }
                    Pairs::Between { sources, destinations } => {
                        let (openers, peers) = if asked { (destinations, sources) } else { (sources, destinations) };
                        let each = pool.map_or(flows / openers.len() as f64, |pool| pool * peers.len() as f64);
                        openers.iter().for_each(|opener| self.count[*opener as usize] += each);
                    }
                }
            }
            Pattern::List(list) => {
                let mut pairs: Vec<(u32, u32)> = list.iter().map(FlowStart::ends).collect();
                if pool.is_some() {
                    pairs.sort_unstable();
                    pairs.dedup();
                }
                pairs.into_iter().for_each(|(opener, _)| self.count[opener as usize] += pool.unwrap_or(1.0));
            }
            Pattern::App(kind) => {
                let app = kind.rounds();
                let mut pairs = app.pairs();
                if pool.is_some() {
                    pairs.sort_unstable();
                    pairs.dedup();
                }
                let each = pool.unwrap_or_else(|| rounds(app, end));
                pairs.into_iter().for_each(|pair| self.count[app.opener(pair) as usize] += each);
            }
        }
    }
}
