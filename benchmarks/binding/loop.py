"""The data path through pyverbs, as loop.c does it.

loop.py PATH OPERATIONS SAMPLES: prints nanoseconds per operation of each sample, as a JSON array.
"""

import json
import sys
from time import perf_counter_ns

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_QPT_RC,
    IBV_SEND_SIGNALED,
    IBV_WR_RDMA_WRITE,
)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

BATCH = 32
LENGTH = 64
MEMORY = 1 << 16

context = Context(name="null0")
pd = PD(context)
cq = CQ(context, 256)
mr = MR(pd, MEMORY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(128, 128, 1, 1, 0)))
address, lkey, rkey = mr.buf, mr.lkey, mr.rkey


def request(number, following=None):
    at = address + number % (MEMORY - LENGTH)
    made = SendWR(
        wr_id=number,
        opcode=IBV_WR_RDMA_WRITE,
        send_flags=IBV_SEND_SIGNALED,
        num_sge=1,
        sg=[SGE(at, LENGTH, lkey)],
        next_wr=following,
    )
    made.set_wr_rdma(rkey, at)
    return made


def poll(count):
    taken = 0
    while taken < count:
        some, completions = cq.poll(BATCH)
        for completion in completions:
            if completion.status != 0:
                raise RuntimeError("a request failed")
        taken += some


def batch(operations):
    for done in range(0, operations, BATCH):
        chain = [None]  # all of it: a request does not hold the one that follows
        for number in range(done + BATCH - 1, done - 1, -1):
            chain.append(request(number, chain[-1]))
        qp.post_send(chain[-1])
        poll(BATCH)


def single(operations):
    for number in range(operations):
        qp.post_send(request(number))
        poll(1)


def prepared(operations):
    made = request(1)
    for _ in range(operations):
        qp.post_send(made)
        poll(1)


def empty(operations):
    for _ in range(operations):
        if cq.poll(BATCH)[0] != 0:
            raise RuntimeError("an empty poll found something")


paths = {"batch": batch, "single": single, "prepared": prepared, "objects": single, "empty": empty}
run, operations, samples = paths[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
figures = []
for _ in range(samples):
    began = perf_counter_ns()
    run(operations)
    figures.append((perf_counter_ns() - began) / operations)
print(json.dumps(figures))
