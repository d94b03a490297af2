#!/usr/bin/env python3
"""What a host that uses GPUs itself asks of trainers and sessions there: sessions on a device, the host's stream, several
devices in one process, DLPack tensors of their memory.

    embed.py BUILD                  by the simulator
    embed.py --made FOLDER          of what prepare() wrote there, and of its programs as lib*.so: by the simulator in them,
    embed.py --made FOLDER CUDART   or on a GPU, where CUDART is the runtime library of the host (tests/gpu/run)
"""
import ctypes
import os
import random
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from batches import Trainer  # noqa: E402
from directory import column, relation, write  # noqa: E402
from session_graphs import ACROSS, some_molecules  # noqa: E402
from sessions import E_MISSING, E_NOMEM, E_STATE, Library, Memory, OK, Session, rows, run, train  # noqa: E402
import session_links  # noqa: E402
import subgraph_links  # noqa: E402
import subgraphs  # noqa: E402
from graph import npy  # noqa: E402
from sim import counts, library as compiled, orders  # noqa: E402

E_DEVICE = -13
CUDART = None  # a host's own CUDA runtime; where it is not set each library has the simulator's
USERS, ITEMS = 120, 50

# Columns of numbers, a table with a row for each node, and degrees, which are known of the whole graph.
MODEL = """
import "layers/sage.gnn"
graph Shop {
  node user { x: f32[F];  y: class[C];  split }
  node item { z: csr f32[Z] }
  edge buys: item -> user { w: f32 }
  edge knows: user -> user
}
model M(g: Shop; dim: int = 6) -> f32[user, C] {
  param v: f32[item, dim] = normal(0, 0.5)
  lin = linear(dim)
  of_item = linear(dim)
  conv = sage_conv(dim)
  out = linear(C)
  i = of_item(g.item.z) + v
  u = lin(g.user.x) + sum(i[g.buys.src] * g.buys.w, over = g.buys.dst)
  h = relu(conv(g.knows, u))
  return out(h)
}
train M {
  target user.y   loss cross_entropy   metric accuracy
  optimizer adam(lr = 1e-2)
  epochs 3
}
"""


def shop(path):
    r = random.Random(3)
    os.mkdir(path)
    numbers = lambda n: [r.gauss(0, 1) for _ in range(n)]
    x = numbers(USERS * 5)
    user = {"x": column(path, "x", "float", x, width=5),
            "y": column(path, "y", "class", [r.randrange(3) for _ in range(USERS)], categories=3),
            "split": column(path, "split", "split", [1 + i % 3 for i in range(USERS)])}
    item = {"z": column(path, "z", "float", numbers(ITEMS * 4), width=4)}
    buys = [(r.randrange(ITEMS), r.randrange(USERS)) for _ in range(400)]
    edges = {"buys": relation(path, "buys", "item", "user", buys, w=column(path, "w", "float", numbers(400))),
             "knows": relation(path, "knows", "user", "user", [(r.randrange(USERS), r.randrange(USERS)) for _ in range(300)])}
    write(path, {"user": {"count": USERS, "columns": user}, "item": {"count": ITEMS, "columns": item}}, edges)


class Tensor(ctypes.Structure):
    """A DLManagedTensorVersioned."""
    class Inner(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int), ("ordinal", ctypes.c_int32), ("ndim", ctypes.c_int32),
                    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                    ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                    ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Tensor))
Tensor._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                   ("flags", ctypes.c_uint64), ("t", Tensor.Inner)]
CPU, CUDA = 1, 2
TO_HOST, TO_DEVICE = 2, 1


def cuda(lib):
    return CUDART or lib


def n_devices(lib):
    n = ctypes.c_int()
    assert cuda(lib).cudaGetDeviceCount(ctypes.byref(n)) == 0
    return n.value


class Watch:
    """What the simulator counts from here on; a GPU counts nothing."""
    def __init__(self, lib):
        self.lib = lib
        if not CUDART:
            self.first, self.bytes = counts(lib), lib.cudasim_live_bytes()

    def counted(self, **wanted):
        if not CUDART:
            now = {k: n - self.first[k] for k, n in counts(self.lib).items()}
            assert all(now[k] == n for k, n in wanted.items()), now

    def grew(self, as_it_should):
        if not CUDART:
            now = self.lib.cudasim_live_bytes() - self.bytes
            assert as_it_should(now), now

    def all_came_back(self):
        self.grew(lambda n: n == 0)


