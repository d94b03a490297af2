#!/usr/bin/env python3
"""How many edges a second `gnnc import` reads: an edge list, CSV, an .npz, of one random graph; files in the page cache.
usage: import.py [--nodes N] [--edges N] [--runs N] [--work DIR] [--python PYTHON]   (PYTHON has numpy, to write the graph)"""
import argparse, os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

TOP = pathlib.Path(__file__).resolve().parent.parent
WRITE = """
import os, sys, numpy as np
nodes, edges, work = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
r = np.random.default_rng(0)
ends = np.stack([r.integers(0, nodes, edges), (nodes * r.random(edges) ** 2).astype(np.int64).clip(0, nodes - 1)])
np.savez(f'{work}.npz', edge_index=ends, num_nodes=nodes)
with open(f'{work}.txt', 'w') as text, open(f'{work}.csv.part', 'w') as csv:
    csv.write('src,dst\\n')
    for k in range(0, edges, 1000000):
        lines = '\\n'.join(map('{} {}'.format, *ends[:, k:k + 1000000].tolist())) + '\\n'
        text.write(lines)
        csv.write(lines.replace(' ', ','))
os.rename(f'{work}.csv.part', f'{work}.csv')
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--nodes', type=float, default=1e6)
    ap.add_argument('--edges', type=float, default=2e7)
    ap.add_argument('--runs', type=int, default=5)
    ap.add_argument('--work', help='keeps the files there')
    ap.add_argument('--python', default=sys.executable)
    ap.add_argument('--gnnc', default=str(TOP / 'build/gnnc'))
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = a.work or folder
        os.makedirs(work, exist_ok=True)
        graph = f'{work}/graph_{int(a.nodes)}_{int(a.edges)}'
        if not os.path.exists(f'{graph}.csv'):  # written last
            subprocess.run([a.python, '-c', WRITE, str(int(a.nodes)), str(int(a.edges)), graph], check=True)
        print('| form | MB | s | million edges/s |\n|---|---|---|---|')
        for form in ('txt', 'csv', 'npz'):
            took = []
            for _ in range(a.runs):
                out = f'{folder}/out'
                begin = time.perf_counter()
                subprocess.run([a.gnnc, 'import', f'{graph}.{form}', '-o', out], check=True, stdout=subprocess.DEVNULL)
                took.append(time.perf_counter() - begin)
                shutil.rmtree(out)
            s = statistics.median(took)
            print(f'| {form} | {os.path.getsize(f"{graph}.{form}") / 1e6:.0f} | {s:.2f} | {a.edges / s / 1e6:.1f} |', flush=True)


if __name__ == '__main__':
    main()
