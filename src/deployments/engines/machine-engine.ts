// An engine on a machine of the cloud. Its row outlives this process: a server that starts again adopts the machine. The
// engine is reached by a tunnel, and its output is the machine's boot log.

import { randomBytes } from 'node:crypto';
import { CloudError } from '#cloud/errors.ts';
import type { EngineMachines } from '#cloud/instances/engine-machines.ts';
import { type ReplicaRows, TakenOver } from '#deployments/replica-rows.ts';
import type { Clock } from '#lib/clock.ts';
import {
  type Engine,
  type EngineOrder,
  type EngineStats,
  type Failure,
  type StartWatch,
  toFailure,
} from './engine.ts';
import {
  enginePort,
  findEnding,
  haltCommand,
  reviveCommand,
  toEngineScript,
} from './engine-script.ts';
import { createLogTail } from './log-tail.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';

export interface MachineEngineParts {
  readonly clock: Clock;
  readonly machines: EngineMachines;
  readonly replicaRows: ReplicaRows;
}

interface MachineTarget {
  readonly id: string;
  readonly accountId: string;
  readonly key: string;
}

/** How often the boot log is read while the engine starts, and its port tried afterwards. */
const lookEveryMs = 1_000;
/** The row is read at every look until the machine is active, then at changes by this server, and at every so many looks. */
const looksPerRow = 5;
/** Failed connections in a row after which an engine that listened has ended. They are tried at shorter intervals. */
const maxRefusals = 3;
const refusedEveryMs = 250;
/** How long a terminated machine may take to free what it used, before another is launched. */
const maxGoneMs = 30_000;
const goneEveryMs = 250;
const maxRetryMs = 30_000;
/** Intervals between launches while no machine is free: the first one, doubled up to the second. */
const minCapacityMs = 500;
const maxCapacityMs = 5_000;

/**
 * Waits while no machine of the type is free. `weights` is what the machine must see of this computer. Rejects with the
 * reason if the cloud refuses the launch.
 */
export async function launchMachineEngine(
  parts: MachineEngineParts,
  order: EngineOrder,
  weights: string | null,
  watch: StartWatch,
): Promise<Engine> {
  const { id, deployment, spec } = order;
  const key = randomBytes(24).toString('hex');
  for (let waitMs = minCapacityMs; ; waitMs = Math.min(maxCapacityMs, waitMs * 2)) {
    if (await tryLaunch(parts, order, weights, key)) break;
    watch.report(`waiting for a free ${spec.runs_on}`, { isWaiting: true });
    await parts.clock.sleep(waitMs, { signal: watch.signal });
  }
  watch.report('launching the machine');
  return openMachineEngine(parts, { id, accountId: deployment.accountId, key });
}

/** Returns false if no machine is free. */
async function tryLaunch(
  parts: MachineEngineParts,
  order: EngineOrder,
  weights: string | null,
  key: string,
): Promise<boolean> {
  const { id, deployment, spec } = order;
  const { clock, machines, replicaRows } = parts;
  const startedAt = clock.now();
  try {
    return await machines.launch(
      {
        id,
        accountId: deployment.accountId,
        deploymentId: deployment.id,
        deploymentName: deployment.name,
        instanceType: spec.runs_on,
        image: spec.image,
        userData: replicaRows.seal(toEngineScript(spec, key), id),
        weights,
      },
      (tx) => replicaRows.insert(tx, order, { key, startedAt }),
    );
  } catch (error) {
    // The database may have written it before the connection broke.
    if (!(error instanceof CloudError))
      await releaseMachine(parts, deployment.accountId, id).catch(() => {});
    throw error;
  }
}

/** For a machine that was launched, by this process or by an earlier one. */
export async function openMachineEngine(
  parts: MachineEngineParts,
  target: MachineTarget,
): Promise<Engine> {
  const tunnel = await openTunnel(() => engine.connect());
  const engine = new MachineEngine(parts, target, tunnel);
  return engine;
}

