//! A controller in a file of somebody's own: the page's example is compiled, loaded, used and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Outcome;
use crate::shell::{NARROWSD, good, refused, status};
use crate::world::{World, within};

/// The example of docs/how-to/controllers-in-c.md.
fn page() -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cautious.bpf.c");
    fs::read_to_string(example).expect("a listing of the page")
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("narrowsd-{}-{name}", std::process::id()));
    fs::write(&path, text).expect("a folder for what is temporary");
    path
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a list")
}

/// The name goes a moment after the registration.
fn gone() {
    for _ in 0..50 {
        if available().contains("cautious") {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(!available().contains("cautious"));
}

pub(crate) fn a_file_is_compiled_loaded_used_and_removed() -> Outcome {
    let world = World::new();
    // Only such a controller may be the default of a namespace other than the first.
    let file = written("cautious.bpf.c", &page().replace(".name = ", ".flags = TCP_CONG_NON_RESTRICTED, .name = "));
    let load = format!("cc load {}", file.display());
    assert_eq!(good(&load), "cautious is registered as cautious\n");
    assert!(available().contains("cautious"));
    let state = status("cautious");
    assert_eq!((&state["kept"], &state["from_file"]), (&"pinned".into(), &true.into()), "{state}");
    assert!(good("cc status").contains("cautious: loaded from a file, pinned in /sys/fs/bpf/narrows/cautious\n"));
    let again = refused(&load, 1);
    assert_eq!(again, "error: cautious is loaded already\n  help: `narrowsd cc unload cautious` removes it\n");
    world.choose_by_route("cautious");
    world.transfer(Duration::from_millis(500), || {
        let sockets = within(&world.sender, || Command::new("ss").args(["-tin"]).output()).expect("iproute2");
        let said = String::from_utf8_lossy(&sockets.stdout).into_owned();
        assert!(said.contains(" cautious ") && said.contains("bytes_acked"), "{said}");
    });
    world.choose_by_namespace("cautious");
    let needed = refused("cc unload cautious", 1);
    assert!(needed.contains("cautious is the default"), "{needed}");
    world.choose_by_namespace("reno");
    assert!(good("cc unload cautious").starts_with("cautious is unloaded\n"));
    gone();
    assert!(!Path::new("/sys/fs/bpf/narrows/cautious").exists());
    fs::remove_file(file).expect("it is there");
    Ok(())
}

pub(crate) fn a_files_parameters_are_set_and_its_faults_told() -> Outcome {
    // A threshold as a parameter, so low that the connection is always late, or so high that it never is.
    let text = page()
        .replace("struct cautious {", "const volatile __u32 late = 5000;\nstruct cautious {")
        .replace("s[0].v + 5000", "s[0].v + late");
    assert!(text.contains("v + late"));
    let file = written("late.bpf.c", &text);
    let path = file.display();
    let world = World::new();
    // The sender's window while it sends over a link without a bottleneck.
    let window = |arguments: &str| {
        assert_eq!(good(format!("cc load {path}{arguments}").as_str()), "cautious is registered as cautious\n");
        world.choose_by_route("cautious");
        let mut said = String::new();
        world.transfer(Duration::from_millis(900), || {
            let sockets = within(&world.sender, || Command::new("ss").args(["-tin"]).output()).expect("iproute2");
            said = String::from_utf8_lossy(&sockets.stdout).into_owned();
        });
        good("cc unload --all");
        let windows = said.split_whitespace().filter_map(|word| word.strip_prefix("cwnd:")?.parse::<u32>().ok());
        windows.max().unwrap_or_else(|| panic!("{said}"))
    };
    let (never, always) = (window(" --set late=4000000000"), window(" --set late=0"));
    assert!(never > 3 * always, "{never} and {always} packets");
    for (arguments, words) in [
        ("--set lat=1", "has no parameter `lat`"),
        ("--set late=many", "`many` is no value of the parameter `late`"),
        ("--set late", "--set late: no `=`"),
        (
            "--controller other",
            "has no controller called `other`: it has cautious\n  help: say which: --controller NAME",
        ),
        ("--fallback reno", "--fallback is for the controllers of `narrowsd cc list`"),
    ] {
        let said = refused(&format!("cc load {path} {arguments}"), 2);
        assert!(said.contains(words), "{said}");
    }
    let mut held =
        Command::new(NARROWSD).args(["cc", "load", &path.to_string(), "--foreground"]).spawn().expect("it runs");
    for _ in 0..500 {
        if !available().contains("cautious") {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let said = refused(&format!("cc load {path}"), 1);
    assert!(said.contains(&format!("process {}", held.id())), "{said}");
    held.kill().expect("it is ours");
    held.wait().expect("it ends");
    gone();
    let unknown = written("unknown.bpf.c", &page().replace("tp->snd_cwnd < 2", "tp->of_tomorrow < 2"));
    let said = refused(&format!("cc load {}", unknown.display()), 2);
    assert!(said.contains("unknown.bpf.c:") && said.contains("of_tomorrow"), "{said}");
    // The kernel does not let a controller write this.
    let forbidden = written("forbidden.bpf.c", &page().replace("tp->snd_cwnd = 2", "tp->srtt_us = 2"));
    let said = refused(&format!("cc load {}", forbidden.display()), 3);
    assert!(said.contains("cautious"), "{said}");
    assert!(!available().contains("cautious"));
    let taken = written("taken.bpf.c", &page().replace(".name = \"cautious\"", ".name = \"cubic\""));
    let said = refused(&format!("cc load {}", taken.display()), 1);
    assert!(said.starts_with("error: a controller named cubic is registered already"), "{said}");
    // Another's name that ends so is not its.
    good("cc load newreno");
    let ends = written("ends.bpf.c", &page().replace(".name = \"cautious\"", ".name = \"reno\""));
    let said = refused(&format!("cc load {}", ends.display()), 1);
    assert!(said.starts_with("error: a controller named reno is registered already"), "{said}");
    assert!(available().contains("narrows_newreno"));
    good("cc unload newreno");
    let bitfield =
        written("bitfield.bpf.c", &page().replace("ca->is_late = ", "ca->is_late = tp->is_cwnd_limited && "));
    let said = refused(&format!("cc load {}", bitfield.display()), 2);
    assert!(said.contains("BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited)"), "{said}");
    let own = written("own.bpf.c", &page().replace(".name = \"cautious\"", ".name = \"narrows_dctcp\""));
    let said = refused(&format!("cc load {}", own.display()), 2);
    assert!(said.contains("as one of narrowsd's own is called"), "{said}");
    for file in [file, unknown, forbidden, taken, ends, bitfield, own] {
        fs::remove_file(file).expect("it is there");
    }
    Ok(())
}