class Stream:
    """A stream of the host's; None is the default one."""
    def __init__(self, lib, device=0):
        self.lib, self.s = cuda(lib), ctypes.c_void_p()
        self.lib.cudaSetDevice(device)
        assert self.lib.cudaStreamCreateWithFlags(ctypes.byref(self.s), 1) == 0
        self.lib.cudaSetDevice(0)

    @classmethod
    def default(cls, lib):
        s = object.__new__(cls)
        s.lib, s.s = cuda(lib), None
        return s

    def copy(self, tensor):
        """What is behind a packed tensor, once the stream was waited for."""
        t = tensor.contents.t
        n = 1
        for i in range(t.ndim):
            n *= t.shape[i]
        here = (ctypes.c_float * n)()
        assert self.lib.cudaMemcpyAsync(here, ctypes.c_void_p(t.data), ctypes.c_size_t(4 * n), TO_HOST, self.s) == 0
        return here

    def wait(self):
        assert self.lib.cudaStreamSynchronize(self.s) == 0

    def values(self, tensor):
        here = self.copy(tensor)
        self.wait()
        return here

    def close(self):
        self.lib.cudaStreamDestroy(self.s)


def tensor_of(call, *arguments):
    out = ctypes.POINTER(Tensor)()
    st = call(*arguments, ctypes.byref(out))
    assert bool(out) == (st == OK)
    return st, out


def give_back(tensor):
    tensor.contents.deleter(tensor)


def shape_of(tensor):
    t = tensor.contents.t
    return tuple(t.shape[i] for i in range(t.ndim))


class OnGpu(Trainer):
    """A trainer of one device."""
    def __init__(self, lib, data, device="cuda:0"):
        self.lib, self.t = lib, ctypes.c_void_p()
        lib.gnnc_trainer_error.restype = ctypes.c_char_p
        self.ok(lib.gnnc_trainer_create(ctypes.byref(self.t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))))
        self.ok(lib.gnnc_trainer_set_text(self.t, b"device", device.encode()))
        self.ok(lib.gnnc_trainer_load(self.t, data.encode()))

    def stream(self, s):
        self.ok(self.lib.gnnc_trainer_set_stream(self.t, s.s if s else None))

    def tensor(self, what, *arguments):
        st, out = tensor_of(getattr(self.lib, "gnnc_trainer_%s_dlpack" % what), self.t, *arguments)
        self.ok(st)
        return out

    def parameter(self, name, n):
        v = (ctypes.c_float * n)()
        self.ok(self.lib.gnnc_trainer_get_parameter(self.t, name, v, ctypes.c_size_t(n)))
        return v

    def close(self):
        self.lib.gnnc_trainer_destroy(self.t)


class OnDevice(Session):
    """A session that is opened on a device."""
    def __init__(self, library, model, graph, device, memory=None, stream=None):
        self.lib, self.s = library.lib, ctypes.c_void_p()
        self.lib.gnnc_session_device.restype = ctypes.c_char_p
        make = ([self.lib.gnnc_session_create_with, *memory.arguments()] if memory else [self.lib.gnnc_session_create])
        assert make[0](ctypes.byref(self.s), *make[1:]) == OK
        self.status = self.lib.gnnc_session_set_device(self.s, device.encode())
        self.status = self.status or self.lib.gnnc_session_open(self.s, model, graph)
        if self.status == OK:
            self.measure()


def near(got, want, limit=1e-5):
    return all(abs(x - y) <= limit * max(1, abs(y)) for x, y in zip(got, want))


def a_session(library, model, graph, wanted):
    """Rows on the device are the host's; after the first of a size nothing is allocated on either side, and each waits once."""
    memory, sim = Memory(), library.lib
    s = OnDevice(library, model, graph, "cuda", memory)
    assert s.status == OK and sim.gnnc_session_device(s.s) == b"cuda", s.error()
    ids = [USERS - 1 - i for i in range(USERS)] + [0, 0, 7]
    for _ in range(2):
        st, got = s.predict(ids)
        assert st == OK, s.error()
        assert all(near(row, wanted[i]) for i, row in zip(ids, rows(got, s.width, range(len(ids)))))
    watch, n = Watch(sim), memory.n
    for i in range(8):
        st, got = s.predict([i])
        assert st == OK and near(got[:s.width], wanted[i]), i
    assert memory.n == n, memory.n - n
    watch.counted(allocations=0, synchronisations=8, device_to_host=8, host_to_device=8)
    clone, watch = s.clone(), Watch(sim)
    s.close()
    assert clone.predict([5])[0] == OK
    clone.close()
    assert memory.live == 0, memory.live
    watch.grew(lambda n: n < 0)


