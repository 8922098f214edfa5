// Probes every upstream at an interval: whether it responds, and how large its context window is. Each upstream has at
// most one probe at a time, and the probes are spread over the interval.

import { EngineError } from '#inference/engine.ts';
import type { Clock } from '#lib/clock.ts';
import type { ManagedBackend } from './managed.ts';
import { type ProbeUpstream, toUpstreamOptions, type UpstreamSpec } from './spec.ts';

export interface Prober {
  /** Runs the probes that are due and resolves when they have ended. Must be called about once a second. */
  tick(): Promise<void>;
  stop(): void;
}

export interface ProberOptions {
  backends(): readonly ManagedBackend[];
  probe: ProbeUpstream;
  everyMs(): number;
  random?(): number;
}

const timeoutMs = 5_000;
const maxConcurrent = 16;

export function createProber(clock: Clock, options: ProberOptions): Prober {
  const { backends, probe, everyMs, random = Math.random } = options;
  const dueAt = new WeakMap<ManagedBackend, number>();
  const probing = new Set<ManagedBackend>();
  const stopped = new AbortController();

  async function probeOne(backend: ManagedBackend, spec: UpstreamSpec): Promise<void> {
    probing.add(backend);
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const { contextWindow } = await probe(toUpstreamOptions(spec), signal);
      backend.contextWindow = contextWindow ?? backend.contextWindow;
      backend.health.responded();
    } catch (error) {
      if (stopped.signal.aborted) return;
      const { health } = backend;
      if (isResponse(error) || (isDoubtful(error) && health.isServing())) health.responded();
      else health.failed(toReason(error, signal));
    } finally {
      probing.delete(backend);
    }
    backend.checkedAt = clock.now();
  }

  return {
    async tick() {
      if (stopped.signal.aborted) return;
      const now = clock.now();
      const started: Promise<void>[] = [];
      for (const backend of backends()) {
        if (backend.spec === null || probing.has(backend) || probing.size >= maxConcurrent)
          continue;
        const due = dueAt.get(backend) ?? now + random() * everyMs();
        dueAt.set(backend, due);
        if (due > now) continue;
        dueAt.set(backend, now + everyMs());
        started.push(probeOne(backend, backend.spec));
      }
      await Promise.all(started);
    },
    stop: () => stopped.abort(),
  };
}

/** True if the upstream refused the request, as servers without a list of models do: it did respond. */
const isResponse = (error: unknown) =>
  error instanceof EngineError && error.failure !== 'unavailable';

/** True if only the list of models may be broken. Requests that succeed prove that the rest is not. */
const isDoubtful = (error: unknown) => error instanceof EngineError && error.isDoubtful;

const toReason = (error: unknown, signal: AbortSignal) =>
  signal.aborted
    ? `Health check failed: no response within ${timeoutMs / 1000} seconds.`
    : `Health check failed: ${(error as Error).message}`;
