"""LLVM code of the calls from Python: for each kernel, an entry point with the convention METH_FASTCALL.

An entry point converts its arguments, calls the kernel, without the GIL where that is declared, and converts the
result. Of Python it needs ten functions that are part of every CPython's stable ABI, and of `Py_buffer` the fields
that have had the same place since 3.0, so one library serves all versions. Integers are int64; an array is anything
with a buffer of one dimension whose elements have the declared type, and is not copied.

The entry points of a library are listed in a table of `PyMethodDef` records, which ends with zeros:
`constrain_functions_N`, where N is the level of the processor (`targets`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from numba import types

from ..native.native_library import TABLE
from .compilation import Declared

__all__ = ["ALLOWED", "RAISED", "define_entry_points", "define_plain_function"]

RAISED = "constrain_kernel_raised"
"""A function that does not exist, called where a kernel reports an error: optimisation proves that none does."""
ALLOWED = frozenset(
    """
    PyBuffer_Release PyErr_BadArgument PyErr_Occurred PyEval_RestoreThread PyEval_SaveThread PyFloat_AsDouble
    PyFloat_FromDouble PyLong_AsLongLong PyLong_FromLongLong PyObject_GetBuffer bzero __bzero memcpy
    memset memset_pattern16
    """.split()
)
"""The symbols that a library may leave undefined: Python's, and functions that copy memory or fill it (macOS has four
of these)."""

HEAD = """
%method = type { ptr, ptr, i32, ptr }
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""
METH_FASTCALL = 0x80
WRITABLE, FORMAT, C_CONTIGUOUS = 0x1, 0x4, 0x38
"""Flags of PyObject_GetBuffer."""
BUFFER_SIZE, LENGTH_AT, ITEM_AT, DIMENSIONS_AT, FORMAT_AT = 80, 16, 24, 36, 40
"""Size of a `Py_buffer` and offsets of fields, in bytes; the address of the data is the first field."""
CODES = {"int32": "il", "int64": "lq", "uint8": "B", "float32": "f", "float64": "d"}
"""Codes of the module `struct` by type; the size of an element says which of them is meant."""
LLVM = {"int32": "i32", "int64": "i64", "float32": "float", "float64": "double"}


def is_array(kind: Any) -> bool:
    """Return whether a numba type is an array."""
    return isinstance(kind, types.Array)


def list_parameters(signature: Any) -> list[str]:
    """Return the LLVM types of a compiled function's parameters. numba passes an array as seven of them."""
    return [
        part
        for one in signature.args
        for part in (["ptr", "ptr", "i64", "i64", "ptr", "i64", "i64"] if is_array(one) else [LLVM[str(one)]])
    ]


def define_plain_function(symbol: str, native: str, signature: Any) -> str:
    """Return a function `symbol` that calls the function `native` of numba and returns its result, not a status."""
    parameters, result = list_parameters(signature), LLVM[str(signature.return_type)]
    declared = ", ".join(["ptr", "ptr", *parameters])
    named = [f"{kind} %a{k}" for k, kind in enumerate(parameters)]
    zero = "0" if result == "i64" else "0.0"
    return f"""
declare void @{RAISED}()
declare i32 @"{native}"({declared})
define {result} @"{symbol}"({", ".join(named)}) {{
  %result = alloca {result}
  %info = alloca ptr
  store {result} {zero}, ptr %result
  %status = call i32 @"{native}"({", ".join(["ptr %result", "ptr %info", *named])})
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %raised
raised:
  call void @{RAISED}()
  unreachable
done:
  %value = load {result}, ptr %result
  ret {result} %value
}}"""