def layers_of_a_session(library, model, graph):
    """Hidden layers by rows on the device are the host's, beside predictions, in clones, and none is there that was not compiled."""
    host, s = Session(library, model, graph), OnDevice(library, model, graph, "cuda")
    assert s.status == OK and s.layers() == host.layers() and "h" in s.layers(), (s.error(), s.layers())
    clone = s.clone()
    for _ in range(2):
        for name in s.layers():
            assert s.layer(name) == host.layer(name)
            _, _, n, width = s.layer(name)
            ids = [n - 1 - i for i in range(n)] + [0, 0, 7]
            wanted = rows(host.embed(name)[1], width, range(n))
            assert any(wanted[0])
            for by in (s, clone):
                st, got = by.embed(name, ids)
                assert st == OK and by.predict([3])[0] == OK, by.error()
                assert all(near(row, wanted[i]) for i, row in zip(ids, rows(got, width, range(len(ids))))), name
    assert s.embed("none", n=0)[0] == E_MISSING
    for by in (host, s, clone):
        by.close()


def sessions_of_threads(library, model, graph, wanted):
    """Clones in threads, whose GPU is another one until they call."""
    s, wrong = OnDevice(library, model, graph, "cuda"), []
    clones = [s.clone() for _ in range(3)]

    def serve(c, first):
        for i in range(first, USERS, 12):
            st, got = c.predict([i])
            if st != OK or not near(got[:c.width], wanted[i]):
                wrong.append(i)
        c.close()

    threads = [threading.Thread(target=serve, args=(c, k)) for k, c in enumerate(clones)]
    for t in threads:
        t.start()
    s.close()
    for t in threads:
        t.join()
    assert not wrong, wrong


def flat(rows_of):
    return [v for row in rows_of for v in row]


def a_trainer_and_a_stream(lib):
    """What the trainer gives is read in the host's stream without a wait, and what is read there stays until it was read."""
    memory = Watch(lib)
    t, s = OnGpu(lib, "shop"), Stream(lib)
    t.epoch()
    want, hidden = flat(t.values()), flat(t.values("h"))
    t.stream(s)
    a_step = lambda: (t.step(), t.lib.gnnc_trainer_wait(t.t))
    for _ in range(2):  # replayed, too
        watch = Watch(lib)
        p = t.tensor("predict")
        watch.counted(synchronisations=0, device_to_host=0, event_waits=0)
        old = s.copy(p)  # not done yet in some orders
        a_step()
        q = t.tensor("predict")
        t.lib.gnnc_trainer_wait(t.t)
        s.wait()
        assert list(old) == want, "overwritten before it was read"
        assert shape_of(q) == (USERS, 3) and p.contents.t.data == q.contents.t.data
        want = flat(t.values())
        assert list(s.values(q)) == want
        give_back(p)
        give_back(q)
        hidden = flat(t.values("h"))
        h = t.tensor("embed", b"h")
        assert shape_of(h) == (USERS, 6) and list(s.values(h)) == hidden
        give_back(h)
    t.stream(None)  # the default stream
    p = t.tensor("predict")
    assert list(Stream.default(lib).values(p)) == want
    give_back(p)
    t.ok(lib.gnnc_trainer_set_stream(t.t, ctypes.c_void_p(-1)))
    watch = Watch(lib)
    p = t.tensor("predict")  # without a stream the call waits
    watch.counted(synchronisations=1)
    assert list(s.values(p)) == want
    t.close()  # the tensor is there still
    assert list(s.values(p)) == want
    memory.grew(lambda n: n > 0)
    give_back(p)
    s.close()
    memory.all_came_back()


def parameters(lib):
    """Views of what is trained: matrices that lie transposed have strides that say so."""
    t, s = OnGpu(lib, "shop"), Stream(lib)
    t.stream(s)
    turned = 0
    for i in range(lib.gnnc_trainer_n_parameters(t.t)):
        name, rank, dim = ctypes.c_char_p(), ctypes.c_int(), (ctypes.c_int64 * 8)()
        t.ok(lib.gnnc_trainer_parameter_info(t.t, i, ctypes.byref(name), ctypes.byref(rank), dim))
        x = t.tensor("parameter", name.value)
        t.step()  # it is a view: the step's values
        assert shape_of(x) == tuple(dim[:rank.value]) and x.contents.flags == 1, name.value
        stored, d = s.values(x), x.contents.t
        want = t.parameter(name.value, len(stored))
        strides = [d.strides[k] for k in range(d.ndim)]
        at = [0]
        for k in range(d.ndim):
            at = [a + j * strides[k] for a in at for j in range(d.shape[k])]
        assert [stored[a] for a in at] == list(want), name.value
        turned += at != sorted(at)
        give_back(x)
    assert turned, "no parameter lies transposed: nothing was tested"
    assert tensor_of(lib.gnnc_trainer_parameter_dlpack, t.t, b"none")[0] == E_MISSING
    assert tensor_of(lib.gnnc_trainer_embed_dlpack, t.t, b"none")[0] == E_MISSING
    t.close()
    s.close()


