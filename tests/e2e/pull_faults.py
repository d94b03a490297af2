#!/usr/bin/env python3
"""Processes that pull rows of features (pull_rows), as threads of this one: an exchange or broadcast that fails in all of them is
told once, and they go on to the same bits; who is elsewhere, or has rows of another form, is told so in a line; rows that stay
take no more memory than max_memory allows; and seeds by part (seeds_by_part), by which fewer rows come.
usage: pull_faults.py GNNC TOP.  Prints `N passed, N failed`."""
import array
import ctypes
import json
import os
import shutil
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import directory  # noqa: E402
from checks import bytes_of, check, end, run  # noqa: E402
from threads import E_IO, Bus, Rows, Trainer  # noqa: E402

GNNC, TOP = sys.argv[1:3]
E_LIMIT, E_STATE = -11, -10
MIB = 1 << 20
EPOCHS, K, N, WIDTH = 3, 4, 160, 6
MODEL = """
import "layers/sage.gnn"
graph G {
  node user { x: f32[F];  y: class[C];  split }
  node place { v: f32[V] }
  edge likes: user -> user
  edge lives: user -> place
}
model M(g: G) -> f32[user, C] {
  a = linear(8)
  p = linear(8)
  conv = sage_conv(C)
  back = reverse(g.lives)
  return conv(g.likes, relu(a(dropout(g.user.x, 0.2)) + sum(p(g.place.v)[back.src], over = back.dst)))
}
train M {
  target user.y  loss cross_entropy  metric accuracy  optimizer adam(lr = 1e-2)  epochs %d  keep best on val loss
  sample { fanout [4, 2]  batch 8 }  accumulate %d
}
""" % (EPOCHS, K)


def data(path, n, width, v_width, parts=2, near=False, entries=5):
    """Users who like each other, maybe such as have near numbers, with fewer than so many entries; places with so many numbers, maybe none."""
    os.mkdir(path)
    user = {"x": directory.column(path, "x", "float", [((7 * i) % 101 - 50) / 50 for i in range(width * n)], width=width),
            "y": directory.column(path, "y", "class", [i * i % 7 % 2 for i in range(n)], categories=2),
            "split": directory.column(path, "split", "split", [1 + (i % 7 > 4) + (i % 7 > 5) for i in range(n)])}
    directory.save(path + "/v.npy", "f", "<f4", (9, v_width), [i / 9 for i in range(9 * v_width)])
    user["w"] = directory.csr(path, "w", [[(c, (i + c) / 99) for c in range(i % entries)] for i in range(n)], 60)
    place = {"v": {"kind": "float", "file": "v.npy", "shape": [9, v_width]},
             "sort": directory.column(path, "sort", "cat", [i % 4 for i in range(9)], categories=4)}
    directory.write(path, {"user": {"count": n, "columns": user}, "place": {"count": 9, "columns": place}},
                    {"likes": directory.relation(path, "likes", "user", "user", [((i + k if near else i * i + k * k) % n, i) for i in range(n) for k in range(3)]),
                     "lives": directory.relation(path, "lives", "user", "place", [(i, i % 9) for i in range(n)])})
    run(GNNC, "partition", path, str(parts), "-o", f"{path}.{parts}", "--method", "rows")
    return f"{path}.{parts}"


# Categories and stored entries come, too, of a model that evaluates by batches.
DRAWN = MODEL.replace("x: f32[F];", "x: f32[F];  w: csr f32[W];").replace("v: f32[V]", "v: f32[V];  sort: cat[S]").replace(
    "  p = linear(8)", "  p = linear(8)\n  w = linear(8)\n  s = embedding(S, 8)").replace(
    "a(dropout(g.user.x, 0.2))", "a(g.user.x) + w(dropout(g.user.w, 0.2))").replace(
    "p(g.place.v)[back.src]", "(p(g.place.v) + s(g.place.sort))[back.src]").replace("batch 8", "batch 8  evaluate drawn")


def library(name, text):
    with open(name + ".gnn", "w", encoding="utf-8") as f:
        f.write(text)
    run(GNNC, name + ".gnn", "--target=cpu", "--emit=lib", "--name=model", "-o", name)
    made = ctypes.CDLL(f"./lib{name}.so")
    made.gnnc_trainer_error.restype = ctypes.c_char_p
    return made


lib, lib_drawn = library("model", MODEL), library("drawn", DRAWN)
DATA, NONE = data("some", N, WIDTH, 3), data("none", N, WIDTH, 0)


