"""Any JSON value, for hypothesis; also what only Python's own reader takes: NaN, and infinity."""

from hypothesis import strategies as st

WORDS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
