from fleet.adapters.redis.sessions.history_terms import HistoryTerms


def test_terms_are_read_as_they_were_written_and_none_from_an_older_version() -> None:
    for terms in (HistoryTerms(3600), HistoryTerms(60, remembers=True)):
        assert HistoryTerms.read(terms.text) == terms
    assert HistoryTerms.read("") is None
