//! Opens, fills in, loads and registers a controller, and takes it back.

use crate::controllers::Controller;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::maps::{self, Maps};
use crate::namespace::Namespace;
use crate::parameters::Settings;
use crate::{pinned, said};
use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, MapMut, Object, ObjectBuilder, OpenObject};
use narrows_core::cc::Owner;
use std::ops::Deref;
use std::path::Path;

/// Who takes over connections whose other end refused ECN, unless [`Options`] say otherwise.
const FALLBACK: &str = "cubic";

/// How the kernel keeps the registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// As a link, which ends with its last holder; from Linux 6.4 on.
    Link,
    /// As an entry of a map, which stays until it is deleted: the only way before.
    Plain,
}

/// What [`Loaded::load_with`] may be told beside parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How to register; left out, as a link where the kernel has them.
    pub registration: Option<Registration>,
    /// Who takes over connections whose other end refused ECN; left out, `cubic`. A name that the kernel does not know
    /// leaves them where they are.
    pub fallback: Option<String>,
}

/// A controller that this process loaded. Dropping it unregisters it, unless it is pinned.
#[derive(Debug)]
pub struct Loaded {
    /// Before the object, whose map a plain registration is deleted from.
    link: Link,
    object: Object,
    registration: Registration,
    variant: String,
    maps: Maps,
}

impl Loaded {
    /// Loads and registers a controller with these parameters, for every network namespace.
    ///
    /// # Errors
    /// [`Error::NoBtf`], [`Error::KernelTooOld`], [`Error::NoPrivileges`], [`Error::NameTaken`], [`Error::NoLineRate`],
    /// [`Error::Rejected`].
    pub fn load(controller: &'static Controller, settings: &Settings) -> Result<Loaded, Error> {
        Loaded::load_with(controller, settings, &Options::default())
    }

    /// The same with [`Options`].
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn load_with(controller: &'static Controller, settings: &Settings, options: &Options) -> Result<Loaded, Error> {
        said::listen();
        let kernel = Kernel::probe()?;
        let best = if kernel.has_links { Registration::Link } else { Registration::Plain };
        let registration = options.registration.unwrap_or(best);
        let variant = variant(controller, kernel, registration);
        let fallback = options.fallback.as_deref().unwrap_or(FALLBACK);
        let integers = settings.integers()?;

        let open = ObjectBuilder::default().open_memory(controller.object);
        let mut open = open.map_err(|source| Error::refused(controller.spec.name, source))?;
        fill_in(&mut open, controller, &integers, fallback, &variant)?;
        let mut object = open.load().map_err(|source| Error::refused(controller.spec.name, source))?;
        let maps = Maps::open(controller, |name| {
            MapHandle::try_from(&map(&mut object, name)).map_err(|source| Error::of("keep a map", source))
        })?;
        maps.set_all(Namespace::Every, settings)?;
        let link = map(&mut object, &variant).attach_struct_ops().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => Error::NameTaken { name: controller.registered },
            _ => Error::of("register the controller", source),
        })?;
        Ok(Loaded { link, object, registration, variant, maps })
    }

    /// How it is registered.
    pub fn registration(&self) -> Registration {
        self.registration
    }

    /// Pins registration and maps in `folder`, which is made in a bpf file system: then they outlive this process, and any
    /// process that may reads and changes them through [`pinned::open`], until [`pinned::unload`].
    ///
    /// # Errors
    /// [`Error::NoBpfFileSystem`], [`Error::AlreadyPinned`], [`Error::File`], [`Error::Bpf`]. Nothing of it stays pinned then, and the controller is
    /// unregistered.
    pub fn pin(mut self, folder: &Path) -> Result<Maps, Error> {
        if pinned::is_in_use(folder) {
            return Err(Error::AlreadyPinned { folder: folder.to_owned() });
        }
        pinned::check_file_system(folder)?;
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let pinned = self.pin_all(folder);
        if let Err(error) = pinned {
            // The link unregisters when it is dropped; what was pinned before the failure goes as well.
            let _ = pinned::remove(folder);
            return Err(error);
        }
        // Dropping a link that is pinned closes this process' hold on it; dropping a plain registration would delete it.
        if self.registration == Registration::Plain {
            self.link.disconnect();
        }
        Ok(self.maps)
    }

    fn pin_all(&mut self, folder: &Path) -> Result<(), Error> {
        let step = "pin";
        for (name, handle) in self.maps.handles() {
            handle.pin(folder.join(name)).map_err(|source| Error::of(step, source))?;
        }
        match self.registration {
            Registration::Link => self.link.pin(folder.join(pinned::LINK)),
            Registration::Plain => map(&mut self.object, &self.variant).pin(folder.join(pinned::PLAIN)),
        }
        .map_err(|source| Error::of(step, source))
    }

    /// Unregisters the controller. Connections that use it keep it until they end.
    pub fn unload(self) {
        drop(self);
    }
}

impl Deref for Loaded {
    type Target = Maps;
    fn deref(&self) -> &Maps {
        &self.maps
    }
}

/// The name of the hook table that this kernel takes: `src/bpf/<name>.bpf.c` ends with all of them.
fn variant(controller: &Controller, kernel: Kernel, registration: Registration) -> String {
    let kept = match registration {
        Registration::Link => "linked",
        Registration::Plain => "plain",
    };
    let older = controller.recovery == Owner::Controller && !kernel.control_has_flags;
    format!("{}_{kept}{}", controller.spec.name, if older { "1" } else { "" })
}

/// Everything that must be known before the kernel sees the program.
fn fill_in(
    open: &mut OpenObject,
    controller: &Controller,
    integers: &[u64],
    fallback: &str,
    variant: &str,
) -> Result<(), Error> {
    let step = "prepare the program";
    let prepared = |source| Error::of(step, source);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            ".rodata.parameters" => {
                map.set_initial_value(&maps::bytes(controller, integers)).map_err(prepared)?;
            }
            ".rodata.fallback" => {
                let mut bytes = [0; 16];
                let text = &fallback.as_bytes()[..fallback.len().min(15)];
                bytes[..text.len()].copy_from_slice(text);
                map.set_initial_value(&bytes).map_err(prepared)?;
            }
            other if map.map_type() == libbpf_rs::MapType::StructOps => {
                map.set_autocreate(other == variant).map_err(prepared)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The object's map with this name.
///
/// # Panics
/// If it has none: its source is in this crate.
fn map<'a>(object: &'a mut Object, name: &str) -> MapMut<'a> {
    object.maps_mut().find(|map| map.name() == name).expect("the object was compiled from this crate's sources")
}
