//! `narrowsd` on this machine's kernel, as an operator types it. Needs root and BTF; without them every test is listed as
//! SKIPPED with the reason, never as passed.

#[path = "live/bridge.rs"]
mod bridge;
#[path = "live/ends.rs"]
mod ends;
#[path = "live/from_file.rs"]
mod from_file;
#[path = "live/lacks.rs"]
mod lacks;
#[path = "live/life.rs"]
mod life;
#[path = "live/near_source.rs"]
mod near_source;
#[path = "live/routes.rs"]
mod routes;
#[path = "live/serve.rs"]
mod serve;
#[path = "live/shell.rs"]
mod shell;
#[path = "live/site.rs"]
mod site;
#[path = "live/wide_area.rs"]
mod wide_area;
#[path = "live/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};

use narrows_kernel::controllers::CONTROLLERS;
use narrows_kernel::{Kernel, registered};

/// Why a test cannot run here, if it cannot.
type Outcome = Result<(), String>;
type Test = (&'static str, fn() -> Outcome);

/// Everything here, in the order in which it runs: registrations are the whole machine's, so one at a time.
const TESTS: &[Test] = &[
    ("a_route_a_transfer_its_state_and_nothing_left", life::a_route_a_transfer_its_state_and_nothing_left),
    ("a_namespace_that_chose_it_is_in_the_way", life::a_namespace_that_chose_it_is_in_the_way),
    ("the_default_is_taken_and_put_back", life::the_default_is_taken_and_put_back),
    ("two_sets_at_once_lose_nothing", life::two_sets_at_once_lose_nothing),
    ("a_namespace_has_parameters_of_its_own", life::a_namespace_has_parameters_of_its_own),
    ("who_only_reads_leaves_no_file", routes::who_only_reads_leaves_no_file),
    ("a_route_is_given_back_as_it_was", routes::a_route_is_given_back_as_it_was),
    ("a_route_that_another_changed_is_left_as_it_is", routes::a_route_that_another_changed_is_left_as_it_is),
    (
        "the_route_wins_at_the_beginning_and_the_application_afterwards",
        routes::the_route_wins_at_the_beginning_and_the_application_afterwards,
    ),
    ("a_file_is_served_reloaded_and_undone", serve::a_file_is_served_reloaded_and_undone),
    ("what_is_not_there_yet_is_waited_for", serve::what_is_not_there_yet_is_waited_for),
    ("a_route_that_is_lost_is_told_and_made_again", serve::a_route_that_is_lost_is_told_and_made_again),
    ("a_killed_service_leaves_nothing", serve::a_killed_service_leaves_nothing),
    ("a_new_namespace_does_not_inherit_parameters", life::a_new_namespace_does_not_inherit_parameters),
    ("a_new_namespace_does_not_inherit_what_was_before", life::a_new_namespace_does_not_inherit_what_was_before),
    ("a_file_is_compiled_loaded_used_and_removed", from_file::a_file_is_compiled_loaded_used_and_removed),
    ("a_files_parameters_are_set_and_its_faults_told", from_file::a_files_parameters_are_set_and_its_faults_told),
    ("metrics_are_replaced_at_once", life::metrics_are_replaced_at_once),
    ("the_foreground_ends_in_order", ends::the_foreground_ends_in_order),
    ("the_service_manager_is_told_when_it_is_loaded", ends::the_service_manager_is_told_when_it_is_loaded),
    ("a_killed_foreground_leaves_nothing", ends::a_killed_foreground_leaves_nothing),
    ("a_default_that_a_killed_one_left_is_put_back", ends::a_default_that_a_killed_one_left_is_put_back),
    ("a_load_killed_half_way_is_cleaned_up", ends::a_load_killed_half_way_is_cleaned_up),
    ("pins_without_a_registration_are_removed", ends::pins_without_a_registration_are_removed),
    ("a_plain_registration_left_behind_is_removed", ends::a_plain_registration_left_behind_is_removed),
    ("a_key_is_changed_while_it_listens", near_source::a_key_is_changed_while_it_listens),
    (
        "a_genuine_notification_holds_a_connection_until_it_recovers",
        near_source::a_genuine_notification_holds_a_connection_until_it_recovers,
    ),
    ("what_a_killed_one_held_is_let_go_by_the_next", near_source::what_a_killed_one_held_is_let_go_by_the_next),
    (
        "with_the_privileges_of_its_unit_it_works_and_says_what_room_it_has",
        near_source::with_the_privileges_of_its_unit_it_works_and_says_what_room_it_has,
    ),
    (
        "connections_that_end_together_are_forgotten_together",
        near_source::connections_that_end_together_are_forgotten_together,
    ),
    ("what_has_ended_is_not_said_to_be_held_still", near_source::what_has_ended_is_not_said_to_be_held_still),
    (
        "ten_thousand_forgeries_a_second_leave_a_flow_its_goodput",
        near_source::ten_thousand_forgeries_a_second_leave_a_flow_its_goodput,
    ),
    (
        "a_transfer_over_a_lossy_wide_area_is_whole_and_fast",
        bridge::a_transfer_over_a_lossy_wide_area_is_whole_and_fast,
    ),
    ("a_wide_area_that_doubles_and_reorders_does_no_harm", bridge::a_wide_area_that_doubles_and_reorders_does_no_harm),
    (
        "a_killed_bridge_is_a_wire_and_a_restarted_one_marks_again",
        bridge::a_killed_bridge_is_a_wire_and_a_restarted_one_marks_again,
    ),
    (
        "forgeries_and_recordings_change_nothing_and_are_not_answered",
        bridge::forgeries_and_recordings_change_nothing_and_are_not_answered,
    ),
    ("what_is_not_tcp_passes_as_it_is", bridge::what_is_not_tcp_passes_as_it_is),
    ("full_packets_fit_and_a_narrow_path_is_found", bridge::full_packets_fit_and_a_narrow_path_is_found),
    ("another_mtu_is_followed", bridge::another_mtu_is_followed),
    ("what_no_process_authenticates_can_be_dropped", bridge::what_no_process_authenticates_can_be_dropped),
    (
        "without_its_process_the_kernel_undoes_what_the_far_edge_did",
        bridge::without_its_process_the_kernel_undoes_what_the_far_edge_did,
    ),
    ("interfaces_of_bare_packets_are_joined_too", bridge::interfaces_of_bare_packets_are_joined_too),
    ("what_was_set_is_put_back_and_nothing_stays", bridge::what_was_set_is_put_back_and_nothing_stays),
    (
        "an_interface_that_goes_is_named_and_the_other_restored",
        bridge::an_interface_that_goes_is_named_and_the_other_restored,
    ),
    ("how_many_packets_a_second_and_how_long_each_takes", bridge::how_many_packets_a_second_and_how_long_each_takes),
    (
        "goodput_is_that_of_the_simulation_of_the_same_file",
        wide_area::goodput_is_that_of_the_simulation_of_the_same_file,
    ),
    ("without_loss_a_round_trip_is_what_it_was", wide_area::without_loss_a_round_trip_is_what_it_was),
    ("a_file_of_a_gigabyte_arrives_as_it_was", wide_area::a_file_of_a_gigabyte_arrives_as_it_was),
    ("without_privileges_it_says_so", lacks::without_privileges_it_says_so),
    ("without_a_bpf_file_system_it_says_so", lacks::without_a_bpf_file_system_it_says_so),
    ("what_is_pinned_elsewhere_is_not_said_to_be_unloaded", lacks::what_is_pinned_elsewhere_is_not_said_to_be_unloaded),
    ("in_a_pid_namespace_of_its_own_it_says_so", lacks::in_a_pid_namespace_of_its_own_it_says_so),
    ("without_btf_it_says_so", lacks::without_btf_it_says_so),
    ("an_old_kernel_is_named", lacks::an_old_kernel_is_named),
];

fn main() -> ExitCode {
    if let Ok(told) = std::env::var(ends::CHILD) {
        ends::child(&told);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let missing = missing().or_else(|| world::own_mounts().err());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, test) in TESTS.iter().filter(|(name, _)| wanted(name)) {
        let outcome = match &missing {
            Some(reason) => Ok(Err(reason.clone())),
            None => catch_unwind(AssertUnwindSafe(test)),
        };
        match outcome {
            Ok(Ok(())) => {
                println!("test {name} ... ok");
                passed += 1;
            }
            Ok(Err(reason)) => {
                println!("test {name} ... SKIPPED, {reason}");
                skipped += 1;
            }
            Err(_) => {
                println!("test {name} ... FAILED");
                failed += 1;
            }
        }
    }
    println!("\ntest result: {passed} passed; {failed} failed; {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Why this machine cannot run these tests.
fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    if let Err(error) = Kernel::probe() {
        return Some(error.to_string());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("needs `ip` of iproute2".to_owned());
    }
    let taken = CONTROLLERS.iter().find(|controller| registered::is_registered(controller.registered))?;
    Some(format!("{} is in use on this host", taken.registered))
}
