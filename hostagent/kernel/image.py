"""The prebuilt object file of the kernel part."""

from importlib import resources
from pathlib import Path

from hostagent.errors import NoSuchFile

OBJECT_FILE = "headway.bpf.o"
CODED_OBJECT_FILE = "coded.bpf.o"  # loaded only where the coded tail is asked for
NAME_PLACEHOLDER = b"headway@@@@@@@@\0"  # in hw_ops; libbpf 1.1 cannot set a struct_ops map's values


def object_image(name: str = OBJECT_FILE) -> bytes:
    """Return a prebuilt BPF object.

    Raises:
        NoSuchFile: it was not installed.
    """
    path = resources.files("hostagent").joinpath("bpf", name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NoSuchFile(Path(str(path))) from None


def named_image(image: bytes, algorithm: str) -> bytes:
    """Return the object with the congestion control's name in place of the placeholder.

    Raises:
        ValueError: the placeholder is not there exactly once, or the name is too long.
    """
    if image.count(NAME_PLACEHOLDER) != 1:
        raise ValueError(f"{OBJECT_FILE} holds the name's placeholder {image.count(NAME_PLACEHOLDER)} times, not once")
    if len(algorithm) >= len(NAME_PLACEHOLDER):
        raise ValueError(f'"{algorithm}" is longer than {len(NAME_PLACEHOLDER) - 1} characters')
    return image.replace(NAME_PLACEHOLDER, algorithm.encode().ljust(len(NAME_PLACEHOLDER), b"\0"))
