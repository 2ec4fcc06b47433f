#include "context.h"

#include <endian.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "async_events.h"
#include "completion_channel.h"
#include "completion_queue.h"
#include "protection_domain.h"
#include "util/arguments.h"
#include "util/device_list.h"
#include "util/verbs_error.h"

namespace node_rdma {

namespace {

Napi::Value Hex64(Napi::Env env, __be64 value) {
  return Napi::BigInt::New(env, static_cast<uint64_t>(be64toh(value)));
}

Napi::Object DescribeDevice(Napi::Env env, ibv_device* device) {
  Napi::Object entry = Napi::Object::New(env);
  entry.Set("name", ibv_get_device_name(device));
  entry.Set("index", ibv_get_device_index(device));
  entry.Set("guid", Hex64(env, ibv_get_device_guid(device)));
  entry.Set("nodeType", static_cast<int>(device->node_type));
  entry.Set("transport", static_cast<int>(device->transport_type));
  entry.Set("sysfsPath", device->ibdev_path);
  entry.Set("uverbs", device->dev_name);
  return entry;
}

// Longest GID tables seen hold 1024 entries a port (rxe); the bound only keeps a broken provider from asking
// for gigabytes.
constexpr size_t kMostGids = 1 << 16;

// The connection manager opens a device once for the process. Of all environments that borrow its context,
// one reads its asynchronous events: a second reader would take them from the first.
class EventReaders {
 public:
  static EventReaders& Of() {
    static EventReaders readers;
    return readers;
  }

  // False where another one reads them.
  bool Take(ibv_context* context) {
    std::lock_guard lock(mutex_);
    return taken_.insert(context).second;
  }

  void Release(ibv_context* context) {
    std::lock_guard lock(mutex_);
    taken_.erase(context);
  }

 private:
  std::mutex mutex_;
  std::set<ibv_context*> taken_;
};

}  // namespace

Napi::Object GidEntryObject(Napi::Env env, const ibv_gid_entry& entry) {
  char netdev[IF_NAMESIZE] = "";
  if (entry.ndev_ifindex != 0) if_indextoname(entry.ndev_ifindex, netdev);
  Napi::Object o = Napi::Object::New(env);
  o.Set("raw", Napi::Buffer<uint8_t>::Copy(env, entry.gid.raw, sizeof entry.gid.raw));
  o.Set("index", entry.gid_index);
  o.Set("port", entry.port_num);
  o.Set("type", entry.gid_type);
  o.Set("netdevIndex", entry.ndev_ifindex);
  o.Set("netdev", netdev);
  return o;
}

std::shared_ptr<Context> Context::Open(AddonData& addon, const std::string& name, int* error) {
  DeviceListHolder devices;
  if ((*error = devices.error())) return nullptr;
  for (ibv_device* device : devices) {
    if (name != ibv_get_device_name(device)) continue;
    errno = 0;
    ibv_context* verbs = ibv_open_device(device);
    if ((*error = ErrorOfPointer(verbs))) return nullptr;
    std::shared_ptr<Context> context(new Context(addon, verbs));
    if ((*error = context->watcher_.Start(verbs->async_fd))) return nullptr;
    return context;
  }
  *error = ENODEV;
  return nullptr;
}

std::shared_ptr<Context> Context::Import(AddonData& addon, int fd, int* error) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    *error = errno;
    return nullptr;
  }
  errno = 0;
  ibv_context* verbs = ibv_import_device(own);
  if ((*error = ErrorOfPointer(verbs))) {
    close(own);
    return nullptr;
  }
  std::shared_ptr<Context> context(new Context(addon, verbs));
  if ((*error = context->watcher_.Start(verbs->async_fd))) return nullptr;
  return context;
}

std::shared_ptr<Context> Context::Borrow(AddonData& addon, ibv_context* verbs, int* error) {
  auto devices = CmDevices::With(verbs, error);
  if (!devices) return nullptr;
  std::shared_ptr<Context> context(new Context(addon, verbs));
  context->devices_ = std::move(devices);
  context->reads_events_ = EventReaders::Of().Take(verbs);
  if (context->reads_events_ && (*error = context->watcher_.Start(verbs->async_fd))) return nullptr;
  return context;
}

