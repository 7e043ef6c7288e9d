"""Parts of a recipe that stages and recipes are made of: relations, encoders, data entries."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from likewise.files import may_be_path
from likewise.naming import RAW, settled_name
from likewise.records import Relation

# The widest layer, the most rows in a step and the most times through them that anyone can mean: a number
# with too many zeros is refused before it takes the memory or the days.
MAX_WIDTH, MAX_BATCH, MAX_EPOCHS = 65_536, 1_000_000, 100_000
# Data entries of a stage: each is opened and read.
MAX_ENTRIES = 1_000
# A key that names a model. `default` is replaced by the model that it stands for now, so that a recipe keeps
# its meaning when another model becomes the default one.
ModelName = Annotated[str, AfterValidator(settled_name)]
# Encoders over word vectors.
WORD_KINDS = ("bilstm", "lstm", "average")


class Part(BaseModel):
    """Base of all parts: unknown keys are errors, values do not change, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    # Keys that were added later. At their defaults they are not written, so the recipes and kept runs from
    # before them stay as they are.
    later: ClassVar[frozenset[str]] = frozenset()

    @model_serializer(mode="wrap")
    def _without_later_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out keys that were added later, if they have their defaults."""
        found: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        return {
            key: value
            for key, value in found.items()
            if key not in self.later
            or getattr(self, key) != fields[key].get_default(call_default_factory=True)
        }


class RelationSpec(Part):
    """One question about a pair or a text, with its scale (`lo`, `hi`) or its `labels`."""

    kind: Literal["graded", "ordered", "classes"] = Field(
        default="graded",
        description="Kind of answer: a number on a scale, a label in an order, or a label without one.",
    )
    lo: float = Field(default=0.0, description="Lowest rating of a `graded` relation.")
    hi: float = Field(default=5.0, description="Highest rating of a `graded` relation.")
    step: float = Field(
        default=1.0,
        gt=0,
        description="Distance between two points of a graded scale; errors are counted in this unit.",
    )
    labels: tuple[str, ...] = Field(
        default=(),
        description="Labels of a `classes` relation, or of an `ordered` one from lowest to highest.",
    )
    positions: tuple[float, ...] = Field(
        default=(),
        description="Numbers at which the labels of an `ordered` relation lie, by default 0, 1, 2 and so on.",
    )
    metric: str = Field(
        default="",
        description="Metric on dev and test sets, by default `accuracy` for `classes`, otherwise `spearman`.",
    )
    description: str = Field(default="", description="The question in words, which a `described` head reads.")
    texts: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Label texts, one or several for each label; a label without any is read by its name.",
    )
    corpus: str = Field(
        default="",
        description="Corpus and relation whose labels and label texts are used, such as `reuters46/topic`.",
    )

    @field_validator("texts", mode="before")
    @classmethod
    def _one_text_or_several(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {label: (ways,) if isinstance(ways, str) else ways for label, ways in value.items()}


def relation_table(relation: Relation) -> dict[str, Any]:
    """A relation as a recipe says it."""
    if relation.kind == "graded":
        table: dict[str, Any] = {"lo": relation.lo, "hi": relation.hi}
        return table if relation.step == 1 else {**table, "step": relation.step}
    table = {"kind": relation.kind, "labels": list(relation.labels)}
    return table if relation.kind == "classes" else {**table, "positions": list(relation.positions)}


class Word2VecSpec(Part):
    """Word vectors that gensim trains on the training texts and label texts of the run, before the stages."""

    width: int = Field(default=100, gt=0, le=MAX_WIDTH, description="Width of the word vectors.")
    window: int = Field(
        default=5, gt=0, le=1000, description="Number of words to either side that count as the context."
    )
    epochs: int = Field(default=5, gt=0, le=MAX_EPOCHS, description="Number of passes over the texts.")
    least: int = Field(
        default=2,
        gt=0,
        description="Occurrences that a word needs to get a vector; the words of label texts always get one.",
    )
    skip_gram: bool = Field(
        default=False,
        description="Train skip-gram instead of CBOW. CBOW is three times as fast.",
    )


class EncoderSpec(Part):
    """A pretrained checkpoint, an encoder over word vectors, or finished vectors of texts."""

    kind: Literal["pretrained", "bilstm", "lstm", "average", "vectors"] = Field(
        default="pretrained",
        description=(
            "A checkpoint (`pretrained`), a BiLSTM with max pooling over word vectors, the last state of an "
            "LSTM over word vectors, the average of word vectors, or ready vectors of texts (`vectors`)."
        ),
    )
    name: ModelName = Field(
        default=RAW,
        description=(
            "Checkpoint of a `pretrained` encoder: a folder, a name under `LIKEWISE_MODELS`, a hub id, `raw` "
            "(all-MiniLM-L6-v2 as published) or `default` (the model that answers when none is named)."
        ),
    )
    vectors: str = Field(
        default="",
        description=(
            "Word vectors of `bilstm`, `lstm` and `average` (a folder, a .txt or a .vec file), or the .npz "
            "file of kind `vectors`."
        ),
    )
    word2vec: Word2VecSpec | None = Field(
        default=None,
        description=(
            "Settings of word vectors that are learnt from the texts of the run instead of read from "
            "`vectors`; needs `likewise[word2vec]`."
        ),
    )
    hidden: int | None = Field(
        default=None,
        gt=0,
        le=MAX_WIDTH,
        description="LSTM units per direction, by default 2048 for `bilstm` and 100 for `lstm`.",
    )
    peepholes: bool = Field(
        default=False, description="Let the gates of an `lstm` see its cell state, as in the paper."
    )
    start_deviation: float | None = Field(
        default=None,
        gt=0,
        description=(
            "Standard deviation of the first weights of an `lstm`, which are drawn from a normal "
            "distribution; torch's own rule by default."
        ),
    )
    train_vectors: bool = Field(default=False, description="Train the word vectors as well.")
    dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Share of the entries of word vectors that is set to zero during training.",
    )
    padding: Literal["safe", "infersent-v1"] = Field(
        default="safe",
        description=(
            "Padding in the max of a `bilstm`: ignored (`safe`), or counted as zeros as in the paper's code "
            "(`infersent-v1`)."
        ),
    )
    words: Literal["all", "data"] = Field(
        default="all", description="Vocabulary: all word vectors there are, or only the words of the data."
    )
    max_length: int | None = Field(
        default=None,
        gt=2,
        le=1_000_000,
        description="Number of tokens after which a text is cut, by default the encoder's own limit.",
    )
    normalise: bool = Field(
        default=True,
        description=(
            "Keep the Normalize module of the checkpoint, if it has one; set this to false for any head but "
            "`cosine`."
        ),
    )
    prompt: str = Field(
        default="",
        max_length=10_000,
        description="Text that is put before every text, such as `query: ` for E5.",
    )

    @field_validator("name", "vectors")
    @classmethod
    def _a_path_if_any(cls, value: str) -> str:
        if value and not may_be_path(value):
            raise ValueError("this cannot be the name of a file or folder; correct it")
        return value

    @model_validator(mode="after")
    def _one_source_of_vectors(self) -> Self:
        if self.word2vec is not None and (self.vectors or self.kind not in WORD_KINDS):
            found = f"is set beside kind {self.kind!r} and vectors {self.vectors!r}"
            expected = f"but it needs kind {', '.join(WORD_KINDS[:-1])} or {WORD_KINDS[-1]} and no vectors"
            raise ValueError(f"word2vec: {found}, {expected}; remove word2vec, or correct the other two keys")
        return self


class DataSpec(Part):
    """Rated or labelled rows: a file, a corpus with its split such as stsb/train, or a hub id."""

    later: ClassVar[frozenset[str]] = frozenset({"labels", "constant"})

    source: str = Field(description="File, corpus with its split such as `stsb/train`, or hub id.")
    text_a: str | None = Field(
        default=None, description="Column of the first text, or of the only one; guessed if left out."
    )
    text_b: str | None = Field(default=None, description="Column of the second text; guessed if left out.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "Column of a file, or relation of a corpus, that holds each relation of the recipe; by default "
            "the one of the same name."
        ),
    )
    labels: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description=(
            "For a relation, the labels that stand for each label of the source; rows with other labels are "
            "not rated for it."
        ),
    )
    constant: dict[str, str | float] = Field(
        default_factory=dict,
        description=(
            "The same answer for every row of a source without ratings, such as translations: "
            '`{ paraphrase = "paraphrase" }`.'
        ),
    )
    rescale: bool = Field(
        default=True,
        description=(
            "Map ratings from the scale of a corpus, or of a guessed column, to the relation's scale."
        ),
    )
    round: bool = Field(
        default=False, description="Round ratings to the points of the relation's scale, halves to even."
    )
    weight: float = Field(
        default=1.0,
        gt=0,
        description="How often the rows of this entry are drawn, relative to the other entries.",
    )
    noise: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of ratings or labels that is replaced by other ones, drawn by the seed.",
    )
    limit: int | None = Field(
        default=None, gt=0, description="Number of rows that are read, from the beginning of the source."
    )
