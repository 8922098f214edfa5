// An upstream engine pointed at a server, with limits short enough for tests.

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
import { UsageCheck } from '#inference/engines/upstream/usage-check.ts';

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
  timeouts: { connectMs: 2000, firstByteMs: 20_000, idleMs: 20_000 },
  ...overrides,
});

/** Believes every count. */
export const newTrust = () => {
  const any = Number.POSITIVE_INFINITY;
  const bounds = { promptTokens: any, completionTokens: any, unseenTokens: any };
  return new UsageCheck(bounds, undefined);
};

/** A scripted upstream and an engine before it, both closed after the test. */
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
