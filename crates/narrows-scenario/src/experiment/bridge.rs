//! What the routers at both ends of a link do with what passes it.

use narrows_core::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;
use super::quantity::{Fraction, Quantity};

/// What joins the two ends of a link between sites, both directions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// Nothing.
    None,
    /// The pair that chooses what may be lost, and repairs it: docs/algorithms/dcib.md.
    Dcib(Box<Dcib>),
}

/// The parameters of [`Bridge::Dcib`].
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Dcib {
    /// The part of the packets that may be lost, `m`, above 0; 0.1 where nothing is said.
    pub share: Option<Located<Fraction>>,
    /// Which packets; `"sampled"` where nothing is said.
    pub choose: Option<Choose>,
    /// Nothing beyond this rate may be lost, `R`; the link's where nothing is said.
    pub rate: Option<Located<Quantity<Rate>>>,
    /// The round trip between the two routers until it is measured; twice the link's delay where nothing is said.
    pub round_trip: Option<Located<Quantity<Span>>>,
    /// How often a packet is sent again at most, `N_retx`; 3 where nothing is said.
    pub repairs: Option<Located<u64>>,
    /// Bytes of copies at most, `B_clone`; what `share` of `rate` is in four round trips where nothing is said.
    pub store: Option<Located<Quantity<Bytes>>>,
    /// How the hosts are kept from noticing a loss that may be repaired; `"resequence"` where nothing is said.
    pub hiding: Option<Hiding>,
    /// For how long at most, `H_B`; one and a half round trips and 2 ms where nothing is said.
    pub hold: Option<Located<Quantity<Span>>>,
    /// Bytes held back at most, `B_reseq`; what `rate` is in one and a half round trips where nothing is said.
    pub held: Option<Located<Quantity<Bytes>>>,
}

/// Which packets may be lost.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choose {
    /// One of every 1/share.
    Sampled,
    /// Each with probability `share`.
    Bernoulli,
    /// Those beyond (1 − share) of `rate`.
    Band,
}

/// How a loss is hidden from the hosts.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hiding {
    /// The receiving router holds back what follows it.
    Resequence,
    /// So it does, but not once it is known that nobody will repair it.
    ResequenceRepairable,
    /// The sending router holds back the duplicate acknowledgements.
    Snoop,
    /// It is not.
    Nothing,
}
