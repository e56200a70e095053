"""Starts MemoryMark's prober without another import of PyTorch: a server has imported it and forks.

    fork.py FOLDER OWNER -u -c PROGRAM ARGUMENT…

There is a server for each environment that imports may depend on. It ends with the
process OWNER, and removes the folder then.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import traceback

IMPORTS = ("torch", "torch._dynamo", "transformers.models.bert.modeling_bert", "transformers.models.gpt2.modeling_gpt2")
RELEVANT = ("LD_", "PYTHON", "MEMORYMARK_EMULATE_", "OMP_", "MKL_", "CUDA_", "PYTORCH_", "TORCH", "TRITON_", "HF_", "TRANSFORMERS_")


def ask(folder, owner, program, arguments):
    """Has the program run by the server, which is started if there is none; its exit status."""
    key = json.dumps(sorted(i for i in os.environ.items() if i[0].startswith(RELEVANT)))
    path = os.path.join(folder, hashlib.sha256(key.encode()).hexdigest()[:16])
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = connect(path) or start(path, owner)
    request = {"program": program, "arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd(), "group": os.getpgrp()}
    fds = [int(name) for name in os.listdir("/proc/self/fd") if int(name) != server.fileno() and is_open(int(name))]
    request["fds"] = fds
    server.settimeout(None)
    socket.send_fds(server, [json.dumps(request).encode() + b"\n"], fds)
    for fd in fds:
        os.close(fd)  # that their other ends hear of it when the program closes them
    answer = server.recv(16)
    status = int(answer) if answer else signal.SIGKILL
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


def is_open(fd):
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return True


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
    except OSError:
        return None
    return s


def start(path, owner):
    ready, tell = os.pipe()
    command = [sys.executable, os.path.abspath(__file__), path, owner, str(tell)]
    log = open(path + ".log", "w")
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tell], process_group=0, cwd="/")
    os.close(tell)
    os.read(ready, 1)
    server = connect(path)
    if server is None:
        sys.exit("the server of the tests did not start: " + open(path + ".log").read())
    return server


def serve(path, owner, tell):
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # asking the driver would end the forks, see nursery.py
    for module in IMPORTS:
        __import__(module)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    os.close(tell)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.path.exists(f"/proc/{owner}"):
        if select.select([listener], [], [], 1)[0]:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                attend(client)
            client.close()
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def attend(client):
    """Forks the program and tells its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, fds = b"", []
    while not text.endswith(b"\n"):
        part, more, _, _ = socket.recv_fds(client, 1 << 16, 64)
        text, fds = text + part, fds + more
        if not part:
            os._exit(1)
    pid = os.fork()
    if pid == 0:
        client.close()
        become(json.loads(text), fds)
    for fd in fds:
        os.close(fd)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        client.sendall(str(status).encode())
    os._exit(0)


def become(request, fds):
    """Is the process that asked, as far as the program can tell."""
    status = 1
    try:
        os.setpgid(0, request["group"])  # to be ended with it
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in fds]
        for fd in fds:
            os.close(fd)
        for fd, number in zip(high, request["fds"]):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.argv, sys.path[0] = ["-c", *request["arguments"]], ""
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)
        exec(request["program"], {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    if "-c" in sys.argv:
        folder, owner, _, _, program, *arguments = sys.argv[1:]
        os._exit(ask(folder, owner, program, arguments))  # the standard streams are closed
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
