//! What the kernel has registered, by whom it is held, and what a killed process left behind.

use crate::controllers::Controller;
use crate::error::Error;
use crate::loaded::Registration;
use crate::maps::Maps;
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter, ProgramInfo};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ProgramType};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The one key of a hook table.
const KEY: [u8; 4] = [0; 4];
/// The second word of a hook table while it is registered without a link (`enum bpf_struct_ops_state`).
const IN_USE: u32 = 1;
/// A registration that ends takes less.
const ENDING: Duration = Duration::from_millis(500);

/// The controllers that may be chosen, by the names that the kernel knows them by.
pub fn available() -> Vec<String> {
    let listed = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}

/// Whether a controller of this name may be chosen.
pub fn is_registered(name: &str) -> bool {
    available().iter().any(|listed| listed == name)
}

/// A controller's registration as the kernel has it, whoever made it.
#[derive(Debug)]
pub struct Registered {
    controller: &'static Controller,
    /// Of its hook table.
    map: u32,
    /// Of the link; a plain registration has none.
    link: Option<u32>,
    /// Of its object's maps.
    maps: Vec<u32>,
}

/// Finds the registration of a controller; nothing if there is none. Needs the capability `CAP_SYS_ADMIN`, without which the
/// kernel lists nothing.
///
/// # Errors
/// [`Error::NoPrivileges`] if it is registered, and not listed: the caller lacks the capability, or another program
/// took the name.
pub fn find(controller: &'static Controller) -> Result<Option<Registered>, Error> {
    let begin = Instant::now();
    loop {
        let found = listed(controller);
        if found.is_some() || !is_registered(controller.registered) {
            return Ok(found);
        }
        // The name goes a moment after the link.
        if begin.elapsed() > ENDING {
            return Err(Error::NoPrivileges { step: "find what is registered" });
        }
        sleep(Duration::from_millis(10));
    }
}

fn listed(controller: &'static Controller) -> Option<Registered> {
    for info in MapInfoIter::default() {
        if info.ty != MapType::StructOps || !is_hook_table(controller, &info.name.to_string_lossy()) {
            continue;
        }
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        let value = map.lookup(&KEY, MapFlags::ANY).ok().flatten().unwrap_or_default();
        // Another program's map may have the same name: the name that is registered stands inside, whole. Before it is the last
        // byte of a hook's number, which is 0.
        if !contains(&value, format!("\0{}\0", controller.registered).as_bytes()) {
            continue;
        }
        let link = link_of(info.id);
        let state = value.get(4..8).and_then(|state| state.first_chunk()).map(|state| u32::from_ne_bytes(*state));
        // Connections keep the table of a registration that has ended.
        if link.is_some() || state == Some(IN_USE) {
            let maps = maps_of(controller, &value);
            return Some(Registered { controller, map: info.id, link, maps });
        }
    }
    None
}

impl Registered {
    /// How it is registered.
    pub fn registration(&self) -> Registration {
        if self.link.is_some() { Registration::Link } else { Registration::Plain }
    }

    /// Its maps.
    ///
    /// # Errors
    /// [`Error::OtherVersion`], [`Error::NoPrivileges`], [`Error::Bpf`].
    pub fn maps(&self) -> Result<Maps, Error> {
        let handles: Vec<MapHandle> = self.maps.iter().filter_map(|id| MapHandle::from_map_id(*id).ok()).collect();
        Maps::open(self.controller, |name| {
            let handle = handles.iter().find(|handle| handle.name() == name);
            let handle = handle.ok_or(Error::OtherVersion { controller: self.controller.spec.name })?;
            MapHandle::try_from(handle).map_err(|source| Error::of("open a map", source))
        })
    }

    /// The other processes that hold it: with the last of them a link ends that is not pinned. In ascending order.
    pub fn holders(&self) -> Vec<u32> {
        let sought = match self.link {
            Some(link) => format!("link_id:\t{link}"),
            None => format!("map_id:\t{}", self.map),
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let processes = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
        let mut holders: Vec<u32> =
            processes.filter(|process| *process != std::process::id() && holds(*process, &sought)).collect();
        holders.sort_unstable();
        holders
    }
}

/// Removes plain registrations of a controller whose process is gone, and says how many there were. Links need none of
/// this. Registrations of living processes are removed as well: ask [`Registered::holders`] first.
///
/// # Errors
/// [`Error::NoPrivileges`], [`Error::Bpf`].
pub fn remove_stale(controller: &'static Controller) -> Result<usize, Error> {
    if controller.is_of_file() {
        // Nothing tells whose it is: its name is not ours.
        return Ok(0);
    }
    let mut removed = 0;
    while let Some(found) = find(controller)?.filter(|found| found.link.is_none()) {
        let step = "remove a registration";
        let map = MapHandle::from_map_id(found.map).map_err(|source| Error::of(step, source))?;
        map.delete(&KEY).map_err(|source| Error::of(step, source))?;
        removed += 1;
    }
    Ok(removed)
}

/// How hook tables are called in `src/bpf/<name>.bpf.c`; in a file of somebody's own as they like.
fn is_hook_table(controller: &Controller, name: &str) -> bool {
    if controller.is_of_file() {
        return true;
    }
    let rest = name.strip_prefix(controller.spec.name).unwrap_or_default();
    rest.starts_with("_linked") || rest.starts_with("_plain")
}

fn link_of(map: u32) -> Option<u32> {
    let of_map = |info: &LinkTypeInfo| matches!(info, LinkTypeInfo::StructOps(info) if info.map_id == map);
    LinkInfoIter::default().find(|link| of_map(&link.info)).map(|link| link.id)
}

/// The maps of the object whose program is behind the hook `init`: where the table has functions, the kernel shows their
/// programs' numbers, and what is of one object has the same types. A program's own list leaves out maps that it does not
/// use.
fn maps_of(controller: &Controller, table: &[u8]) -> Vec<u32> {
    let begin = format!("{}_begin", controller.spec.name);
    let numbers: Vec<u64> = table.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    let is_hook = |program: &ProgramInfo| {
        program.ty == ProgramType::StructOps
            && program.name.to_string_lossy() == begin
            && numbers.contains(&u64::from(program.id))
    };
    let Some(types) = ProgInfoIter::default().find(is_hook).map(|program| program.btf_id).filter(|id| *id != 0) else {
        return Vec::new();
    };
    MapInfoIter::default().filter(|map| map.btf_id == types).map(|map| map.id).collect()
}

fn holds(process: u32, sought: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().filter_map(Result::ok);
    files.filter_map(|file| fs::read_to_string(file.path()).ok()).any(|text| text.lines().any(|line| line == sought))
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
