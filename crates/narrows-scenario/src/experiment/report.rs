//! What a report shows of a sweep, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::located::Located;

/// What the charts of a sweep show.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Report {
    /// The axis of the sweep against which measures are drawn, by its path; default: the one with the most numbers.
    pub x: Option<Located<String>>,
    /// Measures, a chart each, as in `docs/reference/measures.md`; default: those that the traffic has.
    #[serde(default)]
    pub y: Vec<Located<String>>,
    /// The axis of the sweep whose values are panels side by side; default: the next one.
    pub panels: Option<Located<String>>,
}
