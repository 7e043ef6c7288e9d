"""Every exception Likewise raises on purpose.

    LikewiseError                 the user can act on it; the CLI prints it without a traceback
    ├── DataError                 a file or table does not hold what was expected (exit 1)
    │   ├── FormatError           it cannot be read at all: encoding, compression, no header
    │   └── ValueRangeError       a value lies outside its relation's range
    ├── RecipeError               a recipe or an override is wrong (exit 2)
    ├── ModelError                a model folder is absent, damaged or of another kind (exit 1)
    ├── EvaluationError           a number was asked for that has no meaning (exit 1)
    ├── LeakageError              training and evaluation data overlap above the limit (exit 1)
    ├── UsageError                the call itself is wrong (exit 2)
    │   └── UnknownNameError      a name is not among those there are; also a KeyError
    ├── MissingExtraError         an optional dependency is not installed (exit 2)
    └── Interrupted               somebody pressed Ctrl-C; nothing is wrong (exit 130)

A message says what was found, what was expected and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.wording import in_one_line


class LikewiseError(Exception):
    """Base of all errors that a user can act on."""

    exit_code: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one place: `source` is "pairs.csv:812" or "stage.0.learning_rate"."""

    source: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{in_one_line(self.source)}: {self.message}"
        return f"{text}; {self.remedy}" if self.remedy else text


class ProblemsError(LikewiseError):
    """An error that carries one or more located problems, all reported at once."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, problems)))


class DataError(ProblemsError):
    """A file or table does not hold what was expected."""


class FormatError(DataError):
    """A file cannot be read at all."""


class ValueRangeError(DataError):
    """A value lies outside its relation's range."""


class RecipeError(ProblemsError):
    """A recipe, or an override of it, is wrong."""

    exit_code = 2


class ModelError(LikewiseError):
    """A model folder is absent, damaged or of another kind; said in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


class EvaluationError(LikewiseError):
    """A number was asked for that has no meaning, such as a correlation of constant predictions."""


class LeakageError(LikewiseError):
    """Training and evaluation data overlap above the recipe's limit."""


class UsageError(LikewiseError):
    """The call itself is wrong."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """A name is not among those there are; a KeyError too, so that mappings behave like mappings."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtraError(LikewiseError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'likewise[{extra}]'")


class Interrupted(LikewiseError):
    """Somebody pressed Ctrl-C; the message says what is left and how to go on."""

    exit_code = 130
