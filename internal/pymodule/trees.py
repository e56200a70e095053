"""Turns Python source into compact syntax trees, for package pymodule.

    python trees.py ROOT MODULE...

ROOT is the folder that packages are in; nothing of them is imported. What is
written has a table of texts, then a tree for each module. A node is its kind (an
index of the table, 0 for none), its line, its text and its parts.
"""

import ast
import os
import sys

texts, index = [""], {"": 0}


def text(value):
    if value not in index:
        index[value] = len(texts)
        texts.append(value)
    return index[value]


def number(out, n):
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


def constant(value):
    """A letter for the type, and the value."""
    if value is None or value is Ellipsis or isinstance(value, bool):
        return {"None": "N", "Ellipsis": "E", "True": "T", "False": "F"}[str(value)]
    if isinstance(value, (int, float, str)):
        return type(value).__name__[0] + str(value)
    return "?" + type(value).__name__


# What a tree says nothing about: annotations, and whether a name is stored.
DROPPED = {"ctx", "annotation", "returns", "type_comment", "type_params", "simple", "kind", "type_ignores"}
# Fields that are a node's text.
TEXTS = {"id", "attr", "arg", "name", "asname", "module", "op", "ops", "names", "level", "conversion", "is_async"}


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def words(node, field, value):
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(words(node, field, v) for v in value)
    if isinstance(value, ast.AST):
        return type(value).__name__
    return str(value)


def label(node):
    """The text of a node."""
    match node:
        case ast.Constant():
            return constant(node.value)
        case ast.ImportFrom():
            return "." * node.level + (node.module or "")
        case ast.alias():
            return node.name + "," + (node.asname or "")
        case _:
            fields = [f for f in node._fields if f in TEXTS and not isinstance(getattr(node, f, None), ast.expr)]
            return ",".join(words(node, f, getattr(node, f, None)) for f in fields)


def parts(node):
    if isinstance(node, (ast.Constant, ast.alias, ast.Global, ast.Nonlocal)):
        return []
    out = []
    for field in node._fields:
        value = getattr(node, field, None)
        if field in DROPPED or field in TEXTS and not isinstance(value, ast.expr) and not (isinstance(node, ast.ImportFrom | ast.Import) and field == "names"):
            continue
        if field == "body" and isinstance(value, list):
            value = [v for v in value if not is_docstring(v)]
        out.append(value)
    return out


def write(out, node):
    if node is None:
        number(out, 0)
    elif isinstance(node, list):
        number(out, text("list"))
        number(out, 0)
        number(out, 0)
        number(out, len(node))
        for n in node:
            write(out, n)
    else:
        number(out, text(type(node).__name__))
        number(out, getattr(node, "lineno", 0))
        number(out, text(label(node)))
        children = parts(node)
        number(out, len(children))
        for child in children:
            write(out, child)


def file_of(root, module):
    path = os.path.join(root, *module.split("."))
    return next((p for p in (path + ".py", os.path.join(path, "__init__.py")) if os.path.isfile(p)), None)


def main(root, modules):
    body = bytearray()
    found = [(m, file_of(root, m)) for m in modules]
    found = [(m, p) for m, p in found if p]
    number(body, len(found))
    for module, path in found:
        with open(path, encoding="utf-8") as f:
            tree = ast.parse(f.read(), path)
        number(body, text(module))
        number(body, text(os.path.relpath(path, root)))
        write(body, tree)
    head = bytearray(b"pytrees1")
    number(head, len(texts))
    for t in texts:
        data = t.encode("utf-8", "surrogatepass")
        number(head, len(data))
        head += data
    sys.stdout.buffer.write(head + body)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
