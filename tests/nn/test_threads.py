"""Threads: the same bits for any number of them, after a fork, and under Python threads of one's own."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rewirl.nn import Adam, Network, Target, batch_of, set_threads, threads
from rewirl.topology import SET, Dense, erdos_renyi, wire

from .oracle import normal, run_python

pytestmark = pytest.mark.usefixtures("keep_threads")


def life(seed, sizes=(17, 256, 256, 6), rule=None, batch=100, block=1, updates=4):
    """Everything that a network of the paper's size computes in some updates, as bytes."""
    rng = np.random.default_rng(seed)
    net = Network(wire(sizes, rng, rule=rule or SET(), sparsity=0.4, block=block), rng)
    target = Target(net)
    out = []
    for update in range(updates):
        x = batch_of(normal(rng, sizes[0], batch))
        out += [net.forward(x).array.copy(), target.forward(x).array.copy()]
        out += [net.backward(batch_of(normal(rng, sizes[-1], batch)), inputs=(0, sizes[0])).array.copy()]
        out += [net.gradients.copy()]
        net.step(Adam(weight_decay=2e-4))
        out += [net.parameters.copy(), net.first_moments.copy(), net.second_moments.copy()]
        if update == 1:
            net.adapt(SET(eta=0.2), rng)
        target.update(0.05)
        out += list(target.state().values())
    return b"".join(value.tobytes() for value in out)


@pytest.mark.usefixtures("each_isa")
@pytest.mark.parametrize(
    "kind",
    [{}, {"batch": 257}, {"block": 4}, {"rule": Dense()}, {"sizes": (348, 255, 101, 1)}],
    ids=["TD3", "odd batch", "blocks", "dense", "odd widths"],
)
def test_any_number_of_threads_gives_the_same_bits(kind):
    set_threads(1)
    alone = life(0, **kind)
    for n in (2, 3, 5, 1):
        set_threads(n)
        assert threads() == n
        assert life(0, **kind) == alone, f"{n} threads"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_threads_come_and_go():
    def counted(wanted):
        for _ in range(1000):  # a thread that has ended may be listed a moment longer
            if (n := len(os.listdir("/proc/self/task"))) == wanted:
                break
            time.sleep(0.001)
        return n

    set_threads(1)
    life(0)
    before = len(os.listdir("/proc/self/task"))
    for n in (5, 2, 1):
        set_threads(n)
        life(0, updates=1)
        assert counted(before + n - 1) == before + n - 1


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="reads the threads' time in /proc")
def test_work_is_really_shared():
    def busy():
        return {t.name: int((t / "schedstat").read_text().split()[0]) for t in Path("/proc/self/task").iterdir()}

    set_threads(2)
    rng = np.random.default_rng(0)
    net = Network(wire((256, 256, 256), rng, rule=Dense()), rng)
    x = batch_of(normal(rng, 256, 256))
    net.forward(x)
    before = busy()
    mine = str(threading.get_native_id())
    for _ in range(100):
        net.forward(x)
    spent = {t: after - before[t] for t, after in busy().items() if t in before}
    helper = max(ns for t, ns in spent.items() if t != mine)
    assert helper > 0.2 * spent[mine]


