"""The kinds of stages a recipe may have, each with its keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, NonNegativeFloat, PositiveInt, Tag, ValidationInfo, field_validator

from likewise.recipes.schema_parts import DataSpec, Part


class ObjectiveSpec(Part):
    """What is learnt about one relation."""

    relation: str
    head: Literal["scalar", "distribution", "classes", "cosine", "contrast", "described"] = "cosine"
    loss: str = "mse"
    pairing: tuple[str, ...] = ("u", "v", "absdiff")
    hidden: tuple[PositiveInt, ...] = Field(
        default=(), description="widths of hidden layers: 50 is Tai's head; [512, 512]"
    )
    activation: Literal["sigmoid", "tanh", "relu", "none"] = "sigmoid"
    scale_features: bool = Field(
        default=False, description="the head sees features in units of their spread before training"
    )
    floor: float = Field(
        default=0.0, ge=-1, lt=1, description="cosine that the lowest rating maps to: 0 or −1"
    )
    weight: float = Field(default=1.0, ge=0)
    allow_blind: bool = False
    within: Literal["data", "batch"] = Field(
        default="data",
        description="losses that compare pairs do so within each data entry, or over the whole batch",
    )
    k: float | None = Field(default=None, gt=0)
    x0: float | None = Field(default=None, ge=0)
    boundary: Literal["safe", "paper-clamp", "code-mask", "none"] | None = None
    temperature: float | None = Field(default=None, gt=0)
    scale: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, gt=0)
    positive: float | None = None
    matcher: Literal["concat-mlp", "bilinear", "dot", "cosine", "interaction", "concat-linear"] = Field(
        default="concat-mlp", description="described: how pair and description meet; all of them share one"
    )

    @field_validator("hidden", mode="before")
    @classmethod
    def _one_layer_by_its_width(cls, value: Any) -> Any:
        return () if value == 0 else (value,) if isinstance(value, int) else value

    def options(self) -> dict[str, Any]:
        """The loss's own options that were given."""
        names = ("k", "x0", "boundary", "temperature", "scale", "delta", "positive")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class OptimisedStageSpec(Part):
    """What stages that train an encoder share: optimisation, when it stops."""

    name: str = ""
    filter_against: tuple[str, ...] = Field(
        default=(),
        description="evaluation sets whose pairs are dropped from data and dev: sts7, stsb/test, a file",
    )
    allow_leak: bool = Field(default=False, description="keep training pairs that stand in filter_against")
    epochs: float = Field(default=1, gt=0)
    max_steps: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=16, gt=0, description="pairs per step, over all processes")
    order: Literal["length", "random", "fixed"] = Field(
        default="length", description="how rows meet in a batch"
    )
    token_budget: int | None = Field(default=None, gt=0)
    accumulation: int = Field(default=1, gt=0)
    optimiser: Literal["adamw", "sgd", "exact"] = Field(
        default="adamw", description="exact: the encoder stays, linear heads are solved (ridge, logistic)"
    )
    learning_rate: float = Field(default=2e-5, gt=0)
    head_learning_rate: float | None = Field(default=None, gt=0)
    momentum: float = Field(default=0.0, ge=0, lt=1)
    weight_decay: float = Field(default=0.01, ge=0)
    layer_decay: float = Field(default=1.0, gt=0, le=1)
    rate_schedule: Literal["linear", "constant", "cosine", "paper", "code", "infersent"] = "linear"
    warmup: float = Field(default=0.1, ge=0, lt=1)
    clip: float = Field(default=1.0, ge=0, description="gradient norm; 0 is off")
    average: float = Field(
        default=0.0, ge=0, lt=1, description="decay of a running mean of the weights, which is kept; 0 is off"
    )
    freeze: tuple[str, ...] = ()
    evaluate_every: int | None = Field(default=None, gt=0, description="steps; once per epoch if empty")
    save_every: int | None = Field(default=None, gt=0, description="steps between checkpoints")
    patience: int | None = Field(
        default=None, gt=0, description="evaluations without a better one before stopping"
    )
    stop_after: int | None = Field(
        default=None, gt=0, description="evaluations without a better one before stopping, in a row or not"
    )
    select: bool = Field(default=True, description="keep the best dev step; otherwise the last")


