"""How Numba compiles kernels here: quickly, since that is what a first run waits for.

A kernel that another kernel calls is a part of it. Numba would optimise it, make machine code of it and wrap it for
Python before it is linked into its caller, where all of that happens again. Here a part stops at LLVM code; only what
Python calls becomes machine code, with all its parts in it.
"""
from __future__ import annotations

import gc
import hashlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm
from numba.core import types
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags, compile_result
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps
from numba.core.typing.typeof import Purpose, typeof

from dalembert.kernels import shipped
from dalembert.kernels.ahead import begin_compiling
from dalembert.kernels.cache import Folder, complain

#: passes for what kernels do not contain: closures, comprehensions, array expressions, literal_unroll, with statements
UNNEEDED = frozenset({
    "WithLifting", "InlineClosureLikes", "RewriteSemanticConstants", "DeadBranchPrune", "RewriteDynamicRaises",
    "MakeFunctionToJitFunction", "InlineInlinables", "FindLiterallyCalls", "LiteralUnroll",
    "LiteralPropagationSubPipelinePass", "InlineOverloads", "NopythonRewrites", "DumpParforDiagnostics",
})


class QuickFlags(Flags):
    """Numba's options. It compares them with one another tens of thousands of times: that should not take long."""

    __slots__ = ()

    def __hash__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuickFlags) and self._values == other._values


class KernelCompiler(Compiler):
    """Numba's compiler without the passes that kernels do not need."""

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any) -> None:
        super().__init__(typing, target, library, args, return_type, QuickFlags(flags), locals)

    def define_pipelines(self) -> list[Any]:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [entry for entry in pipeline.passes if entry[0].__name__ not in UNNEEDED]
            pipeline.finalize()
        return pipelines


class WholeCompiler(KernelCompiler):
    """Makes machine code."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = WholeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class WholeLibrary(JITCodeLibrary):
    """Machine code of a kernel with all its parts, which are nobody else's: LLVM may strip them of arguments that they do not read (a record
    of a dozen arrays is 84 numbers) and put into its caller what is called once."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._entries: set[str] = set()

    def add_ir_module(self, module: Any) -> None:
        self._entries.update(function.name for function in module.functions if not function.is_declaration)
        super().add_ir_module(module)

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self._entries:
                function.linkage = "internal"
        super()._optimize_final_module()


