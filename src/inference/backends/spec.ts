// One upstream as somebody described it, in the file or live, before there is an engine for it.

import type { Engine } from '#inference/engine.ts';
import type {
  UpstreamOptions as EngineOptions,
  UpstreamReport,
} from '#inference/engines/upstream/upstream.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';

export type UpstreamServer = EngineOptions['server'];

export interface UpstreamSpec {
  readonly source: 'file' | 'live';
  /** The id it serves. */
  readonly model: string;
  readonly name: string;
  readonly url: string;
  readonly apiKey: string | null;
  /** What the upstream calls the model. */
  readonly upstreamModel: string;
  readonly server: UpstreamServer;
  readonly headers: Readonly<Record<string, string>>;
  readonly weight: number;
  readonly concurrency: number | null;
  readonly timeouts: UpstreamOptions['timeouts'];
  /** Null: as its model has it, or as its kind of server can. */
  readonly continueStreams: boolean | null;
}

/** What an engine is made of, but for what it counts with. */
export type UpstreamOptions = Omit<EngineOptions, 'countGenerated'>;

export type OpenUpstream = (options: UpstreamOptions, entry: CatalogEntry) => Engine;

/** Asks the upstream what it offers. Throws EngineError. */
export type ProbeUpstream = (
  options: UpstreamOptions,
  signal: AbortSignal,
) => Promise<UpstreamReport>;

/** Requests at once are bounded by whoever sends them, so the connections need not be. */
export const toUpstreamOptions = (spec: UpstreamSpec): UpstreamOptions => ({
  name: spec.name,
  url: spec.url.replace(/\/+$/, ''),
  apiKey: spec.apiKey,
  model: spec.upstreamModel,
  headers: { ...spec.headers },
  server: spec.server,
  connections: null,
  timeouts: spec.timeouts,
});

/** Those that take the beginning of an answer as the last message and go on from it. */
const continuing: readonly UpstreamServer[] = ['vllm', 'sglang', 'llama-server'];

export const canContinue = (spec: UpstreamSpec, entry: CatalogEntry): boolean =>
  spec.continueStreams ?? entry.continueStreams ?? continuing.includes(spec.server);