def together(does, of=DATA, n=2, rows=None, bus=None, by=None, **options):
    """What does(trainer) returned of each of n processes; of(rank) may be a directory of its own."""
    rows, bus, out = rows or Rows(n), bus or Bus(n), [None] * n

    def work(rank):
        own = {name: value(rank) if callable(value) else value for name, value in options.items()}
        own = {"pull_rows": 1} | own
        t = Trainer(by or lib, (of(rank) if callable(of) else of).encode(), rank, n, bus, rows=rows if n > 1 else None, in_thread=1, **own)
        out[rank] = does(t)
        lib.gnnc_trainer_destroy(t.t)
    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(f"{n} processes: messages fit", not rows.wrong and not bus.wrong, (rows.wrong, bus.wrong))
    return out


def again(t, call, *args):
    """Makes a call until it succeeds; what it said when it failed."""
    said = []
    while (st := call(t.t, *args)) != 0 and len(said) < 99:
        said.append((st, t.error()))
    return said


def learn(t):
    """Epochs, each of whose calls is made again where it fails."""
    if t.load():
        return t.error()
    said = [x for _ in range(EPOCHS) for x in again(t, lib.gnnc_trainer_epoch)]
    t.save(f"now.{t.rank}")
    return said + again(t, lib.gnnc_trainer_keep_best, None)


# ---- the same bits; rows without numbers, evaluations within an epoch ------------------------------------------
for of in DATA, NONE:
    for more in {}, {"eval_every_steps": 3}, {"pull_cache": 500}:
        one = together(learn, of, 1, **more)
        want = bytes_of("now.0")
        rows, bus = Rows(2), Bus(2)
        check(f"{of} {more}: two learn as one", [one, together(learn, of, 2, rows, bus, **more)] == [[[]], [[], []]] and bytes_of("now.0") == want
              == bytes_of("now.1"), one)
        if of is DATA and not more:
            WANT, N_ROWS, N_SENT = want, rows.n_calls, bus.count[0]

# ---- what fails in all is told, and they go on ---------------------------------------------------------------------
OPENS, LOADS = 2, 2 + 3  # exchanges of load: what they have of two columns; rows that stay
for at in range(1, LOADS + 1):
    said = together(learn, rows=Rows(2, at))
    what = "what they have of features" if at <= OPENS else "of other processes did not come: input or output failed"
    check(f"exchange {at} fails: load says so", all(isinstance(x, str) and what in x for x in said), said)
check("there are exchanges of steps and evaluations", N_ROWS > LOADS + 3 * EPOCHS, N_ROWS)
for at in range(LOADS + 1, N_ROWS + 1, 2):
    said = together(learn, rows=Rows(2, at))
    check(f"exchange {at} of {N_ROWS} fails: both are told once", all(len(x) == 1 and x[0][0] == E_IO and "rows of other processes did not come" in x[0][1].replace(
        "row numbers", "rows") for x in said), said)
    check(f"exchange {at} fails: they go on", bytes_of("now.0") == WANT == bytes_of("now.1"))
said = together(learn, rows=Rows(2, *range(LOADS + 1, 9 * N_ROWS, 4)))
check("every fourth exchange fails: they go on", all(len(x) > EPOCHS for x in said) and bytes_of("now.0") == WANT == bytes_of("now.1"), said)
sends = Bus(2)
together(lambda t: t.load(), bus=sends)
for at in range(sends.count[0] + 1, N_SENT + 1, 3):
    said = together(learn, bus=Bus(2, at))
    check(f"broadcast {at} of {N_SENT} fails: both are told once", all(len(x) == 1 and x[0][0] == E_IO for x in said), said)
    check(f"broadcast {at} fails: they go on", bytes_of("now.0") == WANT == bytes_of("now.1"))


one, rows = together(learn, n=1, by=lib_drawn), Rows(2)
want = bytes_of("now.0")
check("entries and categories: two learn as one", [one, together(learn, rows=rows, by=lib_drawn)] == [[[]], [[], []]] and bytes_of("now.0") == want
      == bytes_of("now.1"), one)
said = together(learn, rows=Rows(2, *range(1 + LOADS + 4, rows.n_calls, 9)), by=lib_drawn)  # in turn: counts, numbers, lengths and rows
check("entries and categories, exchanges fail: they go on", all(len(x) > EPOCHS and {e[0] for e in x} == {E_IO} for x in said) and bytes_of("now.0") == want
      == bytes_of("now.1"), said)


class Longer(Rows):
    """Each length may be one of a row, all of them together may not: each process has N / 4 entries."""
    def came(self, message):
        lengths = array.array("i", message)
        return array.array("i", [60] * len(lengths)).tobytes() if len(lengths) > 8 and max(lengths) < 2 else message  # counts are 8 words


rows, bus = Longer(2), Bus(2)


def hears(t):
    st = t.load()
    for _ in range(5):
        st = st or lib.gnnc_trainer_step(t.t)
    bus.barrier.abort()
    rows.barrier.abort()
    return st, t.error()


