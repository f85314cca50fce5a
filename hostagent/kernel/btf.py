"""The kernel part's types as its own object file has them: structs and maps, read from the section ``.BTF``. Pure.

Source: Documentation/bpf/btf.rst of Linux; the ELF header is that of elf(5), 64 bits, little endian as the object is.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hostagent.errors import LayoutDiffers

_MAGIC = 0xEB9F
_INT, _POINTER, _ARRAY, _STRUCT, _ENUM, _VAR, _DATASEC = 1, 2, 3, 4, 6, 14, 15
_RENAMED = frozenset((8, 9, 10, 11, 18))  # typedef, volatile, const, restrict, type tag: another name for a type
# what follows a type's three words: so many bytes once, and so many for each of its members
_BEHIND = {_INT: (4, 0), _ARRAY: (12, 0), _STRUCT: (0, 12), 5: (0, 12), _ENUM: (0, 8), 13: (0, 8)}
_BEHIND |= {_VAR: (4, 0), _DATASEC: (0, 12), 17: (4, 0), 19: (0, 12)}
_SIGNED = 1 << 24  # of an int's encoding
_WORDS = struct.Struct("<III")
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MAPS = ".maps"


class _Type(NamedTuple):
    name: str
    kind: int
    size_or_type: int
    words: tuple[int, ...]  # behind it


@dataclass(frozen=True, slots=True)
class Member:
    """One number or name in a struct; ``code`` is that of Python's module struct."""

    name: str
    offset_bytes: int
    code: str


