//! What a machine may lack, and what is said then.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::Outcome;
use crate::shell::{LOAD, NARROWSD, ended, good, nothing_is_left, refused, run};

/// A mount that ends with its holder.
struct Over(&'static str);

impl Drop for Over {
    fn drop(&mut self) {
        let _ = unmount(self.0, UnmountFlags::DETACH);
    }
}

/// Nobody, and root of a user namespace, who has privileges there alone.
pub(crate) fn without_privileges_it_says_so() -> Outcome {
    let nobody = |line: &str| Command::new(NARROWSD).args(line.split(' ')).uid(65_534).gid(65_534).output();
    let Ok(output) = nobody("cc status") else {
        return Err(format!("{NARROWSD} cannot be read by everyone"));
    };
    assert!(output.status.success(), "nothing is loaded, and everybody may know: {:?}", ended(&output));
    let (code, _, error) = ended(&nobody(LOAD).expect("it ran"));
    assert_eq!(code, 3, "{error}");
    assert!(
        error.starts_with("error: /run/narrows") && error.ends_with("  help: run as root of the host\n"),
        "{error}"
    );
    good(LOAD);
    for line in ["cc status gemini", "cc status --prometheus"] {
        let (code, _, error) = ended(&nobody(line).expect("it ran"));
        assert_eq!(code, 3, "{error}");
        assert!(
            error.starts_with("error: no privilege to find what is registered\n  help: run as root of the host"),
            "{error}"
        );
    }
    let (code, out, _) = ended(&nobody("cc list --json").expect("it ran"));
    assert!(code == 0 && out.contains("\"loaded\":true"), "{out}");
    good("cc unload gemini");
    nothing_is_left("gemini");

    let mut command = Command::new(NARROWSD);
    command.args(LOAD.split(' ')).arg("--foreground");
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(unshare_unsafe(UnshareFlags::NEWUSER)?));
    }
    let output = command.output().map_err(|error| format!("no user namespaces here: {error}"))?;
    let (code, _, error) = ended(&output);
    assert_eq!(code, 3, "{error}");
    nothing_is_left("gemini");
    Ok(())
}

pub(crate) fn without_a_bpf_file_system_it_says_so() -> Outcome {
    mount("tmpfs", "/sys/fs/bpf", "tmpfs", MountFlags::empty(), None).expect("as root");
    let over = Over("/sys/fs/bpf");
    let said = refused(LOAD, 3);
    let expected = "error: /sys/fs/bpf/narrows/gemini is not in a bpf file system\n  help: mount -t bpf bpf /sys/fs/bpf; `ip netns exec`";
    assert!(said.starts_with(expected), "{said}");
    drop(over);
    nothing_is_left("gemini");
    Ok(())
}

/// As under `ip netns exec`, which mounts a `/sys` of its own.
pub(crate) fn what_is_pinned_elsewhere_is_not_said_to_be_unloaded() -> Outcome {
    let default = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").expect("a name");
    let before = default();
    good(&format!("{LOAD} --default"));
    mount("tmpfs", "/sys/fs/bpf", "tmpfs", MountFlags::empty(), None).expect("as root");
    let over = Over("/sys/fs/bpf");
    let said = refused("cc unload gemini", 1);
    assert_eq!(default(), "narrows_gemini\n", "nothing was done");
    assert!(
        said.starts_with(
            "error: gemini is still registered: what holds it cannot be seen from here\n  help: `ip netns exec`"
        ),
        "{said}"
    );
    assert!(good("cc status gemini").contains("held by what cannot be seen from here"));
    drop(over);
    assert!(good("cc status gemini").contains("pinned in /sys/fs/bpf/narrows/gemini"));
    good("cc unload gemini");
    assert_eq!(default(), before);
    nothing_is_left("gemini");
    Ok(())
}

/// As in a container.
pub(crate) fn in_a_pid_namespace_of_its_own_it_says_so() -> Outcome {
    let folder = std::env::temp_dir().join(format!("narrowsd-pids-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let (senders, key) = (folder.join("senders.toml"), folder.join("a.key"));
    let entry = "[[sender]]\nidentity = \"0x1\"\naddress = \"192.0.2.2\"\nhost = \"192.0.2.1\"\nkey-file = \"a.key\"\n";
    fs::write(&senders, entry).expect("it is written");
    fs::write(&key, "01".repeat(32)).expect("it is written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", NARROWSD, "near-source", "--line-rate", "1Gbps", "--senders"]);
    let output = command.arg(&senders).output();
    let _ = fs::remove_dir_all(&folder);
    let (code, _, error) = ended(&output.map_err(|error| format!("no `unshare` of util-linux: {error}"))?);
    assert_eq!(code, 3, "{error}");
    let expected =
        "error: this is a PID namespace of its own, where the processes of the host cannot be found\n  help: run it";
    assert!(error.starts_with(expected), "{error}");
    Ok(())
}

pub(crate) fn without_btf_it_says_so() -> Outcome {
    mount("tmpfs", "/sys/kernel/btf", "tmpfs", MountFlags::empty(), None).expect("as root");
    let over = Over("/sys/kernel/btf");
    let said = refused(LOAD, 3);
    assert!(
        said.starts_with(
            "error: this kernel does not describe its types: there is no /sys/kernel/btf/vmlinux\n  help: use a kernel"
        ),
        "{said}"
    );
    drop(over);
    Ok(())
}

/// A kernel whose types are none at all stands for one that lacks those needed.
pub(crate) fn an_old_kernel_is_named() -> Outcome {
    // Magic, version 1, no flags; a header of 24 bytes; no types; one empty string.
    let words: [u32; 6] = [0x0001_eb9f, 24, 0, 0, 0, 1];
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).chain([0]).collect();
    fs::write("/run/no-types", bytes).expect("a file of our own");
    mount_bind("/run/no-types", "/sys/kernel/btf/vmlinux").expect("as root");
    let over = Over("/sys/kernel/btf/vmlinux");
    let (code, _, said) = run(LOAD);
    drop(over);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.starts_with("error: this kernel is too old: it lacks struct_ops")
            && said.contains("\n  help: Linux 6.1 is the oldest"),
        "{said}"
    );
    Ok(())
}
