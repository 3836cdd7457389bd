//! Rows become Arrow tables. Whoever made the run, simulator or testbed, they are the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{Field, Schema, SchemaRef};
use narrows_plan::{Link, Plan, Traffic};

use crate::trace::{HopRow, PauseRow, SenderRow, TimeRow};
use crate::{BridgeRow, EventRow, FlowRow, PortRow, RankRow, RequestRow, Results, SeriesRow};

/// A table of a run's results.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What one row of it is.
    pub about: &'static str,
}

/// The tables.
pub const TABLES: [Table; 7] = [
    Table { name: "flows", about: "One flow: a transfer of a known size, or one that lasts until it is stopped." },
    Table {
        name: "requests",
        about: "One request of a client to several servers; it is complete when all have responded.",
    },
    Table {
        name: "ports",
        about: "One port, that is one direction of a link. Counters cover `measured_ns`; the warm-up is not in them. For a link with an edge pair (`bridge`), packets that bypass its queue are not in them either: repairs, and messages between the routers, which `bridges.parquet` counts.",
    },
    Table { name: "series", about: "One sample. The table is long: `quantity` says what `value` is." },
    Table {
        name: "events",
        about: "One change of a link at a stated time (`[[event]]`), for each direction; no row where no link changes.",
    },
    Table {
        name: "bridges",
        about: "One router of an edge pair (`bridge`), over the whole run; no row without edge pairs. A marked packet is a loss-eligible one. For each direction of traffic, the counters of its near edge (marked, repaired) are in the row of the link that it sends over; those of its far edge (received, held, holes) in the row of the reverse direction.",
    },
    Table {
        name: "ranks",
        about: "One rank of a program (`program`); no row without programs. A program's execution time is from `start_ns` to the latest `end_ns` of its ranks.",
    },
];

/// The tables of a traced run, beside the others.
pub const TRACE_TABLES: [Table; 4] = [
    Table { name: "hops", about: "One packet of a traced flow, or of its connection, at one port." },
    Table { name: "senders", about: "One sender of a traced flow, after something happened to it." },
    Table {
        name: "times",
        about: "One stretch of a traced flow's time, from its start to its completion: what its last byte waited for, and where. Stretches do not overlap and leave nothing out: their sum is the FCT to the nanosecond.",
    },
    Table { name: "pauses", about: "One frame that paused or resumed a port on the way of a traced flow." },
];

/// The table of this name; `None` if there is none. A field's metadata are its `unit` and `description`.
pub fn table(name: &str, plan: &Plan, results: &Results) -> Option<RecordBatch> {
    let run = Run::new(plan, results);
    let columns = match name {
        "flows" => FlowRow::columns(&run),
        "requests" => RequestRow::columns(&run),
        "ports" => PortRow::columns(&run),
        "series" => SeriesRow::columns(&run),
        "events" => EventRow::columns(&run),
        "bridges" => BridgeRow::columns(&run),
        "ranks" => RankRow::columns(&run),
        "hops" => HopRow::columns(&run),
        "senders" => SenderRow::columns(&run),
        "times" => TimeRow::columns(&run),
        "pauses" => PauseRow::columns(&run),
        _ => return None,
    };
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Some(batch.expect("columns are of equal length by construction, and only optional ones have holes"))
}

/// The columns of the table of this name, whatever the run; `None` if there is none.
pub fn columns(name: &str) -> Option<SchemaRef> {
    Some(table(name, &Plan::default(), &Results::default())?.schema())
}

/// What columns are made from beside their row.
pub(crate) struct Run<'a> {
    plan: &'a Plan,
    pub(crate) results: &'a Results,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, results: &'a Results) -> Run<'a> {
        Run { plan, results }
    }

    pub(crate) fn node(&self, index: u32) -> &'a str {
        &self.plan.network.nodes[index as usize].name
    }

    pub(crate) fn link(&self, index: u32) -> &'a Link {
        &self.plan.network.links[index as usize]
    }

    pub(crate) fn traffic(&self, flow: &FlowRow) -> &'a Traffic {
        self.entry(flow.traffic)
    }

    pub(crate) fn entry(&self, traffic: u32) -> &'a Traffic {
        &self.plan.traffic[traffic as usize]
    }

    pub(crate) fn entity(&self, sample: &SeriesRow) -> String {
        match sample.quantity.is_of_port() {
            true => self.link(sample.entity).name.clone(),
            false => format!("flow-{}", sample.entity),
        }
    }
}

pub(crate) type Columns = Vec<(Field, ArrayRef)>;

/// A value of a column; a row may lack one of an optional kind.
pub(crate) trait Cell: Sized {
    const OPTIONAL: bool;
    fn array(values: impl Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! cells {
    ($($cell:ty: $array:ty;)*) => {$(
        impl Cell for $cell {
            const OPTIONAL: bool = false;
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.map(Some).collect::<$array>())
            }
        }
        impl Cell for Option<$cell> {
            const OPTIONAL: bool = true;
            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.collect::<$array>())
            }
        }
    )*};
}

cells! {
    u32: UInt32Array;
    u64: UInt64Array;
    f64: Float64Array;
    bool: BooleanArray;
    &str: StringArray;
    String: StringArray;
}

/// A column of this name: a value of each row, in their order.
pub(crate) fn column<C: Cell>(
    name: &str,
    unit: &str,
    description: &str,
    cells: impl Iterator<Item = C>,
) -> (Field, ArrayRef) {
    let values = C::array(cells);
    let metadata: BTreeMap<String, String> =
        [("unit", unit), ("description", description)].map(|(key, text)| (key.to_owned(), text.to_owned())).into();
    (Field::new(name, values.data_type().clone(), C::OPTIONAL).with_metadata(metadata), values)
}