bool Context::IsSoftRoce(ibv_context* verbs) {
  constexpr uint32_t kVendorOfRxe = 0xffffff;
  ibv_device_attr attributes = {};
  return ibv_query_device(verbs, &attributes) == 0 && attributes.vendor_id == kVendorOfRxe;
}

int Context::Destroy() {
  if (borrowed()) {
    if (reads_events_) EventReaders::Of().Release(verbs_);
    devices_.reset();
    return 0;
  }
  errno = 0;
  return ErrorOfMinusOne(ibv_close_device(verbs_));
}

void Context::Ref(bool ref) {
  if (ref == ref_) return;
  ref_ = ref;
  ref ? watcher_.Ref() : watcher_.Unref();
}

void Context::OnReadable(int error) {
  auto self = shared_from_this();
  std::vector<AsyncEvent> events;
  if (error == 0) error = ReadAsyncEvents(verbs_, &events);
  if (error != 0) watcher_.Fail();
  if (!events.empty()) addon_.TellAsyncEvents(serial_, events);
}

void ContextWrap::Define(Napi::Env env) {
  Wrap::Define(env, {
                        InstanceMethod("queryDevice", &ContextWrap::QueryDevice),
                        InstanceMethod("queryPort", &ContextWrap::QueryPort),
                        InstanceMethod("queryGidTable", &ContextWrap::QueryGidTable),
                        InstanceMethod("allocPd", &ContextWrap::AllocPd),
                        InstanceMethod("createCq", &ContextWrap::CreateCq),
                        InstanceMethod("createCompletionChannel", &ContextWrap::CreateCompletionChannel),
                        InstanceMethod("ref", &ContextWrap::Ref),
                    });
}

Napi::Object ContextWrap::New(Napi::Env env, const std::shared_ptr<Context>& context) {
  Napi::Object object = Wrap::New(env, context);
  if (env.IsExceptionPending()) return {};
  object.Set("serial", Napi::Number::New(env, static_cast<double>(context->serial())));
  object.Set("device", DescribeDevice(env, context->verbs()->device));
  return object;
}

Napi::Value ContextWrap::OfConnectionManager(Napi::Env env, ibv_context* verbs) {
  AddonData& addon = AddonData::Of(env);
  Napi::ObjectReference& known = addon.cm_contexts[verbs];
  if (!known.IsEmpty()) {
    Napi::Object object = known.Value();
    if (!object.IsEmpty() && !Unwrap(object)->native()->closed()) return object;
  }
  int error = 0;
  auto context = Context::Borrow(addon, verbs, &error);
  if (!context) {
    addon.ThrowErrno(env, "rdma_get_devices", error);
    return {};
  }
  Napi::Object object = New(env, context);
  if (env.IsExceptionPending()) return {};
  known = Napi::Weak(object);
  return object;
}

Napi::Value ConnectionManagerContexts(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  int error = 0;
  const auto devices = CmDevices::Take(&error);
  if (!devices) {
    AddonData::Of(env).ThrowErrno(env, "rdma_get_devices", error);
    return {};
  }
  Napi::Array list = Napi::Array::New(env);
  for (ibv_context* verbs : *devices) {
    if (env.IsExceptionPending()) break;
    list.Set(list.Length(), ContextWrap::OfConnectionManager(env, verbs));
  }
  return list;
}

Napi::Value DeviceList(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  DeviceListHolder devices;
  if (devices.error()) {
    AddonData::Of(env).ThrowErrno(env, "ibv_get_device_list", devices.error());
    return {};
  }
  Napi::Array list = Napi::Array::New(env);
  for (ibv_device* device : devices) list.Set(list.Length(), DescribeDevice(env, device));
  return list;
}

