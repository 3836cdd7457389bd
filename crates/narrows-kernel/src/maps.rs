//! A loaded controller's maps: its parameters, which change while flows live, and what the flows publish.

use crate::controllers::Controller;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::parameters::Settings;
use crate::record::{COUNTER_BYTES, Counters, FLOW_BYTES, Flow};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use narrows_core::cc::Value;

/// Names in the object, and of the pins.
pub(crate) const NAMES: [&str; 4] = ["parameters", "generation", "flows", "counters"];

/// Handles to the maps of one loaded controller.
#[derive(Debug)]
pub struct Maps {
    controller: &'static Controller,
    /// In the order of [`NAMES`].
    handles: [MapHandle; 4],
}

impl Maps {
    /// Takes the handles that `open` gives for each name, and checks that they are what this version knows.
    pub(crate) fn open(
        controller: &'static Controller,
        mut open: impl FnMut(&'static str) -> Result<MapHandle, Error>,
    ) -> Result<Maps, Error> {
        let [parameters, generation, flows, counters] = NAMES;
        let handles = [open(parameters)?, open(generation)?, open(flows)?, open(counters)?];
        let sizes = handles.each_ref().map(|handle| handle.value_size() as usize);
        let [parameters, ..] = &handles;
        // Until namespaces were told by cookies, the keys of parameters had four bytes.
        let keys = parameters.key_size() as usize;
        if sizes != [value_bytes(controller), 8, FLOW_BYTES, COUNTER_BYTES] || keys != Namespace::Every.key().len() {
            return Err(Error::OtherVersion { controller: controller.spec.name });
        }
        Ok(Maps { controller, handles })
    }

    pub(crate) fn handles(&mut self) -> impl Iterator<Item = (&'static str, &mut MapHandle)> {
        NAMES.into_iter().zip(&mut self.handles)
    }

    /// Whose they are.
    pub fn controller(&self) -> &'static Controller {
        self.controller
    }

    /// The parameters in force in a namespace.
    ///
    /// # Errors
    /// [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn settings(&self, namespace: Namespace) -> Result<Settings, Error> {
        let [parameters, ..] = &self.handles;
        for key in [namespace.key(), Namespace::Every.key()] {
            let found = parameters.lookup(&key, MapFlags::ANY).map_err(|error| Error::of("read parameters", error))?;
            if let Some(bytes) = found {
                let integers: Vec<u64> = bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
                return Ok(Settings::from_integers(self.controller, &integers));
            }
        }
        Ok(Settings::defaults(self.controller))
    }

    /// The cookies of the namespaces that have parameters of their own, in ascending order; of those that ended, too.
    pub fn namespaces(&self) -> Vec<u64> {
        let [parameters, ..] = &self.handles;
        let keys = parameters.keys().filter_map(|key| key.first_chunk().copied()).map(u64::from_ne_bytes);
        let mut cookies: Vec<u64> = keys.filter(|cookie| *cookie != 0).collect();
        cookies.sort_unstable();
        cookies
    }

    /// Changes one parameter, for new flows and for those that live: these follow at their next acknowledgement. Where the
    /// namespace has no parameters of its own, it gets a copy of everyone's with this change.
    ///
    /// # Errors
    /// As [`Settings::set`]; [`Error::NoLineRate`], [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn set(&self, namespace: Namespace, name: &str, value: Value) -> Result<(), Error> {
        let mut settings = self.settings(namespace)?;
        settings.set(name, value)?;
        self.set_all(namespace, &settings)
    }

    /// Replaces all parameters of a namespace, like [`Maps::set`].
    ///
    /// # Errors
    /// [`Error::NoLineRate`], [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn set_all(&self, namespace: Namespace, settings: &Settings) -> Result<(), Error> {
        let bytes = bytes(self.controller, &settings.integers()?);
        let [parameters, ..] = &self.handles;
        parameters
            .update(&namespace.key(), &bytes, MapFlags::ANY)
            .map_err(|error| Error::of("set parameters", error))?;
        self.announce()
    }

    /// Lets the namespace with this cookie follow everyone's parameters again.
    ///
    /// # Errors
    /// [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn clear(&self, cookie: u64) -> Result<(), Error> {
        let [parameters, ..] = &self.handles;
        match parameters.delete(&Namespace::Cookie(cookie).key()) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(Error::of("clear parameters", error)),
            _ => self.announce(),
        }
    }

    /// Tells the flows that parameters changed.
    fn announce(&self) -> Result<(), Error> {
        let [_, generation, ..] = &self.handles;
        let (key, step) = (0_u32.to_ne_bytes(), "announce parameters");
        let now = generation.lookup(&key, MapFlags::ANY).map_err(|error| Error::of(step, error))?;
        let now = now.and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))).unwrap_or(0);
        let next = now.wrapping_add(1).to_ne_bytes();
        generation.update(&key, &next, MapFlags::ANY).map_err(|error| Error::of(step, error))
    }

    /// The flows that the controller has now, in the order of their keys. Flows that end meanwhile may be left out.
    ///
    /// # Errors
    /// [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn flows(&self) -> Result<Vec<Flow>, Error> {
        let [_, _, flows, _] = &self.handles;
        let mut all = Vec::new();
        for key in flows.keys() {
            let found = flows.lookup(&key, MapFlags::ANY).map_err(|error| Error::of("read flows", error))?;
            if let (Some(bytes), Some(key)) = (found, key.first_chunk()) {
                all.push(Flow::read(u64::from_ne_bytes(*key), &bytes));
            }
        }
        all.sort_by_key(|flow| flow.key);
        Ok(all)
    }

    /// Totals since it was loaded.
    ///
    /// # Errors
    /// [`Error::Bpf`], [`Error::NoPrivileges`].
    pub fn counters(&self) -> Result<Counters, Error> {
        let [.., counters] = &self.handles;
        let found = counters.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = found.map_err(|error| Error::of("read counters", error))?;
        Ok(bytes.map_or_else(Counters::default, |bytes| Counters::read(&bytes)))
    }
}

/// Bytes of a program's `struct parameters`: one entry even where it has no parameter.
pub(crate) fn value_bytes(controller: &Controller) -> usize {
    controller.spec.parameters.len().max(1) * 8
}

/// The integers as a program's `struct parameters`.
pub(crate) fn bytes(controller: &Controller, integers: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_ne_bytes()).collect();
    bytes.resize(value_bytes(controller), 0);
    bytes
}
