//! `narrowsd cc set`: changes parameters while flows live.

use clap::Args;
use narrows_kernel::Namespace;

use super::{assignment, named, namespaces, refused, state};
use crate::failure::Failure;
use crate::lock;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which controller
    name: String,
    /// What to change, as `t=5ms`: all of it at once
    #[arg(value_name = "KEY=VALUE", required_unless_present = "clear")]
    sets: Vec<String>,
    /// Only in this network namespace: its name, a path that leads to it, or its inode
    #[arg(long, value_name = "NAMESPACE")]
    netns: Option<String>,
    /// Let the namespace follow everyone's parameters again
    #[arg(long, requires = "netns", conflicts_with = "sets")]
    clear: bool,
}

pub(super) fn set(arguments: &Arguments) -> Result<(), Failure> {
    let controller = named(&arguments.name)?;
    let inode = arguments.netns.as_deref().map(namespaces::parse).transpose()?;
    let namespace = inode.map_or(Namespace::Every, Namespace::Inode);
    // Before the lock: what is written wrongly is refused whether or not it is loaded.
    assignment::apply(controller, &mut narrows_kernel::Settings::defaults(controller), &arguments.sets)?;
    let _lock = lock::take(controller)?;
    let maps = state::maps(controller)?;
    if let Some(inode) = inode.filter(|_| arguments.clear) {
        return maps.clear(inode).map_err(refused::by_kernel);
    }
    let mut settings = maps.settings(namespace).map_err(refused::by_kernel)?;
    assignment::apply(controller, &mut settings, &arguments.sets)?;
    maps.set_all(namespace, &settings).map_err(refused::by_kernel)
}