class PartCompiler(KernelCompiler):
    """Stops at LLVM code."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = True
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class PartLibrary(JITCodeLibrary):
    """LLVM code of a function and of all that it calls, to be linked into a kernel."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Lightly, to have less to link: the kernel that the part ends in is optimised fully."""
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes, builder = self._codegen._function_pass_manager(opt=1)
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def to_bitcode(self) -> bytes:
        return self._get_module_for_linking().as_bitcode()

    @classmethod
    def from_bitcode(cls, codegen: Any, name: str, bitcode: bytes) -> PartLibrary:
        library = cls(codegen, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


class KernelCache(NullCache):
    """Compiled kernels of one function, by signature."""

    suffix = "kernel"

    def __init__(self, function: Callable) -> None:
        code = function.__code__
        self.folder = Folder(Path(code.co_filename))
        self.stem = f"{function.__qualname__}-{code.co_firstlineno}".replace("<", "").replace(">", "")

    @property
    def cache_path(self) -> str:
        return str(self.folder.path)

    def entry(self, args: tuple[types.Type, ...], codegen: Any, magic: tuple[str, str, str] | None = None) -> str:
        """Name of the file for argument types on this processor, or on one that goes by ``magic``."""
        digest = hashlib.sha256(f"{args} {codegen.magic_tuple() if magic is None else magic}".encode()).hexdigest()[:16]
        return f"{self.stem}-{digest}.{self.suffix}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        data = self.folder.load(self.entry(sig, target_context.codegen()))
        if data is not None:
            try:
                return self.rebuild(target_context, *pickle.loads(data))
            except Exception as error:  # of another kind than ours, whatever it is
                complain(f"a compiled kernel in {self.folder.path} cannot be used, and is compiled again: {type(error).__name__}")
        begin_compiling()
        return None

    def load_shipped(self, sig: Any, target: Any) -> CompileResult | None:
        """The kernel that came with the package, if there is one for this processor."""
        if not shipped.usable():
            return None
        target.refresh()
        codegen = target.codegen()
        return shipped.load(self.folder.name, self.entry(sig, codegen, shipped.magic(codegen)), target)

    def has_shipped(self, sig: Any, target: Any) -> bool:
        """Whether there is one."""
        return shipped.usable() and (shipped.FOLDER / self.folder.name / self.entry(sig, target.codegen(), shipped.magic(target.codegen()))).is_file()

    def save_overload(self, sig: Any, data: Any) -> None:
        self.folder.save(self.entry(sig, data.codegen), dumps(self.reduce(data)))

    def reduce(self, result: CompileResult) -> tuple:
        return result._reduce()

    def rebuild(self, target: Any, *data: Any) -> CompileResult:
        return CompileResult._rebuild(target, *data)


class PartCache(KernelCache):
    """LLVM code of one function, by signature."""

    suffix = "part"

    def reduce(self, result: CompileResult) -> tuple:
        description = result.fndesc
        description.typemap = description.calltypes = None  # not needed any more, and large
        return result.library.name, result.library.to_bitcode(), description, result.signature

    def rebuild(self, target: Any, *data: Any) -> CompileResult:
        name, bitcode, description, signature = data
        library = PartLibrary.from_bitcode(target.codegen(), name, bitcode)
        return compile_result(library=library, fndesc=description, signature=signature, target_context=target, objectmode=False)


class Dispatcher(CPUDispatcher):
    """A function that is compiled once for each signature on a machine; other processes load it, or wait for it."""

    cache: type[KernelCache]

    def __init__(self, py_func: Callable, locals: Any = None, targetoptions: Any = None, pipeline_class: type = WholeCompiler) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._cache = self.cache(py_func)

    def compile(self, sig: Any) -> Any:
        if sig in self.overloads:
            return self.overloads[sig].entry_point
        with self._cache.folder.claim(self._entry(sig)):
            return super().compile(sig)

    def compile_for(self, *arguments: Any) -> None:
        """Compile for arguments of these types, without a call."""
        self.compile(signature_of(*arguments))

    def entry_for(self, *arguments: Any) -> Any:
        """The compiled function for arguments of these types."""
        return self.compile(signature_of(*arguments))

    def is_cached(self, *arguments: Any) -> bool:
        """Whether the cache holds what arguments of these types need."""
        return self._cache.folder.holds(self._entry(signature_of(*arguments)))

    def _entry(self, sig: Any) -> str:
        target: Any = self.targetctx
        return self._cache.entry(sig, target.codegen())


class Part(Dispatcher):
    """A kernel as other kernels call it."""

    cache = PartCache

    def __init__(self, py_func: Callable, locals: Any = None, targetoptions: Any = None, pipeline_class: type = PartCompiler) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba would compile anew for each literal number that is passed; LLVM sees them in any case."""
        return super().get_call_template([types.unliteral(a) for a in args], {k: types.unliteral(a) for k, a in kws.items()})

    def add_overload(self, cres: CompileResult) -> None:
        cres = cres._replace(entry_point=object())  # there is nothing to enter, but callers know it by that
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres


class Kernel(Dispatcher):
    """A kernel as Python calls it."""

    cache = KernelCache

    @cached_property
    def part(self) -> Part:
        return Part(self.py_func, targetoptions=self.targetoptions)

    @property
    def _numba_type_(self) -> types.Type:
        return types.Dispatcher(self.part)

    def compile(self, sig: Any) -> Any:
        if sig not in self.overloads:
            found = self._cache.load_shipped(sig, self.targetctx)
            if found is not None:
                self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
                self.add_overload(found)
        with collection_paused():
            return super().compile(sig)

    def is_cached(self, *arguments: Any) -> bool:
        sig, target = signature_of(*arguments), self.targetctx
        return self._cache.has_shipped(sig, target) or super().is_cached(*arguments)


def declare(function: Callable, forceinline: bool = False, **options: Any) -> Kernel:
    """A kernel of ``function``."""
    return Kernel(function, targetoptions=dict(nopython=True, no_cfunc_wrapper=True, forceinline=forceinline, **options))


def signature_of(*arguments: Any) -> tuple[types.Type, ...]:
    return tuple(typeof(argument, Purpose.argument) for argument in arguments)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection for a while: compiling makes many objects and little garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