/** Terminates the machine and forgets the replica. */
export const releaseMachine = (
  { machines, replicaRows }: MachineEngineParts,
  accountId: string,
  id: string,
): Promise<void> => machines.release(accountId, id, (tx) => replicaRows.remove(tx, id));

class MachineEngine implements Engine {
  readonly port: number;
  readonly key: string;
  readonly ended: Promise<Failure | null>;
  readonly #parts: MachineEngineParts;
  readonly #target: MachineTarget;
  readonly #tunnel: Tunnel;
  readonly #over = new AbortController();
  #resolve: (ended: Failure | null) => void = () => {};
  #hostId: string | null = null;
  #isActive = false;
  /** What is done before the machine can be launched; null if nothing is. */
  #preparation: string | null = null;
  #lines: readonly string[] = [];
  #hasListened = false;
  #refusals = 0;
  /** Lets the next look begin at once. */
  #wake: () => void = () => {};
  /** True while the engine must not run, though its machine does. */
  #isHalted = false;
  #isLeaving = false;
  #stopped: Promise<void> | null = null;

  constructor(parts: MachineEngineParts, target: MachineTarget, tunnel: Tunnel) {
    this.#parts = parts;
    this.#target = target;
    this.#tunnel = tunnel;
    this.port = tunnel.port;
    this.key = target.key;
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    void this.#watch();
  }

  get phase(): string {
    return this.#preparation ?? (this.#isActive ? 'starting' : 'launching the machine');
  }

  get isPreparing(): boolean {
    return this.#preparation !== null;
  }

  async connect() {
    const { id } = this.#target;
    const { machines } = this.#parts;
    const hostId = await this.#findHost();
    try {
      return await machines.connect(hostId, id, enginePort);
    } catch (error) {
      // Requests wait to hear whether the engine has ended.
      if (this.#hasListened && this.#refusals === 0) this.#wake();
      throw error;
    }
  }

  setReady(at: number): void {
    // Without it, a server that adopts the machine would count it as loading until then.
    this.#parts.replicaRows.setReady(this.#target.id, at).catch(() => {});
  }

  setResting: NonNullable<Engine['setResting']> = ({ step, idleSince }) =>
    this.#parts.replicaRows.setResting(this.#target.id, step, idleSince);

  async halt(): Promise<void> {
    this.#isHalted = true;
    await this.#command(haltCommand, 'The engine could not be stopped.');
  }

  async revive(): Promise<void> {
    await this.#command(reviveCommand, 'The engine could not be started again.');
    this.#hasListened = false;
    this.#refusals = 0;
    this.#isHalted = false;
  }

  async #command(command: readonly string[], failure: string): Promise<void> {
    const { machines } = this.#parts;
    const { id } = this.#target;
    const code = await machines.run(await this.#findHost(), id, command);
    if (code !== 0) throw new Error(failure);
  }

  /** Empty if there is no such machine. */
  async #findHost(): Promise<string> {
    this.#hostId ??= (await this.#parts.machines.find(this.#target.id))?.hostId ?? null;
    return this.#hostId ?? '';
  }