Napi::Value OpenDevice(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  std::string name;
  if (!arguments.String(0, "name", &name)) return {};
  int error = 0;
  auto context = Context::Open(AddonData::Of(env), name, &error);
  if (!context) {
    AddonData::Of(env).ThrowErrno(env, "ibv_open_device", error);
    return {};
  }
  return ContextWrap::New(env, context);
}

Napi::Value ContextWrap::QueryDevice(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto context = Open(env);
  if (!context) return {};
  ibv_device_attr_ex extended = {};
  if (int error = ErrorOfResult(ibv_query_device_ex(context->verbs(), nullptr, &extended))) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_device_ex", error);
    return {};
  }
  const ibv_device_attr& attr = extended.orig_attr;
  Napi::Object o = Napi::Object::New(env);
  o.Set("fwVer", Napi::String::New(env, attr.fw_ver, strnlen(attr.fw_ver, sizeof attr.fw_ver)));
  o.Set("nodeGuid", Hex64(env, attr.node_guid));
  o.Set("sysImageGuid", Hex64(env, attr.sys_image_guid));
  o.Set("maxMrSize", Napi::BigInt::New(env, static_cast<uint64_t>(attr.max_mr_size)));
  o.Set("pageSizeCap", Napi::BigInt::New(env, static_cast<uint64_t>(attr.page_size_cap)));
  o.Set("vendorId", attr.vendor_id);
  o.Set("vendorPartId", attr.vendor_part_id);
  o.Set("hwVer", attr.hw_ver);
  o.Set("maxQp", attr.max_qp);
  o.Set("maxQpWr", attr.max_qp_wr);
  o.Set("deviceCapFlags", attr.device_cap_flags);
  o.Set("maxSge", attr.max_sge);
  o.Set("maxSgeRd", attr.max_sge_rd);
  o.Set("maxCq", attr.max_cq);
  o.Set("maxCqe", attr.max_cqe);
  o.Set("maxMr", attr.max_mr);
  o.Set("maxPd", attr.max_pd);
  o.Set("maxQpRdAtom", attr.max_qp_rd_atom);
  o.Set("maxEeRdAtom", attr.max_ee_rd_atom);
  o.Set("maxResRdAtom", attr.max_res_rd_atom);
  o.Set("maxQpInitRdAtom", attr.max_qp_init_rd_atom);
  o.Set("maxEeInitRdAtom", attr.max_ee_init_rd_atom);
  o.Set("atomicCap", static_cast<int>(attr.atomic_cap));
  o.Set("maxEe", attr.max_ee);
  o.Set("maxRdd", attr.max_rdd);
  o.Set("maxMw", attr.max_mw);
  o.Set("maxRawIpv6Qp", attr.max_raw_ipv6_qp);
  o.Set("maxRawEthyQp", attr.max_raw_ethy_qp);
  o.Set("maxMcastGrp", attr.max_mcast_grp);
  o.Set("maxMcastQpAttach", attr.max_mcast_qp_attach);
  o.Set("maxTotalMcastQpAttach", attr.max_total_mcast_qp_attach);
  o.Set("maxAh", attr.max_ah);
  o.Set("maxFmr", attr.max_fmr);
  o.Set("maxMapPerFmr", attr.max_map_per_fmr);
  o.Set("maxSrq", attr.max_srq);
  o.Set("maxSrqWr", attr.max_srq_wr);
  o.Set("maxSrqSge", attr.max_srq_sge);
  o.Set("maxPkeys", attr.max_pkeys);
  o.Set("localCaAckDelay", attr.local_ca_ack_delay);
  o.Set("physPortCnt", attr.phys_port_cnt);
  o.Set("numCompVectors", context->verbs()->num_comp_vectors);

  o.Set("odpGeneralCaps", Napi::BigInt::New(env, static_cast<uint64_t>(extended.odp_caps.general_caps)));
  o.Set("odpRcCaps", extended.odp_caps.per_transport_caps.rc_odp_caps);
  o.Set("odpUcCaps", extended.odp_caps.per_transport_caps.uc_odp_caps);
  o.Set("odpUdCaps", extended.odp_caps.per_transport_caps.ud_odp_caps);
  o.Set("completionTimestampMask",
        Napi::BigInt::New(env, static_cast<uint64_t>(extended.completion_timestamp_mask)));
  o.Set("hcaCoreClock", Napi::BigInt::New(env, static_cast<uint64_t>(extended.hca_core_clock)));
  o.Set("deviceCapFlagsEx", Napi::BigInt::New(env, static_cast<uint64_t>(extended.device_cap_flags_ex)));
  o.Set("tsoMax", extended.tso_caps.max_tso);
  o.Set("tsoQpts", extended.tso_caps.supported_qpts);
  o.Set("rssQpts", extended.rss_caps.supported_qpts);
  o.Set("rssMaxRwqIndirectionTables", extended.rss_caps.max_rwq_indirection_tables);
  o.Set("rssMaxRwqIndirectionTableSize", extended.rss_caps.max_rwq_indirection_table_size);
  o.Set("rssRxHashFieldsMask",
        Napi::BigInt::New(env, static_cast<uint64_t>(extended.rss_caps.rx_hash_fields_mask)));
  o.Set("rssRxHashFunction", extended.rss_caps.rx_hash_function);
  o.Set("maxWqTypeRq", extended.max_wq_type_rq);
  o.Set("packetPacingRateMin", extended.packet_pacing_caps.qp_rate_limit_min);
  o.Set("packetPacingRateMax", extended.packet_pacing_caps.qp_rate_limit_max);
  o.Set("packetPacingQpts", extended.packet_pacing_caps.supported_qpts);
  o.Set("rawPacketCaps", extended.raw_packet_caps);
  o.Set("tmMaxRndvHdrSize", extended.tm_caps.max_rndv_hdr_size);
  o.Set("tmMaxNumTags", extended.tm_caps.max_num_tags);
  o.Set("tmFlags", extended.tm_caps.flags);
  o.Set("tmMaxOps", extended.tm_caps.max_ops);
  o.Set("tmMaxSge", extended.tm_caps.max_sge);
  o.Set("cqModMaxCount", extended.cq_mod_caps.max_cq_count);
  o.Set("cqModMaxPeriod", extended.cq_mod_caps.max_cq_period);
  o.Set("maxDmSize", Napi::BigInt::New(env, static_cast<uint64_t>(extended.max_dm_size)));
  o.Set("pciAtomicFetchAdd", extended.pci_atomic_caps.fetch_add);
  o.Set("pciAtomicSwap", extended.pci_atomic_caps.swap);
  o.Set("pciAtomicCompareSwap", extended.pci_atomic_caps.compare_swap);
  o.Set("xrcOdpCaps", extended.xrc_odp_caps);
  o.Set("physPortCntEx", extended.phys_port_cnt_ex);
  return o;
}

