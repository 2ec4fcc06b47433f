// @ts-check
// Where each public function of libibverbs and librdmacm is in the interface of this library. docs/coverage.md is made of it,
// and test/unit/coverage.test.ts holds it against the installed headers and against lib/index.ts.

/**
 * @typedef {object} Row
 * @property {string} name of the C function
 * @property {readonly string[]} places in the interface: an export, or a member of one
 * @property {'rxe' | 'checked' | 'withoutDevice' | 'none'} status
 * @property {readonly string[]} tests files that call it
 * @property {string} [note]
 */

/** What each status says of a function, for the page. */
export const statuses = {
  rxe: 'works on rxe',
  checked: 'arguments checked, not run on a NIC',
  withoutDevice: 'needs no device',
  none: 'not wrapped',
};

/** @typedef {{ title: string, rows: Row[] }} Section */

const rxeTest = (/** @type {string} */ name) => `test/rxe/${name}.test.ts`;

/** The test that looks at every field of what a provider gets. */
const RECORDED = 'test/unit/recorded-calls.test.ts';
/** The test that rxe's refusal is the one error for it. */
const UNSUPPORTED = rxeTest('unsupported');

/**
 * @param {string} name
 * @param {string} places separated by blanks
 * @param {string} test in test/rxe/, without its ending
 * @param {string} [note]
 * @returns {Row}
 */
function onRxe(name, places, test, note) {
  return { name, places: places.split(' '), status: 'rxe', tests: [rxeTest(test)], ...(note && { note }) };
}

/**
 * @param {string} name
 * @param {string} places
 * @param {string} [note]
 * @param {string} refused the test of rxe's refusal
 * @returns {Row}
 */
function checked(name, places, note, refused = UNSUPPORTED) {
  return {
    name,
    places: places.split(' '),
    status: 'checked',
    tests: [RECORDED, refused],
    ...(note && { note }),
  };
}

/**
 * @param {string} name
 * @param {string} places
 * @param {string} test in test/unit/, without its ending
 * @param {string} [note]
 * @returns {Row}
 */
function withoutDevice(name, places, test, note) {
  return {
    name,
    places: places.split(' '),
    status: 'withoutDevice',
    tests: [`test/unit/${test}.test.ts`],
    ...(note && { note }),
  };
}

/**
 * @param {string} name
 * @param {string} note the reason
 * @returns {Row}
 */
function none(name, note) {
  return { name, places: [], status: 'none', tests: [], note };
}

