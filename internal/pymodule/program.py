

# What follows reads a program of a user's own. It comes after trees.py, which it is run with:
#
#     python -c SCRIPT FILE > TREES.zip
#
# The file is read, and what it imports from the folder that it is in; nothing is run.

MOST_FILES, MOST_BYTES = 256, 8 << 20


def file_of(folder, module):
    """The file of a module, None if it is not in the folder."""
    path = os.path.join(folder, *module.split("."))
    for name in (path + ".py", os.path.join(path, "__init__.py")):
        if os.path.isfile(name) and os.path.realpath(name).startswith(folder + os.sep):
            return name
    return None


def imports_of(tree, module, is_package):
    """The modules that a module may import, and the packages around them."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            around = parts[: len(parts) - node.level + is_package] if node.level else []
            base = ".".join(around + ([node.module] if node.module else []))
            names = [base] + [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: i + 1]) for i in range(len(parts)))


def program(path):
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    found, queue, size = {}, [os.path.splitext(os.path.basename(path))[0]], 0
    while queue:
        module = queue.pop()
        file = file_of(folder, module) if module else None
        if file is None or module in found:
            continue
        with open(file, "rb") as opened:
            source = opened.read(MOST_BYTES + 1)
        size += len(source)
        if len(found) == MOST_FILES or size > MOST_BYTES:
            sys.exit(f"{path} imports more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB from its folder")
        short = os.path.relpath(file, folder)
        try:
            tree = ast.parse(source, short)
            found[module] = module_tree(module, short, source)
        except SyntaxError as error:
            sys.exit(f"{short}:{error.lineno}: {error.msg}")
        except (ValueError, RecursionError) as error:
            sys.exit(f"{short}: {error}")
        queue += imports_of(tree, module, os.path.basename(file) == "__init__.py")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for module, data in found.items():
            archive.writestr(module, data)
        archive.writestr("torch.nn.modules", module_tree("torch.nn.modules", "torch/nn/modules", NN))  # the string is nn.py
    sys.stdout.buffer.write(out.getvalue())


program(sys.argv[1])
