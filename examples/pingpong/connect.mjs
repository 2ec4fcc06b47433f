/** Makes the step that brings a connected queue pair to RTS, by what the peer has told of its own. */
export function connecting({ pathMtu, sl }) {
  return (qp, remote) =>
    qp.connect({ ...remote, type: qp.type, mtu: pathMtu, maxDestRdAtomic: 1 }, { pathMtu, sl });
}
