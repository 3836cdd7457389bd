//! A run in a guest: this program is booted there, does the run, and its files come back.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use narrows_kernel::from_file::Program;
use narrows_plan::Plan;
use narrows_testbed::guest::{self, Boot, GuestError, inside};
use serde_json::json;

use super::{Backend, Job, Results, carry, controllers, parse, programs, say};
use crate::failure::Failure;

/// What the program is told in the guest to do there: the name of a hidden command.
const COMMAND: &str = "inside-guest";
const PLAN: &str = "plan.json";
const JOB: &str = "job.json";
/// The configuration of the guest's kernel, which programs may ask for (`extern … __kconfig`).
const CONFIGURATION: &str = "kernel.config";
/// In place of results, why there are none.
const FAILURE: &str = "failure.json";
/// How a line about the run's progress begins.
const PROGRESS: &str = "progress ";

/// Boots a guest for the run and takes its files.
pub(super) fn boot(
    (plan, text): (&Plan, &[u8]),
    job: &Job,
    programs: &[Program],
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Results, Failure> {
    if !cfg!(target_feature = "crt-static") {
        return Err(Failure::environment("this narrowsd needs shared libraries, which a guest does not have")
            .help("`make narrowsd` in a checkout builds one that needs none"));
    }
    let image = guest::find().map_err(|missing| refused(missing.into()))?;
    let program = std::env::current_exe().map_err(Failure::failed)?;
    let wanted = controllers::names(plan, &job.controllers);
    let modules: Vec<String> = wanted.values().map(|name| format!("tcp_{name}")).collect();
    let job = serde_json::to_vec(job).map_err(Failure::failed)?;
    let objects: Vec<(String, &[u8])> =
        programs.iter().enumerate().map(|(place, program)| (programs::name(place), program.object())).collect();
    let mut files: Vec<(&str, &[u8])> = vec![(PLAN, text), (JOB, &job)];
    files.extend(objects.iter().map(|(name, object)| (name.as_str(), *object)));
    let configuration = image.configuration();
    if let (false, Some(configuration)) = (programs.is_empty(), &configuration) {
        files.push((CONFIGURATION, configuration));
    }
    let boot = Boot {
        image: &image,
        program: &program,
        arguments: &[COMMAND],
        modules: &modules.iter().map(String::as_str).collect::<Vec<_>>(),
        files: &files,
        folder,
    };
    let mut heard = |line: &str| {
        let progress = line.strip_prefix(inside::PREFIX).and_then(|said| said.strip_prefix(PROGRESS));
        let numbers: Option<Vec<u64>> =
            progress.and_then(|text| text.split(' ').map(|word| word.parse().ok()).collect());
        if let Some([now_us, end_us, packet_hops]) = numbers.as_deref() {
            say(now_us * 1_000, end_us * 1_000, *packet_hops);
        }
    };
    let mut files = guest::boot(&boot, &mut heard, stop).map_err(refused)?;
    match files.remove(FAILURE) {
        Some(said) => Err(Failure::read(&said)),
        None => Ok(files.into_iter().collect()),
    }
}

fn refused(error: GuestError) -> Failure {
    match &error {
        GuestError::NoQemu { .. } => Failure::environment(&error).help("on Debian: apt install qemu-system-x86"),
        GuestError::NoKernel(_) => Failure::environment(&error)
            .help("`make guest-kernel` in a checkout fetches Debian's cloud kernel into that folder"),
        GuestError::Stopped => Failure::interrupted(),
        _ => Failure::failed(&error),
    }
}

/// The same program, as the guest's first process.
///
/// # Errors
/// If this is no guest: what follows mounts file systems and switches the machine off.
pub(crate) fn begin() -> Result<(), Failure> {
    if std::process::id() != 1 || inside::given(JOB).is_err() {
        return Err(Failure::input(format!("{COMMAND} is for the first process of a guest, which this is not")));
    }
    let outcome = inside::begin().map_err(Failure::failed).and_then(|()| work());
    let files = outcome.unwrap_or_else(|failure| vec![(FAILURE.to_owned(), failure.written())]);
    let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    match inside::deliver(&files) {
        Ok(()) => inside::say("done"),
        Err(error) => inside::say(&format!("the results cannot be delivered: {error}")),
    }
    inside::power_off()
}

fn work() -> Result<Results, Failure> {
    let plan = parse(&inside::given(PLAN).map_err(Failure::failed)?)?;
    let job: Job = serde_json::from_slice(&inside::given(JOB).map_err(Failure::failed)?).map_err(Failure::failed)?;
    // Who runs the guest ends it whole.
    let stop = AtomicBool::new(false);
    let programs = programs::given(&plan, inside::given)?;
    if let Ok(configuration) = inside::given(CONFIGURATION) {
        // Where libbpf looks for it.
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let written =
            fs::create_dir_all("/boot").and_then(|()| fs::write(format!("/boot/config-{release}"), configuration));
        written.map_err(Failure::failed)?;
    }
    carry::carry(&plan, &job, &programs, Backend::Guest, &stop, &mut |progress| {
        let (now, end) = (progress.now.as_us(), progress.end.as_us());
        inside::say(&format!("{PROGRESS}{now} {end} {}", progress.packet_hops));
        true
    })
}

impl Failure {
    fn written(&self) -> Vec<u8> {
        let (code, sentence, help) = self.parts();
        json!({ "code": code, "sentence": sentence, "help": help }).to_string().into_bytes()
    }

    fn read(text: &[u8]) -> Failure {
        let said: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
        let sentence = said["sentence"].as_str().unwrap_or("the guest failed and did not say why");
        Failure::new(
            said["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(1),
            sentence,
            said["help"].as_str(),
        )
    }
}