Napi::Value ContextWrap::QueryPort(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t port;
  if (!arguments.Uint32(0, "port", &port)) return {};
  auto context = Open(env);
  if (!context) return {};
  ibv_port_attr attr = {};
  int error = port > UINT8_MAX
                  ? EINVAL
                  : ErrorOfResult(ibv_query_port(context->verbs(), static_cast<uint8_t>(port), &attr));
  if (error) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_port", error);
    return {};
  }
  Napi::Object o = Napi::Object::New(env);
  o.Set("state", static_cast<int>(attr.state));
  o.Set("maxMtu", static_cast<int>(attr.max_mtu));
  o.Set("activeMtu", static_cast<int>(attr.active_mtu));
  o.Set("gidTblLen", attr.gid_tbl_len);
  o.Set("portCapFlags", attr.port_cap_flags);
  o.Set("portCapFlags2", attr.port_cap_flags2);
  o.Set("maxMsgSz", attr.max_msg_sz);
  o.Set("badPkeyCntr", attr.bad_pkey_cntr);
  o.Set("qkeyViolCntr", attr.qkey_viol_cntr);
  o.Set("pkeyTblLen", attr.pkey_tbl_len);
  o.Set("lid", attr.lid);
  o.Set("smLid", attr.sm_lid);
  o.Set("lmc", attr.lmc);
  o.Set("maxVlNum", attr.max_vl_num);
  o.Set("smSl", attr.sm_sl);
  o.Set("subnetTimeout", attr.subnet_timeout);
  o.Set("initTypeReply", attr.init_type_reply);
  o.Set("activeWidth", attr.active_width);
  o.Set("activeSpeed", attr.active_speed);
  o.Set("physState", attr.phys_state);
  o.Set("linkLayer", attr.link_layer);
  o.Set("flags", attr.flags);
  return o;
}

