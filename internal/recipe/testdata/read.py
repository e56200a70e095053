"""Reads programs, and says what is wrong with them: JSON {id: program} in, a line of text for each fault out.

A program parses, its lines are short, what it imports exists, and what it calls of that takes the keywords it is
called with. Of modules that are not installed nothing can be said: their names come last, each after "absent ".
"""
import ast, importlib, inspect, json, sys

WIDTH = 80
ALIASES = {"lightning": "pytorch_lightning"}  # the same by its older name
absent = set()


def imported(name):
    name = ALIASES.get(name, name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        absent.add(error.name)
        return None


def names(tree):
    """What is bound by imports, and what of it does not exist."""
    bound, faults = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound[alias.asname or alias.name.partition(".")[0]] = imported(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = imported(node.module)
            for alias in node.names:
                if module is not None and not hasattr(module, alias.name):
                    faults.append(f"{node.module} has no {alias.name}")
                bound[alias.name] = getattr(module, alias.name, None)
    return bound, faults


def called(node, bound):
    """The object that an expression of dotted names stands for, None if it is not of what was imported."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute):
        of = called(node.value, bound)
        return None if of is None else getattr(of, node.attr)  # which there must be
    return None


def unknown(call, bound):
    """The keywords that what is called does not take."""
    of = called(call.func, bound)
    if of is None:
        return set()
    try:
        parameters = inspect.signature(of).parameters.values()
    except ValueError:  # it is written in C
        return set()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return set()
    return {k.arg for k in call.keywords if k.arg} - {p.name for p in parameters}


def faults(program):
    yield from (f"{len(line)} columns: {line}" for line in program.splitlines() if len(line) > WIDTH)
    tree = ast.parse(program)
    bound, missing = names(tree)
    yield from missing
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            try:
                yield from (f"{ast.unparse(node.func)} takes no {key}" for key in unknown(node, bound))
            except AttributeError as error:
                yield str(error)


for id, program in json.load(sys.stdin).items():
    try:
        for fault in faults(program):
            print(f"{id}: {fault}")
    except SyntaxError as error:
        print(f"{id}: {error}")
for module in sorted(absent):
    print(f"absent {module}")
