"""pyverbs' side of the comparison on a device, as bench.c has it: both ends in one process.

bench.py DEVICE_A DEVICE_B: reads commands from standard input as bench.c does, and answers each with a number.
"""

import statistics
import sys
from time import perf_counter

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.enums import (
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_GID_TYPE_ROCE_V2,
    IBV_QPS_INIT,
    IBV_QPT_RC,
    IBV_SEND_SIGNALED,
    IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE,
    IBV_WR_SEND,
)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

MOST_WINDOW = 128
MOST_RECEIVES = 256
POLL_BATCH = 16
MEMORY = 4 << 20
ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
OPCODES = {"send": IBV_WR_SEND, "write": IBV_WR_RDMA_WRITE, "read": IBV_WR_RDMA_READ}


class End:
    def __init__(self, name):
        self.context = Context(name=name)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, MEMORY, ACCESS)
        self.address, self.lkey, self.rkey = self.mr.buf, self.mr.lkey, self.mr.rkey
        self.mtu = self.context.query_port(1).active_mtu
        for entry in self.context.query_gid_table(64):
            gid = self.context.query_gid(1, entry.gid_index)
            if entry.gid_type == IBV_GID_TYPE_ROCE_V2 and gid.gid.startswith("0000:0000:0000:0000:0000:ffff"):
                self.gid, self.gid_index = gid, entry.gid_index


class Side:
    """One end of a session: queue pairs on one completion queue."""

    def __init__(self, end, queue_pairs):
        self.end = end
        depth = MOST_WINDOW if queue_pairs == 1 else 16
        receives = MOST_RECEIVES if queue_pairs == 1 else 1
        self.channel = CompChannel(end.context)
        self.cq = CQ(end.context, (depth + receives) * queue_pairs, channel=self.channel)
        cap = QPCap(depth, receives, 1, 1, 0)
        self.qps = [
            QP(end.pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=0))
            for _ in range(queue_pairs)
        ]

    def connect(self, other):
        for qp, theirs in zip(self.qps, other.qps):
            route = GlobalRoute(dgid=other.end.gid, sgid_index=self.end.gid_index, hop_limit=64)
            attributes = QPAttr(qp_state=IBV_QPS_INIT, port_num=1)
            attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
            attributes.dest_qp_num = theirs.qp_num
            attributes.path_mtu = min(self.end.mtu, other.end.mtu)
            attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16
            attributes.min_rnr_timer = 12
            attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 6, 7
            attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
            qp.to_rts(attributes)

    def request(self, other, opcode, ident, number, size, signaled, following):
        at = number % (MEMORY // size) * size
        request = SendWR(
            wr_id=ident,
            opcode=opcode,
            send_flags=IBV_SEND_SIGNALED if signaled else 0,
            num_sge=1,
            sg=[SGE(self.end.address + at, size, self.end.lkey)],
            next_wr=following,
        )
        if opcode != IBV_WR_SEND:
            request.set_wr_rdma(other.end.rkey, other.end.address + at)
        return request

    def receive(self, count, size):
        chain = [None]  # all of it: a request does not hold the one that follows
        for _ in range(count):
            chain.append(RecvWR(num_sge=1, sg=[SGE(self.end.address, size, self.end.lkey)], next_wr=chain[-1]))
        if count > 0:
            self.qps[0].post_recv(chain[-1])

    def poll(self, most=POLL_BATCH):
        count, completions = self.cq.poll(most)
        for completion in completions:
            if completion.status != 0:
                raise RuntimeError(f"a request failed: {completion.status}")
        return completions if count else []

    def wait(self, events):
        while not self.poll(1):
            if not events:
                continue
            self.cq.req_notify()
            if self.poll(1):
                return
            self.channel.get_cq_event(self.cq)
            self.cq.ack_events(1)


ends = [End(sys.argv[1]), End(sys.argv[2])]
sessions = {}


def session_of(queue_pairs):
    if queue_pairs not in sessions:
        sides = [Side(end, queue_pairs) for end in ends]
        sides[0].connect(sides[1])
        sides[1].connect(sides[0])
        sessions[queue_pairs] = sides
    return sessions[queue_pairs]


def bandwidth(verb, size, window, signal, queue_pairs, messages):
    size, window, signal, queue_pairs, messages = map(int, (size, window, signal, queue_pairs, messages))
    near, far = session_of(queue_pairs)
    opcode = OPCODES[verb]
    posted, completed = [0] * queue_pairs, [0] * queue_pairs
    ahead = received = 0
    if verb == "send":
        ahead = min(messages, MOST_RECEIVES)
        far.receive(ahead, size)
    still_open = queue_pairs
    began = perf_counter()
    while still_open > 0 or (verb == "send" and received < messages):
        for q in range(queue_pairs):
            room = min(window - (posted[q] - completed[q]), messages - posted[q])
            if room == 0:
                continue
            chain = [None]
            for number in range(posted[q] + room - 1, posted[q] - 1, -1):
                signaled = (number + 1) % signal == 0 or number + 1 == messages
                chain.append(near.request(far, opcode, q, number, size, signaled, chain[-1]))
            near.qps[q].post_send(chain[-1])
            posted[q] += room
        for completion in near.poll():
            q = completion.wr_id
            completed[q] = min(completed[q] + signal, messages)
            if completed[q] == messages:
                still_open -= 1
        if verb == "send":
            count = POLL_BATCH
            while count == POLL_BATCH:  # all that have come: a message without a receive would wait for a timer
                count = len(far.poll())
                received += count
                more = min(count, messages - ahead)
                far.receive(more, size)
                ahead += more
    return messages * queue_pairs / (perf_counter() - began)


def latency(verb, size, wait, rounds):
    size, rounds, events = int(size), int(rounds), wait == "events"
    sides = session_of(1)
    samples = []
    if verb == "send":
        for side in sides:
            side.receive(1, size)
    for i in range(rounds):
        began = perf_counter()
        for source in range(2):
            near, far = sides[source], sides[1 - source]
            if verb == "write":
                number = (2 * i + source + 1) & 0xFF
                near.end.mr.write(bytes([number]), 1, size - 1)
                near.qps[0].post_send(near.request(far, OPCODES[verb], 0, 0, size, True, None))
                while far.end.mr.read(1, size - 1)[0] != number:
                    pass
            else:
                near.qps[0].post_send(near.request(far, OPCODES[verb], 0, 0, size, True, None))
                far.wait(events)
                if i + 1 < rounds:
                    far.receive(1, size)
            near.wait(events)
        samples.append((perf_counter() - began) / 2 * 1e6)
    return statistics.median(samples)


for line in sys.stdin:
    name, *parameters = line.split()
    print({"bandwidth": bandwidth, "latency": latency}[name](*parameters), flush=True)