@dataclass(frozen=True, slots=True)
class Record:
    """A C struct; of those within it, their members. What is called ``padding`` is none of its members."""

    name: str
    size_bytes: int
    members: tuple[Member, ...]
    _struct: struct.Struct = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Put the members together, with the bytes between them that nobody reads."""
        codes, end = "=", 0
        for member in self.members:
            codes += "x" * (member.offset_bytes - end) + member.code
            end = member.offset_bytes + struct.calcsize("=" + member.code)
        object.__setattr__(self, "_struct", struct.Struct(codes + "x" * (self.size_bytes - end)))

    def packed(self, values: Mapping[str, int | bytes]) -> bytes:
        """Return the struct with these values.

        Raises:
            LayoutDiffers: its members are others than the values.
        """
        self._expect(values)
        return self._struct.pack(*(values[member.name] for member in self.members))

    def read(self, data: bytes, names: tuple[str, ...]) -> tuple[int, ...]:
        """Return the values of all its members, in the order of their names here.

        Raises:
            LayoutDiffers: its members are others than the names.
        """
        self._expect(dict.fromkeys(names, 0))
        values = self._struct.unpack(data)
        by_name = {member.name: value for member, value in zip(self.members, values, strict=True)}
        return tuple(by_name[name] for name in names)

    def offset_bytes(self, name: str) -> int:
        """Return where a member begins.

        Raises:
            LayoutDiffers: there is none of that name.
        """
        for member in self.members:
            if member.name == name:
                return member.offset_bytes
        raise LayoutDiffers(self.name, (name,), ())

    def _expect(self, names: Mapping[str, object]) -> None:
        have = {member.name for member in self.members}
        if have != names.keys():
            raise LayoutDiffers(self.name, tuple(sorted(names.keys() - have)), tuple(sorted(have - names.keys())))


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """A map as the object defines it; ``key`` and ``value`` have no members where they are no structs."""

    max_entries: int
    key: Record
    value: Record


class Btf:
    """The types of one object file."""

    def __init__(self, image: bytes) -> None:
        """Read them.

        Raises:
            ValueError: it is no object file, or has no types.
        """
        data = _section(image, b".BTF")
        magic, _version, _flags, header_bytes, type_at, type_bytes, text_at, text_bytes = struct.unpack_from(
            "<HBBIIIII", data
        )
        if magic != _MAGIC:
            raise ValueError(f"the section .BTF begins with {magic:#x}")
        texts = data[header_bytes + text_at :][:text_bytes]
        self._types = [_Type("", 0, 0, ()), *_types(data[header_bytes + type_at :][:type_bytes], texts)]  # 0 is void
        self._texts = texts

    def record(self, name: str) -> Record:
        """Return a struct by its name.

        Raises:
            LayoutDiffers: there is none.
        """
        for number, one in enumerate(self._types):
            if (one.kind, one.name) == (_STRUCT, name):
                return self._record(number)
        raise LayoutDiffers(name, (), ())

    def maps(self) -> dict[str, MapDefinition]:
        """Return the definitions of the object's maps by name."""
        (section,) = (one for one in self._types if (one.kind, one.name) == (_DATASEC, _MAPS))
        variables = [self._types[number] for number in section.words[::3]]
        return {one.name: self._map(one.size_or_type) for one in variables}

    def _map(self, number: int) -> MapDefinition:
        """Read what the macros __uint and __type of bpf_helpers.h have made: pointers to arrays, and to the types."""
        members = _triples(self._types[number].words)
        pointed = {_text(self._texts, name): self._types[kind].size_or_type for name, kind, _ in members}
        entries = self._types[pointed["max_entries"]].words[2] if "max_entries" in pointed else 0
        return MapDefinition(entries, *(self._record(pointed.get(which, 0)) for which in ("key", "value")))

    def _record(self, number: int) -> Record:
        number = self._named(number)
        members = self._members(number, 0) if self._types[number].kind == _STRUCT else ()
        in_order = tuple(sorted(members, key=lambda member: member.offset_bytes))
        return Record(self._types[number].name, self._size_bytes(number), in_order)

    def _members(self, number: int, at_bytes: int) -> Iterator[Member]:
        for name_at, of, offset_bits in _triples(self._types[number].words):
            name, kind, offset_bytes = _text(self._texts, name_at), self._named(of), at_bytes + offset_bits // 8
            if self._types[kind].kind == _STRUCT:
                yield from self._members(kind, offset_bytes)
            elif name != "padding":
                yield Member(name, offset_bytes, self._code(kind))

    def _code(self, number: int) -> str:
        one = self._types[number]
        if one.kind == _INT:
            code = _CODES[one.size_or_type]
            return code.lower() if one.words[0] & _SIGNED else code
        return f"{self._size_bytes(number)}s"

    def _size_bytes(self, number: int) -> int:
        one = self._types[number]
        if one.kind == _ARRAY:
            return one.words[2] * self._size_bytes(self._named(one.words[0]))
        return one.size_or_type

    def _named(self, number: int) -> int:
        """Return the type behind its other names."""
        while self._types[number].kind in _RENAMED:
            number = self._types[number].size_or_type
        return number


def _types(data: bytes, texts: bytes) -> Iterator[_Type]:
    at = 0
    while at < len(data):
        name_at, info, size_or_type = _WORDS.unpack_from(data, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        once, each = _BEHIND.get(kind, (0, 0))
        behind = once + each * count
        at += _WORDS.size
        words = struct.unpack_from(f"<{behind // 4}I", data, at)
        at += behind
        yield _Type(_text(texts, name_at), kind, size_or_type, words)


def _triples(words: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    return zip(words[::3], words[1::3], words[2::3], strict=True)


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(b"\0", at)].decode()


def _section(image: bytes, name: bytes) -> bytes:
    """Return a section of an ELF file."""
    if image[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    (table_at,), (entry_bytes, count, names_number) = (
        struct.unpack_from("<Q", image, 40),
        struct.unpack_from("<HHH", image, 58),
    )
    headers = [struct.unpack_from("<IIQQQQ", image, table_at + entry_bytes * number) for number in range(count)]
    names_at = headers[names_number][4]
    for name_at, _kind, _flags, _address, at, size in headers:
        if image[names_at + name_at :].startswith(name + b"\0"):
            return image[at : at + size]
    raise ValueError(f"the object has no section {name.decode()}")
