//! `narrowsd cc unload`: removes what was loaded, and what killed processes left.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use narrows_kernel::registered::{self, Registered};
use narrows_kernel::{Controller, Error, Registration, pinned};

use super::{named_or_all, refused, route, say, system_default};
use crate::failure::Failure;
use crate::lock;
use crate::namespaces::Namespace;

const OR_FORCE: &str = "; or unload with --force";
/// A registration that ends takes less.
const ENDING: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Controller to unload: one of `narrowsd cc list`, or one that was loaded from a file, by the name that it is registered as
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Unload every controller of Narrows, and every one that was loaded from a file
    #[arg(long)]
    all: bool,
    /// Unload it even if a namespace has it as its default, whose new connections go on using its code until another default is
    /// set, or a route names it, which has no effect then
    #[arg(long)]
    force: bool,
    /// Unload nothing; fail if a namespace's default or a route still needs it, and say which. With --all any route of
    /// `narrowsd cc route add` counts, also one that names a controller of the kernel
    #[arg(long, conflicts_with = "force")]
    dry_run: bool,
}

pub(super) fn unload(arguments: &Arguments) -> Result<(), Failure> {
    let chosen = named_or_all(arguments.name.as_deref())?;
    if arguments.all && arguments.dry_run {
        refuse_routes(&route::everywhere()?, "")?;
    }
    chosen.into_iter().try_for_each(|controller| match arguments.dry_run {
        true => refuse_if_needed(controller),
        false => one(controller, arguments.force),
    })
}

/// Refuses if it is loaded and something needs it.
fn refuse_if_needed(controller: &'static Controller) -> Result<(), Failure> {
    if registered::find(controller).map_err(refused::by_kernel)?.is_none() {
        return Ok(());
    }
    refuse_users(controller, &system_default::users(controller, false))?;
    refuse_routes(&route::of_controller(controller.registered)?, OR_FORCE)
}

fn one(controller: &'static Controller, force: bool) -> Result<(), Failure> {
    let name = controller.spec.name;
    let _lock = lock::take(controller)?;
    // No route is to name it between the look and the removal.
    let _routes = lock::take_routes()?;
    let found = registered::find(controller).map_err(refused::by_kernel)?;
    let is_loaded = found.is_some();
    if is_loaded && !force {
        refuse_users(controller, &system_default::users(controller, false))?;
        refuse_routes(&route::of_controller(controller.registered)?, OR_FORCE)?;
    }
    let flows = found.as_ref().and_then(|found| found.maps().ok()?.flows().ok()).map_or(0, |flows| flows.len());
    if let Some(found) = &found {
        refuse_holders(controller, found)?;
        refuse_what_is_elsewhere(controller, found)?;
    }
    let restored = system_default::put_back(controller)?;
    if pinned::is_registration(&pinned::folder(controller)) {
        pinned::unload(controller, &pinned::folder(controller)).map_err(refused::by_kernel)?;
    } else if is_loaded {
        registered::remove_stale(controller).map_err(refused::by_kernel)?;
    }
    let rest = pinned::remove_partial(&pinned::folder(controller)).map_err(refused::by_kernel)?;

    match (is_loaded, rest) {
        (true, _) => say(&format!("{name} is unloaded\n")),
        (false, true) => say(&format!("{name} was not loaded; what a killed process left of it is removed\n")),
        (false, false) => say(&format!("{name} is not loaded\n")),
    }
    if flows > 0 {
        say(&format!("{flows} of its connections keep it until they end\n"));
    }
    if let Some(said) = restored {
        say(&format!("{said}\n"));
    }
    for route::Changed { prefix, label, .. } in route::of_controller(controller.registered)? {
        say(&format!("the route to {prefix} (network namespace {label}) names it, and has no effect now\n"));
    }
    Ok(())
}

/// A link that is not pinned ends with its process and not otherwise.
fn refuse_holders(controller: &Controller, found: &Registered) -> Result<(), Failure> {
    let holders = found.holders();
    if pinned::is_registration(&pinned::folder(controller)) || holders.is_empty() {
        return Ok(());
    }
    Err(refused::by_kernel(Error::Held { controller: controller.spec.name, holders }))
}

/// A link lives by a pin or by a process. Where neither is seen, a pin lies in a bpf file system that is not mounted here, or
/// the last process ends just now.
pub(super) fn refuse_what_is_elsewhere(controller: &'static Controller, found: &Registered) -> Result<(), Failure> {
    if found.registration() != Registration::Link || pinned::is_registration(&pinned::folder(controller)) {
        return Ok(());
    }
    let begin = Instant::now();
    while registered::find(controller).map_err(refused::by_kernel)?.is_some() {
        if begin.elapsed() > ENDING {
            let sentence =
                format!("{} is still registered: what holds it cannot be seen from here", controller.spec.name);
            return Err(Failure::failed(sentence).help(refused::OTHER_MOUNTS));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A route keeps the name without effect, and `ip` of iproute2 6.1 crashes on one that locks it.
fn refuse_routes(changed: &[route::Changed], or: &str) -> Result<(), Failure> {
    let Some(first) = changed.first() else { return Ok(()) };
    let of_it = changed.iter().filter(|one| one.controller == first.controller);
    let all: Vec<String> = of_it.map(|one| format!("{} (network namespace {})", one.prefix, one.label)).collect();
    let sentence = format!("{} is named by the route to {}", first.controller, all.join(", and by that to "));
    Err(Failure::failed(sentence).help(format!("in that namespace: narrowsd cc route remove PREFIX{or}")))
}

/// The kernel keeps a default that is unregistered: new connections would go on taking it.
fn refuse_users(controller: &Controller, users: &[Namespace]) -> Result<(), Failure> {
    if users.is_empty() {
        return Ok(());
    }
    let labels: Vec<String> = users.iter().map(Namespace::label).collect();
    let sentence = format!(
        "{} is the default (net.ipv4.tcp_congestion_control) of the network namespace{} {}",
        controller.registered,
        if users.len() == 1 { "" } else { "s" },
        labels.join(", "),
    );
    Err(Failure::failed(sentence).help("set another default there first, or unload with --force"))
}
