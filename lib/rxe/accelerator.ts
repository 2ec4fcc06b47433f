/**
 * Whether KVM can be used. That /dev/kvm is there proves nothing: where this machine is itself a virtual one, QEMU may
 * start with it and then abort, or hang for ever while the kernel boots. So a machine is booted once as a probe, and the
 * answer kept.
 */
import { access, constants, readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { AgentClient } from './agent/client.js';
import { cachePath, writeCacheFile } from './cache.js';
import { RxeError } from './errors.js';
import type { Accelerator } from './options.js';
import type { SupervisedProcess } from './supervisor.js';

const device = '/dev/kvm';
const answerFile = 'kvm.json';
/** Milliseconds for the agent's first word; with KVM it takes about one second. */
const deadline = 20_000;

/** What a probe's answer holds for. */
interface Answer {
  hostKernel: string;
  qemu: string;
  works: boolean;
}

export async function chooseAccelerator(
  wanted: Accelerator,
  qemu: string,
  boot: () => Promise<SupervisedProcess>,
  onProgress?: (text: string) => void,
): Promise<'kvm' | 'tcg'> {
  if (wanted === 'tcg') return 'tcg';
  const obstacle = await access(device, constants.R_OK | constants.W_OK).catch((error: unknown) => error);
  if (obstacle) {
    if (wanted === 'auto') return 'tcg';
    const { code } = obstacle as NodeJS.ErrnoException;
    throw new RxeError(
      'ERR_RXE_NO_ACCEL',
      `--accel kvm: ${device} cannot be used (${code}); use --accel tcg`,
    );
  }
  const known = await readAnswer();
  const sameHost = known?.hostKernel === release() && known.qemu === qemu;
  const works = sameHost ? known.works : await probe(boot, onProgress);
  if (!sameHost) await writeCacheFile(answerFile, JSON.stringify({ hostKernel: release(), qemu, works }));
  if (works) return 'kvm';
  if (wanted === 'auto') return 'tcg';
  throw new RxeError(
    'ERR_RXE_NO_ACCEL',
    `--accel kvm: ${device} is there, and a kernel does not boot with it; use --accel tcg (to try anew, remove ${cachePath(answerFile)})`,
  );
}

async function readAnswer(): Promise<Answer | undefined> {
  const text = await readFile(cachePath(answerFile), 'utf8').catch(() => undefined);
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Answer);
  } catch {
    return undefined;
  }
}

async function probe(
  boot: () => Promise<SupervisedProcess>,
  onProgress?: (text: string) => void,
): Promise<boolean> {
  onProgress?.('trying whether KVM works here (once)');
  const machine = await boot();
  const agent = new AgentClient(machine.channel);
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), deadline)));
  const alive = agent.hello.then(
    () => true,
    () => false,
  );
  const ended = machine.ended.then(
    () => false,
    () => false,
  );
  const works = await Promise.race([alive, ended, silence]);
  clearTimeout(timer);
  await machine.kill();
  return works;
}
