//! `narrowsd cc set`: changes parameters while flows live.

use clap::Args;
use narrows_kernel::{Maps, Namespace};

use super::{assignment, named, refused, state};
use crate::failure::Failure;
use crate::{lock, namespaces};

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
    let file = arguments.netns.as_deref().map(namespaces::parse).transpose()?;
    // Before the lock: what is written wrongly is refused whether or not it is loaded.
    assignment::apply(controller, &mut narrows_kernel::Settings::defaults(controller), &arguments.sets)?;
    // Where it is not loaded nothing changes, and no file is left.
    state::maps(controller)?;
    let _lock = lock::take(controller)?;
    let maps = state::maps(controller)?;
    let namespace = file.map_or(Ok(Namespace::Every), |file| Namespace::of(&file)).map_err(refused::by_kernel)?;
    make_room(&maps, namespace)?;
    if let Namespace::Cookie(cookie) = namespace
        && arguments.clear
    {
        return maps.clear(cookie).map_err(refused::by_kernel);
    }
    let mut settings = maps.settings(namespace).map_err(refused::by_kernel)?;
    assignment::apply(controller, &mut settings, &arguments.sets)?;
    maps.set_all(namespace, &settings).map_err(refused::by_kernel)
}

/// The map has room for a thousand namespaces.
const MANY: usize = 900;

/// Removes parameters of namespaces that seem to have ended, once there are many: nothing that can be seen from here leads to them,
/// and no flow is in one. A namespace that only a descriptor holds is taken for ended then, but for the `target`.
fn make_room(maps: &Maps, target: Namespace) -> Result<(), Failure> {
    let cookies = maps.namespaces();
    if cookies.len() < MANY {
        return Ok(());
    }
    let led_to = namespaces::by_cookie();
    let flows = maps.flows().map_err(refused::by_kernel)?;
    let is_alive = |cookie| {
        let has_flows = flows.iter().any(|flow| flow.namespace_cookie == cookie);
        led_to.contains_key(&cookie) || has_flows || target == Namespace::Cookie(cookie)
    };
    cookies
        .into_iter()
        .filter(|cookie| !is_alive(*cookie))
        .try_for_each(|cookie| maps.clear(cookie))
        .map_err(refused::by_kernel)
}
