//! What the kernel lists, and registrations that a killed process left behind.

use crate::controllers::Controller;
use crate::error::Error;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

/// Whether a controller of this name may be chosen.
pub fn is_registered(name: &str) -> bool {
    let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    listed.split_whitespace().any(|listed| listed == name)
}

/// Removes plain registrations of a controller whose process is gone, and says how many there were. Links need none of
/// this. Registrations of living processes are removed as well: ask [`is_registered`] and the operator first.
///
/// # Errors
/// [`Error::NoPrivileges`], [`Error::Bpf`].
pub fn remove_stale(controller: &Controller) -> Result<usize, Error> {
    let mut removed = 0;
    let key = 0_u32.to_ne_bytes();
    for info in MapInfoIter::default() {
        if info.ty != MapType::StructOps || !info.name.to_string_lossy().starts_with(&plain(controller)) {
            continue;
        }
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        // Another program's map may have the same name: the hook table inside tells.
        let value = map.lookup(&key, MapFlags::ANY).ok().flatten().unwrap_or_default();
        if !value.windows(controller.registered.len()).any(|bytes| bytes == controller.registered.as_bytes()) {
            continue;
        }
        map.delete(&key).map_err(|source| Error::of("remove a registration", source))?;
        removed += 1;
    }
    Ok(removed)
}

/// How the hook tables for plain registration are called in `src/bpf/<name>.bpf.c`.
fn plain(controller: &Controller) -> String {
    format!("{}_plain", controller.spec.name)
}
