"""What pyverbs can do on the devices that the environment names: prints ["capability", "yes" or why not], a line each."""

import errno
import json
import os
from time import monotonic

from pyverbs import enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cm_enums import RAI_PASSIVE, RDMA_PS_TCP
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wq import WQ, WQInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

DEVICES = os.environ["NODE_RDMA_RXE_DEVICE_A"], os.environ["NODE_RDMA_RXE_DEVICE_B"]
ADDRESSES = os.environ["NODE_RDMA_RXE_ADDRESS_A"], os.environ["NODE_RDMA_RXE_ADDRESS_B"]
REMOTE = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | REMOTE | e.IBV_ACCESS_MW_BIND
LENGTH = 4096
QKEY = 0x1234
STATUSES = {getattr(e, name): name for name in dir(e) if name.startswith("IBV_WC_") and name.endswith("_ERR")}
TYPES = {"rc": e.IBV_QPT_RC, "uc": e.IBV_QPT_UC, "ud": e.IBV_QPT_UD}


alive = []


class End:
    def __init__(self, device, kind="rc", ops=None, srq=False, cq=None):
        alive.append(self)  # what is collected is closed, with all that was made of it
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.mr = MR(self.pd, LENGTH, ACCESS)
        self.cq = cq(self.context) if cq else CQ(self.context, 64)
        self.kind = kind
        self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=16))) if srq else None
        cap = QPCap(max_send_wr=16, max_recv_wr=0 if srq else 16)
        same = dict(qp_type=TYPES[kind], scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        if srq:
            same["srq"] = self.srq
        if ops is None:
            self.qp = QP(self.pd, QPInitAttr(**same))
        else:
            mask = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
            self.qp = QPEx(
                self.context, QPInitAttrEx(pd=self.pd, comp_mask=mask, send_ops_flags=ops, **same)
            )
        for entry in self.context.query_gid_table(64):
            gid = self.context.query_gid(1, entry.gid_index)
            if gid.gid.startswith("0000:0000:0000:0000:0000:ffff"):
                self.gid, self.index = gid, entry.gid_index

    def address_of(self, other):
        route = GlobalRoute(dgid=other.gid, sgid_index=self.index, hop_limit=64)
        return AHAttr(gr=route, is_global=1, port_num=1)

    def to_rts(self, other):
        attributes = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
        if self.kind == "ud":
            attributes.qkey = QKEY
        else:
            attributes.qp_access_flags = REMOTE if self.kind == "rc" else e.IBV_ACCESS_REMOTE_WRITE
            attributes.dest_qp_num = other.qp.qp_num
            attributes.path_mtu = self.context.query_port(1).active_mtu
            attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
            attributes.min_rnr_timer = 12
            attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 6, 6
            attributes.ah_attr = self.address_of(other)
        self.qp.to_rts(attributes)

    def sge(self, length=64):
        return SGE(self.mr.buf, length, self.mr.lkey)

    def done(self):
        limit = monotonic() + 10
        while monotonic() < limit:
            count, completions = self.cq.poll(1)
            if count:
                if completions[0].status:
                    raise RuntimeError(STATUSES[completions[0].status])
                return completions[0]
        raise RuntimeError("no completion")


def pair(kind="rc", **of_b):
    a, b = End(DEVICES[0], kind), End(DEVICES[1], kind, **of_b)
    a.to_rts(b)
    b.to_rts(a)
    return a, b


def extended_pair(ops):
    a, b = End(DEVICES[0], ops=ops), End(DEVICES[1])
    a.to_rts(b)
    b.to_rts(a)
    return a, b


def same(left, right):
    if left != right:
        raise RuntimeError("wrong bytes")


def message(kind="rc", **of_b):
    a, b = pair(kind, **of_b)
    a.mr.write("m" * 64, 64)
    receive = RecvWR(num_sge=1, sg=[SGE(b.mr.buf, 200, b.mr.lkey)])
    (b.srq or b.qp).post_recv(receive)
    request = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge()])
    if kind == "ud":
        ah = AH(a.pd, attr=a.address_of(b))
        request.set_wr_ud(ah, b.qp.qp_num, QKEY)
    a.qp.post_send(request)
    a.done()
    b.done()
    same(b.mr.read(64, 40 if kind == "ud" else 0), b"m" * 64)


