"""Trainers of one program in threads of this process, whose messages are copies from one to the others."""
import ctypes
import threading

from checks import check

E_IO = -4

Broadcast = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

Pointers, Sizes = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)
Exchange = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Pointers, Sizes, Pointers, Sizes)


class Processes(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("rank", ctypes.c_int), ("n", ctypes.c_int), ("broadcast", Broadcast),
                ("user", ctypes.c_void_p), ("exchange", ctypes.c_void_p), ("exchange_in_thread", ctypes.c_int),
                ("all_reduce", ctypes.c_void_p),
                ("local_rank", ctypes.c_int), ("n_local", ctypes.c_int), ("patience_s", ctypes.c_int64)]


class Progress(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_int64) for name in (
        "steps", "epochs_done", "epochs_total", "steps_done", "steps_left")), ("loss", ctypes.c_double), ("seconds", ctypes.c_double)]


Hear = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Progress))


class Bus:
    """What n threads send by.  fails_at: the number of a broadcast that fails in all."""
    def __init__(self, n, fails_at=-1):
        self.barrier, self.fails_at, self.sent, self.wrong = threading.Barrier(n), fails_at, None, []
        self.count = [0] * n  # of broadcasts, by rank

    def of(self, rank):
        def broadcast(_, to, n_bytes, sender):
            self.count[rank] += 1
            count = self.count[rank]
            if count == self.fails_at:
                return E_IO
            try:
                if rank == sender:
                    self.sent = count, sender, ctypes.string_at(to, n_bytes)
                self.barrier.wait(60)
                if self.sent[:2] != (count, sender) or len(self.sent[2]) != n_bytes:
                    self.wrong.append((rank, count, sender, n_bytes, self.sent[:2]))
                    return E_IO
                if rank != sender:
                    ctypes.memmove(to, self.sent[2], n_bytes)
                self.barrier.wait(60)
            except threading.BrokenBarrierError:
                return E_IO
            return 0
        return Broadcast(broadcast)


class Rows:
    """What n threads send rows by: copies.  fails_at: numbers of calls that fail in all.  elsewhere: the calls of each that other
    threads of theirs made."""
    def __init__(self, n, *fails_at):
        self.n, self.barrier, self.fails_at, self.n_calls = n, threading.Barrier(n), fails_at, 0
        self.sent, self.elsewhere, self.wrong = [None] * n, [[] for _ in range(n)], []

    def came(self, message):
        """What the other one reads of it."""
        return message

    def of(self, rank):
        home, count, busy = threading.get_ident(), 0, threading.Lock()

        def exchange(_, out, n_out, to, n_in):
            nonlocal count
            if not busy.acquire(blocking=False):
                self.wrong.append((rank, "two calls at once"))
                return E_IO
            try:
                count += 1
                if threading.get_ident() != home:
                    self.elsewhere[rank].append(count)
                self.n_calls = count
                if count in self.fails_at:
                    return E_IO
                self.sent[rank] = [ctypes.string_at(out[r], n_out[r]) if n_out[r] else b"" for r in range(self.n)]
                self.barrier.wait(60)
                for r in range(self.n):
                    if r != rank and len(self.sent[r][rank]) != n_in[r]:
                        self.wrong.append((rank, r, n_in[r]))
                    elif r != rank and n_in[r]:
                        ctypes.memmove(to[r], self.came(self.sent[r][rank]), n_in[r])
                self.barrier.wait(60)
            except threading.BrokenBarrierError:
                return E_IO
            finally:
                busy.release()
            return 0
        return Exchange(exchange)


class Counters(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_int64) for name in (
        "steps", "allocations", "allocated_bytes", "launches", "library_calls", "read_backs", "live_bytes", "peak_bytes", "eval_ns",
        "sent_bytes", "messages", "beside_bytes", "pulled_rows")]


class Trainer:
    def __init__(self, lib, data, rank, n, bus, seed=0, max_memory=0, local=0, rows=None, in_thread=0, memory=None, **options):
        self.lib, self.data, self.rank, self.bus, self.t = lib, data, rank, bus, ctypes.c_void_p()
        self.kept = bus.of(rank) if bus else Broadcast()
        self.exchange = rows.of(rank) if rows else None
        p = Processes(ctypes.sizeof(Processes), rank, n, self.kept, None, ctypes.cast(self.exchange, ctypes.c_void_p) if rows else None,
                      in_thread, None, rank if local else 0, local)
        program = ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))
        self.ok(lib.gnnc_trainer_create_with(ctypes.byref(self.t), program, *memory, None) if memory else
                lib.gnnc_trainer_create(ctypes.byref(self.t), program))
        self.ok(lib.gnnc_trainer_set_int(self.t, b"threads", ctypes.c_int64(1 + rank)))
        self.ok(lib.gnnc_trainer_set_int(self.t, b"seed", ctypes.c_int64(seed)))
        options |= {"max_memory": max_memory} if max_memory else {}
        for name, value in options.items():
            self.ok(lib.gnnc_trainer_set_int(self.t, name.encode(), ctypes.c_int64(value)))
        self.ok(lib.gnnc_trainer_set_processes(self.t, ctypes.byref(p)))

    def load(self):
        return self.lib.gnnc_trainer_load(self.t, self.data)

    def error(self):
        return self.lib.gnnc_trainer_error(self.t).decode()

    def ok(self, st):
        assert st == 0, (st, self.error())

    def epochs(self, n):
        for _ in range(n):
            self.ok(self.lib.gnnc_trainer_epoch(self.t))

    def steps(self, n):
        for _ in range(n):
            self.ok(self.lib.gnnc_trainer_step(self.t))

    def save(self, name):
        self.ok(self.lib.gnnc_trainer_save(self.t, name.encode()))

    def heard(self, fn):
        self.hear = Hear(lambda _, now: fn(self, now[0]))
        self.ok(self.lib.gnnc_trainer_set_progress(self.t, self.hear, None))

    def counters(self):
        c = Counters(struct_size=ctypes.sizeof(Counters))
        self.ok(self.lib.gnnc_trainer_counters(self.t, ctypes.byref(c)))
        return c

    def agree(self, asked):
        return self.lib.gnnc_trainer_agree(self.t, asked)


def in_threads(lib, data, n, does, fails_at=-1, seed=lambda rank: 0, local=0, rows=None):
    """does(trainer) of each of n; what they returned.  local: so many are told that they share a machine.  rows: what they
    send rows by."""
    bus, out = (Bus(n, fails_at) if n > 1 else None), [None] * n

    def run(rank):
        t = Trainer(lib, data, rank, n, bus, seed(rank), local=local, rows=rows)
        try:
            t.ok(t.load())
            out[rank] = does(t)
        except AssertionError as e:
            out[rank] = e
            if bus:
                bus.barrier.abort()
            if rows:
                rows.barrier.abort()
        lib.gnnc_trainer_destroy(t.t)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(f"{n} processes send the same in the same order", not bus or not bus.wrong, bus and bus.wrong)
    return out
