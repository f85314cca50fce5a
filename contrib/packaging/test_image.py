"""The image of the controller: which packages it is made of."""

import pytest

from contrib.packaging.image import of_one_version

OLD, NEW = "headway-controller_0.1.0_amd64.deb", "headway-controller_0.2.0_amd64.deb"


def folder(path, *names):
    for name in names:
        (path / name).touch()
    return path


def test_an_image_is_made_of_the_two_packages_of_one_version(tmp_path):
    there = folder(tmp_path, "headway_0.2.0_amd64.deb", NEW, "headway-agent_0.1.0_amd64.deb")
    assert [deb.name for deb in of_one_version(there)] == ["headway_0.2.0_amd64.deb", NEW]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["headway_0.2.0_amd64.deb"], "no packages in "),
        (["headway_0.2.0_amd64.deb", OLD], f": headway_0.2.0_amd64.deb, {OLD}: leave one"),
        (["headway_0.1.0_amd64.deb", "headway_0.2.0_amd64.deb", OLD, NEW], f", {OLD}, {NEW}: leave one"),
    ],
)
def test_no_image_is_made_of_packages_of_two_versions_or_of_one_package(tmp_path, names, why):
    with pytest.raises(SystemExit, match=r"image\.py: ") as refused:
        of_one_version(folder(tmp_path, *names))
    assert why in str(refused.value)
