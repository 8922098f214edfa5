// An upstream engine in front of a scripted server. Tests of timeouts override the generous ones here.

import type { TestContext } from 'node:test';
import type { Engine } from '#inference/engine.ts';
import {
  type ScriptedUpstream,
  type ScriptedUpstreamOptions,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import {
  createUpstreamEngine,
  type UpstreamOptions,
} from '#inference/engines/upstream/upstream.ts';
import { UsageCheck } from '#inference/engines/upstream/usage.ts';

export const upstreamOptions = (
  url: string,
  overrides: Partial<UpstreamOptions> = {},
): UpstreamOptions => ({
  name: 'upstream',
  url,
  apiKey: null,
  model: 'scripted',
  headers: {},
  server: 'vllm',
  connections: null,
  timeouts: { connectMs: 30_000, firstByteMs: 60_000, idleMs: 60_000 },
  ...overrides,
});

/** A check that accepts every token count. */
export const newTrust = () => {
  const any = Number.POSITIVE_INFINITY;
  const bounds = { promptTokens: any, completionTokens: any, unseenTokens: any };
  return new UsageCheck(bounds, undefined);
};

/** Starts a scripted upstream and an engine in front of it. Both are closed after the test. */
export async function createPair(
  test: TestContext,
  script: ScriptedUpstreamOptions = {},
  overrides: Partial<UpstreamOptions> = {},
): Promise<{ upstream: ScriptedUpstream; engine: Engine }> {
  const upstream = await startScriptedUpstream(script);
  const engine = createUpstreamEngine(upstreamOptions(upstream.url, overrides));
  test.after(async () => {
    await engine.close();
    await upstream.close();
  });
  return { upstream, engine };
}