def a_session_and_a_stream(library, model, graph, wanted):
    """Predictions that stay on the device, in the host's stream; one tensor at a time, of which the session waits for the end."""
    lib, memory = library.lib, Watch(library.lib)
    s, stream = OnDevice(library, model, graph, "cuda:0"), Stream(lib)
    ask = lambda ids: tensor_of(lib.gnnc_session_predict_dlpack, s.s, ctypes.c_int64(len(ids)), (ctypes.c_int64 * len(ids))(*ids))
    assert lib.gnnc_session_set_stream(s.s, stream.s) == OK
    many = [USERS - 1 - i for i in range(USERS)] + [4, 4, 9] * 310  # more than a batch has
    for ids in (many, [3], [3, 3, 8, 9, 7], []):
        watch = Watch(lib)
        st, x = ask(ids)
        assert st == OK, s.error()
        watch.counted(device_to_host=0, **({} if ids == many else {"synchronisations": 0, "event_waits": 0}))
        assert shape_of(x) == (len(ids), s.width) and (x.contents.t.device, x.contents.t.ordinal) == (CUDA, 0)
        assert ask([0])[0] == E_STATE and "was not given back" in s.error()
        got = rows(stream.values(x), s.width, range(len(ids)))
        assert all(near(row, wanted[i]) for i, row in zip(ids, got)), ids[:5]
        give_back(x)
    watch = Watch(lib)
    st, x = ask(many)
    watch.counted(allocations=0)
    give_back(x)
    assert ask([USERS])[0] == -3
    first = lambda s, n: tensor_of(lib.gnnc_session_predict_dlpack, s, ctypes.c_int64(n), None)  # as gnnc_session_predict without a list
    assert first(s.s, USERS + 1)[0] == first(s.s, 1 << 60)[0] == -3
    st, x = first(s.s, USERS)
    assert st == OK and shape_of(x) == (USERS, s.width), s.error()
    assert all(map(near, rows(stream.values(x), s.width, range(USERS)), wanted))
    give_back(x)
    st, x = ask([5])
    s.close()  # the tensor is there still
    assert near(stream.values(x), wanted[5])
    give_back(x)
    stream.close()
    memory.all_came_back()
    host = Session(library, model, graph)
    st, x = tensor_of(lib.gnnc_session_predict_dlpack, host.s, ctypes.c_int64(2), (ctypes.c_int64 * 2)(7, 7))
    assert st == OK and x.contents.t.device == CPU
    here = (ctypes.c_float * (2 * host.width)).from_address(x.contents.t.data)
    assert all(near(row, wanted[7]) for row in rows(here, host.width, range(2)))
    give_back(x)
    st, x = first(host.s, USERS)
    assert st == OK, host.error()
    here = (ctypes.c_float * (USERS * host.width)).from_address(x.contents.t.data)
    assert all(map(near, rows(here, host.width, range(USERS)), wanted))
    give_back(x)
    host.close()


