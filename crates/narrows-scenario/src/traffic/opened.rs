//! How many connections each host opens: their numbers have 20 bits for it.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_core::app::Rounds;
use narrows_core::units::Time;

use crate::error::{Judged, Problem};
use crate::offered::{flows_per_second, rounds};
use narrows_plan::{Connections, Graph, Pairs, Pattern, Traffic};

/// Most connections that one host opens in a run.
pub(crate) const MAX_CONNECTIONS: u32 = 1 << 20;

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
            match kind.connections {
                Connections::Fresh | Connections::FreshEstablished => self.add_fresh(&kind.pattern, end),
                Connections::Persistent { pool } => self.add_pools(&kind.pattern, f64::from(pool)),
            }
        }
        // Six standard deviations of a Poisson count: what is let through does not fail by chance.
        let most = MAX_CONNECTIONS - 6 * MAX_CONNECTIONS.isqrt();
        let Some(host) = self.count.iter().position(|count| *count > f64::from(most)) else { return Ok(()) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, positive")]
        let connections = self.count[host] as u64;
        let host = &self.graph.nodes[host].name;
        let sentence = format!("host `{host}` would open about {connections} connections, and {most} are allowed");
        Err(Problem::new(sentence, "choose a smaller pool, fewer hosts, a lower load or an earlier end").at(span))
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn add_fresh(&mut self, pattern: &Pattern, end: Time) {
        match pattern {
            Pattern::Open(open) => {
                let flows = flows_per_second(open) * end.as_ps() as f64 / 1e12;
                let asked = open.request.is_some();
                match &open.pairs {
                    Pairs::Listed(listed) => {
                        let share = flows / listed.len().max(1) as f64;
                        for (source, destination) in listed {
                            self.count[(if asked { *destination } else { *source }) as usize] += share;
                        }
                    }
                    Pairs::Between { sources, destinations } => {
                        let openers = if asked { destinations } else { sources };
                        for opener in openers {
                            self.count[*opener as usize] += flows / openers.len() as f64;
                        }
                    }
                }
            }
            Pattern::List(list) => {
                for flow in list {
                    let opener = if flow.request.is_some() { flow.destination } else { flow.source };
                    self.count[opener as usize] += 1.0;
                }
            }
            Pattern::App(kind) => self.add_pairs(kind.rounds(), rounds(kind.rounds(), end)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of hosts are far below 2^53")]
    fn add_pools(&mut self, pattern: &Pattern, pool: f64) {
        match pattern {
            Pattern::Open(open) => {
                let asked = open.request.is_some();
                match &open.pairs {
                    Pairs::Listed(listed) => {
                        for (source, destination) in listed {
                            self.count[(if asked { *destination } else { *source }) as usize] += pool;
                        }
                    }
                    Pairs::Between { sources, destinations } => {
                        let (openers, peers) = if asked { (destinations, sources) } else { (sources, destinations) };
                        for opener in openers {
                            self.count[*opener as usize] += pool * peers.len() as f64;
                        }
                    }
                }
            }
            Pattern::List(list) => {
                let pairs: BTreeSet<(u32, u32)> = list
                    .iter()
                    .map(|flow| match flow.request {
                        Some(_) => (flow.destination, flow.source),
                        None => (flow.source, flow.destination),
                    })
                    .collect();
                for (opener, _) in pairs {
                    self.count[opener as usize] += pool;
                }
            }
            Pattern::App(kind) => self.add_pairs(kind.rounds(), pool),
        }
    }

    /// So many connections for each pair of an application.
    fn add_pairs(&mut self, app: &dyn Rounds, each: f64) {
        app.pairs().into_iter().for_each(|pair| self.count[app.opener(pair) as usize] += each);
    }
}