CROWDED = """
import os, time
import numpy as np
from rewirl.nn import Network, batch_of, set_threads
from rewirl.topology import Dense, wire

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
rng = np.random.default_rng(0)
net = Network(wire((256, 256, 256), rng, rule=Dense()), rng)
x = batch_of(rng.standard_normal((256, 256), dtype=np.float32))
for n in (1, 4):
    set_threads(n)
    net.forward(x)
    start = time.process_time()
    for _ in range(50):
        net.forward(x)
    print(time.process_time() - start)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="chooses the process's cores")
def test_threads_without_a_core_sleep_instead_of_spinning():
    result = run_python(CROWDED)
    assert result.returncode == 0, result.stderr
    alone, crowded = map(float, result.stdout.split())
    assert crowded < 3 * alone


@pytest.mark.parametrize("n", [0, -1, 257, 2**31 - 1])
def test_impossible_numbers_of_threads_are_refused(n):
    before = threads()
    with pytest.raises(ValueError, match=f"threads must be from 1 to 256, not {n}"):
        set_threads(n)
    assert threads() == before


def test_two_networks_in_two_python_threads():
    set_threads(1)
    wanted = [life(seed) for seed in range(4)]
    for n in (1, 2):
        set_threads(n)  # with two, one network has the pool and the other works alone
        with ThreadPoolExecutor(2) as pool:
            for _ in range(3):
                assert list(pool.map(life, range(4))) == wanted


def test_one_network_in_two_python_threads():
    """They take turns: acting while the network is trained gives outputs of some moment, never of half an update."""
    rng = np.random.default_rng(0)
    net = Network(wire((17, 256, 256, 6), rng, rule=SET(), sparsity=0.5), rng)
    x = normal(rng, 17)
    possible = {net.act(x).tobytes()}
    gradients = [normal(rng, len(net.parameters)) for _ in range(200)]
    copy = Network([net.links(layer) for layer in range(3)], rng)
    copy.load_state(net.state())
    for g in gradients:
        copy.gradients[...] = g
        copy.step(Adam())
        possible.add(copy.act(x).tobytes())

    seen, done = set(), threading.Event()

    def watch():
        while not done.is_set():
            seen.add(net.act(x).tobytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for g in gradients:
        net.gradients[...] = g
        net.step(Adam())
    done.set()
    watcher.join()
    assert seen <= possible


def test_links_read_while_another_thread_rewires_are_those_of_some_moment():
    rng = np.random.default_rng(0)
    wirings = [erdos_renyi(512, 512, 60_000, rng) for _ in range(2)]
    net = Network([wirings[0]], rng)
    target = Target(net)
    count, shared = 60_000, len(np.intersect1d(wirings[0].places, wirings[1].places))
    rounds, done = 60, threading.Event()

    def rewire():
        for number in range(rounds):
            net.rewire(0, wirings[(number + 1) % 2])
        done.set()

    other = threading.Thread(target=rewire)
    other.start()
    reads = 0
    while not done.is_set():
        assert net.links(0) in wirings
        assert np.count_nonzero(net.weights(0)) in (count, shared)  # who went came back with 0
        assert len(target._core.extra(0)[0]) in (0, count - shared)  # the target kept them
        reads += 1
    other.join()
    assert reads


def test_the_number_of_threads_changes_while_kernels_run():
    rng = np.random.default_rng(0)
    net = Network(wire((8,) * 7, rng, rule=Dense()), rng)
    x, done = batch_of(normal(rng, 8, 4)), threading.Event()
    want = net.forward(x).array.copy()

    def work():
        while not done.is_set():
            net.forward(x)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for n in range(1000):
        set_threads(1 + n % 3)
    done.set()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(net.forward(x).array, want)


def test_python_runs_while_kernels_do():
    """The interpreter's lock is free during a kernel: another thread sees time pass in the midst of one."""
    rng = np.random.default_rng(0)
    net = Network(wire((1024, 1024), rng, rule=Dense()), rng)
    x = batch_of(normal(rng, 1024, 4096))
    for _ in range(10):  # a busy machine may not let both run at once
        span = []

        def work(span=span):
            begin = time.perf_counter()
            net.forward(x)
            span += [begin, time.perf_counter()]

        worker = threading.Thread(target=work)
        worker.start()
        ticks = []
        while worker.is_alive():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)
        begin, end = span
        if any(begin + 0.2 * (end - begin) < tick < end - 0.2 * (end - begin) for tick in ticks):
            return
    pytest.fail("no other thread ran during ten forwards")


FORK = """
import multiprocessing, os, sys
import numpy as np
from rewirl.nn import Adam, Network, batch_of, set_threads, threads
from rewirl.topology import Static, wire

def life():
    rng = np.random.default_rng(0)
    net = Network(wire((17, 256, 256, 6), rng, rule=Static(), sparsity=0.5), rng)
    for _ in range(3):
        net.forward(batch_of(rng.standard_normal((17, 100), dtype=np.float32)))
        net.backward(batch_of(rng.standard_normal((6, 100), dtype=np.float32)))
        net.step(Adam())
    return net.parameters.tobytes()

def child(wanted, inherited):
    assert threads() == 1, "a child has none of its parent's threads"
    assert life() == wanted
    x = batch_of(np.ones((17, 100), dtype=np.float32))
    inherited.forward(x)  # a network made before the fork
    set_threads(3)
    assert life() == wanted

rng = np.random.default_rng(1)
net = Network(wire((17, 256, 256, 6), rng, rule=Static(), sparsity=0.5), rng)
set_threads(2)
wanted = life()

pid = os.fork()
if pid == 0:
    status = 1
    try:
        child(wanted, net)
        status = 0
    finally:
        os._exit(status)
assert os.waitpid(pid, 0)[1] == 0

context = multiprocessing.get_context("fork")
children = [context.Process(target=child, args=(wanted, net)) for _ in range(2)]
for process in children:
    process.start()
for process in children:
    process.join(60)
    assert process.exitcode == 0, process.exitcode
assert threads() == 2 and life() == wanted, "the parent goes on as before"
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_children_work():
    result = run_python(FORK)
    assert (result.returncode, result.stdout.strip()) == (0, "done"), result.stderr


def test_gradients_of_an_earlier_forward_are_not_given_for_a_later_one():
    rng = np.random.default_rng(0)
    net = Network(wire((8, 8, 8), rng, rule=Dense()), rng)
    net.forward(batch_of(normal(rng, 8, 5)))
    net.backward(batch_of(normal(rng, 8, 5)))
    assert net.dense_gradient(0).any()
    other = threading.Thread(target=lambda: net.forward(batch_of(normal(rng, 8, 7))))
    other.start()
    other.join()
    with pytest.raises(ValueError, match="the gradients at hidden outputs are gone"):
        net.dense_gradient(0)


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer needs more than the limit")
def test_threads_that_the_system_refuses():
    program = """
import resource
from rewirl import _core
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**27, resource.RLIM_INFINITY))
try:
    _core.set_threads(256, False)
except RuntimeError as error:
    print(error, _core.threads())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "the system does not start 256 threads" in done.stdout, done.stderr
    assert done.stdout.endswith("there are still 1 1\n")
