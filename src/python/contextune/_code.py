"""The code of a function, and its version."""

import ast
import functools
import hashlib
import inspect
import textwrap
import tokenize
from collections.abc import Callable
from typing import Any


def code_behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that functools.partial gives arguments to; other functions as they are."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def version_of(function: Callable[..., Any]) -> str:
    """A hash of a function's source, so that winners that were stored with another do not count. Of an
    object that is called, that of its class.

    Decorators are no part of it, as the space they give may grow, nor are comments. Empty where the
    source is not known.
    """
    try:
        code = inspect.unwrap(code_behind(function))
        if not inspect.isroutine(code) and not inspect.isclass(code):
            code = type(code)
        source = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError, ValueError, SyntaxError, tokenize.TokenError):
        return ""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a lambda, with what stands around it
        return hashlib.sha256(source.encode()).hexdigest()[:16]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.decorator_list = []
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]
