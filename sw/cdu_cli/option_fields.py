"""Commands whose options are the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

if TYPE_CHECKING:
    from actcodec.study.setup import TrainingSetup

OptionsT = TypeVar("OptionsT")


def with_options(kind: type[OptionsT], run: Callable[[OptionsT], None]) -> Callable[..., None]:
    """Return a command for typer: ``run`` with an option for each field of ``kind``, the dataclass that ``run`` takes.

    A field whose type is itself a dataclass stands for its own fields, in the help at the place of the field. Names must differ
    across all of them. Fields are annotated as typer's parameters are; the help is that of ``run``.
    """
    parameters = list(_parameters(kind))

    def command(**values: Any) -> None:
        run(_filled(kind, values))

    command.__doc__, command.__name__, command.__module__ = run.__doc__, run.__name__, run.__module__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameters(kind: type) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each option of a dataclass, in the order of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if is_dataclass(hints[field.name]):
            yield from _parameters(hints[field.name])
        else:
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def _filled(kind: type[OptionsT], values: Mapping[str, Any]) -> OptionsT:
    """Return the dataclass with the values of all options."""
    hints = get_type_hints(kind)
    content = {}
    for field in fields(kind):  # type: ignore[arg-type]
        inner = hints[field.name]
        grouped = isinstance(inner, type) and is_dataclass(inner)
        content[field.name] = _filled(inner, values) if grouped else values[field.name]
    return kind(**content)


def values_of(options: Any) -> dict[str, Any]:
    """Return the values of all options of a dataclass by name."""
    found: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        found |= values_of(value) if is_dataclass(value) else {field.name: value}
    return found


def training_setup(options: Any) -> TrainingSetup:
    """Return the training that options describe: their values of its fields, and the defaults of other fields."""
    from actcodec.study.setup import TrainingSetup

    known = {field.name for field in fields(TrainingSetup)}
    return TrainingSetup(**{name: value for name, value in values_of(options).items() if name in known})
