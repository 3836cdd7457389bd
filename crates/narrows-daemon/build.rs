//! Names the sources that results of live runs depend on, so that those of others are recognised and made again.

use std::fs;

use narrows_sources::Sources;

/// The programs for the kernel: a controller has a core and hooks.
const PROGRAMS: &str = "kernel/src/bpf";

fn main() {
    let files = fs::read_dir(format!("../narrows-{PROGRAMS}")).expect("the programs are there");
    let files: Vec<String> = files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect();
    let controllers: Vec<(String, String)> = files
        .iter()
        .filter_map(|file| file.strip_suffix(".core.h"))
        .filter(|name| files.contains(&format!("{name}.bpf.c")))
        .map(|name| (format!("cc/{name}"), format!("{PROGRAMS}/{name}")))
        .collect();
    let mut single =
        vec![("queue/congestion_point", "core/src/queue/congestion_point"), ("queue/pfc", "core/src/queue/pfc")];
    single.extend(controllers.iter().map(|(name, place)| (name.as_str(), place.as_str())));
    Sources {
        crates: &["core", "network", "plan", "results", "kernel", "testbed", "wire", "daemon"],
        // Transport and controllers of a live run are the kernel's; what their `Spec`s say, `src/sources.rs` adds. What the other
        // verbs are for makes no runs.
        without: &[
            "core/src/tcp",
            "core/src/cc",
            "core/src/transport",
            "daemon/src/cc",
            "daemon/src/bridge",
            "daemon/src/namespaces.rs",
            "daemon/src/manuals.rs",
            "kernel/src/bpf/bridge.bpf.c",
            "kernel/src/bpf/bridge.h",
            "kernel/src/bridge.rs",
        ],
        // The limit beside them is ours in both worlds.
        but: &["core/src/tcp/near_source.rs"],
        folders: &[
            ("app", "core/src/app"),
            ("edge", "core/src/edge"),
            ("link", "core/src/link"),
            ("queue/aqm", "core/src/queue/aqm"),
            ("queue/scheduler", "core/src/queue/scheduler"),
            ("routing", "core/src/routing"),
        ],
        // Flows that begin at given times, and the connections of all.
        shared: &["timed", "connection_pool"],
        single: &single,
    }
    .write();
}
