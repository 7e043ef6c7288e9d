"""What a stage will do, in lines, said before it does it."""

from __future__ import annotations

from likewise.methods.label_embedding import LabelModel
from likewise.methods.pairs import PairModel
from likewise.recipes.build import build_settings
from likewise.recipes.schema import Recipe
from likewise.recipes.schema_stages import LabelStageSpec, ParallelStageSpec, RefineStageSpec, StageSpec
from likewise.recipes.stages import StageData
from likewise.wording import counted


def plan_lines(recipe: Recipe, number: int, stage: StageSpec, model: PairModel, data: StageData) -> list[str]:
    """What stage `number` will do, said before it does it."""
    from likewise.training.preparing import plan

    settings = build_settings(stage, seed=recipe.seed)
    steps = plan(model, data.train, settings, data.weights)
    course = (
        "  linear heads solved exactly, the encoder stays as it is"
        if stage.optimiser == "exact"
        else f"  {counted(steps.steps, 'step')}, {steps.steps_per_epoch:,} an epoch, "
        f"batch {stage.batch_size}, {stage.optimiser} at {stage.learning_rate:g}, seed {recipe.seed}"
    )
    objectives = "; ".join(
        f"{o.relation} by {o.head} + {o.loss}" + (f" ×{o.weight:g}" if o.weight != 1 else "")
        for o in stage.objective
    )
    return [
        f"stage {number} {stage.name}".rstrip() + f": {counted(steps.pairs, 'pair')}, dev {_dev_sizes(data)}",
        f"  learns {objectives} ({stage.schedule})",
        course,
        *(f"  {line}" for line in data.leakage),
    ]


def label_plan_lines(
    recipe: Recipe, number: int, stage: LabelStageSpec, model: LabelModel, data: StageData
) -> list[str]:
    """The same for a stage of labelled texts."""
    from likewise.training.preparing import plan

    steps = plan(model, data.train, build_settings(stage, seed=recipe.seed), data.weights)
    tasks = "; ".join(f"{task.name} ({counted(len(task.labels), 'label')})" for task in model.tasks)
    return [
        f"stage {number} {stage.name}".rstrip() + f": {counted(steps.pairs, 'text')}, dev {_dev_sizes(data)}",
        f"  learns {tasks} by {stage.matcher} + {stage.loss}",
        f"  {counted(steps.steps, 'step')}, {steps.steps_per_epoch:,} an epoch, batch {stage.batch_size}, "
        f"{stage.optimiser} at {stage.learning_rate:g}, seed {recipe.seed}",
        *(f"  {line}" for line in data.leakage),
    ]


def frozen_plan_lines(
    recipe: Recipe, number: int, stage: ParallelStageSpec | RefineStageSpec, data: StageData
) -> list[str]:
    """The same for a stage over a frozen encoder."""
    name = f"stage {number} {stage.name}".rstrip()
    course = f"at most {counted(stage.epochs, 'epoch')}, Adam at {stage.learning_rate:g}, seed {recipe.seed}"
    translations = counted(sum(len(text) for text in data.parallel), "translation")
    if isinstance(stage, ParallelStageSpec):
        codes = sorted({code for text in data.parallel for code in (text.language_a, text.language_b)})
        held = f", rated dev {_dev_sizes(data)}" if data.dev else ""
        what = f"{translations} in {counted(len(codes), 'language')} ({' '.join(codes)}), "
        return [
            f"{name}: {what}{stage.dev_share:.0%} of them dev{held}",
            f"  splits meaning from language ({stage.form} form), batch {stage.batch_size}, {course}",
            *(f"  {line}" for line in data.leakage),
        ]
    beside = f", beside {translations}" if data.parallel else ""
    return [
        f"{name}: {counted(len(data.train), 'rated pair')}{beside}, dev {_dev_sizes(data)}",
        f"  refines meaning by {stage.loss}, batch {stage.batch_size}, {course}",
        *(f"  {line}" for line in data.leakage),
    ]


def _dev_sizes(data: StageData) -> str:
    return ", ".join(f"{entry.name} {len(entry.records):,}" for entry in data.dev)
