"""Turns the Python source of a package into compact syntax trees, for package pymodule.

    python trees.py [--families=NAME,...] SOURCE [MODULE...] > TREES.zip

SOURCE is a wheel, or the folder that packages are in; nothing of them is imported.
Without names of modules, those that describe models are taken, of some families or of all. What is written is a
ZIP archive with a file for each module: a table of texts, and a tree. A node is its
kind (an index of the table, 0 for none), its line, its text and its parts. The
archive's comment names the package and its version.
"""

import ast
import io
import os
import re
import sys
import zipfile

PACKAGE = "transformers"
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


def module_tree(module, path, source):
    texts[:] = [""]
    index.clear()
    index[""] = 0
    body = bytearray()
    number(body, text(module))
    number(body, text(path))
    write(body, ast.parse(source, path))
    head = bytearray(b"pytrees2")
    number(head, len(texts))
    for t in texts:
        data = t.encode("utf-8", "surrogatepass")
        number(head, len(data))
        head += data
    return bytes(head + body)


# Folders and files of transformers that no model is made of.
OTHER_FOLDERS = re.compile(r"/(cli|commands|data|distributed|exporters|generation|kernels|pipelines|quantizers|sagemaker|testing|utils)/")
OTHER_FILES = re.compile(
    r"(tokenization|processing|image_|video_|audio_|feature_extraction|convert|modular|modeling_(tf|flax)_|trainer|training_args|"
    r"testing_|optimization|hf_|debug|dependency|safetensors|conversion|dynamic_module|modelcard|hyperparameter|keras|onnx)"
)


def describes_models(path):
    folder, name = os.path.split(path)
    if not path.startswith(PACKAGE + "/") or not name.endswith(".py") or OTHER_FOLDERS.search(folder + "/") or OTHER_FILES.match(name):
        return False
    return not folder.startswith(PACKAGE + "/models/") or name.startswith(("modeling_", "configuration_", "auto_mappings"))


def read_folder(root):
    found = {}
    package = os.path.join(root, PACKAGE)
    for folder, folders, names in os.walk(package if os.path.isdir(package) else root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root).replace(os.sep, "/")] = path
    return found, lambda path: open(found[path], "rb").read()


def read_wheel(path):
    archive = zipfile.ZipFile(path)
    return {name: name for name in sorted(archive.namelist())}, archive.read


def of_families(module, families):
    parts = module.split(".")
    return not families or parts[1:2] != ["models"] or len(parts) < 3 or parts[2] in families


def main(source, modules, families):
    found, read = read_wheel(source) if zipfile.is_zipfile(source) else read_folder(source)
    init = PACKAGE + "/__init__.py"
    version = re.search(rb'^__version__ = "([^"]+)"', read(init) if init in found else b"", re.M)
    out = io.BytesIO()
    archive = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
    for path in found:
        module = re.sub(r"(/__init__)?\.py$", "", path).replace("/", ".")
        if module in modules if modules else describes_models(path) and of_families(module, families):
            entry = zipfile.ZipInfo(module)  # of no date
            archive.writestr(entry, module_tree(module, path, read(path)), zipfile.ZIP_DEFLATED, 9)
    archive.comment = f"{PACKAGE} {version[1].decode() if version else ''}".encode()
    archive.close()
    sys.stdout.buffer.write(out.getvalue())


if __name__ == "__main__":
    families = [*sys.argv.pop(1).removeprefix("--families=").split(","), "auto"] if sys.argv[1].startswith("--families=") else []
    main(sys.argv[1], sys.argv[2:], families)