class TrainedStageSpec(OptimisedStageSpec):
    """What stages of rated or labelled rows share: their data and dev."""

    data: tuple[DataSpec, ...] = Field(min_length=1)
    dev: tuple[DataSpec, ...] = ()
    dev_share: float = Field(
        default=0.1, gt=0, lt=1, description="share of data split off where no dev is given"
    )
    fold: tuple[PositiveInt, PositiveInt] | None = Field(
        default=None, description="[k, K]: part k of K of the data is dev instead; 1 is the first"
    )

    @field_validator("fold")
    @classmethod
    def _one_of_several(cls, value: tuple[int, int] | None) -> tuple[int, int] | None:
        if value is not None and not (value[0] <= value[1] and value[1] > 1):
            raise ValueError(f"{list(value)} is no part of several: [k, K] has k from 1 to K, and K above 1")
        return value


class StageSpec(TrainedStageSpec):
    """Rated pairs: objectives, and how they meet in a step."""

    kind: Literal["pairs"] = "pairs"
    objective: tuple[ObjectiveSpec, ...] = Field(min_length=1)
    select_source: Literal["cosine", "head"] | None = Field(default=None, description="score source on dev")
    select_metric: str = Field(
        default="", description="spearman, pearson, accuracy, …; the relation's own if empty"
    )
    schedule: Literal["single", "multi-label", "multi-task"] = "multi-label"
    shuffle_relations: bool = Field(
        default=False, description="multi-task: relations in random order per batch"
    )
    weighting: Literal["sum", "mean", "uncertainty"] = Field(
        default="sum", description="how the losses of a step add up; uncertainty learns a weight for each"
    )
    anchor: float = Field(
        default=0.0,
        ge=0,
        description="weight that holds unrated cosines of a batch where the starting encoder had them",
    )


class LabelStageSpec(TrainedStageSpec):
    """Labelled texts: every relation it names is a task, every label a text (label embedding)."""

    kind: Literal["labels"]
    task: tuple[str, ...] = Field(default=(), description="relations that are learnt; all if empty")
    weights: dict[str, float] = Field(default_factory=dict, description="λ of a task; 1 if left out")
    matcher: Literal[
        "concat-mlp", "bilinear", "dot", "cosine", "euclid", "interaction", "concat-linear", "one-hot"
    ] = Field(default="concat-mlp", description="one-hot: a linear layer per task, label texts unread")
    hidden: int | None = Field(default=None, gt=0, description="of concat-mlp; the vector's width if empty")
    loss: Literal["softmax", "bce", "positive"] = "softmax"
    label_encoder: Literal["shared", "own"] = Field(
        default="shared", description="own: labels have an encoder of their own, begun like the texts'"
    )
    max_words: int | None = Field(
        default=None, gt=1, description="longer texts keep their first and last words"
    )


class JointStageSpec(TrainedStageSpec):
    """Fine-tuning of a transformer that reads one text, or two as one input, and answers one relation."""

    kind: Literal["joint"]
    relation: str = Field(
        default="", description="what is learnt, of data that rates it; the recipe's first if empty"
    )
    sample: int | None = Field(
        default=None, gt=0, description="so many training rows, drawn by the recipe's seed; all if empty"
    )
    max_length: int = Field(default=128, gt=2, description="pieces; longer rows are cut")
    targets: Literal["standardised", "raw"] = Field(
        default="standardised",
        description="ratings around their mean in units of their spread, or as they are (seed 003's script)",
    )
    dev_share: float = Field(
        default=0.1, ge=0, lt=1, description="share of data split off where no dev is given; 0: none"
    )
    epochs: float = Field(default=4, gt=0)
    batch_size: int = Field(default=32, gt=0)
    learning_rate: float = Field(default=3e-5, gt=0)
    select: bool = Field(default=False, description="keep the best dev step; otherwise the last")


