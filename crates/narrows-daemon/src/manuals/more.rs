//! What manual pages have besides what the command line says.

use clap_mangen::roff::{Roff, bold, italic, roman};

/// Of the page with this name: what is typed, and what for.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// Those of a command that has commands are those of its own.
pub(super) const EXAMPLES: &[Examples] = &[
    (
        "narrowsd",
        &[
            ("narrowsd doctor", "Say whether this machine can load controllers:"),
            ("narrowsd cc load gemini --set capacity=10Gbps", "Load a controller; no connection uses it yet:"),
            ("narrowsd cc route add 198.51.100.0/24 gemini", "Let new connections to a prefix use it:"),
            ("narrowsd cc status gemini", "Show its connections:"),
            ("narrowsd serve --check", "Check the configuration file:"),
        ],
    ),
    ("narrowsd-run", &[("narrowsd run plan.json --seed 1 --out results", "Run a plan on this host's kernel:")]),
    (
        "narrowsd-serve",
        &[
            ("narrowsd serve --check", "Read the configuration file, and print what would be run:"),
            ("narrowsd serve --config host.toml", "Run what another file says:"),
        ],
    ),
    ("narrowsd-doctor", &[("narrowsd doctor --json", "Say for programs what this machine can do:")]),
    (
        "narrowsd-near-source",
        &[(
            "narrowsd near-source --senders /etc/narrows/senders.toml --metrics /run/narrows/near-source.prom --every 10",
            "Obey the switches of a file, and write metrics every ten seconds:",
        )],
    ),
    (
        "narrowsd-bridge",
        &[
            (
                "narrowsd bridge --inside eth1 --outside eth0 --name paris --peer frankfurt \\\n    --key /etc/narrows/bridge.key --rate 10Gbps --round-trip 12ms --sign 44",
                "Join two interfaces; the other edge router has the names in turn:",
            ),
            ("narrowsd bridge status", "Show how edge routers fare:"),
            (
                "narrowsd bridge remove --inside eth1 --outside eth0",
                "Restore the interfaces once its process has ended:",
            ),
        ],
    ),
    (
        "narrowsd-bridge-status",
        &[(
            "narrowsd bridge status --inside eth1 --outside eth0",
            "Show how one edge router of this network namespace fares:",
        )],
    ),
    (
        "narrowsd-bridge-remove",
        &[(
            "narrowsd bridge remove --inside eth1 --outside eth0",
            "Restore the interfaces once its process has ended:",
        )],
    ),
    (
        "narrowsd-cc",
        &[
            ("narrowsd cc list", "List controllers and their parameters:"),
            ("narrowsd cc load gemini --set capacity=10Gbps", "Load one:"),
            ("narrowsd cc set gemini beta=0.25 t=1ms", "Change it while its connections live:"),
            ("narrowsd cc unload gemini", "Unload it:"),
        ],
    ),
    ("narrowsd-cc-list", &[("narrowsd cc list gemini", "List the parameters of one controller with their ranges:")]),
    (
        "narrowsd-cc-load",
        &[
            ("narrowsd cc load gemini --set capacity=10Gbps --set t=2ms", "Load it until it is unloaded:"),
            (
                "narrowsd cc load vegas --default --foreground",
                "Make it the default until Ctrl-C, then restore the previous one:",
            ),
            ("narrowsd cc load mine.bpf.c", "Compile and load a controller of your own:"),
        ],
    ),
    (
        "narrowsd-cc-unload",
        &[
            ("narrowsd cc unload gemini --dry-run", "Say whether something still needs it:"),
            ("narrowsd cc unload --all", "Unload all controllers:"),
        ],
    ),
    (
        "narrowsd-cc-status",
        &[
            ("narrowsd cc status gemini --json", "Show parameters, counters and flows to a program:"),
            (
                "narrowsd cc status --prometheus --out /run/narrows.prom --every 15",
                "Write metrics for a collector every fifteen seconds:",
            ),
        ],
    ),
    (
        "narrowsd-cc-set",
        &[
            ("narrowsd cc set gemini beta=0.25 t=1ms", "Change two parameters at once:"),
            ("narrowsd cc set vegas alpha=3pkt --netns a", "Change one in one network namespace:"),
            ("narrowsd cc set vegas --clear --netns a", "Let it follow the parameters for all again:"),
        ],
    ),
    (
        "narrowsd-cc-route",
        &[
            ("narrowsd cc route add 198.51.100.0/24 gemini", "Let new connections to a prefix use a controller:"),
            ("narrowsd cc route remove 198.51.100.0/24", "Restore the route:"),
        ],
    ),
    (
        "narrowsd-cc-route-add",
        &[
            ("narrowsd cc route add 198.51.100.0/24 gemini --dry-run", "Say what would be run, and what undoes it:"),
            ("narrowsd cc route add 198.51.100.7 gemini", "Try it on one destination first:"),
            (
                "nsenter --net=/run/netns/a narrowsd cc route add default gemini",
                "In another network namespace, with the default route:",
            ),
        ],
    ),
    (
        "narrowsd-cc-route-remove",
        &[("narrowsd cc route remove 198.51.100.0/24", "Restore the route as it was before:")],
    ),
    (
        "narrowsd-cc-route-list",
        &[("narrowsd cc route list", "Show which routes name a controller, and whether they do still:")],
    ),
];