def one_sided(opcode):
    a, b = pair()
    source, sink = (a, b) if opcode == e.IBV_WR_RDMA_WRITE else (b, a)
    source.mr.write("o" * 64, 64)
    request = SendWR(opcode=opcode, num_sge=1, sg=[a.sge()])
    request.set_wr_rdma(b.mr.rkey, b.mr.buf)
    a.qp.post_send(request)
    a.done()
    same(sink.mr.read(64, 0), b"o" * 64)


def atomic(opcode):
    a, b = pair()
    request = SendWR(opcode=opcode, num_sge=1, sg=[a.sge(8)])
    request.set_wr_atomic(b.mr.rkey, b.mr.buf, 5 if opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD else 0, 5)
    a.qp.post_send(request)
    a.done()
    same(int.from_bytes(b.mr.read(8, 0), "little"), 5)


def extended(ops, build):
    a, b = extended_pair(ops)
    a.mr.write("e" * 64, 64)
    a.qp.wr_start()
    a.qp.wr_flags = e.IBV_SEND_SIGNALED
    build(a, b)
    a.qp.wr_complete()
    a.done()
    return a, b


def extended_write():
    def build(a, b):
        a.qp.wr_rdma_write(b.mr.rkey, b.mr.buf)
        a.qp.wr_set_sge(a.sge())

    _, b = extended(e.IBV_QP_EX_WITH_RDMA_WRITE, build)
    same(b.mr.read(64, 0), b"e" * 64)


def atomic_write():
    _, b = extended(
        e.IBV_QP_EX_WITH_ATOMIC_WRITE, lambda a, b: a.qp.wr_atomic_write(b.mr.rkey, b.mr.buf, b"12345678")
    )
    same(b.mr.read(8, 0), b"12345678")


def window(kind):
    a, b = pair()
    mw = MW(b.pd, kind)
    info = MWBindInfo(b.mr, b.mr.buf, LENGTH, e.IBV_ACCESS_REMOTE_WRITE)
    if kind == e.IBV_MW_TYPE_1:
        b.qp.bind_mw(mw, MWBind(info, e.IBV_SEND_SIGNALED))
        rkey = mw.rkey
    else:
        request = SendWR(opcode=e.IBV_WR_BIND_MW)
        request.set_bind_wr(mw, info)
        b.qp.post_send(request)
        rkey = request.rkey
    b.done()
    a.mr.write("w" * 64, 64)
    write = SendWR(opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[a.sge()])
    write.set_wr_rdma(rkey, b.mr.buf)
    a.qp.post_send(write)
    a.done()
    same(b.mr.read(64, 0), b"w" * 64)


def completion_events():
    channels = []

    def cq(context):
        channels.append(CompChannel(context))
        return CQ(context, 64, channel=channels[0])

    a, b = pair(cq=cq)
    b.cq.req_notify()
    b.qp.post_recv(RecvWR(num_sge=1, sg=[b.sge()]))
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge()]))
    channels[0].get_cq_event(b.cq)
    b.cq.ack_events(1)
    b.done()


def extended_queue():
    a, b = pair(cq=lambda context: CQEX(context, CqInitAttrEx(cqe=64, wc_flags=e.IBV_WC_EX_WITH_BYTE_LEN)))
    b.qp.post_recv(RecvWR(num_sge=1, sg=[b.sge()]))
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge(33)]))
    limit = monotonic() + 10
    while b.cq.start_poll(None):
        if monotonic() > limit:
            raise RuntimeError("no completion")
    same((b.cq.status, b.cq.read_byte_len()), (0, 33))
    b.cq.end_poll()


def resize_queue():
    cq = CQ(Context(name=DEVICES[0]), 8)
    cq.resize(100)
    if cq.cqe < 100:
        raise RuntimeError("it has not grown")


def resize_receives():
    srq = End(DEVICES[0], srq=True).srq
    srq.modify(SrqAttr(max_wr=64), e.IBV_SRQ_MAX_WR)
    if srq.query().max_wr < 64:
        raise RuntimeError("it has not grown")