said = together(hears, data("few", N, WIDTH, 3, entries=2), rows=rows, bus=bus, by=lib_drawn)
check("more entries than there are", any(st == E_STATE and f"rank {1 - r} has rows of " in error and "more than the data have in them" in error
                                         for r, (st, error) in enumerate(said)), said)


def saves(t):
    """What an epoch said that failed, and what a checkpoint does then."""
    t.ok(t.load())
    said = []
    for _ in range(EPOCHS):
        while st := lib.gnnc_trainer_epoch(t.t):
            said.append((st, lib.gnnc_trainer_steps_left(t.t), lib.gnnc_trainer_save(t.t, b"never"), t.error()))
    t.save(f"now.{t.rank}")
    return said


said = together(saves, bus=Bus(2, N_SENT))
check("the end of an epoch's steps fails: there is no checkpoint of that", all(x[0][:3] == (E_IO, 0, E_STATE) and len(x) == 1 and
      f"the steps of epoch {EPOCHS} are done, but what they leave did not come" in x[0][3] for x in said) and bytes_of("now.0") == WANT, said)


# ---- who is elsewhere ----------------------------------------------------------------------------------------------
def one_evaluates(t):
    t.ok(t.load())
    t.steps(2 * K)
    said = [(lib.gnnc_trainer_evaluate(t.t), t.error())] if t.rank else []
    said += [x for _ in range(K) for x in again(t, lib.gnnc_trainer_step)]
    t.save(f"now.{t.rank}")
    return said


def together_to(n_steps):
    def does(t):
        t.ok(t.load())
        t.steps(n_steps)
        t.save("want")
    return does


together(together_to(3 * K), n=1)
said = together(one_evaluates)
check("one evaluates while the other trains: both are told", [x and (x[0][0], "at an evaluation of the whole graph behind step 8" in x[0][1]) for x in said]
      == [(E_STATE, True)] * 2 and "rank 0 pulls rows at step " in said[1][0][1], said)
check("and both go on", bytes_of("now.0") == bytes_of("want") == bytes_of("now.1"))


# ---- rows of another form ------------------------------------------------------------------------------------------
def tried(of):
    """What load says in each of two; where it refuses, the other one waits for nobody."""
    rows, bus = Rows(2), Bus(2)

    def does(t):
        st = t.load()
        if st == E_STATE:
            bus.barrier.abort()
            rows.barrier.abort()
        return st, t.error()
    return together(does, of, 2, rows, bus)


def in_low_bits(data, to):
    """The same directory, with bf16 as features of users."""
    shutil.copytree(data, to)
    with open(to + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    c = schema["nodes"]["user"]["columns"]["x"]
    raw = bytes_of(f"{to}/{c['file']}")
    bits = array.array("I", raw[10 + int.from_bytes(raw[8:10], "little"):])
    directory.save(f"{to}/{c['file']}", "H", "<u2", (N, WIDTH), [x >> 16 for x in bits])
    c |= {"dtype": "bf16", "shape": [N, WIDTH]}
    with open(to + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)


in_low_bits(DATA, "low")
said = tried(lambda rank: "low" if rank else DATA)
check("rows in another type", said[1] == (E_STATE, f"user.x: rank 1 has {WIDTH} numbers of BF16 in a row, rank 0 {WIDTH} of F32"), said)
said = tried(lambda rank: NONE if rank else DATA)
check("rows of another width", said[1] == (E_STATE, "place.v: rank 1 has 0 numbers of F32 in a row, rank 0 3 of F32"), said)


# ---- seeds by part --------------------------------------------------------------------------------------------------
def pulled(t):
    """How many rows came for batches of all epochs; what is left is now.RANK."""
    t.ok(t.load())
    t.epochs(EPOCHS)
    t.save(f"now.{t.rank}")
    return t.counters().pulled_rows


def part_way(t):
    t.ok(t.load())
    t.steps(7)
    t.save(f"part.{t.rank}")


def goes_on(t):
    t.ok(t.load())
    st = lib.gnnc_trainer_resume(t.t, b"part.0")
    if st:
        return st, t.error()
    while lib.gnnc_trainer_epochs_done(t.t) < EPOCHS:
        t.epochs(1)
    t.save(f"now.{t.rank}")
    return st


PARTS = data("parts", 240, WIDTH, 3, 4, near=True)
together(pulled, PARTS, 1)
of_any = bytes_of("now.0")
together(pulled, PARTS, 1, seeds_by_part=1)
of_part = bytes_of("now.0")
check("batches of one part are other ones", of_part != of_any)
for n in (2, 3, 4):
    far = sum(together(pulled, PARTS, n))
    near = sum(together(pulled, PARTS, n, seeds_by_part=1))
    check(f"{n} processes, seeds by part: the same", all(bytes_of(f"now.{rank}") == of_part for rank in range(n)))
    check(f"{n} processes, seeds by part: fewer rows come", 0 < near < 0.7 * far, (near, far))
together(part_way, PARTS, 3, seeds_by_part=1)
check("gone on with in another number", together(goes_on, PARTS, 2, seeds_by_part=1) == [0, 0] and bytes_of("now.0") == of_part == bytes_of("now.1"))
said = together(goes_on, PARTS, 1)
check("with seeds of any part", said[0][0] != 0 and "way to make batches" in said[0][1], said)
for of, n, why in (("some", 1, "the data are not in parts (gnnc partition)"), (DATA, 3, "the data have fewer parts than there are processes")):
    said = together(lambda t: (t.load(), t.error()), of, n, seeds_by_part=1, pull_rows=0)
    check(f"refused: {why}", all(x == (E_STATE, f"seeds cannot be drawn by part (seeds_by_part): {why}") for x in said), said)
said = together(lambda t: (t.load() or lib.gnnc_trainer_step(t.t), t.error()), DATA, 2, seeds_by_part=lambda rank: rank, pull_rows=0)
check("another way to take seeds", said[1][0] == E_STATE and "rank 1 trains with another way to take seeds (seeds_by_part)" in said[1][1], said)

# ---- rows that stay, and memory --------------------------------------------------------------------------------------
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("struct_size", "data_bytes", "index_bytes", "parameter_bytes", "saved_bytes", "arena_bytes",
                                                     "unpacked_bytes", "library_bytes", "loading_bytes", "all_bytes", "file_bytes", "batch_bytes")]