/// Where there is something of a command and of its commands.
const FILES: &[(&str, &str, &str)] = &[
    (
        "narrowsd-serve",
        "/etc/narrows/narrowsd.toml",
        "What the host runs; /usr/share/doc/narrowsd/narrowsd-file.md has its keys.",
    ),
    ("narrowsd-cc", "/etc/narrows/CONTROLLER.conf", "OPTIONS of the unit narrowsd@CONTROLLER.service."),
    ("narrowsd-bridge", "/etc/narrows/bridge-NAME.conf", "OPTIONS of the unit narrowsd-bridge@NAME.service."),
    ("narrowsd-near-source", "/etc/narrows/senders.toml", "Senders of the unit narrowsd-near-source.service."),
    ("narrowsd-near-source", "/etc/narrows/near-source.conf", "OPTIONS of that unit; it need not be there."),
    ("narrowsd", "/run/narrows", "Locks, and what was before a change, until the machine is switched off."),
    ("narrowsd", "/sys/fs/bpf/narrows", "Pins of what is loaded: a bpf file system must be mounted at /sys/fs/bpf."),
    ("narrowsd", "/usr/share/doc/narrowsd/examples", "Examples of all configuration files."),
];

const EXIT_STATUS: [(&str, &str); 4] = [
    ("0", "Success."),
    ("1", "It failed for a reason that may pass, or that the message says how to mend."),
    ("2", "Wrong input: the command line, a configuration file or a key."),
    ("3", "This machine lacks something, such as a privilege, BTF or a newer kernel."),
];

/// Pages of other programs, and their sections.
pub(super) const OTHERS: [(&str, u8); 3] = [("ip", 8), ("nsenter", 1), ("systemctl", 1)];

/// Sections of the page with this name; `also` are names of other pages.
pub(super) fn sections<'a>(name: &str, also: impl Iterator<Item = &'a str>) -> Roff {
    let mut page = Roff::new();
    let entry = |page: &mut Roff, what: &str, about: &str| {
        page.control("TP", []).text([bold(what)]).text([roman(about)]);
    };
    page.control("SH", ["EXIT STATUS"]);
    for (code, about) in EXIT_STATUS {
        entry(&mut page, code, about);
    }
    page.control("SH", ["FILES"]);
    let is_of = |of: &str| name == of || name.strip_prefix(of).is_some_and(|rest| rest.starts_with('-'));
    for (_, file, about) in FILES.iter().filter(|(of, ..)| is_of(of)) {
        entry(&mut page, file, about);
    }
    page.control("SH", ["EXAMPLES"]);
    for (line, about) in EXAMPLES.iter().filter(|(of, _)| *of == name).flat_map(|(_, examples)| *examples) {
        page.control("PP", []).text([roman(*about)]);
        page.control("RS", ["4"]).control("nf", []);
        for line in line.lines() {
            page.text([bold(line)]);
        }
        page.control("fi", []).control("RE", []);
    }
    page.control("SH", ["SEE ALSO"]);
    let pages: Vec<(&str, u8)> = also.map(|name| (name, 1)).chain(OTHERS).collect();
    for (at, (other, section)) in pages.iter().enumerate() {
        let comma = if at + 1 < pages.len() { "," } else { "" };
        page.text([bold(*other), roman(format!("({section}){comma}"))]);
    }
    page.control("PP", []).text([italic("/usr/share/doc/narrowsd/deploy.md"), roman(" is the guide to all of it.")]);
    page
}
