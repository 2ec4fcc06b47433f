// test/rxe/conformance answers each case of rdma-core's suite that runs, or is refused, on rxe. Names without `test_`, of rdma-core 44 and
// of its later master.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const folder = 'test/rxe/conformance';

const names = `
dev_list open_dev query_device query_device_ex phys_port_cnt_ex query_port query_port_bad_flow query_port_speed
query_pkey get_pkey_index query_gid query_gid_table query_gid_table_bad_flow query_gid_ex query_gid_ex_bad_flow
is_fork_initialized alloc_pd dealloc_pd multiple_pd_creation destroy_pd_twice create_ah create_ah_roce destroy_ah
reg_mr_bad_flags reg_mrex_bad_flags reg_mrex_inval_params mr_rereg_addr mr_rereg_access mr_rereg_access_bad_flow
mr_rereg_pd mr_rereg_atomic mrex_rereg_addr mrex_rereg_access mw_type1 mw_ex_type1 invalidate_mw_type1 mw_type2
mw_type2_invalidate_local mw_type2_invalidate_remote mw_type2_invalidate_dealloc reg_mw_wrong_type
buf_export_dmabuf_fd_plain_pd multiple_mrs_one_buf_plain_pd_reg_buf_mr multiple_mrs_one_buf_plain_pd_reg_mr_ex
buf_reg_wrong_allocating_pd_fails_plain_pd buf_reg_length_exceeds_buffer_fails_plain_pd
buf_reg_offset_length_exceeds_buffer_fails_plain_pd buf_rc_send_plain_pd_reg_buf_mr create_cq
create_cq_with_comp_channel create_cq_bad_flow resize_cq cq_events_ud cq_events_rc create_cq_ex
create_cq_ex_bad_flow ud_traffic_cq_ex rc_traffic_cq_ex create_rc_qp_no_attr create_uc_qp_no_attr
create_ud_qp_no_attr create_rc_qp_with_attr create_uc_qp_with_attr create_ud_qp_with_attr create_rc_qp_ex_no_attr
create_uc_qp_ex_no_attr create_ud_qp_ex_no_attr create_rc_qp_ex_with_attr create_uc_qp_ex_with_attr
create_ud_qp_ex_with_attr create_raw_qp_ex_with_illegal_caps_max_send_wr
create_raw_qp_ex_with_illegal_caps_max_send_sge create_raw_qp_ex_with_illegal_caps_max_recv_sge
create_raw_qp_ex_with_illegal_caps_max_recv_wr query_rc_qp query_uc_qp query_ud_qp query_data_in_order modify_ud_qp
create_ud_qp_with_privileged_qkey modify_rc_qp_rd_atomic qp_ex_ud_send qp_ex_ud_send_imm qp_ex_ud_zero_size
qp_ex_rc_send qp_ex_rc_send_imm qp_ex_rc_rdma_write qp_ex_rc_rdma_write_imm qp_ex_rc_rdma_write_zero_size
qp_ex_rc_rdma_write_zero_length qp_ex_rc_rdma_read qp_ex_rc_rdma_read_zero_size qp_ex_rc_atomic_cmp_swp
qp_ex_rc_atomic_fetch_add qp_ex_rc_atomic_write qp_ex_rc_flush qp_ex_rc_flush_type_violate qp_ex_rc_bind_mw
post_receive_qp_state_bad_flow post_send_qp_state_bad_flow full_rq_bad_flow rq_with_larger_sgl_bad_flow
atomic_cmp_and_swap atomic_fetch_and_add atomic_invalid_qp_access atomic_invalid_mr_access atomic_non_aligned_addr
atomic_invalid_lkey atomic_invalid_rkey ro_rc_traffic ro_ud_traffic ro_mr_ex_traffic rc_srq_traffic resize_srq
modify_srq_limit odp_rc_traffic odp_rc_mixed_mr odp_rc_rdma_read odp_rc_rdma_write odp_rc_atomic_cmp_and_swp
odp_rc_atomic_fetch_and_add odp_qp_ex_rc_atomic_write odp_qp_ex_rc_flush odp_ud_traffic odp_rc_huge_traffic
odp_rc_huge_user_addr_traffic odp_sync_prefetch_rc_traffic odp_async_prefetch_rc_traffic
odp_prefetch_sync_no_page_fault_rc_traffic odp_prefetch_async_no_page_fault_rc_traffic mrex_odp_rc_traffic
mrex_odp_rc_huge_traffic mrex_odp_qp_ex_rc_flush rdmacm_sync_traffic rdmacm_async_traffic
rdmacm_async_reject_traffic rdmacm_async_traffic_external_qp rdmacm_async_udp_traffic rdmacm_async_read
rdmacm_async_write rdmacm_async_multicast_traffic rdmacm_async_ex_multicast_traffic
rdmacm_async_ex_leave_multicast_traffic rdmacm_async_resolve_addrinfo
`
  .trim()
  .split(/\s+/);

it('names each case of rdma-core', () => {
  const sources = readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => readFileSync(`${folder}/${file}`, 'utf8'))
    .join('\n');
  // Those of a table are put together there.
  const made = (name: string) => /^create_(rc|uc|ud)_qp|^query_(rc|uc|ud)_qp$|illegal_caps/.test(name);
  expect(names.filter((name) => !made(name) && !sources.includes(`'${name}'`))).toEqual([]);
  for (const part of [
    '`create_${type}_qp${suffix}_no_attr`',
    '`query_${type}_qp`',
    'illegal_caps_${rdmaCore}',
  ])
    expect(sources).toContain(part);
});