def connection():
    """The listener is another process: the calls of this one wait."""
    port = "18515"
    ready, tell = os.pipe()
    cap = dict(cap=QPCap(max_send_wr=4, max_recv_wr=4), qp_type=e.IBV_QPT_RC, sq_sig_all=1)
    child = os.fork()
    if child == 0:
        try:
            information = AddrInfo(ADDRESSES[1], None, port, None, RDMA_PS_TCP, RAI_PASSIVE)
            listener = CMID(creator=information, qp_init_attr=QPInitAttr(**cap))
            listener.listen()
            os.write(tell, b"r")
            server = listener.get_request()
            mr = server.reg_msgs(64)
            server.post_recv(mr)
            server.accept()
            completion = server.get_recv_comp()
            os._exit(0 if completion.status == 0 and mr.read(5, 0) == b"hello" else 1)
        finally:
            os._exit(2)
    os.close(tell)
    try:
        if os.read(ready, 1) != b"r":
            raise RuntimeError("cannot listen")
        information = AddrInfo(ADDRESSES[0], ADDRESSES[1], None, port, RDMA_PS_TCP, 0)
        client = CMID(creator=information, qp_init_attr=QPInitAttr(**cap))
        client.connect()
        mr = client.reg_msgs(64)
        mr.write("hello", 5)
        client.post_send(mr)
        client.get_send_comp()
        same(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    finally:
        os.close(ready)


def one():
    return End(DEVICES[0])


def query():
    context = one().context
    context.query_device()
    context.query_device_ex()
    context.query_port(1)
    context.query_pkey(1, 0)
    context.query_gid(1, 0)
    context.query_gid_ex(1, 0)


def rereg():
    mr = one().mr
    mr.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, e.IBV_ACCESS_LOCAL_WRITE)


def packets():
    end = one()
    cap = QPCap(max_send_wr=4, max_recv_wr=4)
    QP(end.pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=end.cq, rcq=end.cq, cap=cap))


def advise():
    end = one()
    end.pd.advise_mr(e._IBV_ADVISE_MR_ADVICE_PREFETCH, e._IBV_ADVISE_MR_FLAG_FLUSH, [end.sge()])


def work_queue():
    end = one()
    WQ(end.context, WQInitAttr(wq_pd=end.pd, wq_cq=end.cq, wq_type=e.IBV_WQT_RQ, max_wr=4, max_sge=1))


def xrc_domain():
    mask = e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS
    XRCD(one().context, XRCDInitAttr(mask, os.O_CREAT, -1))


def parent_domain():
    end = one()
    ParentDomain(end.context, attr=ParentDomainInitAttr(pd=end.pd))


CAPABILITIES = {
    "connection manager: connect, send": connection,
    "device, port, P_Key and GID queries": query,
    "messages of RC": message,
    "messages of UC": lambda: message("uc"),
    "datagrams, address handles": lambda: message("ud"),
    "WRITE": lambda: one_sided(e.IBV_WR_RDMA_WRITE),
    "READ": lambda: one_sided(e.IBV_WR_RDMA_READ),
    "compare-and-swap": lambda: atomic(e.IBV_WR_ATOMIC_CMP_AND_SWP),
    "fetch-and-add": lambda: atomic(e.IBV_WR_ATOMIC_FETCH_AND_ADD),
    "extended posting: WRITE": extended_write,
    "extended posting: atomic write": atomic_write,
    "memory windows of type 1": lambda: window(e.IBV_MW_TYPE_1),
    "memory windows of type 2": lambda: window(e.IBV_MW_TYPE_2),
    "completion events": completion_events,
    "extended completion queues": extended_queue,
    "resizing a completion queue": resize_queue,
    "shared receive queues": lambda: message(srq=True),
    "resizing a shared receive queue": resize_receives,
    "relaxed ordering": lambda: MR(one().pd, 64, ACCESS | e.IBV_ACCESS_RELAXED_ORDERING),
    "registering a region anew": rereg,
    "paging on demand": lambda: MR(one().pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND),
    "advice about a region": advise,
    "device memory": lambda: DM(one().context, AllocDmAttr(length=4096)),
    "XRC domains": xrc_domain,
    "raw packets": packets,
    "flow steering": lambda: Flow(one().qp, FlowAttr(port=1)),
    "work queues (RSS)": work_queue,
    "parent domains": parent_domain,
}


def outcome(work):
    try:
        work()
        return "yes"
    except PyverbsRDMAError as error:
        return errno.errorcode.get(abs(error.error_code), str(error))
    except Exception as error:  # whatever it is, it is the answer
        return str(error)


for name, work in CAPABILITIES.items():
    print(json.dumps([name, outcome(work)]), flush=True)
os._exit(0)  # without pyverbs' order of closing, which warns
