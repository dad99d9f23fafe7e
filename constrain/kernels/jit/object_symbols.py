"""The undefined symbols of an object file: what its linker or loader has to find elsewhere."""

from __future__ import annotations

from struct import unpack_from

__all__ = ["list_undefined"]


def list_undefined(code: bytes) -> set[str]:
    """Return the undefined symbols of a little-endian 64-bit object, ELF or Mach-O, by their names in C."""
    if code.startswith(b"\x7fELF\x02\x01"):
        return set(_list_elf(code))
    if code.startswith(b"\xcf\xfa\xed\xfe"):
        return {name.removeprefix("_") for name in _list_macho(code)}
    raise ValueError("neither an ELF nor a Mach-O object of 64 bits")


def _read_name(code: bytes, place: int) -> str:
    return code[place : code.index(b"\0", place)].decode()


def _list_elf(code: bytes) -> list[str]:
    """System V Application Binary Interface, chapter 4: sections, and the symbol table with its strings."""
    found = []
    table, size, count = unpack_from("<Q", code, 0x28)[0], *unpack_from("<HH", code, 0x3A)
    sections = [unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    for _, kind, _, _, start, length, strings, _, _, width in sections:
        if kind == 2:  # SHT_SYMTAB
            for place in range(start + width, start + length, width):  # the first symbol stands for none
                name, _, _, section, _, _ = unpack_from("<IBBHQQ", code, place)
                if section == 0:  # SHN_UNDEF
                    found.append(_read_name(code, sections[strings][4] + name))
    return found


def _list_macho(code: bytes) -> list[str]:
    """Apple, OS X ABI Mach-O File Format Reference: the command LC_SYMTAB, and its `nlist_64` records."""
    found, place = [], 32
    for _ in range(unpack_from("<I", code, 16)[0]):
        command, size = unpack_from("<II", code, place)
        if command == 2:  # LC_SYMTAB
            symbols, count, strings, _ = unpack_from("<IIII", code, place + 8)
            for k in range(count):
                name, kind = unpack_from("<IB", code, symbols + 16 * k)
                if kind & 0x0F == 0x01:  # N_UNDF and N_EXT
                    found.append(_read_name(code, strings + name))
        place += size
    return found