Napi::Value ContextWrap::QueryGidTable(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto context = Open(env);
  if (!context) return {};
  // The function wants room for the tables of all ports and refuses less, so they are summed first.
  ibv_device_attr device = {};
  if (int error = ErrorOfResult(ibv_query_device(context->verbs(), &device))) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_device", error);
    return {};
  }
  size_t room = 0;
  for (int port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attr = {};
    if (ibv_query_port(context->verbs(), static_cast<uint8_t>(port), &attr) == 0 && attr.gid_tbl_len > 0) {
      room += static_cast<size_t>(attr.gid_tbl_len);
    }
  }
  std::vector<ibv_gid_entry> entries(room < kMostGids ? room : kMostGids);
  ssize_t count =
      entries.empty() ? 0 : ibv_query_gid_table(context->verbs(), entries.data(), entries.size(), 0);
  if (int error = ErrorOfCount(count)) {
    AddonData::Of(env).ThrowErrno(env, "ibv_query_gid_table", error);
    return {};
  }
  Napi::Array list = Napi::Array::New(env);
  for (ssize_t i = 0; i < count; ++i) {
    list.Set(static_cast<uint32_t>(i), GidEntryObject(env, entries[static_cast<size_t>(i)]));
  }
  return list;
}

Napi::Value ContextWrap::AllocPd(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto context = Open(env);
  if (!context) return {};
  int error = 0;
  auto domain = ProtectionDomain::Alloc(AddonData::Of(env).registry, context, &error);
  if (!domain) {
    AddonData::Of(env).ThrowErrno(env, "ibv_alloc_pd", error);
    return {};
  }
  return ProtectionDomainWrap::New(env, domain);
}

Napi::Value ContextWrap::CreateCq(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Arguments arguments(info);
  uint32_t entries, vector;
  if (!arguments.Uint32(0, "cqe", &entries) || !arguments.Uint32(1, "compVector", &vector)) return {};
  auto context = Open(env);
  if (!context) return {};
  AddonData& addon = AddonData::Of(env);
  int error = 0;
  std::shared_ptr<CompletionChannel> channel;
  if (!CompletionChannelWrap::Read(info, 2, context, &channel)) return {};
  auto queue = CompletionQueue::Create(addon, context, channel, entries, vector, nullptr, &error);
  if (!queue) {
    AddonData::Of(env).ThrowErrno(env, "ibv_create_cq", error);
    return {};
  }
  return CompletionQueueWrap::New(env, queue);
}

Napi::Value ContextWrap::CreateCompletionChannel(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  auto context = Open(env);
  if (!context) return {};
  int error = 0;
  auto channel = CompletionChannel::Create(AddonData::Of(env), context, &error);
  if (!channel) {
    AddonData::Of(env).ThrowErrno(env, "ibv_create_comp_channel", error);
    return {};
  }
  return CompletionChannelWrap::New(env, channel);
}

Napi::Value ContextWrap::Ref(const Napi::CallbackInfo& info) {
  Arguments arguments(info);
  bool ref = false;
  if (arguments.Boolean(0, "ref", &ref)) native()->Ref(ref);
  return info.Env().Undefined();
}

}  // namespace node_rdma