  log(): readonly string[] {
    if (this.#hasListened) void this.#readLog().catch(() => {});
    return this.#lines;
  }

  async stats(): Promise<EngineStats> {
    const { machines } = this.#parts;
    const state = await machines.find(this.#target.id);
    if (state === undefined) throw new Error('The machine is gone.');
    const { memoryBytes, gpus } = await machines.measure(state.hostId, state.id);
    return { memoryBytes, gpus, totalBytes: state.memoryGib * 2 ** 30 };
  }

  stop(): Promise<void> {
    this.#end(null);
    this.#stopped ??= this.#release();
    return this.#stopped;
  }

  async leave(): Promise<void> {
    this.#isLeaving = true;
    this.#end(null);
    await this.#stopped;
  }

  #end(failure: Failure | null): void {
    this.#over.abort();
    this.#resolve(failure);
    // What is on its way from an engine that ended by itself still arrives.
    if (failure === null) this.#tunnel.close();
  }

  async #watch(): Promise<void> {
    const { machines } = this.#parts;
    const { id, accountId } = this.#target;
    let changed = Promise.withResolvers<boolean>();
    const unwatch = machines.watch(accountId, id, () => changed.resolve(true));
    this.#wake = () => changed.resolve(false);
    let isRowDue = true;
    for (let look = 1; !this.#over.signal.aborted; look++) {
      // A failure of the database or the host passes. The next look sees what is.
      await this.#look(isRowDue).catch(() => {});
      const isRefused = this.#hasListened && this.#refusals > 0;
      const pastMs = this.#wait(isRefused ? refusedEveryMs : lookEveryMs);
      const woken = await Promise.race([changed.promise, pastMs]);
      if (woken !== undefined) changed = Promise.withResolvers();
      isRowDue = woken === true || !this.#isActive || look % looksPerRow === 0;
    }
    unwatch();
  }

  async #look(isRowDue: boolean): Promise<void> {
    if (isRowDue) await this.#readRow();
    if (this.#over.signal.aborted || this.#hostId === null || this.#isHalted) return;
    const wasListening = this.#hasListened;
    if (this.#parts.machines.reaches(this.#hostId)) await this.#tryPort();
    if (wasListening && this.#refusals === 0) return;
    await this.#readLog();
    if (this.#isHalted || (this.#hasListened && this.#refusals === 0)) return;
    const ending = findEnding(this.#lines);
    if (ending !== undefined) this.#end(toFailure(ending));
    else if (this.#hasListened && this.#refusals >= maxRefusals)
      this.#end(toFailure('The engine no longer listens.'));
  }

  async #readRow(): Promise<void> {
    const state = await this.#parts.machines.find(this.#target.id);
    this.#hostId = state?.hostId ?? null;
    this.#isActive = state?.status === 'active';
    this.#preparation = state?.status === 'booting' ? state.statusReason : null;
    // A person terminated it: no failure, but the end of this replica.
    if (state === undefined || state.status === 'terminating' || state.status === 'terminated')
      this.#end(null);
    if (state?.status === 'unhealthy')
      this.#end(toFailure('The machine is unhealthy.', state.statusReason ?? ''));
  }

  async #tryPort(): Promise<void> {
    try {
      const connection = await this.connect();
      connection.on('error', () => {}).destroy();
      this.#hasListened = true;
      this.#refusals = 0;
    } catch {
      this.#refusals += 1;
    }
  }

  async #readLog(): Promise<void> {
    const log = await this.#parts.machines.bootLog(this.#hostId ?? '', this.#target.id);
    if (log === undefined) return;
    const tail = createLogTail();
    tail.write(Buffer.from(log));
    this.#lines = tail.lines();
  }

  /** Tries until it is written that the machine must end. Then waits until it has ended, but not for a dead host. */
  async #release(): Promise<void> {
    const { id, accountId } = this.#target;
    const { clock } = this.#parts;
    this.#tunnel.close();
    for (let waitMs = 500; !this.#isLeaving; waitMs = Math.min(maxRetryMs, waitMs * 2)) {
      try {
        await releaseMachine(this.#parts, accountId, id);
        break;
      } catch (error) {
        if (error instanceof TakenOver) return;
        await clock.sleep(waitMs);
      }
    }
    for (let waitedMs = 0; waitedMs < maxGoneMs && !this.#isLeaving; waitedMs += goneEveryMs) {
      const state = await this.#parts.machines.find(id).catch(() => undefined);
      if (state === undefined || state.status === 'terminated') return;
      await clock.sleep(goneEveryMs);
    }
  }

  /** Ends early when the engine is over. */
  #wait = (ms: number) =>
    this.#parts.clock.sleep(ms, { signal: this.#over.signal }).catch(() => {});
}
