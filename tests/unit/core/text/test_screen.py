"""What fits on a small screen is shown as it is; of a longer text its beginning, with a mark that it goes on."""

from fleet.core.text.screen import LONGEST_ALERT, cut_for_screen


def test_a_text_that_fits_is_shown_whole() -> None:
    assert cut_for_screen("天" * LONGEST_ALERT) == "天" * LONGEST_ALERT


def test_of_a_longer_text_the_beginning_is_shown_and_that_it_goes_on() -> None:
    assert cut_for_screen("天" * (LONGEST_ALERT + 1)) == "天" * (LONGEST_ALERT - 1) + "…"
