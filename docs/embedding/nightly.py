"""A product that learns each night from what the day has brought, while it goes on answering: nightly.c in Python.

The first training is cancelled by the host, which draws its progress, and goes on from memory.  Two threads answer without
end.  Each night customers and calls are appended to the graph, the last model is trained further on the new snapshot, and
the threads get sessions of the result, which they take up between two answers: nobody waits for anybody."""
import collections
import sys
import threading
import time

import churn  # gnnc customers.gnn --emit=python -o churn
import numpy as np

NIGHTS, THREADS, A_DAY, FEATURES, CALLS = 3, 2, 2000, 8, 10000


# ---- what a day brings -------------------------------------------------------------------------------------
def invented(first, random):
    """Customers `first` and up, who call each other and earlier ones; every second one leaves."""
    leaves = np.arange(A_DAY, dtype=np.int32) % 2
    x = random.uniform(-1, 1, (A_DAY, FEATURES)) + 0.2 * leaves[:, None]
    split = 1 + np.arange(A_DAY) // 2 % 3  # training, validation, test
    to = random.integers(0, A_DAY, CALLS)
    like = np.where(random.random(CALLS) < 0.75, to % 2, random.integers(0, 2, CALLS))
    ends = random.integers(0, (first + A_DAY) // 2, CALLS) * 2 + like, first + to
    return {"x": x.astype(np.float32), "leaves": leaves, "split": split.astype(np.int8)}, ends


# ---- training ----------------------------------------------------------------------------------------------
class Enough(Exception):
    """The host wants no other step."""


def draw(now):
    part = now.epochs_done / now.epochs_total
    sys.stderr.write("\r[%-30s] %3.0f %%" % ("#" * int(30 * part), 100 * part))


def first_training(graph):
    def impatient(now):
        draw(now)
        if now.epochs_done == 25:
            raise Enough

    trainer = churn.Trainer(graph)
    try:
        trainer.train(progress=impatient)
    except Enough:
        print("cancelled after epoch", trainer.epochs_done)
    stood = trainer.to_bytes()
    trainer.close()
    trainer = churn.Trainer(graph, resume=stood)
    print("resumed; accuracy above 0.8:", "yes" if trainer.train(progress=draw)["accuracy.test"] > 0.8 else "no")
    never = churn.Trainer(graph)
    never.train()
    same = never.weights_to_bytes() == trainer.weights_to_bytes()
    print("the weights of a training that was never cancelled:", "the same" if same else "others")
    return trainer


def further(graph, model):
    trainer = churn.Trainer(graph, weights=model, epochs=20)
    trainer.train(progress=draw)
    return trainer


# ---- answers -----------------------------------------------------------------------------------------------
class Server(threading.Thread):
    def __init__(self):
        super().__init__()
        self.newer = collections.deque()  # sessions, and what they give for all rows
        self.answers = self.wrong = self.rows = 0
        self.ended = False

    def run(self):
        random = np.random.default_rng(7)
        while not self.ended:
            if self.newer:
                session, scores = self.newer.popleft()
            row = random.integers(0, session.rows)
            self.wrong += not np.allclose(session.predict([row])[0], scores[row], rtol=1e-5, atol=1e-5)
            self.rows = session.rows
            self.answers += 1


def publish(graph, model, servers):
    session = model.session(graph)
    scores = session.predict()
    for server in servers:
        server.newer.append((session.clone(), scores))


def night(first, graph, model, servers, random):
    columns, (src, dst) = invented(first, random)
    before = sum(server.answers for server in servers)
    graph.append("customer", columns)
    graph.append("calls", src=src, dst=dst)
    graph.commit()
    newer = further(graph, model).to_model()
    publish(graph, newer, servers)
    meanwhile = sum(server.answers for server in servers) - before
    sys.stderr.write("\n%d answers were given meanwhile\n" % meanwhile)
    print("learned of", A_DAY, "more customers")
    return newer


def main():
    random = np.random.default_rng(1)
    columns, calls = invented(0, random)
    graph = churn.Graph.from_arrays({"customer": columns, ("customer", "calls", "customer"): calls})
    trainer = first_training(graph)
    servers = [Server() for _ in range(THREADS)]
    model = trainer.to_model()
    publish(graph, model, servers)
    for server in servers:
        server.start()
    try:
        for i in range(1, NIGHTS + 1):
            model = night(i * A_DAY, graph, model, servers, random)
        while any(server.is_alive() and server.rows != (NIGHTS + 1) * A_DAY for server in servers):
            time.sleep(0.001)  # until they have taken the last session up
    finally:
        for server in servers:
            server.ended = True
            server.join()
    for server in servers:
        print(server.rows, "customers can be asked for;", server.wrong, "answers were wrong")


if __name__ == "__main__":
    main()
