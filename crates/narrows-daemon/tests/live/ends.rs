//! Ends in order and out of order. Only processes that were started here are killed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use narrows_kernel::{Loaded, Options, Registration, Settings, controllers, registered};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::Outcome;
use crate::shell::{LOAD, NARROWSD, good, nothing_is_left, refused, run, status};
use crate::world::{World, within};

/// Told to register a controller plainly, as before Linux 6.4, and to wait.
pub(crate) const CHILD: &str = "NARROWSD_LIVE_CHILD";

pub(crate) fn child(name: &str) -> ! {
    let controller = controllers::find(name).expect("it is in the table");
    let options = Options { registration: Some(Registration::Plain), ..Options::default() };
    let _loaded = Loaded::load_with(controller, &Settings::defaults(controller), &options).expect("as root");
    println!("{name} is registered");
    // Longer than the parent takes; an orphan ends by itself.
    std::thread::sleep(Duration::from_secs(30));
    std::process::exit(1);
}

/// A process that is killed with its test, if it was not before.
pub(crate) struct Process(pub(crate) Child);

impl Deref for Process {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("it was killed");
    }
}

/// A process that says when it has registered its controller.
fn begun(command: &mut Command) -> (Process, BufReader<ChildStdout>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("it was piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it speaks");
    assert!(line.contains(" is registered"), "{line}");
    (Process(child), out)
}

fn foreground(line: &str) -> Command {
    let mut command = Command::new(NARROWSD);
    command.args(line.split(' ')).arg("--foreground");
    command
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a process")).expect("not 0");
    kill_process(id, signal).expect("it lives");
}

pub(crate) fn the_foreground_ends_in_order() -> Outcome {
    for end in [Signal::TERM, Signal::INT] {
        let (mut child, mut out) = begun(&mut foreground(LOAD));
        let state = status("gemini");
        assert_eq!((&state["kept"], &state["holders"]), (&json!("held"), &json!([child.id()])));
        good("cc set gemini t=1ms");
        assert_eq!(status("gemini")["parameters"]["t"], json!("1ms"));
        let said = refused("cc unload gemini", 1);
        assert_eq!(
            said,
            format!("error: gemini is held by process {0}\n  help: end that process: kill {0}\n", child.id())
        );
        signal(&child, end);
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("it speaks");
        assert!(child.0.wait().expect("it ends").success());
        assert_eq!(rest, "gemini is unloaded\n");
        nothing_is_left("gemini");
    }
    Ok(())
}

pub(crate) fn the_service_manager_is_told_when_it_is_loaded() -> Outcome {
    let manager = UnixDatagram::bind("/run/notify").expect("a socket of our own");
    manager.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
    let (mut child, _out) = begun(foreground("cc load vegas").env("NOTIFY_SOCKET", "/run/notify"));
    let mut said = [0; 16];
    let length = manager.recv(&mut said).expect("it says so");
    assert_eq!(&said[..length], b"READY=1");
    child.kill();
    nothing_is_left("vegas");
    Ok(())
}

pub(crate) fn a_killed_foreground_leaves_nothing() -> Outcome {
    let world = World::new();
    for load in ["cc load newreno", "cc load vegas", "cc load dctcp", LOAD] {
        let name = load.split(' ').nth(2).expect("a name");
        let (mut child, _out) = begun(&mut foreground(load));
        world.choose_by_route(&format!("narrows_{name}"));
        world.transfer(Duration::from_millis(600), || {
            assert_eq!(status(name)["flows"].as_array().map(Vec::len), Some(2));
            child.kill();
            nothing_is_left(name);
        });
    }
    Ok(())
}

/// The kernel keeps a default that is no longer registered.
pub(crate) fn a_default_that_a_killed_one_left_is_put_back() -> Outcome {
    let world = World::new();
    let sysctl = "/proc/sys/net/ipv4/tcp_congestion_control";
    let default = || within(&world.sender, || fs::read_to_string(sysctl)).expect("a name");
    let before = default();
    let (mut child, _out) = within(&world.sender, || begun(foreground("cc load vegas").arg("--default")));
    assert_eq!(default(), "narrows_vegas\n");
    child.kill();
    let left = format!("still the default of {}: `narrowsd cc unload vegas`", world.sender);
    assert!(good("cc status vegas").contains(&left));
    assert_eq!(status("vegas")["default_of"], json!([world.sender]));
    let said = good("cc unload vegas");
    assert_eq!(said, format!("vegas is not loaded\nthe default is {} again\n", before.trim()));
    assert_eq!(default(), before);
    nothing_is_left("vegas");
    Ok(())
}

pub(crate) fn a_load_killed_half_way_is_cleaned_up() -> Outcome {
    let mut killed_before_its_end = 0;
    for milliseconds in (0..120).step_by(4) {
        let mut child = Command::new(NARROWSD).args(LOAD.split(' ')).stdout(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().expect("SIGKILL");
        let ended = child.wait().expect("it was killed");
        killed_before_its_end += u32::from(!ended.success());
        // Alternately: a load makes room for itself, an unload removes the rest.
        if milliseconds % 8 == 0 {
            let (code, _, error) = run(LOAD);
            assert!(code == 0 || (code == 1 && error.contains("loaded already")), "{error}");
            assert_eq!(status("gemini")["kept"], json!("pinned"));
        }
        good("cc unload gemini");
        nothing_is_left("gemini");
    }
    println!("  {killed_before_its_end} of 30 were killed before their end");
    assert!(killed_before_its_end > 0);
    Ok(())
}

/// As a load that is killed between the pins of its maps and that of its link.
pub(crate) fn pins_without_a_registration_are_removed() -> Outcome {
    for repair in ["cc unload gemini", LOAD] {
        good(LOAD);
        fs::remove_file("/sys/fs/bpf/narrows/gemini/link").expect("it is pinned");
        let said = good(repair);
        if repair == LOAD {
            assert_eq!(status("gemini")["loaded"], json!(true));
            good("cc unload gemini");
        } else {
            assert_eq!(said, "gemini was not loaded; what a killed process left of it is removed\n");
        }
        nothing_is_left("gemini");
    }
    Ok(())
}

pub(crate) fn a_plain_registration_left_behind_is_removed() -> Outcome {
    for repair in ["cc unload vegas", "cc load vegas"] {
        let (mut child, _out) = begun(Command::new(std::env::current_exe().expect("a file")).env(CHILD, "vegas"));
        assert_eq!(status("vegas")["holders"], json!([child.id()]));
        refused(repair, 1);
        child.kill();
        assert!(registered::is_registered("narrows_vegas"));
        assert_eq!(status("vegas")["kept"], json!("stale"));
        good(repair);
        good("cc unload vegas");
        nothing_is_left("vegas");
    }
    Ok(())
}
