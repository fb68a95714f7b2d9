//! The guard with real processes and no server: whatever is ordered, or happens to the supervisor or the guard, the
//! command's whole tree is gone in time.
//!
//! Each test runs a supervisor of its own: this executable again, as [`driver`]. libtest starts threads before any test
//! does, and the guard is forked by a process that has one; hence the harness.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod driver;
mod ending;
mod freezing;
mod launching;
mod lease_file;
mod loss;
mod statuses;
mod subject;
mod terminal;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Tests that hold for every containment, and tests that stand alone.
macro_rules! trials {
    (in each containment: $($each:path),* ; alone: $($alone:path),* $(,)?) => {{
        let mut trials = Vec::new();
        for contain in subject::KINDS {
            $(trials.push(trial(&format!("{}::in_{}", stringify!($each), subject::name(contain)), move || $each(contain)));)*
        }
        $(trials.push(trial(stringify!($alone), $alone));)*
        trials
    }};
}

fn trial(path: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(path.replace(' ', ""), move || {
        test();
        Ok(())
    })
}

fn main() -> ExitCode {
    if let Some(socket) = std::env::var_os(driver::SOCKET) {
        return driver::main(&socket);
    }
    if std::env::var_os(loss::REUSER).is_some() {
        loss::reuse_a_number();
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(loss::KEEPER).is_some() {
        loss::keep_a_guard();
        return ExitCode::SUCCESS;
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn trials() -> Vec<Trial> {
    trials![
        in each containment:
            ending::a_daemon_of_a_daemon_is_gone_when_the_tree_is_said_to_have_ended,
            ending::a_guard_that_kills_has_priority_and_the_next_command_has_not,
            ending::a_crowd_that_has_died_does_not_delay_a_stop_whose_guard_has_priority,
            ending::a_command_that_honours_the_stop_signal_ends_by_it,
            ending::a_command_that_ignores_the_stop_signal_is_killed_at_the_end_of_the_stop,
            ending::a_command_that_stands_still_hears_the_stop_signal,
            ending::what_the_first_process_leaves_behind_in_a_stop_is_stopped_and_not_killed,
            ending::what_stands_still_and_is_left_behind_hears_the_stop_signal,
            ending::what_is_left_behind_by_a_process_that_was_told_to_stop_is_told_as_well,
            ending::each_of_a_crowd_that_is_left_behind_is_told_to_stop_once,
            ending::what_a_wrapper_leaves_behind_in_a_stop_of_all_processes_has_the_time_of_the_stop,
            ending::what_ignores_the_stop_signal_is_killed_at_the_end_of_the_stop_though_the_command_has_ended,
            ending::a_lease_that_ends_while_what_is_left_is_being_stopped_ends_it,
            ending::an_unmoved_lease_is_stopped_and_then_killed_in_time,
            ending::a_renewed_lease_keeps_the_command_alive,
            ending::what_the_command_left_behind_is_ended_with_it,
            ending::a_process_that_forks_and_exits_without_end_is_ended,
            ending::hundreds_of_daemons_are_ended,
            ending::a_kill_needs_no_memory_that_the_guard_has_not_touched_before,
            ending::a_start_that_is_taken_back_at_once_leaves_nothing,
            ending::one_guard_runs_one_command_after_another,
            loss::a_killed_supervisor_takes_the_tree_and_the_guard_with_it,
            loss::a_stopped_supervisor_does_not_keep_the_command_alive,
            loss::a_stopped_guard_is_killed_by_the_kernel_and_the_command_with_it,
            loss::a_killed_guard_leaves_a_tree_that_is_ended_before_anything_is_released,
            loss::a_stopped_guard_and_supervisor_leave_no_command_of_another_user_and_no_daemon,
            loss::guard_and_supervisor_that_are_killed_together_leave_nothing_behind,
            loss::a_killed_sentinel_changes_nothing_until_the_guard_is_killed_as_well,
            loss::a_stopped_sentinel_goes_on_when_the_guard_is_killed,
            loss::no_catchable_signal_moves_the_guard,
            loss::a_guard_without_a_tree_ends_with_its_supervisor_and_leaves_nothing_behind,
            freezing::a_frozen_tree_does_nothing_until_it_is_thawed,
            freezing::a_frozen_tree_is_killed_at_the_deadline,
            freezing::a_frozen_tree_is_thawed_to_be_stopped,
            freezing::a_run_after_a_frozen_one_is_not_frozen,
            freezing::a_crowd_is_frozen_and_thawed_to_the_last_process,
            launching::the_command_finds_default_signals_and_a_session_of_its_own,
            launching::the_command_gets_the_users_descriptors_and_none_of_ours,
            launching::the_environment_is_the_terms_and_nobody_elses,
            launching::the_command_keeps_the_working_directory_and_the_guard_does_not,
            launching::a_command_that_cannot_be_executed_says_why,
            launching::a_command_whose_working_directory_is_gone_says_so,
            launching::the_command_is_looked_up_on_the_path_and_may_be_a_bare_script,
            lease_file::the_command_finds_its_lease_in_a_file_that_follows_the_orders,
            lease_file::a_lease_file_is_over_before_the_orphans_of_a_killed_guard_have_ended,
            statuses::every_exit_code_and_every_deadly_signal_arrives,
            terminal::ctrl_c_reaches_a_command_in_the_foreground_exactly_once,
            terminal::a_command_in_the_foreground_is_not_stopped_by_ctrl_z,
            terminal::ctrl_z_does_not_stop_the_command_that_follows_a_frozen_one,
            terminal::the_terminal_is_the_supervisors_again_when_its_guard_was_killed;
        alone:
            ending::the_next_command_finds_its_cgroup_as_new,
            ending::a_cgroup_that_somebody_else_has_killed_takes_the_next_command,
            ending::an_ordinary_users_tree_is_ended_as_well,
            ending::a_daemon_survives_a_guard_that_is_no_subreaper,
            ending::a_process_that_is_no_descendant_is_ended_by_the_cgroup,
            loss::a_stopped_guard_takes_a_whole_pid_namespace_with_it,
            loss::a_killed_supervisor_is_noticed_even_if_its_socket_is_held_open,
            loss::a_killed_guard_is_noticed_even_if_its_socket_is_held_open,
            loss::a_cgroup_that_nobody_could_remove_is_removed_by_the_next_guard,
            loss::a_cgroup_of_processes_that_were_all_killed_is_removed_by_the_next,
            loss::what_survives_its_guard_supervisor_and_sentinel_is_ended_by_the_next_guard,
            loss::the_sentinel_has_a_session_and_a_name_of_its_own,
            loss::nothing_is_left_only_when_the_guard_is_gone_though_it_is_to_be_spared,
            loss::a_process_of_the_tree_with_the_number_of_an_earlier_child_is_not_spared,
            loss::a_clean_up_that_is_not_possible_at_first_is_done_when_it_is,
            loss::the_releaser_follows_a_killed_supervisor_when_the_tree_is_empty,
            loss::the_cgroup_of_a_killed_supervisor_stays_until_its_releaser_has_ended,
            loss::what_a_supervisor_said_before_it_was_killed_counts,
            freezing::a_tree_is_frozen_and_thawed_once_there_are_descriptors_again,
            freezing::a_stop_signal_is_not_lost_behind_others_that_a_frozen_init_has_not_read,
            launching::a_namespace_shows_its_own_processes_only,
            launching::the_containment_is_chosen_and_explained_before_any_command_runs,
            launching::where_no_tree_could_be_ended_no_guard_is_started_and_the_reason_is_told,
            lease_file::an_ordinary_users_command_cannot_change_its_lease_file,
            lease_file::a_command_of_root_reads_its_lease_file_as_another_user_without_descriptors_and_in_a_chroot,
            lease_file::a_lease_file_that_root_truncates_is_mended_by_the_next_order,
            lease_file::a_lease_file_of_processes_that_were_all_killed_ends_by_itself_and_is_removed_by_the_next,
            lease_file::with_secrets_or_a_user_namespace_the_file_has_a_name_in_the_runtime_directory,
            lease_file::a_command_of_root_in_a_pid_namespace_is_told_of_no_file_that_is_not_there,
            lease_file::where_no_file_can_be_made_the_command_runs_without_its_variable,
            statuses::ten_thousand_short_commands_lose_no_status,
            terminal::ctrl_c_does_not_reach_a_command_with_a_session_of_its_own,
    ]
}
