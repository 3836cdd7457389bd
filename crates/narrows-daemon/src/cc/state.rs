//! What is loaded of a controller, read at once.

use std::collections::BTreeMap;

use narrows_kernel::{Controller, Counters, Flow, Maps, Namespace, Registration, Settings, pinned, registered};

use super::{refused, system_default};
use crate::failure::Failure;
use crate::namespaces::{self, Namespace as Named};

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

/// Parameters of one namespace.
#[derive(Debug)]
pub(super) struct OwnSettings {
    pub(super) cookie: u64,
    /// Nothing if the namespace ended, or nothing leads to it.
    pub(super) namespace: Option<Named>,
    pub(super) settings: Settings,
}

impl OwnSettings {
    /// For people.
    pub(super) fn label(&self) -> String {
        match &self.namespace {
            Some(namespace) => namespace.label(),
            None => format!("a namespace that ended, or that nothing here leads to (cookie {})", self.cookie),
        }
    }
}

/// A controller that is loaded.
#[derive(Debug)]
pub(super) struct State {
    pub(super) controller: &'static Controller,
    pub(super) kept: Kept,
    /// Everyone's.
    pub(super) settings: Settings,
    /// Of namespaces that have their own.
    pub(super) own_settings: Vec<OwnSettings>,
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
        let cookies = maps.namespaces();
        let mut led_to = if cookies.is_empty() { BTreeMap::new() } else { namespaces::by_cookie() };
        let own = cookies.into_iter().map(|cookie| {
            let settings = maps.settings(Namespace::Cookie(cookie))?;
            Ok(OwnSettings { cookie, namespace: led_to.remove(&cookie), settings })
        });
        Ok((settings, own.collect::<Result<_, _>>()?, maps.counters()?, maps.flows()?))
    };
    let (settings, own_settings, counters, flows) = read().map_err(refused::by_kernel)?;
    let default_of = system_default::users(controller, true);
    Ok(Some(State { controller, kept, settings, own_settings, counters, flows, default_of }))
}
