// The header of each datagram of node-rdma/net, for what RDMA datagrams lack: ports. Little-endian.

export const DATAGRAM_HEADER = 8;
const MARK = 0x446e; // 'nD'
const VERSION = 1;

export function writeDatagramHeader(view: DataView, at: number, sourcePort: number, port: number): void {
  view.setUint16(at, MARK, true);
  view.setUint8(at + 2, VERSION);
  view.setUint8(at + 3, 0);
  view.setUint16(at + 4, sourcePort, true);
  view.setUint16(at + 6, port, true);
}

/** Undefined for what is no datagram of ours. */
export function readDatagramHeader(
  view: DataView,
  at: number,
  bytes: number,
): { sourcePort: number; port: number } | undefined {
  if (bytes < DATAGRAM_HEADER || view.getUint16(at, true) !== MARK || view.getUint8(at + 2) !== VERSION)
    return undefined;
  return { sourcePort: view.getUint16(at + 4, true), port: view.getUint16(at + 6, true) };
}
