"""Ranks of an exported program, one process each, forked from this one so that torch is loaded once. For export.py and measure.py, which say
"torch" in their first line where there is one."""

import os
import runpy
import signal
import socket
import sys
import traceback
import warnings

try:
    import torch
except ImportError as missing:
    sys.exit(f"no torch: {missing}")


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def be_rank(folder, rank, environment, arguments, seconds):
    """In a process of its own: never returns."""
    status = 1
    out = os.open(f"{folder}/out.{rank}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(out, 1), os.dup2(out, 2)
    os.environ.update(environment)
    try:
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        sys.argv = ["program.py", *arguments]
        signal.alarm(seconds)
        runpy.run_path(f"{folder}/program.py", run_name="__main__")
        status = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(status)


def run(folder, ranks, arguments, seconds, nodes=1):
    """Did all of them end well? What they print is in FOLDER/out.RANK."""
    port, children = str(free_port()), []
    for rank in range(ranks):
        environment = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "GROUP_RANK": str(rank % nodes), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        child = os.fork()
        if not child:
            be_rank(folder, rank, environment, arguments, seconds)
        children.append(child)
    return all([os.waitpid(child, 0)[1] == 0 for child in children])
