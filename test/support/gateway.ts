// A server with scripted upstreams behind one of its models, and a reader of the streams its clients receive.

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Config } from '#config/schema.ts';
import {
  type ScriptedUpstream,
  type ScriptedUpstreamOptions,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { startTestServer, type TestOptions, type TestServer } from './server.ts';

export const gatewayModel = 'hermes3-8b';

type ModelSettings = Partial<Config['models']['catalog'][string]>;
type BackendSettings = NonNullable<ModelSettings['backends']>[number];

export interface GatewayOptions {
  /** One per upstream. The upstreams are named `a`, `b` and so on. */
  upstreams: ScriptedUpstreamOptions[];
  backend?: Partial<BackendSettings>;
  model?: ModelSettings;
  inference?: Partial<Config['inference']>;
  health?: Partial<Config['models']['health']>;
  server?: TestOptions;
}

export interface Gateway {
  server: TestServer;
  upstreams: ScriptedUpstream[];
  /** Sends a chat request, streamed if the body says so. */
  chat(body?: object, init?: RequestInit): Promise<Response>;
  metrics(): Promise<string>;
}

export async function startGateway(test: TestContext, options: GatewayOptions): Promise<Gateway> {
  const upstreams = await Promise.all(options.upstreams.map(startScriptedUpstream));
  test.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
  const backends = upstreams.map(({ url }, at) => ({
    name: 'abcdefgh'[at] ?? '',
    url,
    model: 'scripted',
    server: 'vllm',
    ...options.backend,
  }));
  const catalog = { [gatewayModel]: { ...options.model, backends } };
  const server = await startTestServer({
    ...options.server,
    config: {
      ...options.server?.config,
      models: { catalog, health: { probe_seconds: 3600, ...options.health } } as object,
      inference: options.inference ?? {},
    },
  });
  test.after(() => server.stop());
  return {
    server,
    upstreams,
    chat: (body = {}, init = {}) =>
      server.fetch('/v1/chat/completions', {
        ...init,
        json: { model: gatewayModel, messages: [{ role: 'user', content: 'Go' }], ...body },
      }),
    metrics: async () => (await server.fetch('/metrics')).text(),
  };
}

export interface SeenStream {
  events: Record<string, unknown>[];
  text: string;
  finish: string | null;
  usage: { prompt_tokens: number; completion_tokens: number } | null;
}

interface SeenChoice {
  delta?: { role?: string; content?: string };
  text?: string;
  finish_reason: string | null;
}

/** Reads a stream, which must end with `[DONE]`. */
export async function readEvents(response: Response): Promise<SeenStream> {
  assert.equal(response.status, 200);
  const blocks = (await response.text()).split('\n\n').filter((block) => block !== '');
  assert.equal(blocks.at(-1), 'data: [DONE]');
  const events = blocks.slice(0, -1).map((block) => JSON.parse(block.slice('data: '.length)));
  const choices = events.flatMap(({ choices }) => choices as SeenChoice[]);
  const ends = choices.filter(({ finish_reason }) => finish_reason !== null);
  assert(ends.length <= 1, 'a finish reason was sent more than once');
  return {
    events,
    text: choices.map(({ delta, text }) => delta?.content ?? text ?? '').join(''),
    finish: ends[0]?.finish_reason ?? null,
    usage: events.at(-1)?.usage ?? null,
  };
}
