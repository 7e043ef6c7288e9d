"""Phrases as a tree: what is refused, how nodes come, and which of two crossing spans is kept."""

from __future__ import annotations

import pytest
from hypothesis import given as with_examples
from hypothesis import settings
from hypothesis import strategies as st

from likewise.errors import DataError, UsageError
from likewise.phrases.spans import Phrases, given, nodes, order, uncrossed

TEXT = "the old dog sleeps here"


def cross(one, other):
    (a, b), (c, d) = sorted((one, other))
    return a < c < b < d


def test_phrases_say_their_spans_and_words():
    phrases = given(TEXT, [(0, 3), (1, 3)], where="here")
    assert phrases.said((0, 3)) == "the old dog"
    assert phrases.tokens == tuple(TEXT.split())
    assert phrases.by == "given"


def test_nodes_are_words_phrases_and_root_with_children_first():
    spans, children = nodes(given(TEXT, [(1, 3), (0, 3)], where="here"))
    assert spans == [(0, 1), (1, 2), (2, 3), (1, 3), (0, 3), (3, 4), (4, 5), (0, 5)]
    assert children == [[], [], [], [1, 2], [0, 3], [], [], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "wanted"), [("", ([], [])), (" \n", ([], [])), ("dog", ([(0, 1)], [[]])), ("a b", None)]
)
def test_nodes_of_short_texts(text, wanted):
    found = nodes(given(text, [], where="here"))
    assert found == (wanted or ([(0, 1), (1, 2), (0, 2)], [[], [], [0, 1]]))


def test_nodes_list_root_and_words_once_where_they_are_given_too():
    spans, children = nodes(given("a b", [(0, 2), (0, 1)], where="here"))
    assert spans == [(0, 1), (1, 2), (0, 2)]
    assert children == [[], [], [0, 1]]


SPANS = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 6)).map(lambda s: (s[0], min(12, sum(s)))))


@settings(max_examples=100)
@with_examples(SPANS)
def test_nodes_are_a_tree_whatever_the_spans(candidates):
    kept = uncrossed(candidates, 12)
    spans, children = nodes(given("w " * 12, kept, where="here"))
    assert spans[-1] == (0, 12)
    assert set(spans) == {*kept, *((n, n + 1) for n in range(12)), (0, 12)}
    assert len(set(spans)) == len(spans)
    assert sorted(child for each in children for child in each) == list(range(len(spans) - 1))
    for node, (span, each) in enumerate(zip(spans, children, strict=True)):
        assert all(child < node for child in each)
        if each:  # children tile their parent
            edges = [edge for child in each for edge in spans[child]]
            assert (edges[0], edges[-1]) == span
            assert edges[1:-1:2] == edges[2::2]


@settings(max_examples=100)
@with_examples(SPANS)
def test_uncrossed_drops_a_span_only_for_one_before_it(candidates):
    kept = uncrossed(candidates, 12)
    assert list(kept) == order(kept)
    for number, span in enumerate(candidates):
        before = {other for other in candidates[:number] if other in kept}
        assert (span in kept) == (not any(cross(span, other) for other in before))


def test_given_merges_repeats_and_sorts():
    assert given(TEXT, [[3, 5], (0, 2), [0, 3], (0, 2)], where="here").spans == ((0, 3), (0, 2), (3, 5))


def test_given_takes_the_users_own_words():
    phrases = given("New York rocks", [(0, 2)], [[0, 8], [9, 14]], where="here")
    assert phrases.tokens == ("New York", "rocks")


@pytest.mark.parametrize(
    ("spans", "what"),
    [
        ([(0, 6)], "span 0:6 lies outside the text's 5 words"),
        ([(-1, 2)], "span -1:2 lies outside"),
        ([(2, 2)], "span 2:2 is empty"),
        ([(3, 1)], "span 3:1 is empty"),
        ([(1, 3), (0, 2)], "span 0:2 'the old' crosses span 1:3 'old dog'"),
        ([(0, 2.0)], "span (0, 2.0) is not two whole numbers"),
        ([(0, 1, 2)], "span (0, 1, 2) is not two whole numbers"),
        ([(False, True)], "is not two whole numbers"),
        (["ab"], "span 'ab' is not two whole numbers"),
        ([7], "span 7 is not two whole numbers"),
    ],
)
def test_given_refuses_spans_and_says_where_and_what_to_do(spans, what):
    with pytest.raises(DataError) as caught:
        given(TEXT, spans, where="pairs.jsonl:7")
    assert str(caught.value).startswith("pairs.jsonl:7: ")
    assert what in str(caught.value)
    assert caught.value.problems[0].remedy


def test_given_reports_all_problems_at_once():
    with pytest.raises(DataError) as caught:
        given(TEXT, [(0, 9), (4, 4), (0, 2), (1, 3)], where="here")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("words", [[(0, 9)], [(0, 0)], [(1, 3), (0, 1)], [(0, 2), (1, 3)], [(-1, 2)]])
def test_given_refuses_words_that_overlap_or_leave_the_text(words):
    with pytest.raises(DataError, match="here: word"):
        given("a b", [], words, where="here")


@pytest.mark.parametrize(
    "spans",
    [((0, 3),), ((1, 1),), ((0, 1), (0, 2)), ((0, 2), (0, 2))],
    ids=["out", "empty", "order", "twice"],
)
def test_phrases_refuse_what_is_no_tree(spans):
    with pytest.raises(UsageError, match="given"):
        Phrases("a b", ((0, 1), (2, 3)), spans, "hand")
    with pytest.raises(UsageError, match="word 1"):
        Phrases("a b", ((0, 1), (0, 3)), (), "hand")


def test_nodes_of_a_long_text_take_no_long():
    count = 20_000
    nested = uncrossed([(start, count) for start in range(0, 500)], count)
    spans, children = nodes(given("w " * count, nested, where="here"))
    assert len(spans) == len(children) == count + 500
