"""One layer of phrases out of links that lie over one another."""

from __future__ import annotations

from hypothesis import given as over
from hypothesis import strategies as st

from likewise.phrases.blocks import SureLink, is_mark, pair_blocks
from likewise.phrases.spans import Phrases, given, uncrossed


def shown(a: Phrases, b: Phrases, links: list[tuple]) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The blocks as texts: those that are joined, then what either side has left."""
    blocks_a, blocks_b = pair_blocks(a, b, [SureLink(*link, 0.9) for link in links])
    joined = [(a.said(x.span), b.said(blocks_b[x.partner].span)) for x in blocks_a if x.partner is not None]
    left_a = [a.said(x.span) for x in blocks_a if x.partner is None]
    return joined, left_a, [b.said(y.span) for y in blocks_b if y.partner is None]


A = given(
    "The boy is playing chess in the park.",
    [(0, 8), (0, 2), (2, 8), (2, 5), (2, 4), (5, 8), (6, 8)],
    where="a",
)
B = given(
    "The boy is playing the violin in the park.",
    [(0, 9), (0, 2), (2, 9), (2, 6), (2, 4), (4, 6), (6, 9), (7, 9)],
    where="b",
)
LINKS = [
    ((0, 8), (0, 9)), ((0, 2), (0, 2)), ((1, 2), (1, 2)), ((2, 8), (2, 9)), ((2, 5), (2, 6)),
    ((2, 4), (2, 4)), ((4, 5), (5, 6)), ((5, 8), (6, 9)), ((6, 8), (7, 9)), ((8, 9), (9, 10)),
]  # fmt: skip


def test_blocks_are_the_short_linked_phrases_and_a_link_takes_in_its_article():
    assert shown(A, B, LINKS) == (
        [
            ("The boy", "The boy"),
            ("is playing", "is playing"),
            ("chess", "the violin"),
            ("in the park", "in the park"),
        ],
        [],
        [],
    )


def test_blocks_without_links_are_the_phrases_below_the_whole_text():
    assert shown(A, B, []) == (
        [],
        ["The boy", "is playing chess in the park"],
        ["The boy", "is playing the violin in the park"],
    )


def test_blocks_of_texts_of_one_word_are_joined_where_they_are_linked():
    a, b = given("Yes", [], where="a"), given("Yes", [], where="b")
    assert shown(a, b, [((0, 1), (0, 1))]) == ([("Yes", "Yes")], [], [])
    longer = given("Of course", [], where="b")
    assert shown(a, longer, [((0, 1), (0, 2))]) == ([("Yes", "Of course")], [], [])


def test_blocks_of_a_text_without_phrases_are_its_words():
    a, b = given("red car!", [], where="a"), given("blue car", [(0, 2)], where="b")
    assert shown(a, b, []) == ([], ["red", "car"], ["blue", "car"])
    assert shown(a, b, [((0, 2), (0, 2)), ((1, 2), (1, 2))]) == ([("car", "car")], ["red"], ["blue"])
    # Nothing lies inside the one link: the whole is all there is.
    assert shown(a, b, [((0, 2), (0, 2))]) == ([("red car", "blue car")], [], [])


def test_blocks_leave_out_marks_and_keep_emoji():
    a, b = given("... !", [], where="a"), given("I 🙂 .", [], where="b")
    assert shown(a, b, [((0, 1), (2, 3))]) == ([], [], ["I", "🙂"])
    assert is_mark("؟")
    assert not is_mark("🙂")
    assert shown(given("", [], where="a"), b, []) == ([], [], ["I", "🙂"])


def test_blocks_are_never_marks_alone_though_they_are_listed_as_phrases():
    a = given("The boy, he sleeps!?", [(0, 2), (2, 3), (5, 7)], where="a")
    b = given("No.", [(1, 2)], where="b")
    assert shown(a, b, []) == ([], ["The boy", "he sleeps"], ["No"])


def test_blocks_join_each_phrase_once_by_the_surest_link():
    a, b = given("big dogs", [], where="a"), given("dogs", [], where="b")
    blocks_a, blocks_b = pair_blocks(a, b, [SureLink((0, 1), (0, 1), 0.6), SureLink((1, 2), (0, 1), 0.9)])
    assert [(x.span, x.partner, x.link) for x in blocks_a] == [((0, 1), None, None), ((1, 2), 0, 1)]
    assert [(y.partner, y.link) for y in blocks_b] == [(1, 1)]


def test_blocks_look_again_at_what_a_long_link_left_free():
    a = given("the museum shows old maps", [(2, 5), (3, 5)], where="a")
    b = given("see old maps in the museum", [(0, 6), (1, 3), (3, 6), (4, 6)], where="b")
    links = [((2, 5), (0, 6)), ((3, 5), (1, 3)), ((1, 2), (5, 6))]
    joined = [("museum", "in the museum"), ("shows old maps", "old maps")]
    assert shown(a, b, links) == (joined, ["the"], ["see"])


SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=8)


@st.composite
def texts(draw):
    words = draw(st.lists(st.sampled_from(["ab", "cd", ".", ",", "🙂"]), min_size=1, max_size=10))
    wanted = [(start, min(start + length, len(words))) for start, length in draw(SPANS) if start < len(words)]
    return given(" ".join(words), uncrossed(wanted, len(words)), _places(words), where="x")


def _places(words):
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    return [(start, start + len(word)) for start, word in zip(starts, words, strict=True)]


@over(texts(), texts(), st.data())
def test_blocks_hold_every_word_once_and_partners_agree(a, b, data):
    def ends(phrases):
        start = st.integers(0, len(phrases.words) - 1)
        return start.flatmap(lambda s: st.tuples(st.just(s), st.integers(s + 1, len(phrases.words))))

    links = [
        SureLink(*link, 0.5)
        for link in data.draw(st.lists(st.tuples(ends(a), ends(b)), max_size=8, unique=True))
    ]
    both = pair_blocks(a, b, links)
    for phrases, blocks in zip((a, b), both, strict=True):
        held = [word for block in blocks for word in range(*block.span)]
        assert len(held) == len(set(held))
        words = {place for place, token in enumerate(phrases.tokens) if not is_mark(token)}
        assert words <= set(held)
        assert list(blocks) == sorted(blocks, key=lambda block: block.span)
        assert not any(all(map(is_mark, phrases.tokens[slice(*block.span)])) for block in blocks)
    for place, block in enumerate(both[0]):
        if block.partner is not None:
            other = both[1][block.partner]
            assert (other.partner, other.link) == (place, block.link)
            link = links[block.link]
            assert block.span[0] <= link.a[0] < link.a[1] <= block.span[1]
            assert other.span[0] <= link.b[0] < link.b[1] <= other.span[1]
