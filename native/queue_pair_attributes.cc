#include "queue_pair_attributes.h"

#include <cstring>
#include <type_traits>

namespace node_rdma {

namespace {

// Visits the fields in the order of their words, so that packing and unpacking cannot disagree.
template <class Attributes, class Visit>
void VisitAddress(Attributes& ah, Visit visit) {
  visit(ah.is_global);
  visit(ah.dlid);
  visit(ah.sl);
  visit(ah.src_path_bits);
  visit(ah.static_rate);
  visit(ah.port_num);
  visit(ah.grh.flow_label);
  visit(ah.grh.sgid_index);
  visit(ah.grh.hop_limit);
  visit(ah.grh.traffic_class);
}

template <class Attributes, class Visit>
void VisitScalars(Attributes& a, Visit visit) {
  visit(a.qp_state);
  visit(a.cur_qp_state);
  visit(a.path_mtu);
  visit(a.path_mig_state);
  visit(a.qkey);
  visit(a.rq_psn);
  visit(a.sq_psn);
  visit(a.dest_qp_num);
  visit(a.qp_access_flags);
  visit(a.cap.max_send_wr);
  visit(a.cap.max_recv_wr);
  visit(a.cap.max_send_sge);
  visit(a.cap.max_recv_sge);
  visit(a.cap.max_inline_data);
  visit(a.pkey_index);
  visit(a.alt_pkey_index);
  visit(a.en_sqd_async_notify);
  visit(a.sq_draining);
  visit(a.max_rd_atomic);
  visit(a.max_dest_rd_atomic);
  visit(a.min_rnr_timer);
  visit(a.port_num);
  visit(a.timeout);
  visit(a.retry_cnt);
  visit(a.rnr_retry);
  visit(a.alt_port_num);
  visit(a.alt_timeout);
  visit(a.rate_limit);
}

}  // namespace

void UnpackAddress(const uint32_t* words, ibv_ah_attr* address) {
  VisitAddress(*address, [&words](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(*words++);
  });
  std::memcpy(address->grh.dgid.raw, words, sizeof address->grh.dgid.raw);
}

void PackAddress(const ibv_ah_attr& address, uint32_t* words) {
  VisitAddress(address, [&words](const auto& field) { *words++ = static_cast<uint32_t>(field); });
  std::memcpy(words, address.grh.dgid.raw, sizeof address.grh.dgid.raw);
}

void UnpackQpAttributes(const uint32_t* words, ibv_qp_attr* attributes) {
  VisitScalars(*attributes, [&words](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(*words++);
  });
  UnpackAddress(words, &attributes->ah_attr);
  UnpackAddress(words + kAddressWords, &attributes->alt_ah_attr);
}

void PackQpAttributes(const ibv_qp_attr& attributes, uint32_t* words) {
  VisitScalars(attributes, [&words](const auto& field) { *words++ = static_cast<uint32_t>(field); });
  PackAddress(attributes.ah_attr, words);
  PackAddress(attributes.alt_ah_attr, words + kAddressWords);
}

}  // namespace node_rdma