class ParaphraseSpec(Part):
    """Paraphrases: a named corpus (asset/valid), a file with two text columns, or a file of phrase links."""

    source: str
    text_a: str | None = None
    text_b: str | None = None
    only: dict[str, str] = Field(
        default_factory=dict, description="column or relation → the value that rows must have"
    )
    limit: int | None = Field(default=None, gt=0, description="rows at most, a sample that all seeds share")


class InjectStageSpec(OptimisedStageSpec):
    """Phrases and sentences of paraphrases taught to an encoder before it is fine-tuned."""

    kind: Literal["inject"]
    data: tuple[ParaphraseSpec, ...] = Field(min_length=1)
    dev_share: float = Field(default=0.05, gt=0, lt=0.5, description="share of pairs that selects and stops")
    test_share: float = Field(default=0.05, ge=0, lt=0.5, description="share of pairs measured at the end")
    learns: Literal["both", "phrases", "sentences", "binary-phrases"] = Field(
        default="both", description="phrases alone, sentences alone, phrases without random pairs"
    )
    features: Literal["elaborate", "simple", "cosine"] = Field(
        default="elaborate",
        description="max-pooled with product and difference, mean-pooled without; cosine: for two towers",
    )
    two_tower: bool = Field(
        default=False, description="texts encoded apart: for a retrieval encoder", validate_default=True
    )
    anchor: float = Field(
        default=10.0,
        ge=0,
        description="two towers: weight that holds cosines of texts that are no paraphrases of each other",
    )
    negatives: Literal["uniform", "near"] = Field(
        default="uniform", description="near: in-paraphrase negatives overlap the right phrase"
    )
    dropout: float = Field(default=0.2, ge=0, lt=1, description="before the heads")
    max_length: int = Field(default=128, gt=2, description="pieces; longer pairs are left out and counted")
    phraser: str = Field(default="auto", description="where spans come from: auto, rules, spacy, a folder")
    aligner: str = Field(default="default", description="encoder that aligns pairs that come without links")
    epochs: float = Field(default=10, gt=0, description="at most")
    batch_size: int = Field(default=100, gt=0, description="pairs per step, random ones included")
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    rate_schedule: Literal["linear", "constant", "cosine"] = "constant"
    warmup: float = Field(default=0.0, ge=0, lt=1)
    stop_after: int | None = Field(
        default=2, gt=0, description="evaluations without a better one before stopping, in a row or not"
    )

    @field_validator("two_tower")
    @classmethod
    def _features_that_fit(cls, two_tower: bool, info: ValidationInfo) -> bool:
        features = info.data.get("features")
        if two_tower and features == "simple":
            raise ValueError(
                'features = "simple" let texts that are encoded apart never meet; '
                'take "cosine" or "elaborate", or two_tower = false'
            )
        if not two_tower and features == "cosine":
            raise ValueError(
                'features = "cosine" are for texts that are encoded apart; '
                'set two_tower = true, or take "elaborate" or "simple"'
            )
        return two_tower


class ParallelSpec(Part):
    """Sentences and their translations: a named corpus (tatoeba/en-de_train), a file, or two Moses files."""

    source: str | tuple[str, str]
    languages: tuple[str, str] | None = Field(
        default=None, description="codes of the two sides; read from names if left out"
    )
    columns: tuple[str, str] | None = None
    limit: int | None = Field(default=None, gt=0, description="rows at most, a sample that all seeds share")


class SplitWeights(Part):
    """What each term of the first stage weighs; 0 computes and shows it, and learns nothing from it."""

    meaning: NonNegativeFloat = 1.0
    language: NonNegativeFloat = 1.0
    identification: NonNegativeFloat = 1.0
    reconstruction: NonNegativeFloat = 1.0
    push: NonNegativeFloat = 0.0
    cross: NonNegativeFloat = 0.0