class EntryPoint:
    """Writes the entry point of one declared function.

    symbols: of the plain function of each signature.
    """

    def __init__(self, declared: Declared, symbols: list[str]) -> None:
        self.declared, self.symbols = declared, symbols
        self.kinds = declared.signatures[0].args
        self.arrays = [k for k, kind in enumerate(self.kinds) if is_array(kind)]
        self.lines: list[str] = []
        self.labels = 0

    def add(self, *lines: str) -> None:
        """Add instructions."""
        self.lines += [f"  {line}" for line in lines]

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")

    def label(self) -> str:
        """Return a new label."""
        self.labels += 1
        return f"l{self.labels}"

    def branch(self, condition: str, otherwise: str) -> None:
        """Go on if a condition holds, else to a label."""
        then = self.label()
        self.add(f"br i1 {condition}, label %{then}, label %{otherwise}")
        self.begin(then)

    def write(self) -> str:
        """Return the function."""
        self.begin("entry")
        self.add(*(f"%buffer{k} = alloca [{BUFFER_SIZE} x i8], align 8" for k in self.arrays))
        self.add(f"%enough = icmp eq i64 %n, {len(self.kinds)}")
        self.branch("%enough", "bad0")
        for k in range(len(self.kinds)):
            self.add(f"%place{k} = getelementptr ptr, ptr %args, i64 {k}", f"%object{k} = load ptr, ptr %place{k}")
        for k, kind in enumerate(self.kinds):
            if not is_array(kind):
                self.convert_scalar(k, "i64" if str(kind).startswith("int") else "double")
        for count, k in enumerate(self.arrays):
            self.get_buffer(k, f"fail{count}")
        for number, symbol in enumerate(self.symbols):
            other = self.label() if number + 1 < len(self.symbols) else f"bad{len(self.arrays)}"
            self.call(number, symbol, self.declared.signatures[number], other)
            if number + 1 < len(self.symbols):
                self.begin(other)
        for count in sorted({0, len(self.arrays)}, reverse=True):
            self.begin(f"bad{count}")
            self.add(f"%ignored{count} = call i32 @PyErr_BadArgument()", f"br label %fail{count}")
        for count in range(len(self.arrays), 0, -1):
            self.begin(f"fail{count}")
            self.add(f"call void @PyBuffer_Release(ptr %buffer{self.arrays[count - 1]})", f"br label %fail{count - 1}")
        self.begin("fail0")
        self.add("ret ptr null")
        head = f'define internal ptr @"python.{self.declared.symbol}"(ptr %self, ptr %args, i64 %n) {{'
        return "\n".join([head, *self.lines, "}"])

    def convert_scalar(self, k: int, kind: str) -> None:
        """Convert an argument. -1 may be a value, or mean an error."""
        function, compare, minus = {
            "i64": ("PyLong_AsLongLong", "icmp ne i64", "-1"),
            "double": ("PyFloat_AsDouble", "fcmp une double", "-1.0"),
        }[kind]
        check, then = self.label(), self.label()
        self.add(
            f"%value{k} = call {kind} @{function}(ptr %object{k})",
            f"%sure{k} = {compare} %value{k}, {minus}",
            f"br i1 %sure{k}, label %{then}, label %{check}",
        )
        self.begin(check)
        self.add(
            f"%error{k} = call ptr @PyErr_Occurred()",
            f"%none{k} = icmp eq ptr %error{k}, null",
            f"br i1 %none{k}, label %{then}, label %fail0",
        )
        self.begin(then)

    def get_buffer(self, k: int, failed: str) -> None:
        """Get the buffer of an array."""
        flags = C_CONTIGUOUS | FORMAT | (WRITABLE if self.kinds[k].mutable else 0)
        self.add(
            f"%status{k} = call i32 @PyObject_GetBuffer(ptr %object{k}, ptr %buffer{k}, i32 {flags})",
            f"%got{k} = icmp eq i32 %status{k}, 0",
        )
        self.branch(f"%got{k}", failed)
        for name, kind, offset in (("length", "i64", LENGTH_AT), ("item", "i64", ITEM_AT),
                                   ("dimensions", "i32", DIMENSIONS_AT), ("format", "ptr", FORMAT_AT)):  # fmt: skip
            self.add(
                f"%{name}at{k} = getelementptr i8, ptr %buffer{k}, i64 {offset}",
                f"%{name}{k} = load {kind}, ptr %{name}at{k}",
            )
        self.add(f"%data{k} = load ptr, ptr %buffer{k}", f"%code{k} = load i16, ptr %format{k}, align 1")

    def call(self, number: int, symbol: str, signature: Any, other: str) -> None:
        """Call the plain function of a signature and return, if the arrays are of its types; else go to a label."""
        given = []
        for k, kind in enumerate(signature.args):
            if is_array(kind):
                size = kind.dtype.bitwidth // 8
                name = f"{number}.{k}"
                self.add(
                    *(f"%is{i}.{name} = icmp eq i16 %code{k}, {ord(code)}"  # the code and the zero that ends the string
                      for i, code in enumerate(CODES[str(kind.dtype)])),
                )  # fmt: skip
                codes = [f"%is{i}.{name}" for i in range(len(CODES[str(kind.dtype)]))]
                if len(codes) == 2:
                    self.add(f"%coded.{name} = or i1 {codes[0]}, {codes[1]}")
                self.add(
                    f"%sized.{name} = icmp eq i64 %item{k}, {size}",
                    f"%flat.{name} = icmp eq i32 %dimensions{k}, 1",
                    f"%fit1.{name} = and i1 %sized.{name}, %flat.{name}",
                    f"%fit.{name} = and i1 %fit1.{name}, {f'%coded.{name}' if len(codes) == 2 else codes[0]}",
                )
                self.branch(f"%fit.{name}", other)
                self.add(f"%count.{name} = udiv exact i64 %length{k}, {size}")
                given.append(
                    f"ptr null, ptr null, i64 %count.{name}, i64 {size}, ptr %data{k}, i64 %count.{name}, i64 {size}"
                )
            elif str(kind) == "float32":
                self.add(f"%single.{number}.{k} = fptrunc double %value{k} to float")
                given.append(f"float %single.{number}.{k}")
            else:
                given.append(f"{LLVM[str(kind)]} %value{k}")
        result = LLVM[str(signature.return_type)]
        if self.declared.releases_gil:
            self.add(f"%thread{number} = call ptr @PyEval_SaveThread()")
        # Not inlined: most kernels are called by others, too, and one more copy of each is a third of the library.
        self.add(f'%result{number} = call {result} @"{symbol}"({", ".join(given)}) noinline')
        if self.declared.releases_gil:
            self.add(f"call void @PyEval_RestoreThread(ptr %thread{number})")
        self.add(*(f"call void @PyBuffer_Release(ptr %buffer{k})" for k in self.arrays))
        self.return_value(number, result)

    def return_value(self, number: int, result: str) -> None:
        """Convert the result of a call and return it."""
        if result == "i64":
            self.add(f"%made{number} = call ptr @PyLong_FromLongLong(i64 %result{number})")
        elif result == "double":
            self.add(f"%made{number} = call ptr @PyFloat_FromDouble(double %result{number})")
        else:
            self.add(
                f"%wide{number} = fpext float %result{number} to double",
                f"%made{number} = call ptr @PyFloat_FromDouble(double %wide{number})",
            )
        self.add(f"ret ptr %made{number}")