def several_devices(trains, library, model, graph, wanted):
    """A trainer and a session on each GPU, in threads of their own and by turns in one."""
    losses, wrong = {}, []
    if n_devices(trains) < 2:
        return print("LEFT OUT: several devices, of which there are not two")

    def work(device):
        t = OnGpu(trains, "shop", device)
        s = OnDevice(library, model, graph, device)
        stream = Stream(library.lib, int(device[-1]))
        if s.status != OK or library.lib.gnnc_session_set_stream(s.s, stream.s) != OK:
            wrong.append(s.error())
        for k in range(3):
            t.epoch()
            st, x = tensor_of(library.lib.gnnc_session_predict_dlpack, s.s, ctypes.c_int64(1), (ctypes.c_int64 * 1)(k))
            if st != OK or x.contents.t.ordinal != int(device[-1]) or not near(stream.values(x), wanted[k]):
                wrong.append((device, k, s.error()))
            give_back(x)
        losses[device] = t.metric("loss")
        t.close()
        s.close()
        stream.close()

    threads = [threading.Thread(target=work, args=(d,)) for d in ("cuda:0", "cuda:1")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and losses["cuda:0"] == losses["cuda:1"], (wrong, losses)
    both = [OnGpu(trains, "shop", d) for d in ("cuda:0", "cuda:1")]
    for _ in range(2):
        for t in both:
            t.step()
    values = [t.values() for t in both]
    assert values[0] == values[1]
    other = Stream(trains, 1)
    both[0].stream(other)
    assert trains.gnnc_trainer_step(both[0].t) == E_DEVICE
    why = trains.gnnc_trainer_error(both[0].t).decode()
    assert "the host's stream, which must be one of this GPU" in why, why
    both[0].ok(trains.gnnc_trainer_set_stream(both[0].t, ctypes.c_void_p(-1)))
    both[0].step()  # nothing was done
    both[1].stream(other)
    both[1].step()
    for t in both:
        t.close()
    other.close()


class Lent:
    """A column of the host's in a GPU's memory, written by work of the host's stream that may not have been done yet."""
    def __init__(self, lib, stream, values, width, gpu=0, **other):
        self.lib, self.n_bytes, self.returned, self.there = lib, 4 * len(values), 0, ctypes.c_void_p()
        cuda(lib).cudaSetDevice(gpu)
        assert cuda(lib).cudaMalloc(ctypes.byref(self.there), ctypes.c_size_t(self.n_bytes + 64)) == 0
        cuda(lib).cudaSetDevice(0)
        self.here = (ctypes.c_float * len(values))(*values)
        assert cuda(lib).cudaMemcpyAsync(self.there, self.here, ctypes.c_size_t(self.n_bytes), TO_DEVICE, stream.s) == 0
        self.shape, self.strides = (ctypes.c_int64 * 2)(len(values) // width, width), (ctypes.c_int64 * 2)(width, 1)
        self.tensor, self.deleter = Tensor(), DELETER(self.back)
        self.tensor.major, self.tensor.minor, self.tensor.deleter = 1, 1, self.deleter
        t = self.tensor.t
        t.data, t.device, t.ordinal, t.ndim, t.code, t.bits, t.lanes = self.there, CUDA, gpu, 2, 2, 32, 1
        t.shape, t.strides = self.shape, self.strides
        for k, v in other.items():
            setattr(t, k, v)

    def back(self, _):
        self.returned += 1

    def add(self, g, table=b"user", column=b"x", kind=0):
        return self.lib.gnnc_graph_add_dlpack(g, table, column, kind, ctypes.byref(self.tensor), ctypes.c_int64(-1), None)

    def free(self):
        assert self.returned == 1, self.returned
        assert cuda(self.lib).cudaFree(self.there) == 0


def new_graph(lib, path="shop"):
    g = ctypes.c_void_p()
    lib.gnnc_graph_error.restype = ctypes.c_char_p
    assert lib.gnnc_graph_create(ctypes.byref(g)) == OK
    assert lib.gnnc_graph_read(g, path.encode(), 0) == OK, lib.gnnc_graph_error(g)
    return g


def on_graph(lib, g, stream, device=b"cuda:0"):
    t = object.__new__(OnGpu)
    t.lib, t.t = lib, ctypes.c_void_p()
    t.ok(lib.gnnc_trainer_create(ctypes.byref(t.t), ctypes.byref(ctypes.c_char.in_dll(lib, "model_program"))))
    t.ok(lib.gnnc_trainer_set_text(t.t, b"device", device))
    if stream:
        t.stream(stream)
    t.status = lib.gnnc_trainer_load_graph(t.t, g)
    return t


def columns_there(trains, library, model, wanted, x):
    """A column that lies on the GPU is read where it lies: the same bits as from the host's, without a copy of it there."""
    trains.gnnc_trainer_device_bytes.restype = ctypes.c_int64
    host = OnGpu(trains, "shop")
    host.epoch()
    for own in (True, False):  # in the host's stream, and in the default one
        s, memory = Stream(trains) if own else Stream.default(trains), Watch(trains)
        column, g = Lent(trains, s, x, 5), new_graph(trains)
        assert column.add(g) == OK, trains.gnnc_graph_error(g)
        assert trains.gnnc_graph_commit(g) == OK
        t = on_graph(trains, g, s if own else None)
        t.ok(t.status)
        trains.gnnc_graph_release(g)
        t.epoch()
        assert t.metric("loss") == host.metric("loss") and t.values() == host.values()
        less = trains.gnnc_trainer_device_bytes(host.t) - trains.gnnc_trainer_device_bytes(t.t)
        assert less >= column.n_bytes, (less, column.n_bytes)
        assert column.returned == 0
        t.ok(trains.gnnc_trainer_save(t.t, b"there"))  # the data are the same: one goes on where the other was
        host.resume("there")
        t.close()
        column.free()
        memory.all_came_back()
        if own:
            s.close()
    host.close()
    # A session of it, and clones; then the last of them gives it back.
    s = Stream(library.lib)
    column, g = Lent(library.lib, s, x, 5), new_graph(library.lib)
    assert column.add(g) == OK and library.lib.gnnc_graph_commit(g) == OK
    session = ctypes.c_void_p()
    assert library.lib.gnnc_session_create(ctypes.byref(session)) == OK
    assert library.lib.gnnc_session_set_device(session, b"cuda:0") == OK
    assert library.lib.gnnc_session_set_stream(session, s.s) == OK
    first = object.__new__(Session)
    first.lib, first.s = library.lib, session
    assert library.lib.gnnc_session_open(session, model, g) == OK, first.error()
    library.lib.gnnc_graph_release(g)
    first.measure()
    clone = first.clone()
    first.close()
    st, got = clone.predict(list(range(USERS)))
    assert st == OK and all(near(a, b) for a, b in zip(rows(got, clone.width, range(USERS)), wanted))
    assert column.returned == 0
    clone.close()
    column.free()
    s.close()


def columns_that_cannot_be_there(trains, library, model, x):
    """What a column on a GPU cannot be, each in one line; its deleter was called."""
    E_SHAPE, E_VALUE, E_ARG, E_DTYPE = -2, -7, -9, -6
    s, g = Stream(trains), new_graph(trains)
    transposed = (ctypes.c_int64 * 2)(1, USERS)
    for status, why, how, other in ((E_DTYPE, "F64 in a device's memory", {}, {"bits": 64}),
                                    (E_SHAPE, "without gaps", {}, {"strides": transposed}),
                                    (E_ARG, "no other kind", {"kind": 2}, {}),
                                    (E_ARG, "no columns of edges", {"table": b"buys"}, {}),
                                    (-8, "no table", {"table": b"none"}, {}),
                                    (E_ARG, "only the host's memory", {}, {"ordinal": -1}),
                                    (E_ARG, "only the host's memory", {}, {"device": 10})):
        column = Lent(trains, s, x, 5, **other)
        assert column.add(g, **how) == status, (why, trains.gnnc_graph_error(g))
        assert why in trains.gnnc_graph_error(g).decode(), trains.gnnc_graph_error(g)
        s.wait()
        column.free()
    column = Lent(trains, s, x, 5)
    assert trains.gnnc_graph_array_dlpack(g, ctypes.byref(column.tensor), ctypes.create_string_buffer(176)) == E_ARG
    s.wait()
    column.free()
    trains.gnnc_graph_release(g)
    # Where it is not; and a value that is none, which only the device can tell.
    worse = list(x)
    worse[5 * 7 + 2] = float("nan")
    for device, values, where, status, why in ((1, x, b"cuda:0", E_ARG, "'user.x' lies in the memory of GPU 1: this runs on GPU 0"),
                                               (0, worse, b"cuda:0", E_VALUE, "user.x: row 7: value is NaN")):
        if device >= n_devices(trains):
            continue
        of = Stream(trains, device)
        column, g = Lent(trains, of, values, 5, device), new_graph(trains)
        assert column.add(g) == OK and trains.gnnc_graph_commit(g) == OK
        t = on_graph(trains, g, s, where)
        assert t.status == status and why in trains.gnnc_trainer_error(t.t).decode(), trains.gnnc_trainer_error(t.t)
        t.close()
        trains.gnnc_graph_release(g)
        of.wait()
        of.close()
        column.free()
    of = Stream(library.lib)
    column, g = Lent(library.lib, of, x, 5), new_graph(library.lib)
    assert column.add(g) == OK and library.lib.gnnc_graph_commit(g) == OK
    session = OnDevice(library, model, g, "cpu")
    assert session.status == E_ARG and "lies in the memory of GPU 0: this runs on the cpu" in session.error(), session.error()
    session.close()
    library.lib.gnnc_graph_release(g)
    of.wait()
    column.free()
    of.close()
    s.close()


def no_memory(library, graph):
    """An allocation is refused, the host's or the GPU's: a status, and nothing is left."""
    lib, watch, n = library.lib, Watch(library.lib), 0
    ids = (ctypes.c_int64 * 3)(1, 2, 1)

    def serve(memory):
        m, st = library.model("weights")
        s = OnDevice(library, m, graph, "cuda:0", memory)
        lib.gnnc_model_release(m)
        st, x = s.status, None
        if st == OK:
            st, x = tensor_of(lib.gnnc_session_predict_dlpack, s.s, ctypes.c_int64(3), ids)
        assert st in (OK, E_NOMEM) and (st == OK or s.error()), (st, s.error())
        s.close()
        if st == OK:
            give_back(x)
        assert memory.live == 0, (n, memory.live)
        watch.all_came_back()
        return st

    whole = Memory()
    assert serve(whole) == OK
    for n in range(2, whole.n + 1):
        assert serve(Memory(n)) == E_NOMEM, n
    room, refused = 1 << 20, 0
    if CUDART:
        return
    while room < 1 << 28:
        lib.cudasim_memory(ctypes.c_int64(watch.bytes + room))
        refused += serve(Memory()) != OK
        room *= 2
    lib.cudasim_memory(ctypes.c_int64(-1))
    assert 3 < refused < 8, refused


def brought_to(kind, device, session, model):
    """A session of the model alone, on that device, which knows what is of no table."""
    b = object.__new__(kind)
    b.lib, b.s, b.width = session.lib, ctypes.c_void_p(), session.width
    assert b.lib.gnnc_session_create(ctypes.byref(b.s)) == OK and b.lib.gnnc_session_set_device(b.s, device.encode()) == OK
    assert b.lib.gnnc_session_open_model(b.s, model) == OK, b.error()
    assert b.lib.gnnc_session_device(b.s) == device.encode()
    b.give(session)
    return b


def subgraphs_there(library, model, graph, wanted):
    """Rows of subgraphs that requests bring, and their layers; nothing is allocated after the first ones of their size."""
    host, data = Session(library, model, graph), subgraphs.Data("shop")
    b = brought_to(subgraphs.Brings, "cuda", host, model)
    for targets in ([3], [USERS - 1, 0, 7, 7]):
        r, at = subgraphs.request(host, data, "user", targets, 3)
        for _ in range(3):
            watch = Watch(library.lib)
            assert r.fill(b.lib, b.s) == OK, r.error
            st, got = b.predict(at)
            assert st == OK, b.error()
            assert all(near(row, wanted[v]) for v, row in zip(targets, got)), targets
            st, _, _, hidden = subgraphs.layer_rows(b, "embed_subgraph", b.s, b"h", at)
            assert st == OK and near(flat(hidden), host.embed("h", targets)[1]), b.error()
        watch.counted(allocations=0)
    for x in (host, b):
        x.close()


def links_there():
    """Scores of pairs, the best of a source and layers are the host's, over the graph and over a subgraph that is brought."""
    library = session_links.Links("dot_links")
    model, st = library.model("dot.weights")
    graph = library.graph("pairs")
    sessions = [OnDevice(library, model, graph, device) for device in ("cpu", "cuda")]
    asked = [(u, i) for u in range(session_links.USERS) for i in range(40)]
    said = [(library.score(s.s, asked), library.top(s.s, [0, 3, 12], 4), s.embed("u", [3, 0, 3])) for s in sessions]
    (want, best, layer), (got, best_there, layer_there) = said
    assert want[0] == got[0] == best[0] == best_there[0] == layer[0] == layer_there[0] == OK, [s.error() for s in sessions]
    assert near(got[1], want[1]) and near(list(layer_there[1]), list(layer[1])) and any(want[1])
    for here, there in zip(best[1], best_there[1]):
        assert [d for d, _ in here] == [d for d, _ in there] and near([x for _, x in there], [x for _, x in here]), (here, there)
    sessions[0].width, data, link = 1, subgraphs.Data("pairs"), (3, 4, 0)
    r, _, ends = subgraph_links.around(sessions[0], data, ("user", "item"), [link], 2)
    for device in ("cpu", "cuda"):
        b = brought_to(subgraph_links.Links, device, sessions[0], model)
        assert r.fill(b.lib, b.s) == OK, r.error
        st, score = b.score(*ends)
        assert st == OK and near(score, [want[1][asked.index(link[:2])]]), (device, st, b.error())
        b.close()
    for s in sessions:
        s.close()


def wrong_devices(library, model, graph):
    for device, status, why in (("cuda:99", E_DEVICE, "there is no GPU 99; %d can be used" % n_devices(library.lib)), ("tpu", E_MISSING, "not for 'tpu'"),
                                ("cuda" * 40, E_MISSING, "no device has so long a name")):
        s = OnDevice(library, model, graph, device)
        assert s.status == status and why in s.error() and "\n" not in s.error(), (s.status, s.error())
        assert library.lib.gnnc_session_predict(s.s, ctypes.c_int64(0), None, None) == E_STATE
        assert library.lib.gnnc_session_set_device(s.s, b"cuda") == OK  # it may be asked again
        assert library.lib.gnnc_session_open(s.s, model, graph) == OK, s.error()
        assert library.lib.gnnc_session_set_device(s.s, b"cpu") == E_STATE
        s.measure()
        assert s.predict([0])[0] == OK
        s.close()
    if CUDART:
        return
    os.environ["CUDASIM_NO_DEVICE"] = "1"
    s = OnDevice(library, model, graph, "cuda")
    assert s.status == E_DEVICE and "no GPU can be used" in s.error(), s.error()
    s.close()
    s = OnDevice(library, model, graph, "auto")
    assert s.status == OK and library.lib.gnnc_session_device(s.s) == b"cpu"
    s.close()
    del os.environ["CUDASIM_NO_DEVICE"]


def rows_of_graphs():
    """Batches of whole graphs, in any order and twice; what goes across graphs is there once."""
    flat, _, (n, *_) = npy("graphs.weights.npy")
    library = Library("graphs")
    model, st = library.model("graphs.weights")
    assert st == OK
    s = OnDevice(library, model, library.graph("mols"), "cuda")
    assert s.status == OK, s.error()
    wanted = rows(flat, s.width, range(n))
    ids = list(range(n)) + [7, 7, 3]
    st, got = s.predict(ids)
    assert st == OK, s.error()
    assert all(near(x, wanted[i]) for i, x in zip(ids, rows(got, s.width, range(len(ids)))))
    s.close()


# What is compiled, for the GPU and what else: the trainer of a shop, its rows, links of another one, and whole graphs.
PROGRAMS = {"shop": (MODEL, "cuda", []),
            "rows": (MODEL, "cpu,cuda", ["--infer", "--embed=all", "--name=rows"]),
            "dot_links": (session_links.shop_model(*session_links.SCORES["dot"]), "cpu,cuda", ["--infer", "--embed=u", "--name=dot_links"]),
            "graphs": (ACROSS, "cpu,cuda", ["--infer", "--name=graphs"])}


def prepare(gnnc):
    """Data, models, and the weights of two that the cpu trains."""
    shop("shop")
    session_links.shop("pairs", 40, False)
    some_molecules("mols")
    for name, (text, _, _) in PROGRAMS.items():
        with open(name + ".gnn", "w", encoding="utf-8") as f:
            f.write(text.replace('"layers/', '"%s/models/layers/' % os.path.abspath(os.path.join(HERE, "..", ".."))))
    run(gnnc, "dot_links.gnn", "--target=cpu", "--no-rows", "-o", "dot")
    run("./dot", "--data", "pairs", "--epochs", "1", "--out", "dot.weights", "--log=none", "--checkpoint=none")
    run(gnnc, "graphs.gnn", "--target=cpu", "-o", "across")
    train("across", "mols", "graphs.weights")


def check():
    trains, library = ctypes.CDLL("./libshop.so"), Library("rows")
    for lib in (trains, library.lib):
        if not CUDART:
            lib.cudasim_live_bytes.restype = ctypes.c_int64
    x = list(npy("shop/x.npy")[0])
    t = OnGpu(trains, "shop")
    t.epoch()
    t.ok(trains.gnnc_trainer_save_weights(t.t, b"weights"))
    graph = library.graph("shop")
    model, st = library.model("weights")
    assert st == OK
    host = Session(library, model, graph)
    assert host.status == OK, host.error()
    wanted = rows(host.predict(list(range(USERS)))[1], host.width, range(USERS))
    assert all(near(a, b) for a, b in zip(wanted, t.values()))
    t.close()
    for order in orders(library.lib) if not CUDART else ("the GPU's",):
        if not CUDART:
            trains.cudasim_order(order.encode())
        a_session(library, model, graph, wanted)
        layers_of_a_session(library, model, graph)
        subgraphs_there(library, model, graph, wanted)
        sessions_of_threads(library, model, graph, wanted)
        a_session_and_a_stream(library, model, graph, wanted)
        a_trainer_and_a_stream(trains)
        several_devices(trains, library, model, graph, wanted)
        columns_there(trains, library, model, wanted, x)
    parameters(trains)
    columns_that_cannot_be_there(trains, library, model, x)
    wrong_devices(library, model, graph)
    no_memory(library, graph)
    rows_of_graphs()
    links_there()


def main():
    global CUDART
    os.environ["CUDASIM_DEVICES"] = "2"
    if sys.argv[1] == "--made":
        CUDART = ctypes.CDLL(sys.argv[3]) if len(sys.argv) > 3 else None
        os.chdir(sys.argv[2])
        return check()
    build = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        os.chdir(tmp)
        prepare(build + "/gnnc")
        for name, (_, target, options) in PROGRAMS.items():
            os.environ["TARGET"] = target
            compiled(build, name, os.path.abspath(name + ".gnn"), "cuda", options)
            os.rename(name + ".cuda.so", "lib%s.so" % name)
        check()


if __name__ == "__main__":
    main()