/** @type {Section[]} */
export const sections = [
  {
    title: 'Devices, ports, GIDs',
    rows: [
      onRxe('ibv_get_device_list', 'listDevices', 'devices'),
      onRxe('ibv_free_device_list', 'listDevices', 'devices', 'freed at once'),
      onRxe('ibv_get_device_name', 'listDevices', 'devices'),
      onRxe('ibv_get_device_index', 'listDevices', 'devices'),
      onRxe('ibv_get_device_guid', 'listDevices', 'devices', 'in host order'),
      onRxe('ibv_open_device', 'openDevice', 'devices'),
      onRxe('ibv_close_device', 'Context.close', 'lifetimes'),
      checked('ibv_import_device', 'importDevice Context.commandFd'),
      onRxe('ibv_query_device', 'Context.queryDevice', 'devices', 'by ibv_query_device_ex'),
      onRxe('ibv_query_device_ex', 'Context.queryDevice', 'devices'),
      onRxe('ibv_query_port', 'Context.queryPort', 'devices'),
      onRxe('ibv_query_gid', 'Context.queryGid', 'device-queries'),
      onRxe('ibv_query_gid_ex', 'Context.queryGidEntry', 'device-queries'),
      onRxe('ibv_query_gid_table', 'Context.queryGidTable', 'devices'),
      onRxe('ibv_query_pkey', 'Context.queryPkey', 'device-queries', 'in host order'),
      onRxe('ibv_get_pkey_index', 'Context.getPkeyIndex', 'device-queries'),
      checked('ibv_query_rt_values_ex', 'Context.queryRawClock'),
      onRxe('ibv_get_async_event', 'Context.events', 'async-events', 'read as they come, without blocking'),
      onRxe('ibv_ack_async_event', 'Context.events', 'async-events', 'as soon as it is read'),
    ],
  },
  {
    title: 'Domains',
    rows: [
      onRxe('ibv_alloc_pd', 'Context.allocPd', 'lifetimes'),
      onRxe('ibv_dealloc_pd', 'ProtectionDomain.close', 'lifetimes'),
      checked('ibv_import_pd', 'Context.importPd ProtectionDomain.handle'),
      checked('ibv_unimport_pd', 'ProtectionDomain.close', 'of a domain that was imported'),
      checked('ibv_alloc_td', 'Context.allocTd'),
      checked('ibv_dealloc_td', 'ThreadDomain.close'),
      checked(
        'ibv_alloc_parent_domain',
        'ProtectionDomain.allocParentDomain',
        'without allocators of one’s own, which the device would call on any thread',
      ),
      checked('ibv_open_xrcd', 'Context.openXrcd'),
      checked('ibv_close_xrcd', 'XrcDomain.close'),
    ],
  },
  {
    title: 'Memory',
    rows: [
      onRxe('ibv_reg_mr', 'ProtectionDomain.regMr ProtectionDomain.regMrSync', 'memory-regions'),
      onRxe('ibv_reg_mr_iova', 'ProtectionDomain.regMr', 'memory-regions', 'with `iova`'),
      onRxe('ibv_reg_mr_iova2', 'ProtectionDomain.regMr', 'memory-regions', 'what the two above call'),
      checked('ibv_reg_dmabuf_mr', 'ProtectionDomain.regDmabufMr ProtectionDomain.regDmabufMrSync'),
      checked('ibv_rereg_mr', 'MemoryRegion.rereg MemoryRegion.reregSync'),
      onRxe('ibv_dereg_mr', 'MemoryRegion.close', 'memory-regions'),
      checked('ibv_advise_mr', 'ProtectionDomain.adviseMr ProtectionDomain.adviseMrSync'),
      checked('ibv_alloc_null_mr', 'ProtectionDomain.allocNullMr'),
      checked('ibv_import_mr', 'ProtectionDomain.importMr MemoryRegion.handle'),
      checked('ibv_unimport_mr', 'MemoryRegion.close', 'of a region that was imported'),
      checked('ibv_alloc_dm', 'Context.allocDm'),
      checked('ibv_free_dm', 'DeviceMemory.close'),
      checked('ibv_reg_dm_mr', 'ProtectionDomain.regDmMr'),
      checked('ibv_memcpy_to_dm', 'DeviceMemory.write'),
      checked('ibv_memcpy_from_dm', 'DeviceMemory.read'),
      checked('ibv_import_dm', 'Context.importDm DeviceMemory.handle'),
      checked('ibv_unimport_dm', 'DeviceMemory.close', 'of memory that was imported'),
      onRxe('ibv_alloc_mw', 'ProtectionDomain.allocMw', 'memory-windows'),
      onRxe('ibv_dealloc_mw', 'MemoryWindow.close', 'memory-windows'),
      onRxe('ibv_bind_mw', 'QueuePair.bindMw', 'memory-windows'),
      onRxe('ibv_inc_rkey', 'incRkey', 'memory-windows'),
    ],
  },
  {
    title: 'Completion queues',
    rows: [
      onRxe('ibv_create_cq', 'Context.createCq', 'completion-events'),
      onRxe('ibv_resize_cq', 'CompletionQueue.resize CompletionQueue.resizeSync', 'completion-events'),
      onRxe('ibv_destroy_cq', 'CompletionQueue.close', 'lifetimes'),
      onRxe('ibv_poll_cq', 'CompletionQueue.poll CompletionRing', 'messages'),
      onRxe('ibv_req_notify_cq', 'CompletionQueue.reqNotify', 'completion-events'),
      onRxe('ibv_create_comp_channel', 'Context.createCompletionChannel', 'completion-events'),
      onRxe('ibv_destroy_comp_channel', 'CompletionChannel.close', 'completion-events'),
      onRxe(
        'ibv_get_cq_event',
        'CompletionQueue.wait CompletionQueue.completions',
        'completion-events',
        'read as they come, without blocking',
      ),
      onRxe('ibv_ack_cq_events', 'CompletionQueue.wait', 'completion-events', 'in bulk'),
      checked('ibv_modify_cq', 'CompletionQueue.moderate'),
      onRxe(
        'ibv_create_cq_ex',
        'Context.createCqEx',
        'extended-completion-queues',
        'rxe: the standard flags',
      ),
      onRxe(
        'ibv_cq_ex_to_cq',
        'ExtendedCompletionQueue',
        'extended-completion-queues',
        'it is a CompletionQueue',
      ),
      onRxe('ibv_start_poll', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      none(
        'ibv_next_poll',
        'the rxe provider of rdma-core 44 loses completions with it: one completion between start and end',
      ),
      onRxe('ibv_end_poll', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_opcode', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_vendor_err', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_byte_len', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_imm_data', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_invalidated_rkey', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_qp_num', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_src_qp', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_wc_flags', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_slid', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_sl', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      onRxe('ibv_wc_read_dlid_path_bits', 'ExtendedCompletionQueue.pollEx', 'extended-completion-queues'),
      checked(
        'ibv_wc_read_completion_ts',
        'ExtendedWorkCompletion.completionTs',
        undefined,
        rxeTest('extended-completion-queues'),
      ),
      checked(
        'ibv_wc_read_completion_wallclock_ns',
        'ExtendedWorkCompletion.completionWallclockNs',
        undefined,
        rxeTest('extended-completion-queues'),
      ),
      checked(
        'ibv_wc_read_cvlan',
        'ExtendedWorkCompletion.cvlan',
        undefined,
        rxeTest('extended-completion-queues'),
      ),
      checked(
        'ibv_wc_read_flow_tag',
        'ExtendedWorkCompletion.flowTag',
        undefined,
        rxeTest('extended-completion-queues'),
      ),
      checked(
        'ibv_wc_read_tm_info',
        'ExtendedWorkCompletion.tmInfo',
        undefined,
        rxeTest('extended-completion-queues'),
      ),
    ],
  },
  {
    title: 'Queue pairs',
    rows: [
      onRxe('ibv_create_qp', 'ProtectionDomain.createQp', 'queue-pair-states'),
      onRxe(
        'ibv_create_qp_ex',
        'ProtectionDomain.createQp ProtectionDomain.createRssQp',
        'extended-posting',
        'rxe: send operations; other options are checked for their arguments',
      ),
      checked('ibv_open_qp', 'QueuePairExtensionOptions.openQpNum'),
      onRxe(
        'ibv_modify_qp',
        'QueuePair.modify QueuePair.modifySync QueuePair.connect QueuePair.start',
        'queue-pair-states',
      ),
      checked('ibv_modify_qp_rate_limit', 'QueuePair.modifyRateLimit'),
      onRxe('ibv_query_qp', 'QueuePair.query', 'queue-pair-states'),
      onRxe('ibv_query_qp_data_in_order', 'QueuePair.queryDataInOrder', 'unsupported'),
      onRxe('ibv_destroy_qp', 'QueuePair.close', 'lifetimes'),
      onRxe('ibv_post_send', 'QueuePair.postSend SendRing', 'messages'),
      onRxe('ibv_post_recv', 'QueuePair.postRecv ReceiveRing', 'messages'),
      checked('ibv_set_ece', 'QueuePair.setEce'),
      checked('ibv_query_ece', 'QueuePair.queryEce'),
      onRxe('ibv_attach_mcast', 'QueuePair.attachMcast', 'multicast'),
      onRxe('ibv_detach_mcast', 'QueuePair.detachMcast', 'multicast', 'also when the queue pair is closed'),
      withoutDevice('ibv_is_qpt_supported', 'isQptSupported', 'names'),
    ],
  },
  {
    title: 'Extended posting',
    rows: [
      onRxe('ibv_qp_to_qp_ex', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_start', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_complete', 'QueuePair.postSendEx', 'extended-posting'),
      none('ibv_wr_abort', 'all requests are checked before ibv_wr_start, so there is nothing to take back'),
      onRxe('ibv_wr_send', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_send_imm', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_send_inv', 'QueuePair.postSendEx', 'extended-posting'),
      checked('ibv_wr_send_tso', 'QueuePair.sendTso', undefined, rxeTest('extended-posting')),
      onRxe('ibv_wr_rdma_write', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_rdma_write_imm', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_rdma_read', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_atomic_cmp_swp', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe('ibv_wr_atomic_fetch_add', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe(
        'ibv_wr_atomic_write',
        'QueuePair.postSendEx',
        'extended-posting',
        'rxe of Linux 6.1 fails the request',
      ),
      onRxe('ibv_wr_bind_mw', 'QueuePair.bindMw', 'extended-posting'),
      onRxe('ibv_wr_local_inv', 'QueuePair.invalidateMw', 'extended-posting'),
      onRxe('ibv_wr_set_ud_addr', 'QueuePair.postSendEx', 'extended-posting'),
      checked('ibv_wr_set_xrc_srqn', 'SendRequest.remoteSrqn'),
      onRxe('ibv_wr_set_sge', 'QueuePair.postSendEx', 'extended-posting'),
      onRxe(
        'ibv_wr_set_sge_list',
        'QueuePair.postSendEx',
        'extended-posting',
        'rxe: elements of one length only, since the provider of rdma-core 44 sends wrong bytes of others',
      ),
      onRxe('ibv_wr_set_inline_data', 'QueuePair.postSendEx', 'extended-posting'),
      none(
        'ibv_wr_set_inline_data_list',
        'the rxe provider of rdma-core 44 loses the bytes: they are put together for ibv_wr_set_inline_data',
      ),
    ],
  },
  {
    title: 'Shared receive queues',
    rows: [
      onRxe('ibv_create_srq', 'ProtectionDomain.createSrq', 'shared-receive-queues'),
      checked('ibv_create_srq_ex', 'ProtectionDomain.createSrq', 'with `type`'),
      onRxe(
        'ibv_modify_srq',
        'SharedReceiveQueue.setLimit SharedReceiveQueue.resize',
        'shared-receive-queues',
      ),
      onRxe('ibv_query_srq', 'SharedReceiveQueue.query', 'shared-receive-queues'),
      onRxe('ibv_destroy_srq', 'SharedReceiveQueue.close', 'shared-receive-queues'),
      onRxe('ibv_post_srq_recv', 'SharedReceiveQueue.postRecv', 'shared-receive-queues'),
      checked('ibv_get_srq_num', 'SharedReceiveQueue.srqNum'),
      checked('ibv_post_srq_ops', 'SharedReceiveQueue.postTagOp'),
    ],
  },
  {
    title: 'Address handles',
    rows: [
      onRxe('ibv_create_ah', 'ProtectionDomain.createAh ProtectionDomain.createAhSync', 'datagrams'),
      onRxe(
        'ibv_create_ah_from_wc',
        'ProtectionDomain.createAhFromWc ProtectionDomain.createAhFromWcSync',
        'datagrams',
      ),
      onRxe('ibv_init_ah_from_wc', 'ProtectionDomain.createAhFromWc AddressHandle.vector', 'datagrams'),
      onRxe('ibv_destroy_ah', 'AddressHandle.close', 'datagrams'),
      onRxe('ibv_resolve_eth_l2_from_gid', 'Context.resolveEthL2', 'device-queries'),
    ],
  },
  {
    title: 'Work queues, flow steering, counters',
    rows: [
      checked('ibv_create_wq', 'ProtectionDomain.createWq'),
      checked('ibv_modify_wq', 'ReceiveWorkQueue.modify'),
      checked('ibv_destroy_wq', 'ReceiveWorkQueue.close'),
      checked('ibv_post_wq_recv', 'ReceiveWorkQueue.postRecv'),
      checked('ibv_create_rwq_ind_table', 'Context.createRwqIndTable'),
      checked('ibv_destroy_rwq_ind_table', 'IndirectionTable.close'),
      checked('ibv_create_flow', 'QueuePair.createFlow RssQueuePair.createFlow'),
      checked('ibv_destroy_flow', 'Flow.close'),
      checked(
        'ibv_create_flow_action_esp',
        'Context.createFlowActionEsp',
        'without headers around the payload (`esp_encap`)',
      ),
      checked('ibv_modify_flow_action_esp', 'FlowAction.modify'),
      checked('ibv_destroy_flow_action', 'FlowAction.close'),
      checked('ibv_create_counters', 'Context.createCounters'),
      checked('ibv_destroy_counters', 'Counters.close'),
      checked('ibv_attach_counters_point_flow', 'Counters.attach'),
      checked('ibv_read_counters', 'Counters.read'),
    ],
  },
  {
    title: 'Names, rates, the process',
    rows: [
      withoutDevice('ibv_wc_status_str', 'wcStatusString', 'names'),
      withoutDevice('ibv_node_type_str', 'nodeTypeString', 'names'),
      withoutDevice('ibv_port_state_str', 'portStateString', 'names'),
      withoutDevice('ibv_event_type_str', 'eventTypeString', 'names'),
      withoutDevice('ibv_rate_to_mult', 'rateToMult', 'names'),
      withoutDevice('mult_to_ibv_rate', 'multToRate', 'names'),
      withoutDevice('ibv_rate_to_mbps', 'rateToMbps', 'names'),
      withoutDevice('mbps_to_ibv_rate', 'mbpsToRate', 'names'),
      withoutDevice('ibv_flow_label_to_udp_sport', 'udpSourcePort', 'udp-source-port'),
      withoutDevice('ibv_fork_init', 'forkInit', 'names', 'not where the kernel needs nothing'),
      withoutDevice('ibv_is_fork_initialized', 'forkStatus', 'names'),
      none('verbs_get_ctx', 'a part of the header that its own functions use'),
      none(
        'ibv_static_providers',
        'for programs that link providers statically; the addon links the library',
      ),
    ],
  },
  {
    title: 'Newer than rdma-core 44',
    rows: [
      checked(
        'ibv_wr_flush',
        'QueuePair.postSendEx',
        'found by the provider’s own acceptance of the operation',
        rxeTest('extended-posting'),
      ),
      {
        name: 'ibv_wr_opcode_str',
        places: ['wrOpcodeString'],
        status: 'withoutDevice',
        tests: ['test/unit/names.test.ts'],
        note: 'looked up at run time',
      },
      checked('ibv_query_port_speed', 'Context.queryPortSpeed', 'looked up at run time'),
      checked('ibv_dm_export_dmabuf_fd', 'DeviceMemory.exportDmabufFd', 'looked up at run time'),
      none(
        'ibv_alloc_buf',
        'not yet, as ibv_free_buf, ibv_reg_buf_mr, ibv_export_buf_dmabuf_fd: the headers lack them',
      ),
      none('ibv_alloc_dmah', 'not yet, as ibv_dealloc_dmah and ibv_reg_mr_ex: the headers lack them'),
      none(
        'ibv_create_comp_cntr',
        'not yet, as the other functions of completion counters: the headers lack them',
      ),
    ],
  },
  {
    title: 'Connection manager',
    rows: [
      onRxe('rdma_create_event_channel', 'createEventChannel', 'cm-connections'),
      onRxe('rdma_destroy_event_channel', 'EventChannel.close', 'cm-lifetimes'),
      onRxe('rdma_create_id', 'EventChannel.createId', 'cm-connections'),
      onRxe('rdma_destroy_id', 'CmId.close CmId.closeAsync', 'cm-lifetimes'),
      none(
        'rdma_create_ep',
        'it blocks while it resolves: getAddressInfo(), EventChannel.createId(), CmId.resolve(), CmId.createQp()',
      ),
      none('rdma_destroy_ep', 'CmId.close() closes what rdma_create_ep would have made'),
      onRxe('rdma_bind_addr', 'CmId.bindAddr', 'cm-connections'),
      onRxe('rdma_resolve_addr', 'CmId.resolveAddr CmId.resolve', 'cm-connections'),
      onRxe('rdma_resolve_route', 'CmId.resolveRoute CmId.resolve', 'cm-connections'),
      onRxe('rdma_create_qp', 'CmId.createQp', 'cm-connections'),
      none(
        'rdma_create_qp_ex',
        'make an extended queue pair by ProtectionDomain.createQp() on CmId.pd and give it to CmId.connect()',
      ),
      onRxe('rdma_destroy_qp', 'QueuePair.close', 'cm-lifetimes'),
      onRxe('rdma_connect', 'CmId.connect', 'cm-connections'),
      onRxe('rdma_establish', 'CmId.establish', 'cm-connections'),
      onRxe('rdma_listen', 'CmId.listen', 'cm-connections'),
      onRxe('rdma_get_request', 'CmId.getRequest CmId.requests', 'cm-connections', 'without blocking'),
      onRxe('rdma_accept', 'CmId.accept', 'cm-connections'),
      onRxe('rdma_reject', 'CmId.reject', 'cm-failures'),
      onRxe('rdma_reject_ece', 'CmId.reject', 'cm-failures', 'with `ece`'),
      onRxe('rdma_notify', 'CmId.notify', 'cm-connections'),
      onRxe('rdma_disconnect', 'CmId.disconnect', 'cm-connections'),
      onRxe('rdma_join_multicast', 'CmId.joinMulticast', 'cm-datagrams', 'by rdma_join_multicast_ex'),
      onRxe('rdma_join_multicast_ex', 'CmId.joinMulticast', 'cm-datagrams'),
      onRxe('rdma_leave_multicast', 'CmId.leaveMulticast MulticastGroup.leave', 'cm-datagrams'),
      onRxe('rdma_get_cm_event', 'CmId.events', 'cm-connections', 'read as they come, without blocking'),
      onRxe('rdma_ack_cm_event', 'CmId.events', 'cm-connections', 'as soon as it is copied'),
      onRxe('rdma_get_src_port', 'CmId.localAddress', 'cm-connections', 'in host order'),
      onRxe('rdma_get_dst_port', 'CmId.peerAddress', 'cm-connections', 'in host order'),
      onRxe('rdma_get_local_addr', 'CmId.localAddress', 'cm-connections'),
      onRxe('rdma_get_peer_addr', 'CmId.peerAddress', 'cm-connections'),
      onRxe('rdma_get_devices', 'connectionManagerDevices', 'cm-connections'),
      onRxe('rdma_free_devices', 'connectionManagerDevices', 'cm-connections', 'freed when the context is'),
      withoutDevice('rdma_event_str', 'cmEventString', 'names'),
      onRxe('rdma_set_option', 'CmId.setOption CmId.setPath', 'cm-connections'),
      onRxe('rdma_migrate_id', 'CmId.migrate', 'cm-lifetimes'),
      onRxe('rdma_getaddrinfo', 'getAddressInfo', 'cm-connections'),
      onRxe('rdma_freeaddrinfo', 'getAddressInfo', 'cm-connections', 'freed at once'),
      onRxe('rdma_init_qp_attr', 'CmId.initQpAttr', 'cm-connections'),
      onRxe('rdma_set_local_ece', 'CmId.setLocalEce', 'cm-connections'),
      onRxe('rdma_get_remote_ece', 'CmId.getRemoteEce', 'cm-connections'),
    ],
  },
];
