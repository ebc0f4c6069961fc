"""Path parameters: an id where a name may stand as well."""

from __future__ import annotations

import pytest

from trunkline.actors.values.errors import Invalid
from trunkline.http.calls.path_parameters import fits, parse_path


@pytest.mark.parametrize(
    ("placeholder", "name"),
    [("flowVersionId", "flowVersion"), ("experienceVersionIdOrName", "experienceVersion")],
)
def test_an_id_or_a_name_is_the_text_without_its_percent_encoding(placeholder: str, name: str) -> None:
    (parameter,) = parse_path(f"/versions/{{{placeholder}}}")
    assert parameter.name == name
    assert parameter.read("6920C0DE0000000000000001") == "6920C0DE0000000000000001"
    assert parameter.read("v1.0%2Fb%C3%A4r%20%25") == "v1.0/bär %"
    assert parameter.read("%C3%A4" * 255) == "ä" * 255
    for bad in ("%ff", "a" * 256):
        assert not fits(parameter, bad)
        with pytest.raises(Invalid, match=f"^{placeholder}: "):
            parameter.read(bad)
