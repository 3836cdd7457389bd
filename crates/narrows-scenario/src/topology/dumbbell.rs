//! A dumbbell: hosts `left-1` … on `switch-left`, `right-1` … on `switch-right`, one fabric link between the switches.

use narrows_core::queue::Limit;
use narrows_core::units::{Packets, Rate, Span};

use super::{Builder, LinkSpec, MOST_HOSTS, Stack, count, without_pool};
use crate::error::Judged;
use crate::experiment::network::Dumbbell;
use narrows_plan::{Graph, Role};

pub(super) fn resolve(written: &Dumbbell) -> Judged<Graph> {
    let pairs = count("pairs", written.pairs.as_ref(), 2, MOST_HOSTS / 2)?;
    let base =
        LinkSpec { limit: Limit::Packets(Packets::new(100)), ..LinkSpec::plain(Rate::from_gbps(1), Span::from_us(5)) };
    let fabric = base.with(&written.fabric)?;
    let edge = fabric.with(without_pool(&written.edge, "in `edge`: it is the switch's, and stands in `fabric`")?)?;
    let mut builder = Builder::new(Stack::of(&written.host, 0)?);
    for (rack, side) in [(1, "left"), (2, "right")] {
        for host in 1..=pairs {
            builder.host(format!("{side}-{host}"), 0, rack);
        }
    }
    let left = builder.switch("switch-left".to_owned(), 0, 1, fabric.pool);
    let right = builder.switch("switch-right".to_owned(), 0, 2, fabric.pool);
    for host in 0..pairs {
        builder.attach(host, left, &edge);
        builder.attach(pairs + host, right, &edge);
    }
    builder.join(left, right, Role::Fabric, &fabric);
    Ok(builder.graph)
}
