#!/usr/bin/env python3
"""How long a trainer takes from its start to its first step: the library is opened, a trainer made, data loaded (what the
command line does, with its options), once without index arrays beside the data, then with them; files are in the page cache.
usage: start.py MODEL.gnn DATA [--runs N]   (DATA is copied nowhere: its *.kept files are removed, and made again)"""
import argparse, glob, os, pathlib, statistics, subprocess, sys, tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
CHILD = """
import ctypes, sys, time
library, program, data, cache = sys.argv[1:]
begin, cpu = time.perf_counter(), time.process_time()
lib = ctypes.CDLL(library)
lib.gnnc_trainer_error.restype = ctypes.c_char_p
t = ctypes.c_void_p()
def done(status):
    if status: sys.exit(lib.gnnc_trainer_error(t).decode())
done(lib.gnnc_trainer_create(ctypes.byref(t), ctypes.byref(ctypes.c_char.in_dll(lib, program))))
for name, value in dict(map=1, cache=int(cache)).items():
    done(lib.gnnc_trainer_set_int(t, name.encode(), ctypes.c_int64(value)))
done(lib.gnnc_trainer_load(t, data.encode()))
loaded, used = time.perf_counter() - begin, time.process_time() - cpu
done(lib.gnnc_trainer_step(t))
print(loaded, used, time.perf_counter() - begin - loaded)
"""


def start(library, program, data, cache):
    run = subprocess.run([sys.executable, '-c', CHILD, library, program, data, str(cache)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f'{data}: {run.stderr.strip()}')
    return [float(x) for x in run.stdout.split()]


def row(what, runs):
    middle = [statistics.median(column) for column in zip(*runs)]
    print(f'| {what} | {middle[0]:.3f} | {middle[1]:.3f} | {middle[2]:.3f} |', flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('model')
    ap.add_argument('data')
    ap.add_argument('--runs', type=int, default=5)
    ap.add_argument('--gnnc', default=str(TOP / 'build/gnnc'))
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([a.gnnc, a.model, '--target=cpu', '--emit=lib', '-o', f'{work}/start'], check=True)
        library = f'{work}/libstart.so'
        print('| start | s to the first step | CPU s of all threads | s of the first step |\n|---|---|---|---|')
        start(library, 'start_program', a.data, 0)  # files into the page cache
        row('without index arrays', [start(library, 'start_program', a.data, 0) for _ in range(min(a.runs, 3))])
        for kept in glob.glob(os.path.join(glob.escape(a.data), '*.kept')):
            os.unlink(kept)
        row('that makes and keeps them', [start(library, 'start_program', a.data, 1)])
        row('later', [start(library, 'start_program', a.data, 1) for _ in range(a.runs)])


if __name__ == '__main__':
    main()
