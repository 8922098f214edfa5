// Callers of the inference API for tests of its limits: keys with limits, short and endless requests, and
// many of them at once.

import assert from 'node:assert';
import { after } from 'node:test';
import type { Limits } from '#accounts/schema.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { estimateReservation } from '#inference/serving/admit.ts';
import type { SessionFetch, TestServer } from '#test/support/server.ts';

export const model = 'llama3.1-8b-instruct';

/** One token of answer. */
export const brief = { model, prompt: 'Once upon a time', max_tokens: 1, temperature: 0 };
/** Runs until its caller leaves. */
export const endless = { ...brief, max_tokens: 100_000, ignore_eos: true, stream: true };

const upstreams: ScriptedUpstream[] = [];
after(() => Promise.all(upstreams.map((upstream) => upstream.close())));

/**
 * The part of a configuration that gives the model a backend, since the stand-in is free. Its streams take
 * 50 seconds, longer than any caller stays.
 */
export async function startPricedModel() {
  const upstream = await startScriptedUpstream({ words: 1000, eventDelayMs: 50 });
  upstreams.push(upstream);
  const backends = [{ name: 'scripted', url: upstream.url, model: 'scripted', server: 'vllm' }];
  return { catalog: { [model]: { backends } }, health: { probe_seconds: 3600 } } as object;
}

export interface KeyView {
  id: string;
  key: string;
  label: string;
  limits: Required<Limits>;
  spend: { month: string; cost: number; tokens: number; requests: number };
}

export interface Failure {
  message: string;
  type: string;
  param: string | null;
  code: string;
}

export const readError = async (response: Response) =>
  ((await response.json()) as { error: Failure }).error;

export async function newKey(session: SessionFetch, limits: Limits, label = 'limited') {
  const response = await session('/dashboard/api/api-keys', { json: { label, limits } });
  assert.equal(response.status, 200);
  return (await response.json()) as KeyView;
}

export async function listKeys(session: SessionFetch): Promise<KeyView[]> {
  const response = await session('/dashboard/api/api-keys');
  return ((await response.json()) as { data: KeyView[] }).data;
}

export const complete = (
  server: TestServer,
  { key }: Pick<KeyView, 'key'>,
  body: object,
  signal?: AbortSignal,
) =>
  server.fetch('/v1/completions', {
    json: body,
    headers: { authorization: `Bearer ${key}` },
    ...(signal === undefined ? {} : { signal }),
  });

/** What a request may cost at most, in nano-dollars: what a budget holds for it. */
export function worstCost(body: typeof brief): number {
  const entry = createCatalog().find(model);
  assert(entry !== undefined);
  const bytes = Buffer.byteLength(JSON.stringify(body));
  return estimateReservation({ kind: 'completion', body }, bytes, [entry]).costNano;
}

/** Asks 200 times at once, in turn at each server, and ends the admitted requests when all have their answer. */
export async function storm(
  servers: TestServer[],
  key: Pick<KeyView, 'key'>,
  body: object,
): Promise<{ granted: Response[]; refused: Failure[] }> {
  const leave = new AbortController();
  const responses = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      complete(servers[index % servers.length] as TestServer, key, body, leave.signal),
    ),
  );
  const granted = responses.filter(({ status }) => status === 200);
  const refused = await Promise.all(
    responses.filter(({ status }) => status === 429).map(readError),
  );
  assert.equal(granted.length + refused.length, 200);
  leave.abort();
  await Promise.allSettled(granted.map((response) => response.text()));
  return { granted, refused };
}
