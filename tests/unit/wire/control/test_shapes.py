"""What all requests share."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter, ValidationError

import fleet.wire.control
from fleet.wire.control.desired import DesiredValues
from fleet.wire.control.shapes import Shape
from tests.support.every import for_every


def bounded_numbers() -> Iterator[tuple[str, Any]]:
    """All fields with a bounded number, by their names, with what they take."""
    for module in pkgutil.iter_modules(fleet.wire.control.__path__):
        importlib.import_module(f"fleet.wire.control.{module.name}")
    shapes = [Shape]
    for shape in shapes:
        shapes.extend(shape.__subclasses__())
        for name, field in shape.model_fields.items():
            takes = TypeAdapter[Any](Annotated[field.annotation, "", *field.metadata])
            schema = takes.json_schema()
            if any("minimum" in one or "exclusiveMinimum" in one for one in (schema, *schema.get("anyOf", ()))):
                yield f"{shape.__name__}.{name}", takes


@for_every("name, takes", bounded_numbers)
def test_true_is_no_number(name: str, takes: TypeAdapter[Any]) -> None:
    with pytest.raises(ValidationError):
        takes.validate_python(True)


def test_what_clients_send_in_place_of_a_number_stays_allowed() -> None:
    assert [DesiredValues.model_validate({"volume": given}).volume for given in (1, "1", 1.0, None)] == [1, 1, 1, None]
