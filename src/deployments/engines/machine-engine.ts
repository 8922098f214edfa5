// An engine on a machine of the cloud. Its row outlives this process: a server that starts again adopts the machine. The
// engine is reached by a tunnel, and its output is the machine's boot log.

import { once } from 'node:events';
import type { FastifyBaseLogger } from 'fastify';
import type { EngineMachines } from '#cloud/instances/engine-machines.ts';
import { type ReplicaRows, TakenOver } from '#deployments/ground/replica-rows.ts';
import type { Clock } from '#lib/clock.ts';
import { type Engine, type EngineStats, type Failure, toFailure } from './engine.ts';
import { enginePort, findEnding, haltCommand, reviveCommand } from './engine-script.ts';
import { createLogTail } from './log-tail.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';

export interface MachineEngineParts {
  readonly clock: Clock;
  readonly log: Pick<FastifyBaseLogger, 'warn'>;
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

/** For a machine that was launched, by this process or by an earlier one. */
export async function openMachineEngine(
  parts: MachineEngineParts,
  target: MachineTarget,
): Promise<Engine> {
  const tunnel = await openTunnel(() => engine.connect());
  const engine = new MachineEngine(parts, target, tunnel);
  engine.start();
  return engine;
}

/** Terminates the machine and forgets the replica. */
export const releaseMachine = (
  { machines, replicaRows }: MachineEngineParts,
  accountId: string,
  id: string,
): Promise<void> => machines.release(accountId, id, (tx) => replicaRows.remove(tx, id));

/** It watches its machine from `start` until it has ended, or is stopped or left. */
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
  /** The last look has failed. */
  #hasFailed = false;
  #watching: Promise<void> = Promise.resolve();
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
  }

  start(): void {
    this.#watching = this.#watch();
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
    const { log, replicaRows } = this.#parts;
    const { id } = this.#target;
    replicaRows
      .setReady(id, at)
      .catch((err) => log.warn({ err, replica: id }, 'a replica was not noted as ready'));
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
    if (this.#hasListened) this.#readLog().catch(this.#noteFailure);
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
    await Promise.all([this.#watching, this.#stopped]);
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
    // A host that does not answer must not hold up the end.
    const over = once(this.#over.signal, 'abort');
    let isRowDue = true;
    for (let look = 1; !this.#over.signal.aborted; look++) {
      await Promise.race([this.#tryLook(isRowDue), over]);
      const isRefused = this.#hasListened && this.#refusals > 0;
      const pastMs = this.#wait(isRefused ? refusedEveryMs : lookEveryMs);
      const woken = await Promise.race([changed.promise, pastMs]);
      if (woken !== undefined) changed = Promise.withResolvers();
      isRowDue = woken === true || !this.#isActive || look % looksPerRow === 0;
    }
    unwatch();
  }

  /** Never rejects. A failure of the database or the host passes: the next look sees what is. */
  async #tryLook(isRowDue: boolean): Promise<void> {
    try {
      await this.#look(isRowDue);
      this.#hasFailed = false;
    } catch (error) {
      this.#noteFailure(error);
    }
  }

  /** Logs the first of several failures in a row, unless the engine is over. */
  #noteFailure = (err: unknown): void => {
    const { log } = this.#parts;
    const isKnown = this.#hasFailed || this.#over.signal.aborted;
    if (!isKnown) log.warn({ err, replica: this.#target.id }, "a replica's machine was not seen");
    this.#hasFailed = true;
  };

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
    const { clock, log, machines } = this.#parts;
    this.#tunnel.close();
    for (let waitMs = 500; !this.#isLeaving; waitMs = Math.min(maxRetryMs, waitMs * 2)) {
      try {
        await releaseMachine(this.#parts, accountId, id);
        break;
      } catch (error) {
        if (error instanceof TakenOver) return;
        log.warn({ err: error, replica: id }, "a replica's machine was not released yet");
        await clock.sleep(waitMs);
      }
    }
    for (let waitedMs = 0; waitedMs < maxGoneMs && !this.#isLeaving; waitedMs += goneEveryMs) {
      const isGone = await machines.find(id).then(
        (state) => state === undefined || state.status === 'terminated',
        () => false,
      );
      if (isGone) return;
      await clock.sleep(goneEveryMs);
    }
  }

  /** Ends early when the engine is over. */
  #wait = (ms: number) =>
    this.#parts.clock.sleep(ms, { signal: this.#over.signal }).catch(() => {});
}
