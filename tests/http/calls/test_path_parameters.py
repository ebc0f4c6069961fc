"""Path parameters: an id where a name may stand as well."""

from __future__ import annotations

import pytest

from trunkline.actors.core.values.errors import Invalid
from trunkline.http.calls.path_parameters import fits, parse_path


@pytest.mark.parametrize(
    ("placeholder", "name"),
    [("flowVersionId", "flowVersion"), ("experienceVersionIdOrName", "experienceVersion")],
)
def test_an_id_or_a_name_is_a_text_of_255_characters(placeholder: str, name: str) -> None:
    (parameter,) = parse_path(f"/versions/{{{placeholder}}}")
    assert parameter.name == name
    assert parameter.read("6920C0DE0000000000000001") == "6920C0DE0000000000000001"
    assert parameter.read("ä" * 255) == "ä" * 255
    assert not fits(parameter, "a" * 256)
    with pytest.raises(Invalid, match=f"^{placeholder}: has 256 characters"):
        parameter.read("a" * 256)
