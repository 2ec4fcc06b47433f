import { listDevices, openDevice, RdmaError, type Context, type GidChoice } from '../../index.js';

/** A port that the demonstration can use. */
export interface UsablePort {
  context: Context;
  port: number;
  gid: GidChoice;
}

export interface ChosenPorts {
  a: UsablePort;
  b: UsablePort;
  reason: string;
}

/**
 * Ports for both ends: of the devices that are named; else of the two that a machine of `node-rdma rxe` has on one wire;
 * else the first usable one, for both ends. The caller closes the contexts.
 *
 * @throws RdmaError `ERR_RDMA_NO_DEVICE` with what each device lacks
 */
export function choosePorts(
  named: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): ChosenPorts {
  const { NODE_RDMA_RXE_DEVICE_A: wiredA, NODE_RDMA_RXE_DEVICE_B: wiredB } = env;
  if (named.length > 2) {
    throw new RdmaError(
      'ERR_RDMA_NO_DEVICE',
      `a connection has two ends, and ${named.length} devices are named`,
    );
  }
  const [a, b = a] = named;
  if (a !== undefined && b !== undefined) return openBoth(a, b, 'as asked for');
  if (wiredA && wiredB) return openBoth(wiredA, wiredB, 'two devices on the wire of this Soft-RoCE machine');
  return openFirst();
}

function openBoth(nameA: string, nameB: string, reason: string): ChosenPorts {
  const a = openUsable(nameA);
  if (nameA === nameB) return { a, b: a, reason: `${reason}, both ends on one device` };
  try {
    return { a, b: openUsable(nameB), reason };
  } catch (error) {
    a.context.close();
    throw error;
  }
}

function openUsable(name: string): UsablePort {
  const { usable, lacking } = inspect(name);
  if (usable === undefined) throw noUsablePort([lacking]);
  return usable;
}

function openFirst(): ChosenPorts {
  const devices = listDevices();
  // With none that can be opened, opening says best what is missing.
  if (!devices.some((device) => device.accessible)) openDevice().close();
  const reports: string[] = [];
  for (const { name, problem } of devices) {
    if (problem !== undefined) {
      reports.push(`${name}: ${problem.message}.`);
      continue;
    }
    const { usable, lacking } = inspect(name);
    if (usable !== undefined) {
      return { a: usable, b: usable, reason: 'the first usable port of this machine, for both ends' };
    }
    reports.push(lacking);
  }
  throw noUsablePort(reports);
}

function noUsablePort(reports: readonly string[]): RdmaError {
  return new RdmaError(
    'ERR_RDMA_NO_DEVICE',
    `no port can be used (it must be ACTIVE and have a RoCE v2 GID). ${reports.join(' ')} ` +
      'To see it on Soft-RoCE: npx node-rdma rxe run -- npx node-rdma demo',
  );
}

/** Opens a device and looks for a usable port; closes it again if there is none, and says what each lacks. */
function inspect(name: string): { usable?: UsablePort; lacking: string } {
  const context = openDevice(name);
  const lacking: string[] = [];
  const { physPortCnt } = context.queryDevice();
  for (let port = 1; port <= physPortCnt; ++port) {
    const { state, linkLayer } = context.queryPort(port);
    if (linkLayer !== 'ethernet' || context.device.transport !== 'ib') {
      lacking.push(`Port ${port} of ${name} is no RoCE port (${context.device.transport}, ${linkLayer}).`);
    } else if (state !== 'active') {
      lacking.push(`Port ${port} of ${name} is ${state.toUpperCase()}: bring its network interface up.`);
    } else {
      try {
        return { usable: { context, port, gid: context.chooseGid({}, port) }, lacking: '' };
      } catch (error) {
        if (!(error instanceof RdmaError) || error.code !== 'ERR_RDMA_NO_GID') throw error;
        lacking.push(error.message);
      }
    }
  }
  context.close();
  return { lacking: lacking.join(' ') };
}