class VectorStageSpec(Part):
    """What stages over a frozen encoder's cached vectors share."""

    name: str = ""
    dev: tuple[DataSpec, ...] = Field(default=(), description="rated pairs that are looked at every epoch")
    filter_against: tuple[str, ...] = Field(
        default=(), description="evaluation sets whose pairs are dropped from rated data and dev"
    )
    allow_leak: bool = Field(default=False, description="keep training pairs that stand in filter_against")
    select_metric: str = Field(default="pearson", description="of the cosine, on rated dev pairs")
    epochs: int = Field(default=1000, gt=0, description="at most")
    min_epochs: int = Field(default=0, ge=0, description="before patience counts")
    patience: int | None = Field(default=10, gt=0, description="epochs without a better one before stopping")
    learning_rate: float = Field(default=1e-4, gt=0, description="of Adam")
    weight_decay: float = Field(default=0.0, ge=0)
    select: bool = Field(default=True, description="keep the best epoch; otherwise the last")


class ParallelStageSpec(VectorStageSpec):
    """Stage 1 of the multilingual method: meaning and language apart, on parallel text."""

    kind: Literal["parallel"]
    parallel: tuple[ParallelSpec, ...] = Field(min_length=1)
    dev_share: float = Field(default=0.2, gt=0, lt=1, description="share of parallel rows kept for dev")
    form: Literal["paper", "fused"] = Field(
        default="paper", description="fused: negatives and positives of the batch itself, one product"
    )
    start: Literal["random", "identity", "means"] = Field(
        default="random", description="of the meaning layer; means: without what sets languages apart"
    )
    prelayer: Literal["relu", "gelu", "silu", "tanh"] | None = None
    reversible: bool = Field(default=False, description="l = e − m: nothing to reconstruct")
    reconstruction: Literal["mean", "sum", "cosine"] = "mean"
    margin: float = Field(default=0.0, ge=-1, lt=1)
    weights: SplitWeights = SplitWeights()
    balance: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="language pairs drawn by size^balance: 1 as they lie, 0 all alike",
    )
    batch_size: int = Field(default=512, gt=1)
    select_by: Literal["loss", "rated"] = Field(
        default="loss", description="loss on parallel dev, or the metric on rated dev"
    )


class RefineStageSpec(VectorStageSpec):
    """Stage 2 of the multilingual method: meaning sharpened on rated pairs."""

    kind: Literal["refine"]
    relation: str = ""
    data: tuple[DataSpec, ...] = Field(min_length=1)
    hidden: int | None = Field(
        default=None, gt=0, description="width of the hidden layer; the vector's if empty"
    )
    activation: Literal["relu", "gelu", "silu", "tanh"] = "relu"
    residual: bool = True
    convolution: int | None = Field(default=None, gt=0, description="kernel of a convolution before it: 3, 5")
    map: Literal["identity", "affine", "clamp", "sigmoid", "tanh", "arccos"] = Field(
        default="identity", description="g: from cosine to rating, monotone"
    )
    loss: Literal["mse", "l1", "smooth_k2", "translated_relu", "pearson", "cosent"] = "mse"
    dev_share: float = Field(
        default=0.1, gt=0, lt=1, description="share of data split off where no dev is given"
    )
    parallel: tuple[ParallelSpec, ...] = Field(
        default=(), description="translations that go on finding each other while ratings are learnt"
    )
    align: float = Field(
        default=0.1, ge=0, description="weight of that: InfoNCE over a batch of translations"
    )
    temperature: float = Field(default=0.05, gt=0)
    align_batch: int = Field(default=256, gt=1, description="translations per step")
    joint: bool = Field(default=False, description="the first stage's layers learn too")
    batch_size: int = Field(default=64, gt=1)
    epochs: int = Field(default=50, gt=0, description="at most")
    patience: int | None = Field(default=5, gt=0, description="epochs without a better one before stopping")


def _kind_of_stage(value: Any) -> str:
    """Which shape a stage has; pairs where it does not say."""
    found = value.get("kind", "pairs") if isinstance(value, dict) else getattr(value, "kind", "pairs")
    return str(found)


AnyStage = Annotated[
    Annotated[StageSpec, Tag("pairs")]
    | Annotated[LabelStageSpec, Tag("labels")]
    | Annotated[JointStageSpec, Tag("joint")]
    | Annotated[InjectStageSpec, Tag("inject")]
    | Annotated[ParallelStageSpec, Tag("parallel")]
    | Annotated[RefineStageSpec, Tag("refine")],
    Discriminator(_kind_of_stage),
]
