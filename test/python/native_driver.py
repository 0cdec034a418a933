"""The `main` that runs a function on native code and says what it took.

It is text in the standard dialects, appended to the module that holds the function, and goes with it through bufferization and
lowering. It prints lines of `key value`: `peak_bytes` and `output_bytes` above what was live before the call (arguments are the
caller's), of a function with pages their `second_peak_bytes`, `written_bytes` and `read_bytes`, `bits` and `sum` of each result, and the
`microseconds` of processor time that each of a few further calls took.
"""

import re

SIGNATURE = re.compile(r"func\.func (?:private )?@(\w+)\((.*?)\) -> (\(.*?\)|tensor<[^>]*>)")
TENSOR = re.compile(r"tensor<((?:\d+x)*)f32>")

HELPERS = """
func.func private @remat_heap_live() -> i64
func.func private @remat_heap_peak() -> i64
func.func private @remat_heap_reset()
func.func private @clock() -> i64
func.func private @printString(!llvm.ptr)
func.func private @printI64(i64)
func.func private @printF64(f64)
func.func private @printNewline()

// Hash of the bits, and sum, of a vector.
func.func private @digest(%values: tensor<?xf32>) -> (i64, f64) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0xcbf29ce484222325 : i64
  %prime = arith.constant 0x100000001b3 : i64
  %nothing = arith.constant 0.0 : f64
  %count = tensor.dim %values, %zero : tensor<?xf32>
  %hash, %sum = scf.for %i = %zero to %count step %one iter_args(%h = %start, %s = %nothing) -> (i64, f64) {
    %value = tensor.extract %values[%i] : tensor<?xf32>
    %bits = arith.bitcast %value : f32 to i32
    %wide = arith.extui %bits : i32 to i64
    %mixed = arith.xori %h, %wide : i64
    %next = arith.muli %mixed, %prime : i64
    %long = arith.extf %value : f32 to f64
    %total = arith.addf %s, %long : f64
    scf.yield %next, %total : i64, f64
  }
  return %hash, %sum : i64, f64
}
"""

PAGES = """
  %one = arith.constant 1 : i64
  %statistics = llvm.alloca %one x !llvm.array<7 x i64> : (i64) -> !llvm.ptr
  func.call @remat_page_statistics(%statistics) : (!llvm.ptr) -> ()
  %pages = llvm.load %statistics : !llvm.ptr -> !llvm.array<7 x i64>
  %second_peak_bytes = llvm.extractvalue %pages[2] : !llvm.array<7 x i64>
  %written_bytes = llvm.extractvalue %pages[4] : !llvm.array<7 x i64>
  %read_bytes = llvm.extractvalue %pages[6] : !llvm.array<7 x i64>
"""

FILL = """
  %{name}_seed = arith.constant {seed} : i32
  %{name}_scale = arith.constant {scale:.9e} : f32
  %{name} = tensor.generate {{
  ^bb0({indices}):
{linear}
    %key = arith.index_cast %at{last} : index to i32
    %k0 = arith.addi %key, %{name}_seed : i32
    %m = arith.constant 0x2c1b3c6d : i32
    %s = arith.constant 15 : i32
    %k1 = arith.muli %k0, %m : i32
    %k2 = arith.shrui %k1, %s : i32
    %k3 = arith.xori %k1, %k2 : i32
    %k4 = arith.muli %k3, %m : i32
    %f = arith.sitofp %k4 : i32 to f32
    %v = arith.mulf %f, %{name}_scale : f32
    tensor.yield %v : f32
  }} : {type}
"""


class Signature:
    """Name, argument types and result types of the first function of a module's text."""

    def __init__(self, text):
        found = SIGNATURE.search(text)
        if not found:
            raise ValueError("no function over tensors of f32 in the text")
        self.name = found[1]
        self.arguments = [m[0] for m in TENSOR.finditer(found[2])]
        self.results = [m[0] for m in TENSOR.finditer(found[3])]


def shape(type):
    return [int(size) for size in TENSOR.fullmatch(type)[1].split("x")[:-1]]


