// The description of an upstream, from the configuration or added live, before there is an engine for it.

import type { Engine } from '#inference/engine.ts';
import { continuingServers, type UpstreamServer } from '#inference/engines/upstream/servers.ts';
import type {
  UpstreamOptions as EngineOptions,
  UpstreamReport,
} from '#inference/engines/upstream/upstream.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';

export interface UpstreamSpec {
  readonly source: 'file' | 'live' | 'deployment';
  /** Id of the model it serves. */
  readonly model: string;
  readonly name: string;
  readonly url: string;
  readonly apiKey: string | null;
  /** The upstream's name of the model. */
  readonly upstreamModel: string;
  readonly server: UpstreamServer;
  readonly headers: Readonly<Record<string, string>>;
  readonly weight: number;
  readonly concurrency: number | null;
  readonly timeouts: UpstreamOptions['timeouts'];
  /** Null: the model's setting, or what the kind of server supports. */
  readonly continueStreams: boolean | null;
}

/** Options of an engine, without its token counter. */
export type UpstreamOptions = Omit<EngineOptions, 'countGenerated'>;

export type OpenUpstream = (options: UpstreamOptions, entry: CatalogEntry) => Engine;

/** Requests the upstream's list of models. Throws EngineError. */
export type ProbeUpstream = (
  options: UpstreamOptions,
  signal: AbortSignal,
) => Promise<UpstreamReport>;

/** The number of connections is not limited, because the router limits concurrent requests. */
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

export const canContinue = (spec: UpstreamSpec, entry: CatalogEntry): boolean =>
  spec.continueStreams ?? entry.continueStreams ?? continuingServers.includes(spec.server);
