"""The attacks that fleet must withstand, and the tests that try them, wherever they are."""

import ast
import functools
from pathlib import Path

from tests.support.every import for_every

ROOT = Path(__file__).parents[1]
_ACCESS, _TRAPS = "integration/mosquitto/test_plugin_access.py", "integration/mosquitto/test_plugin_traps.py"
_SESSIONS, _FRONT = "integration/mosquitto/test_plugin_sessions.py", "integration/front/test_front.py"
_FLOODS, _CONNECTIONS = "security/test_http_floods.py", "security/test_http_connections.py"
_GATEWAY, _WHO = "security/test_gateway.py", "integration/gateway/test_access.py"
_OWNERSHIP, _RENEWAL = "security/test_ownership.py", "e2e/test_renewal.py"
_FORGING, _SIEGE = "security/test_audio_forging.py", "security/test_audio_siege.py"
_EARLY = "unit/roles/edge/test_early_work.py"
_SIGN_IN = "integration/control/test_sign_in.py"
_BROKER, _AUDIO = "security/test_broker.py", "security/test_audio.py"

CATALOGUE = {
    "wrong password": [
        f"{_ACCESS}::test_connection_without_the_right_proof_is_refused",
        f"{_BROKER}::test_a_storm_of_wrong_passwords_gets_nobody_in",
        f"{_FRONT}::test_wrong_credentials_are_refused",
        "security/test_front.py::test_a_storm_of_wrong_passwords_gets_nobody_in",
    ],
    "foreign client id": [
        f"{_TRAPS}::test_client_id_that_names_nobody_is_refused",
        f"{_TRAPS}::test_stranger_cannot_take_over_a_connection",
        "unit/wire/test_identity.py::test_credentials_are_worth_nothing_for_another_client_id_or_kind",
    ],
    "publish to other devices, $SYS and wildcards": [
        f"{_ACCESS}::test_device_publishes_to_its_own_topic_only",
        f"{_TRAPS}::test_nobody_publishes_to_the_brokers_own_topics_or_wildcards",
        f"{_TRAPS}::test_will_is_no_way_to_a_device",
        f"{_BROKER}::test_a_device_that_floods_reaches_nobody_and_stops_nobody",
        f"{_FRONT}::test_foreign_topic_and_retained_message_are_dropped_and_acknowledged",
    ],
    "subscribe to other devices, #, $share and $SYS": [
        f"{_ACCESS}::test_device_may_subscribe_to_nothing_foreign",
        f"{_ACCESS}::test_device_may_not_share_its_own_topic",
        f"{_FRONT}::test_device_that_also_subscribes_gets_everything_once",
    ],
    "retained message": [
        f"{_ACCESS}::test_retained_messages_are_dropped",
        f"{_TRAPS}::test_retained_message_ends_its_sender_and_is_not_kept",
    ],
    "oversized message": [
        f"{_TRAPS}::test_oversized_message_ends_its_sender_and_reaches_nobody",
        f"{_TRAPS}::test_announced_giant_is_refused_before_it_is_sent",
        f"{_FRONT}::test_oversize_message_ends_the_device_and_the_largest_passes",
    ],
    "revoked device": [
        "integration/mosquitto/test_plugin_revocation.py::test_revoked_device_is_ended_and_refused",
        "integration/front/test_revocation.py::test_a_revoked_device_is_put_out_and_stays_out",
        "integration/api/test_bootstrap.py::test_a_revoked_device_gets_no_credentials",
        "unit/wire/test_camera.py::test_a_revoked_device_has_no_good_token",
        "unit/wire/test_camera.py::test_a_token_counts_as_long_as_the_password_of_its_device",
    ],
    "password that was replaced, or issued without proof": [
        "integration/mosquitto/test_plugin_minima.py::"
        "test_older_generation_is_ended_and_refused_and_the_new_one_goes_on",
        "integration/mosquitto/test_plugin_minima.py::test_minimum_of_all_ends_what_was_issued_without_a_generation",
        "integration/front/test_revocation.py::test_an_older_generation_is_put_out_and_the_new_one_comes_in",
        "integration/api/test_emqx.py::test_a_generation_that_counts_no_longer_is_closed_and_a_newer_one_goes_on",
        "integration/api/test_emqx.py::test_a_minimum_of_all_closes_every_older_connection",
    ],
    "made-up user names": [
        "integration/mosquitto/test_plugin_usernames.py::test_both_read_a_user_name_alike",
        "integration/mosquitto/test_plugin_usernames.py::test_both_refuse_what_was_never_issued",
    ],
    "replayed UDP": [
        f"{_AUDIO}::test_what_was_sent_before_is_not_heard_again",
        f"{_AUDIO}::test_what_the_server_sent_is_not_taken_back",
    ],
    "forged UDP": [
        f"{_AUDIO}::test_a_known_ssrc_without_the_key_moves_nobody_and_is_seldom_heard",
        f"{_AUDIO}::test_random_datagrams_are_dropped",
        f"{_AUDIO}::test_a_flood_with_the_key_is_cut_to_what_a_device_sends",
    ],
    "forged UDP from another address for ten minutes": [
        f"{_FORGING}::test_from_another_address_nothing_is_lost_and_the_downlink_stays",
        f"{_FORGING}::test_a_device_is_never_moved_by_forging_at_ten_times_the_rate",
        f"{_SIEGE}::test_forging_from_another_address_costs_nothing",
        f"{_SIEGE}::test_who_saw_one_datagram_does_not_get_the_answer",
        f"{_SIEGE}::test_who_saw_one_datagram_does_not_deafen_the_device",
        f"{_SIEGE}::test_small_datagrams_do_not_starve_the_uplink",
    ],
    "forged UDP in the device's name for ten minutes": [
        f"{_FORGING}::test_from_the_devices_own_address_one_guess_in_256_costs_a_packet",
        f"{_FORGING}::test_a_new_port_is_followed_within_a_second_while_somebody_forges_from_the_old_one",
        f"{_SIEGE}::test_forging_in_the_devices_name_costs_one_packet_in_nine",
    ],
    "relayed UDP": [
        "unit/roles/edge/transport/test_uplink_stream.py::test_who_copies_what_the_device_sends_does_not_get_its_answers",
        "unit/roles/edge/transport/test_uplink_stream.py::test_who_copies_what_the_device_sends_after_a_pause_does_not_get_its_answers",
        "unit/roles/edge/transport/test_uplink_stream.py::test_who_copies_a_burst_does_not_get_the_answers",
        "unit/roles/edge/transport/test_uplink_stream.py::test_a_copy_that_was_taken_for_the_device_loses_the_answers_at_once_when_the_device_goes_on",
    ],
    "UDP from source port 0": [
        f"{_AUDIO}::test_datagrams_from_port_0_are_dropped",
        f"{_AUDIO}::test_a_datagram_from_port_0_is_dropped_also_where_none_can_be_sent",
    ],
    "zero-length and 64 KB datagrams": [f"{_AUDIO}::test_datagrams_without_a_byte_or_with_64_kilobytes_are_dropped"],
    "ssrc guessing": [
        f"{_AUDIO}::test_guessing_an_ssrc_gets_nowhere_and_fills_nothing",
        f"{_AUDIO}::test_who_knows_an_ssrc_before_its_session_opens_keeps_no_packet_of_the_device_out",
    ],
    "pauses without end": [
        "security/test_pauses.py::test_no_pause_takes_the_places_of_utterances_that_are_over",
        "security/test_pauses.py::test_pauses_of_many_devices_in_one_tick_share_the_places_that_are_left",
        f"{_EARLY}::test_a_device_that_pauses_without_end_costs_a_burst_and_is_understood",
        f"{_EARLY}::test_of_a_long_utterance_a_pause_looks_at_the_end_and_the_whole_is_understood",
        "unit/roles/edge/listening/test_turn_ending.py::test_voice_ends_the_recognition_that_a_pause_began",
        "unit/roles/edge/test_interruption.py::"
        "test_speech_over_an_answer_that_may_not_be_recognised_is_judged_by_its_voice",
    ],
    "speech without end": [
        "unit/roles/edge/test_turn_taking.py::test_utterances_are_limited_for_each_device",
        "unit/adapters/speech/test_fair_engine.py::test_who_has_used_the_engine_less_goes_first_and_is_not_refused",
        f"{_EARLY}::test_a_pause_in_a_long_utterance_costs_as_much_as_several",
        f"{_EARLY}::test_few_utterances_that_may_go_on_are_recognised_at_once",
        f"{_EARLY}::test_few_answers_are_prepared_for_a_device_that_ends_no_utterance",
    ],
    "echo cancellers that nobody gives back": [
        "security/test_echo_places.py::test_who_plays_nothing_any_more_keeps_nobody_from_being_heard_over_an_echo",
    ],
    "sequence 0xFFFFFFFF": [
        f"{_AUDIO}::test_the_largest_sequence_number_mutes_nobody",
        "unit/roles/edge/transport/test_uplink_stream.py::test_numbers_cannot_run_ahead_of_the_clock",
        "unit/roles/edge/transport/test_uplink_stream.py::test_one_good_packet_does_not_jump",
    ],
    "one unauthenticated packet from elsewhere": [
        f"{_AUDIO}::test_one_packet_from_elsewhere_moves_nobody_though_it_is_right"
    ],
    "junk before login": [
        f"{_SESSIONS}::test_broker_survives_junk",
        "security/test_front.py::test_junk_before_login_is_closed_and_counted",
        f"{_CONNECTIONS}::test_a_head_that_lies_is_refused",
    ],
    "silence before login": [
        f"{_BROKER}::test_silent_strangers_keep_no_device_out",
        "security/test_front.py::test_silent_strangers_keep_no_device_out",
        f"{_CONNECTIONS}::test_who_sends_no_request_is_put_out",
    ],
    "takeover storm": [
        f"{_BROKER}::test_a_storm_of_takeovers_leaves_one_connection",
        "security/test_front.py::test_a_storm_of_takeovers_leaves_one_connection",
    ],
    "hello storm of one device": [
        "security/test_worker.py::test_a_hello_storm_of_one_device_is_refused_and_then_ignored"
    ],
    "hello storm of a thousand devices": [
        "security/test_worker.py::test_a_hello_storm_of_many_devices_leaves_no_session"
    ],
    "message flood of one device": [
        f"{_BROKER}::test_a_flood_on_the_own_topic_is_cut_and_counted",
        "security/test_worker.py::test_a_device_that_floods_its_own_topic_deafens_nobody_in_its_shard",
        "security/test_front.py::test_a_device_that_floods_is_cut_and_others_are_heard",
    ],
    "tool calls without end": [
        "security/test_worker.py::test_a_model_cannot_call_a_device_faster_than_it_may_be_called"
    ],
    "bootstrap flood": [
        f"{_FLOODS}::test_a_device_that_floods_is_told_when_to_come_again_and_no_other_is",
        f"{_FLOODS}::test_an_address_that_invents_devices_is_refused",
        f"{_FLOODS}::test_a_site_that_boots_at_once_from_one_address_is_served",
    ],
    "stolen camera tokens": [
        f"{_FLOODS}::test_a_stolen_token_is_good_for_a_few_photos_of_that_device_only",
        f"{_FLOODS}::test_tokens_cannot_be_guessed_fast",
        "integration/api/test_vision.py::test_only_the_devices_own_token_counts_and_not_for_long",
        "unit/wire/test_camera.py::test_a_longer_life_cannot_be_written_into_a_token",
    ],
    "activation brute force": [
        f"{_FLOODS}::test_guessing_a_challenge_gets_nowhere_and_leaves_the_device_its_own",
        f"{_FLOODS}::test_one_address_cannot_take_the_codes_of_all",
        f"{_FLOODS}::test_one_address_invents_few_devices_that_show_codes",
        "integration/api/test_activation.py::test_who_borrows_a_bound_mac_gets_nothing",
    ],
    "borrowed MACs": [
        f"{_OWNERSHIP}::test_of_four_that_race_for_a_mac_exactly_one_gets_the_password",
        f"{_OWNERSHIP}::test_a_visitor_without_client_id_is_refused_and_changes_nothing",
        f"{_OWNERSHIP}::test_a_stranger_leaves_few_claims_and_the_owner_is_served",
        f"{_OWNERSHIP}::test_a_stranger_hides_no_claim_of_another",
        "integration/redis/test_admissions.py::test_a_source_replaces_its_own_claims_of_a_mac_and_nobody_elses",
        "integration/redis/test_admissions.py::test_claims_are_few_over_all_devices_and_one_source_has_a_tenth",
        f"{_OWNERSHIP}::test_foreign_bootstraps_do_not_suppress_a_firmware_offer",
        "integration/redis/test_admissions.py::test_a_password_of_a_pin_that_expired_is_refused_when_it_comes",
        f"{_RENEWAL}::test_a_claim_that_is_accepted_throws_the_foreign_holder_out",
        f"{_RENEWAL}::test_a_stricter_policy_loses_no_device_and_then_refuses_old_passwords",
    ],
    "invented MACs": [
        f"{_OWNERSHIP}::test_who_invents_macs_fills_nothing",
        f"{_OWNERSHIP}::test_nobody_pushes_out_a_device_that_has_not_connected_yet",
        "integration/redis/test_admissions.py::test_macs_that_never_connected_are_few_and_each_keeps_its_hour",
        "integration/redis/test_admissions.py::test_one_source_has_a_tenth_of_the_places_when_half_are_taken_and_gets_them_back",
    ],
    "markup and control characters in what operators read": [
        "integration/operations/test_commands.py::test_what_strangers_wrote_is_shown_as_they_wrote_it",
        "unit/operations/doctor/test_report.py::test_what_a_device_wrote_is_told_as_it_wrote_it",
    ],
    "header spoofing": [
        f"{_FLOODS}::test_a_forwarded_address_is_believed_of_nobody_but_a_proxy",
        f"{_FLOODS}::test_a_second_device_id_changes_nobody_elses_credentials",
        f"{_FLOODS}::test_nobody_uses_up_what_a_device_may_ask_by_borrowing_its_mac",
        "integration/api/test_bootstrap.py::test_a_host_header_changes_nothing_but_its_own_answer",
    ],
    "path traversal in firmware names": [
        "integration/api/test_firmware.py::test_no_other_name_leads_to_a_file",
    ],
    "tool lists without an end": [
        "security/test_tool_lists.py::test_lists_without_an_end_fill_no_memory_and_cost_no_shard",
        "integration/worker/test_discovery.py::test_a_page_that_firmware_would_not_send_ends_the_list",
        "integration/worker/test_discovery.py::test_a_list_is_kept_up_to_64_kilobytes",
        "integration/worker/test_discovery.py::test_a_list_that_had_to_go_is_asked_for_again",
    ],
    "devices that the embedded broker would remember": [
        "integration/embedded/test_broker_restarter.py::test_beyond_the_bound_new_devices_are_refused_and_known_ones_served",
        "integration/embedded/test_broker_restarter.py::test_a_full_broker_restarts_on_the_same_port_and_devices_come_back",
    ],
    "answers of servers without an end": [
        "security/test_answers.py::test_an_error_of_200_megabytes_is_not_kept",
        "security/test_answers.py::test_a_success_of_200_megabytes_is_not_kept",
    ],
    "file descriptors used up": [
        "security/test_descriptors.py::test_a_role_without_file_descriptors_says_so_and_serves_again"
    ],
    "lines that fill the log": [
        "security/test_logs.py::test_a_flood_of_bootstraps_gives_few_lines_and_their_number",
        "unit/ground/test_log_sampling.py::test_of_a_flood_the_first_lines_are_written_and_then_a_count_a_minute",
        "unit/ground/test_log_sampling.py::test_a_loud_device_hides_no_other_and_a_loud_message_no_other",
    ],
    "decompression and JSON bombs": [
        f"{_CONNECTIONS}::test_a_bomb_in_a_body_does_nothing",
        f"{_CONNECTIONS}::test_a_body_of_100_megabytes_is_not_kept",
        "security/test_worker.py::test_junk_of_a_device_is_dropped_and_others_are_served",
        "integration/control/test_requests.py::test_every_error_is_a_problem",
        "integration/control/test_tokens.py::test_nobody_without_a_code_gets_a_body_read_that_costs_much",
    ],
    "slow-loris on HTTP": [
        f"{_CONNECTIONS}::test_a_head_that_trickles_is_put_out",
        f"{_CONNECTIONS}::test_a_body_that_goes_on_after_its_answer_is_put_out",
        f"{_CONNECTIONS}::test_who_does_not_read_its_answer_is_put_out",
        f"{_CONNECTIONS}::test_connections_of_one_address_are_bounded_and_leave_others_room",
        "integration/api/test_bootstrap.py::test_a_body_that_never_ends_is_given_up",
    ],
    "sockets at the gateway that never upgrade": [
        f"{_GATEWAY}::test_who_opens_no_websocket_is_put_out",
        f"{_GATEWAY}::test_sockets_that_never_upgrade_take_no_clients_place",
        f"{_GATEWAY}::test_silence_before_tls_keeps_nobody_out",
        f"{_GATEWAY}::test_a_gateway_of_its_own_withstands_strangers_and_counts_them",
    ],
    "slow-loris on the gateway": [
        f"{_GATEWAY}::test_a_head_that_trickles_is_put_out",
        f"{_GATEWAY}::test_what_is_begun_must_be_finished",
        f"{_GATEWAY}::test_a_message_in_fragments_must_end_though_pings_come_between",
        f"{_GATEWAY}::test_a_client_that_finished_its_message_may_be_silent",
        f"{_GATEWAY}::test_a_client_that_says_goodbye_and_stays_is_put_out",
    ],
    "junk before the gateway's upgrade": [
        f"{_GATEWAY}::test_a_head_without_an_end_is_not_kept",
        f"{_GATEWAY}::test_a_head_that_lies_is_refused",
    ],
    "client of the gateway that never reads": [
        f"{_GATEWAY}::test_who_pings_and_never_reads_is_put_out_and_fills_nothing",
        "integration/gateway/test_connections.py::test_client_that_does_not_read_is_cut_off",
    ],
    "frames without end at the gateway": [
        f"{_GATEWAY}::test_pings_without_end_are_put_out",
        f"{_GATEWAY}::test_fragments_without_bytes_do_not_go_on_for_ever",
        f"{_GATEWAY}::test_frames_that_come_at_once_are_not_all_kept",
        f"{_GATEWAY}::test_too_many_messages_get_an_error_and_are_read_later",
    ],
    "bombs at the gateway": [
        f"{_GATEWAY}::test_a_compressed_bomb_is_not_unpacked",
        f"{_GATEWAY}::test_a_message_beyond_the_limit_is_not_kept",
    ],
    "sessions of the gateway without end": [
        f"{_GATEWAY}::test_a_client_that_begins_sessions_without_end_fills_nothing",
        "integration/redis/test_gateway_sessions.py::test_for_one_session_too_many_one_of_the_site_with_the_most_ends",
    ],
    "one address takes all of a gateway's connections": [
        f"{_GATEWAY}::test_one_address_takes_not_all_places",
        f"{_GATEWAY}::test_by_default_one_address_takes_a_quarter_of_the_places_and_a_proxy_all",
        f"{_GATEWAY}::test_a_forwarded_address_is_believed_of_nobody_but_a_proxy",
        f"{_GATEWAY}::test_an_ipv6_network_counts_as_one_address",
    ],
    "accounts of operators: guessed passwords, foreign pages, stolen and chosen cookies": [
        f"{_SIGN_IN}::test_wrong_passwords_are_limited_and_lock_nobody_out_who_signed_in_before",
        f"{_SIGN_IN}::test_a_flood_of_strangers_keeps_nobody_out_who_signed_in_before",
        f"{_SIGN_IN}::test_words_do_not_say_which_accounts_exist",
        f"{_SIGN_IN}::test_a_password_travels_only_where_nobody_reads_it",
        f"{_SIGN_IN}::test_nobody_chooses_the_secret_of_a_sign_in",
        f"{_SIGN_IN}::test_a_stolen_cookie_ends_with_the_sign_in_even_if_redis_forgets_that",
        f"{_SIGN_IN}::test_the_password_is_not_found_out_with_a_stolen_cookie",
        f"{_SIGN_IN}::test_a_foreign_page_signs_nobody_in",
        "integration/control/test_foreign_pages.py::test_a_foreign_page_neither_reads_nor_changes_nor_signs_anybody_in",
        "integration/control/test_accounts.py::test_nobody_gives_or_takes_more_than_he_may",
        "integration/control/test_run.py::test_accounts_work_from_another_address_over_https_alone",
    ],
    "guessed, borrowed and revoked tokens at the gateway": [
        f"{_GATEWAY}::test_guessing_tokens_is_slowed_down_for_the_address_that_guesses",
        f"{_WHO}::test_without_a_token_there_is_401_and_no_websocket",
        f"{_WHO}::test_a_token_of_another_scope_is_not_enough",
        f"{_WHO}::test_a_revoked_token_ends_its_connections_at_their_next_message",
        f"{_WHO}::test_while_the_file_is_wrong_nobodys_token_counts",
    ],
    "foreign pages in browsers that reach the gateway": [
        f"{_WHO}::test_a_foreign_page_does_not_come_in",
        f"{_WHO}::test_files_stay_out_of_a_gateway_elsewhere_and_the_visitors_own_pages_do_not",
        f"{_WHO}::test_who_is_listed_comes_in_and_nobody_else",
    ],
}


@for_every("attack", CATALOGUE)
def test_each_attack_is_tried(attack: str) -> None:
    for place in CATALOGUE[attack]:
        path, _, name = place.partition("::")
        assert name in functions_of(path), place


@functools.cache
def functions_of(path: str) -> set[str]:
    nodes = ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
