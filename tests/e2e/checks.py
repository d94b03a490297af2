"""What tests of many checks share: each check is told where it fails, and the end counts them."""
import json
import os
import subprocess
import time

# For mpirun: as root; and messages by what needs no library of a network's, which take half of the time of a start.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx"}
_failures, _done = [], []


def check(what, holds, told=""):
    _done.append(what)
    if not holds:
        _failures.append(what)
        print(f"FAILED {what}\n{told}")


def run(*command):
    """What a command printed, which is to end with status 0."""
    r = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", check=False)
    check(" ".join(command)[:200], r.returncode == 0, r.stdout)
    return r.stdout


def bytes_of(path):
    with open(path, "rb") as f:
        return f.read()


def header_of(path):
    """The header of a safetensors file, and the bytes behind it."""
    data = bytes_of(path)
    n = int.from_bytes(data[:8], "little")
    return json.loads(data[8:8 + n]), data[8 + n:]


def ranks_of(program, job):
    """Processes of a program that mpirun started with OF_TEST=job, by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = bytes_of(f"/proc/{pid}/cmdline").split(b"\0")
            env = dict(x.split(b"=", 1) for x in bytes_of(f"/proc/{pid}/environ").split(b"\0") if b"=" in x)
        except OSError:
            continue
        if words[0] == program.encode() and env.get(b"OF_TEST") == job.encode():
            found[int(env[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found


def all_gone(program, job):
    """Waits until none of them is left, for a minute at most.  mpirun, which kills them, does not wait for their ends."""
    for _ in range(1200):
        if not ranks_of(program, job):
            return True
        time.sleep(0.05)
    return False


def end():
    """The exit status, behind the line that counts."""
    print(f"{len(_done) - len(_failures)} passed, {len(_failures)} failed")
    return 1 if _failures or not _done else 0