def keeps(cache, max_memory=0):
    """What load says in each of two, and bytes: of mapped data, allocated behind it, and at most."""
    rows, bus = Rows(2), Bus(2)

    def does(t):
        st = t.load()
        error, m = t.error(), Memory(struct_size=ctypes.sizeof(Memory))
        if st:
            bus.barrier.abort()
            rows.barrier.abort()
            return st, error
        c = t.counters()
        t.ok(lib.gnnc_trainer_memory(t.t, ctypes.byref(m)))
        return st, error, m.data_bytes, c.live_bytes, c.peak_bytes
    return together(does, LARGE, 2, rows, bus, map=1, pull_cache=cache, max_memory=max_memory)


LARGE_WIDTH = 256
LARGE, HALF = data("large", 40000, LARGE_WIDTH, 1), 20000 * LARGE_WIDTH * 4
nothing, all_of_them = keeps(0), keeps(1 << 40)


def lacks_room(t):
    """The second process lacks memory for an evaluation over the whole graph, and goes on with steps."""
    t.ok(t.load())
    t.steps(2 * K)
    said = [lib.gnnc_trainer_evaluate(t.t)] + [x[0] for _ in range(K) for x in again(t, lib.gnnc_trainer_step)]
    t.save(f"now.{t.rank}")
    return said


few = nothing[0][2] + nothing[0][4] + 8 * MIB
said = together(lacks_room, LARGE, map=1, max_memory=lambda rank: few * rank)
check("one lacks memory for all rows: both are told, and go on", said == [[E_STATE], [E_LIMIT, E_STATE]] and bytes_of("now.0") == bytes_of("now.1"), said)


def with_a_wide_row(path, width):
    """Of few users, who have so many features, all 0."""
    data(path, 6, 1, 3)
    path += ".2"
    with open(path + "/schema.json", encoding="utf-8") as f:
        schema = json.load(f)
    c = schema["nodes"]["user"]["columns"]["x"]
    directory.save(f"{path}/{c['file']}", "f", "<f4", (6, width), [])
    os.truncate(f"{path}/{c['file']}", os.path.getsize(f"{path}/{c['file']}") + 24 * width)
    c["shape"] = [6, width]
    with open(path + "/schema.json", "w", encoding="utf-8") as f:
        json.dump(schema, f)
    return path


said = together(lambda t: (t.load(), t.error()), with_a_wide_row("wide", MIB + 1000), pull_cache=1 << 40)
check("a row that stays is wider than a message", said == [(0, "")] * 2, said)
most = max(x[4] for x in all_of_them)
check("others' rows stay", all(b[3] - a[3] >= HALF for a, b in zip(nothing, all_of_them)), (nothing, all_of_them))
check("messages with them take little", most < max(x[3] for x in all_of_them) + 12 * MIB, (all_of_them, most))
said = keeps(1 << 40, all_of_them[0][2] + most - 4 * MIB)
check("more than max_memory: one line", (E_LIMIT, True) in [(x[0], "MiB are needed" in x[1] and "for rows of others that stay, the limit is" in x[1] and
                                                         x[1].endswith(": a smaller pull_cache needs less")) for x in said], said)
room = all_of_them[0][2] + most + 16 * MIB
said = keeps(1 << 40, room)
check("within max_memory", all(x[0] == 0 and x[2] + x[4] <= room for x in said), said)
sys.exit(end())