def define_string(name: str, text: str) -> str:
    """Return the definition of a constant string that ends with a zero."""
    data = text.encode() + b"\0"
    spelled = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02x}" for byte in data)
    return f'@"{name}" = internal unnamed_addr constant [{len(data)} x i8] c"{spelled}"'


def describe(declared: Declared) -> str:
    """Return the docstring of an entry point, with the parameters as `inspect.signature` reads them."""
    parameters = ", ".join(inspect.signature(declared.function).parameters)
    sentence = (declared.function.__doc__ or "").partition("\n")[0]
    return f"{declared.function.__name__}({parameters}, /)\n--\n\n{sentence}"


def define_entry_points(functions: Iterable[tuple[Declared, list[str]]]) -> str:
    """Return the code of the entry points of declared functions, and their table without a level.

    functions: each with the symbols of the plain functions of its signatures.
    """
    text, rows = [HEAD], []
    for one, symbols in functions:
        for symbol, signature in zip(symbols, one.signatures):
            parameters = ", ".join(list_parameters(signature))
            text.append(f'declare {LLVM[str(signature.return_type)]} @"{symbol}"({parameters})')
        text += [define_string(f"name.{one.name}", one.name), define_string(f"text.{one.name}", describe(one))]
        text.append(EntryPoint(one, symbols).write())
        rows.append(
            f'%method {{ ptr @"name.{one.name}", ptr @"python.{one.symbol}", i32 {METH_FASTCALL}, '
            f'ptr @"text.{one.name}" }}'
        )
    rows.append("%method zeroinitializer")
    text.append(f"@{TABLE} = constant [{len(rows)} x %method] [{', '.join(rows)}]")
    return "\n".join(text)
