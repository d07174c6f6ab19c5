"""Rows of the tables of limits in docs/security.md, each with the tests that go beyond it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BOUNDS, CONNECTORS = "tests/unit/bounds", "tests/unit/connectors"
LISTENER = f"{CONNECTORS}/test_amqp_listener"

TENFOLD = {
    "AMQP frame from a broker": [
        f"{BOUNDS}/test_received_bytes.py::test_an_amqp_frame_of_10_mib_is_refused_by_its_first_bytes"
    ],
    "AMQP values": [
        f"{BOUNDS}/test_received_bytes.py::test_an_amqp_message_with_a_value_640_deep_is_rejected_alone",
        f"{CONNECTORS}/test_amqp_types.py::test_depth_is_bounded",
        f"{CONNECTORS}/test_amqp_types.py::test_a_few_bytes_never_take_much_memory",
    ],
    "STOMP headers": [
        f"{BOUNDS}/test_received_bytes.py::test_stomp_headers_of_10_mib_in_small_pieces_end_the_connection",
        f"{BOUNDS}/test_received_bytes.py::test_stomp_headers_in_single_bytes_take_time_in_proportion",
    ],
    "STOMP body over `journal.max-message-bytes`": [
        f"{CONNECTORS}/test_stomp_frames.py::test_of_a_body_over_the_limit_only_the_beginning_is_kept",
        f"{CONNECTORS}/test_hostile_frames.py"
        "::test_a_stomp_body_that_is_too_large_is_passed_over_in_the_memory_of_its_beginning",
    ],
    "headers and properties of a message, from any system": [
        f"{BOUNDS}/test_received_bytes.py::test_a_message_of_any_system_with_10_000_headers_is_taken_for_unreadable",
        "tests/unit/delivery/test_ingress_pipeline.py::test_a_message_with_too_many_headers_is_a_dead_letter",
        f"{CONNECTORS}/test_kafka_message.py::test_a_record_with_too_many_headers_is_unreadable",
        f"{LISTENER}_bounds.py::test_a_message_with_too_many_properties_is_rejected_alone_or_in_a_transaction",
    ],
    "reason, route, time and position of a dead letter, names of headers that are shown": [
        "tests/unit/dead_letters/test_letter.py::test_what_is_shown_of_long_texts_is_cut_and_says_so"
    ],
    "text of a log line, text about the state of a part": [
        "tests/unit/test_log_texts.py::test_long_texts_of_others_are_cut",
        "tests/unit/test_status.py::test_a_long_text_on_the_board_is_cut_behind_the_masks",
    ],
    "NATS line, message": [
        f"{BOUNDS}/test_received_bytes.py::test_a_nats_line_of_10_mib_in_small_pieces_ends_the_connection",
        f"{BOUNDS}/test_received_bytes.py::test_a_nats_line_in_single_bytes_takes_time_in_proportion",
        f"{BOUNDS}/test_received_bytes.py::test_a_nats_message_of_ten_times_the_limit_is_refused_by_its_line",
    ],
    "HTTP request": [
        "tests/unit/test_http_access.py::test_what_is_no_request_is_refused_in_bounded_memory",
        "tests/unit/test_http_access.py::test_who_sends_a_request_byte_by_byte_is_left",
        "tests/unit/page/test_find_page.py::test_a_client_that_does_not_read_is_left",
    ],
    "form of the status page": [
        f"{BOUNDS}/test_requests.py::test_a_form_of_ten_times_the_limits_is_refused",
        "tests/unit/page/test_pages.py::test_no_other_site_has_a_message_tried",
    ],
    "runs over all dead letters that match": [
        "tests/unit/page/test_bulk.py::test_further_runs_are_refused_and_told_who_runs_the_first"
    ],
    "message to try": [
        "tests/unit/page/test_blocking.py::test_health_answers_while_a_page_is_made",
        "tests/unit/page/test_blocking.py::test_what_takes_too_long_is_given_up",
    ],
    "predicate of a page or of the API": [
        f"{BOUNDS}/test_requests.py::test_a_predicate_of_ten_times_the_characters_is_refused"
    ],
    "search of a page or of the API": [
        f"{BOUNDS}/test_requests.py::test_of_20_searches_at_once_two_run",
        "tests/unit/page/test_find_page.py::test_a_client_that_does_not_read_is_left",
        "tests/unit/page/test_find_page.py::test_a_page_of_another_site_starts_no_search",
    ],
    "records and dead letters for pages and the API": [
        f"{BOUNDS}/test_requests.py::test_of_40_requests_at_once_four_are_answered_and_none_waits",
        f"{BOUNDS}/test_requests.py::test_work_of_ten_times_the_time_is_given_up",
    ],
    "timelines for pages and the API": [
        f"{BOUNDS}/test_requests.py::test_of_40_requests_at_once_four_are_answered_and_none_waits",
        f"{BOUNDS}/test_requests.py::test_work_of_ten_times_the_time_is_given_up",
    ],
    "entry of the audit of looks": [
        f"{BOUNDS}/test_requests.py::test_looks_at_100_000_records_are_remembered_in_bounded_memory",
        f"{BOUNDS}/test_requests.py::test_an_entry_that_kafka_never_takes_is_waited_for_two_seconds",
    ],
    "sessions of browsers": [f"{BOUNDS}/test_requests.py::test_of_100_000_sessions_those_used_last_stay"],
    "login at an OpenID Connect server": [
        f"{BOUNDS}/test_requests.py::test_a_login_that_takes_100_minutes_is_refused",
        f"{BOUNDS}/test_requests.py::test_an_answer_of_a_login_server_of_10_mib_is_refused",
        f"{BOUNDS}/test_requests.py::test_an_answer_of_a_login_server_that_comes_in_drops_is_given_up",
        f"{BOUNDS}/test_requests.py::test_of_80_logins_at_once_eight_ask_the_server_and_the_others_wait",
    ],
    "token over HTTP": [f"{BOUNDS}/test_requests.py::test_a_token_of_320_kib_is_refused_with_401"],
    "requests for the keys of an OpenID Connect server": [
        "tests/unit/test_tokens.py::test_new_keys_are_read_and_unknown_ones_make_no_flood"
    ],
    "wrong logins over HTTP": [
        f"{BOUNDS}/test_requests.py::test_of_100_wrong_logins_of_an_address_ten_are_checked",
        f"{BOUNDS}/test_requests.py::test_the_wait_after_1000_wrong_logins_is_a_minute",
    ],
    "HTTPS handshake": ["tests/unit/test_http_access.py::test_who_does_not_begin_with_tls_is_left"],
    "names of folders": [
        f"{BOUNDS}/test_received_bytes.py::test_a_folder_with_a_name_of_2550_bytes_is_refused_and_holds_up_no_other",
        f"{CONNECTORS}/test_dropbox_sink.py::test_an_address_that_is_no_folder_is_refused",
    ],
    "headers and properties in the name of a file": [
        f"{BOUNDS}/test_received_bytes.py::test_a_file_name_of_ten_times_the_limit_is_refused"
    ],
    "body that routes read": [
        f"{BOUNDS}/test_bodies.py::test_a_body_of_ten_times_the_limits_has_no_values",
        f"{BOUNDS}/test_bodies.py::test_a_body_of_ten_times_the_limits_is_neither_masked_nor_converted",
    ],
    "JSON values of topologies": [
        "tests/spark/topologies/test_hostile.py::test_json_that_is_nested_too_deeply_is_a_dead_letter",
        f"{BOUNDS}/test_bodies.py::test_a_document_for_a_json_schema_1000_deep_is_unreadable",
    ],
    "Protobuf values": [
        f"{BOUNDS}/test_bodies.py::test_a_protobuf_value_1000_deep_is_unreadable",
        "tests/spark/topologies/test_hostile.py::test_a_protobuf_value_1000_deep_is_a_dead_letter",
    ],
    "Avro values": [
        "tests/spark/topologies/test_hostile.py"
        "::test_an_avro_schema_whose_records_require_themselves_is_that_records_fault",
        "tests/spark/topologies/test_hostile.py::test_lengths_in_avro_values_are_no_longer_than_the_value",
        f"{BOUNDS}/test_bodies.py::test_an_avro_value_1000_deep_is_unreadable",
        f"{BOUNDS}/test_bodies.py::test_an_avro_value_with_ten_times_the_items_is_unreadable",
    ],
    "Avro schemas of records": [
        "tests/spark/topologies/test_hostile.py"
        "::test_an_avro_schema_whose_records_require_themselves_is_that_records_fault"
    ],
    "results of a Python function for a record": [
        "tests/spark/topologies/test_harmful_functions.py::test_a_result_that_is_too_large_is_a_dead_letter"
    ],
    "one call of a Python function": [
        "tests/spark/topologies/test_harmful_functions.py"
        "::test_a_record_that_harms_the_process_of_a_function_is_a_dead_letter"
    ],
    "properties file, a file that a value comes from": [
        f"{BOUNDS}/test_configurations.py::test_a_properties_file_of_40_mib_is_a_fault",
        f"{BOUNDS}/test_configurations.py::test_a_value_from_a_file_of_10_mib_is_a_fault",
    ],
    "predicate": [f"{BOUNDS}/test_configurations.py::test_a_predicate_of_ten_times_the_limits_is_a_fault"],
}
"""Tests that feed ten times the limit, by the first cell of the row."""

OF_LISTENER = {
    "connections": [
        f"{LISTENER}_attackers.py::test_who_opens_connections_and_says_nothing_keeps_nobody_out",
        f"{LISTENER}_attackers.py::test_an_address_with_many_connections_makes_room_for_another_one",
    ],
    "TLS handshake, login and open": [
        f"{LISTENER}_attackers.py::test_who_floods_without_a_login_is_left_early",
        f"{LISTENER}.py::test_who_connects_and_says_nothing_is_left",
    ],
    "frame": [
        f"{LISTENER}_attackers.py::test_a_declared_size_takes_no_memory",
        f"{LISTENER}_bounds.py::test_a_frame_has_to_come_whole_in_time",
    ],
    "performative other than a transfer": [
        f"{LISTENER}_bounds.py::test_a_performative_is_bounded_and_a_transfer_may_fill_its_frame"
    ],
    "incomplete messages; of all clients, incomplete frames as well": [
        f"{LISTENER}.py::test_messages_that_never_end_are_bounded",
        f"{LISTENER}_attackers.py::test_all_clients_together_hold_no_more_than_there_is_room_for",
    ],
    "answers and messages that it does not read": [
        f"{LISTENER}_attackers.py::test_a_flood_of_flows_that_want_answers_waits_for_who_does_not_read",
        f"{LISTENER}_bounds.py::test_a_client_that_reads_nothing_is_disconnected",
    ],
    "sessions, links": [
        f"{LISTENER}_attackers.py::test_one_client_has_a_thousand_links_and_no_more",
        f"{LISTENER}_attackers.py::test_more_sessions_than_there_are_channels_end_the_connection",
        f"{LISTENER}_bounds.py::test_the_links_of_all_clients_leave_a_share_for_each",
    ],
    "credit of a link": [f"{LISTENER}.py::test_more_than_there_was_credit_for_ends_the_link"],
    "messages that wait for the journal": [
        f"{LISTENER}_bounds.py::test_a_client_whose_messages_wait_is_not_read_and_others_are"
    ],
    "processor time": [
        f"{LISTENER}_bounds.py::test_clients_of_one_address_get_equal_time_whatever_a_turn_of_theirs_costs",
        f"{LISTENER}_bounds.py::test_a_turn_of_a_client_ends_by_frames_and_by_time",
    ],
    "open transactions": [
        f"{LISTENER}_transactions.py::test_the_transactions_of_a_client_are_bounded",
        f"{LISTENER}_transaction_writer.py"
        "::test_the_transactions_of_a_client_have_no_more_than_so_many_messages_and_bytes",
        f"{LISTENER}_transaction_writer.py::test_each_client_has_a_share_that_the_transactions_of_others_do_not_take",
    ],
    "age of a transaction": [
        f"{LISTENER}_transactions.py::test_a_transaction_that_takes_too_long_is_rolled_back_and_its_client_is_told"
    ],
    "selector": [
        f"{LISTENER}_bounds.py::test_a_long_selector_is_refused_with_its_link_alone",
        f"{LISTENER}_queue_bounds.py::test_a_selector_with_many_patterns_is_refused",
    ],
    "applying a selector": [
        f"{LISTENER}_queue_bounds.py::test_a_selector_is_applied_to_each_message_once_and_for_a_bounded_time"
    ],
    "messages of addresses whose clients take nothing for 60 s, while clients of others wait": [
        f"{LISTENER}_queue_bounds.py::test_a_queue_that_nobody_takes_from_makes_room_for_clients_of_others",
        f"{LISTENER}_queue_bounds.py::test_many_stalled_queues_make_room_together_the_longest_first",
    ],
}
"""Tests that measure a limit of an AMQP listener, by the first cell of the row."""


def rows(begin: str, end: str) -> list[str]:
    """The first cells of the table between two headings, without its own heading."""
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    section = page.partition(f"\n{begin}\n")[2].partition(f"\n{end}\n")[0]
    return re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)[1:]


@pytest.mark.parametrize(
    ("begin", "end", "tests"),
    [
        ("## Bounds", "### An AMQP listener", TENFOLD),
        ("### An AMQP listener", "### Patterns", OF_LISTENER),
    ],
    ids=["all", "listener"],
)
def test_every_row_of_a_table_of_limits_has_a_test(begin: str, end: str, tests: dict[str, list[str]]) -> None:
    assert rows(begin, end) == list(tests)
    missing = []
    for each in [name for names in tests.values() for name in names]:
        path, _, name = each.partition("::")
        file = ROOT / path
        if not file.is_file() or not re.search(rf"^def {name}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
            missing.append(each)
    assert not missing