def argument(name, type, seed):
    """A tensor of reproducible numbers with mean zero, small enough that sums over all but the first dimension stay near one."""
    sizes = shape(type)
    fan_in = 1
    for size in sizes[1:-1] if len(sizes) == 3 else sizes[1:]:
        fan_in *= size
    linear = ["    %at0 = arith.addi %i0, %i0 : index"]
    for axis, size in enumerate(sizes[1:], 1):
        linear += [
            f"    %size{axis} = arith.constant {size} : index",
            f"    %row{axis} = arith.muli %at{axis - 1}, %size{axis} : index",
            f"    %at{axis} = arith.addi %row{axis}, %i{axis} : index",
        ]
    return FILL.format(
        name=name,
        seed=seed * 7919,
        scale=(3 / fan_in) ** 0.5 / 2**31,
        indices=", ".join(f"%i{axis}: index" for axis in range(len(sizes))),
        linear="\n".join(linear),
        last=len(sizes) - 1,
        type=type,
    )


def driver(text, runs):
    """What is to be appended to the module whose text this is; `runs` calls are timed."""
    signature = Signature(text)
    given = ", ".join(f"%a{i}" for i in range(len(signature.arguments)))
    types = f"({', '.join(signature.arguments)}) -> ({', '.join(signature.results)})"
    lines = [argument(f"a{i}", type, i + 1) for i, type in enumerate(signature.arguments)]
    lines += [
        "  %before = func.call @remat_heap_live() : () -> i64",
        "  func.call @remat_heap_reset() : () -> ()",
        f"  %r:{len(signature.results)} = func.call @{signature.name}({given}) : {types}",
        "  %peak = func.call @remat_heap_peak() : () -> i64",
        "  %after = func.call @remat_heap_live() : () -> i64",
        "  %peak_bytes = arith.subi %peak, %before : i64",
        "  %output_bytes = arith.subi %after, %before : i64",
        *stated("peak_bytes", "I64", "%peak_bytes", "i64"),
        *stated("output_bytes", "I64", "%output_bytes", "i64"),
    ]
    helpers = HELPERS
    if "remat.page_out" in text:
        helpers += "func.func private @remat_page_statistics(!llvm.ptr)\n"
        lines.append(PAGES)
        for key in ("second_peak_bytes", "written_bytes", "read_bytes"):
            lines += stated(key, "I64", f"%{key}", "i64")
    for i, type in enumerate(signature.results):
        sizes = shape(type)
        flat = f"tensor<{product(sizes)}xf32>"
        axes = f"[[{', '.join(map(str, range(len(sizes))))}]]"
        lines += [
            f"  %flat{i} = tensor.collapse_shape %r#{i} {axes} : {type} into {flat}",
            f"  %cast{i} = tensor.cast %flat{i} : {flat} to tensor<?xf32>",
            f"  %hash{i}, %sum{i} = func.call @digest(%cast{i}) : (tensor<?xf32>) -> (i64, f64)",
            *stated("bits", "I64", f"%hash{i}", "i64"),
            *stated("sum", "F64", f"%sum{i}", "f64"),
        ]
    for run in range(runs):
        lines += [
            f"  %start{run} = func.call @clock() : () -> i64",
            f"  %again{run}:{len(signature.results)} = func.call @{signature.name}({given}) : {types}",
            f"  %end{run} = func.call @clock() : () -> i64",
            f"  %ticks{run} = arith.subi %end{run}, %start{run} : i64",
            *stated("microseconds", "I64", f"%ticks{run}", "i64"),
        ]
    keys = {re.search(r"@key_(\w+)", line)[1] for line in lines if "@key_" in line}
    strings = [f'llvm.mlir.global constant @key_{k}("{k} \\00")' for k in sorted(keys)]
    return helpers + "\n".join([*strings, "func.func @main() {", *lines, "  return", "}"]) + "\n"


def stated(key, kind, value, type):
    """Lines that print `key` and a value; a fresh name for each."""
    where = value.removeprefix("%")
    return [
        f"  %key_{where} = llvm.mlir.addressof @key_{key} : !llvm.ptr",
        f"  func.call @printString(%key_{where}) : (!llvm.ptr) -> ()",
        f"  func.call @print{kind}({value}) : ({type}) -> ()",
        "  func.call @printNewline() : () -> ()",
    ]


def product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total
