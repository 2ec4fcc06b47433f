// Network interfaces as the system has them, for what the GID table does not tell.
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** Name of the network interface under a port of a device: the `parent` of Soft-RoCE, or one of a NIC's own. */
export function netdevUnder(
  device: string,
  port: number,
  sysfs = '/sys/class/infiniband',
): string | undefined {
  const parent = read(`${sysfs}/${device}/parent`);
  if (parent !== undefined) return parent;
  const folder = `${sysfs}/${device}/device/net`;
  let names: string[];
  try {
    names = readdirSync(folder).sort();
  } catch {
    return undefined;
  }
  return names.find((name) => Number(read(`${folder}/${name}/dev_port`)) === port - 1) ?? names[0];
}

/** The addresses of this network namespace's interfaces that are up; undefined where a sandbox does not let one ask. */
export function ownAddresses(): ReadonlySet<string> | undefined {
  let interfaces: ReturnType<typeof os.networkInterfaces>;
  try {
    interfaces = os.networkInterfaces();
  } catch {
    return undefined;
  }
  return new Set(
    Object.values(interfaces).flatMap((addresses) => addresses?.map(({ address }) => address) ?? []),
  );
}
