//! The controller that sockets of a network namespace take unless they choose: `net.ipv4.tcp_congestion_control`. Taken
//! with `--default` alone, and put back when the controller is unloaded.

use std::fs;
use std::io;

use narrows_kernel::Controller;

use crate::failure::Failure;
use crate::lock::{file, unusable};
use crate::namespaces::{self, Namespace};

const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// What every kernel has: for a default that cannot be put back.
const ALWAYS: &str = "reno";

/// The default of the namespace of this thread.
fn read() -> io::Result<String> {
    fs::read_to_string(SYSCTL).map(|text| text.trim().to_owned())
}

/// Makes a registered controller the default of this process' namespace, notes what was, and says it.
///
/// # Errors
/// Code 3 where the caller may not, 1 otherwise.
pub(super) fn take(controller: &Controller) -> Result<String, Failure> {
    let before = read().map_err(|error| unusable(SYSCTL.as_ref(), &error))?;
    if before == controller.registered {
        return Ok(before);
    }
    let note = file(controller, "default");
    let cookie =
        narrows_kernel::cookie_here().map_err(|error| Failure::failed(format!("the network namespace: {error}")))?;
    fs::write(&note, format!("{cookie} {before}\n")).map_err(|error| unusable(&note, &error))?;
    fs::write(SYSCTL, controller.registered).map_err(|error| unusable(SYSCTL.as_ref(), &error))?;
    Ok(before)
}

/// Puts back what [`take`] noted, unless another default was chosen since or the namespace is gone. What was before may be
/// unloaded, or not be allowed in that namespace: then it is what every kernel has. Says what it did, if it did something.
///
/// # Errors
/// Code 3 where the caller may not, 1 otherwise.
pub(super) fn put_back(controller: &Controller) -> Result<Option<String>, Failure> {
    let note = file(controller, "default");
    let Some((cookie, before)) = noted(controller) else { return Ok(None) };
    let all = namespaces::all();
    let there = all.iter().find(|namespace| namespace.cookie() == Some(cookie));
    let said = match there.filter(|namespace| is_default(controller, namespace)) {
        Some(namespace) if namespace.within(|| fs::write(SYSCTL, &before)).is_ok() => {
            Some(format!("the default is {before} again"))
        }
        Some(namespace) => {
            namespace.within(|| fs::write(SYSCTL, ALWAYS)).map_err(|error| unusable(SYSCTL.as_ref(), &error))?;
            Some(format!("the default is {ALWAYS}: {before}, which it was before, cannot be chosen there now"))
        }
        None => None,
    };
    fs::remove_file(&note).map_err(|error| unusable(&note, &error))?;
    Ok(said)
}

/// The namespaces whose default it is. With `and_noted` also the one where [`put_back`] will put another.
pub(super) fn users(controller: &Controller, and_noted: bool) -> Vec<Namespace> {
    let noted = noted(controller).map(|(cookie, _)| cookie).filter(|_| !and_noted);
    let users = namespaces::all().into_iter().filter(|namespace| is_default(controller, namespace));
    users.filter(|namespace| noted.is_none() || namespace.cookie() != noted).collect()
}

fn is_default(controller: &Controller, namespace: &Namespace) -> bool {
    namespace.within(read).is_ok_and(|name| name == controller.registered)
}

/// The namespace whose default was taken, by its cookie, as another may have its inode by now; and what it was before. Earlier
/// versions noted the inode: no cookie is as large, so what they noted is of no namespace, and who unloads is asked to set another default.
fn noted(controller: &Controller) -> Option<(u64, String)> {
    let text = fs::read_to_string(file(controller, "default")).ok()?;
    let (cookie, before) = text.trim().split_once(' ')?;
    Some((cookie.parse().ok()?, before.to_owned()))
}
