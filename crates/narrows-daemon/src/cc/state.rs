//! What is loaded of a controller, read at once.

use narrows_kernel::{Controller, Counters, Flow, Maps, Namespace, Registration, Settings, pinned, registered};

use super::namespaces::Namespace as Named;
use super::{refused, system_default};
use crate::failure::Failure;

/// What keeps the registration.
#[derive(Debug)]
pub(super) enum Kept {
    /// A pin: until `unload`.
    Pinned,
    /// These processes: until the last of them ends.
    Held(Vec<u32>),
    /// Nobody: a process left it that was killed, on a kernel before 6.4.
    Stale,
}

/// A controller that is loaded.
#[derive(Debug)]
pub(super) struct State {
    pub(super) controller: &'static Controller,
    pub(super) kept: Kept,
    /// Everyone's.
    pub(super) settings: Settings,
    /// Of namespaces that have their own, by inode.
    pub(super) own_settings: Vec<(u32, Settings)>,
    pub(super) counters: Counters,
    pub(super) flows: Vec<Flow>,
    /// The namespaces whose default it is.
    pub(super) default_of: Vec<Named>,
}

/// The maps of a controller that is loaded.
///
/// # Errors
/// Code 1 if it is not, 3 where the caller may not.
pub(super) fn maps(controller: &'static Controller) -> Result<Maps, Failure> {
    let name = controller.spec.name;
    match registered::find(controller).map_err(refused::by_kernel)? {
        Some(found) => found.maps().map_err(refused::by_kernel),
        None => {
            Err(Failure::failed(format_args!("{name} is not loaded")).help(format_args!("narrowsd cc load {name}")))
        }
    }
}

/// Everything of a controller; nothing if it is not loaded.
///
/// # Errors
/// Code 3 where the caller may not, 1 otherwise.
pub(super) fn read(controller: &'static Controller) -> Result<Option<State>, Failure> {
    let Some(found) = registered::find(controller).map_err(refused::by_kernel)? else { return Ok(None) };
    let kept = if pinned::is_registration(&pinned::folder(controller)) {
        Kept::Pinned
    } else {
        let holders = found.holders();
        if holders.is_empty() && found.registration() == Registration::Plain {
            Kept::Stale
        } else {
            Kept::Held(holders)
        }
    };
    let maps = found.maps().map_err(refused::by_kernel)?;
    let read = || {
        let settings = maps.settings(Namespace::Every)?;
        let own = maps.namespaces().into_iter();
        let own = own.map(|inode| Ok((inode, maps.settings(Namespace::Inode(inode))?))).collect::<Result<_, _>>()?;
        Ok((settings, own, maps.counters()?, maps.flows()?))
    };
    let (settings, own_settings, counters, flows) = read().map_err(refused::by_kernel)?;
    let default_of = system_default::users(controller, true);
    Ok(Some(State { controller, kept, settings, own_settings, counters, flows, default_of }))
}
