// Asks every upstream now and then whether it is there, and learns from the answer how much context it
// holds. Never two questions to one at once, and not all of them at the same moment.

import { EngineError } from '#inference/engine.ts';
import type { Clock } from '#lib/clock.ts';
import type { ManagedBackend } from './managed.ts';
import { type ProbeUpstream, toUpstreamOptions, type UpstreamSpec } from './spec.ts';

export interface Prober {
  /** Starts what is due, and resolves when that has ended. To be called about once a second. */
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
const atOnce = 16;

export function createProber(clock: Clock, options: ProberOptions): Prober {
  const { backends, probe, everyMs, random = Math.random } = options;
  const dueAt = new WeakMap<ManagedBackend, number>();
  const asked = new Set<ManagedBackend>();
  const stopped = new AbortController();

  async function ask(backend: ManagedBackend, spec: UpstreamSpec): Promise<void> {
    asked.add(backend);
    const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const { contextWindow } = await probe(toUpstreamOptions(spec), signal);
      backend.contextWindow = contextWindow ?? backend.contextWindow;
      backend.health.answered();
    } catch (error) {
      if (stopped.signal.aborted) return;
      if (isThere(error)) backend.health.answered();
      else backend.health.failed(toReason(error, signal));
    } finally {
      asked.delete(backend);
    }
    backend.checkedAt = clock.now();
  }

  return {
    async tick() {
      if (stopped.signal.aborted) return;
      const now = clock.now();
      const started: Promise<void>[] = [];
      for (const backend of backends()) {
        if (backend.spec === null || asked.has(backend) || asked.size >= atOnce) continue;
        const due = dueAt.get(backend) ?? now + random() * everyMs();
        dueAt.set(backend, due);
        if (due > now) continue;
        dueAt.set(backend, now + everyMs());
        started.push(ask(backend, backend.spec));
      }
      await Promise.all(started);
    },
    stop: () => stopped.abort(),
  };
}

/** It refused the question, as servers without a list of models do, but somebody was there to refuse. */
const isThere = (error: unknown) => error instanceof EngineError && error.failure !== 'unavailable';

const toReason = (error: unknown, signal: AbortSignal) =>
  signal.aborted
    ? `no answer to a probe in ${timeoutMs / 1000} seconds`
    : `a probe failed: ${(error as Error).message}`;
