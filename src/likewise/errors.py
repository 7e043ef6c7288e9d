"""All exceptions that Likewise raises on purpose.

    LikewiseError                 the user can act on it; the CLI prints it without a traceback
    ├── DataError                 a file or table does not hold what was expected (exit 1)
    │   ├── FormatError           it cannot be read at all: encoding, compression, no header
    │   ├── ValueRangeError       a value lies outside its relation's range
    │   └── EstimatorInputError   an estimator cannot use its X or y; also a ValueError
    ├── RecipeError               a recipe or an override is wrong (exit 2)
    ├── ModelError                a model folder is absent, damaged or of another kind (exit 1)
    ├── HubError                  the hub did not take a model (exit 1)
    ├── EvaluationError           the requested number is not defined (exit 1)
    ├── LeakageError              training and evaluation data overlap above the limit (exit 1)
    ├── UsageError                the call itself is wrong (exit 2)
    │   └── UnknownNameError      a name is not one of the known names; also a KeyError
    ├── MissingExtraError         an optional dependency is not installed (exit 2)
    └── Interrupted               the user pressed Ctrl-C; nothing is wrong (exit 130)

A message says what was found, what was expected and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from likewise.wording import ended, in_one_line, sentence


class LikewiseError(Exception):
    """Base class of all errors that a user can act on."""

    exit_code: int = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem at one place. `source` is the place: "pairs.csv:812" or "stage.0.learning_rate".

    As a text, the problem is the place, the message and the remedy, each part ending as a sentence.
    """

    source: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{in_one_line(self.source)}: {self.message}"
        return f"{ended(text)} {sentence(self.remedy)}" if self.remedy else text


class ProblemsError(LikewiseError):
    """An error with one or more located problems, all reported at once."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, problems)))


class DataError(ProblemsError):
    """A file or table does not hold what was expected."""


class FormatError(DataError):
    """A file cannot be read at all."""


class ValueRangeError(DataError):
    """A value lies outside its relation's range."""


class EstimatorInputError(DataError, ValueError):
    """X or y of an estimator of `likewise.sklearn` cannot be used. It is also a ValueError, as scikit-learn
    expects.
    """


class RecipeError(ProblemsError):
    """A recipe, or an override of it, is wrong."""

    exit_code = 2


class ModelError(LikewiseError):
    """A model folder is absent, damaged or of another kind. The message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


class HubError(LikewiseError):
    """The hub did not take a model. The message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(in_one_line(message))


class EvaluationError(LikewiseError):
    """The requested number is not defined, such as a correlation of constant predictions."""


class LeakageError(LikewiseError):
    """Training and evaluation data overlap above the recipe's limit."""


class UsageError(LikewiseError):
    """The call itself is wrong."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """A name is not one of the known names. It is also a KeyError, so that mappings behave as usual."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtraError(LikewiseError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed. Install it with: pip install 'likewise[{extra}]'")


class Interrupted(LikewiseError):
    """The user pressed Ctrl-C. The message says what was saved and how to continue."""

    exit_code = 130
