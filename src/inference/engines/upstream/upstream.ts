// The engine for any server that speaks OpenAI's API: vLLM, SGLang, llama-server, Ollama, another Millrace, a hosted
// service. Requests and responses are forwarded unchanged, except for the envelope.

import { byteLengthOf, type OutgoingBody } from '#http/client/client-connection.ts';
import type { Cancellation } from '#http/client-disconnect.ts';
import { findConstraint } from '#inference/constraint.ts';
import { type Call, type Engine, EngineError, type Task } from '#inference/engine.ts';
import { fetchWhole } from '#inference/engines/upstream/plain/buffered-response.ts';
import { parseResponse } from '#inference/engines/upstream/plain/parse-response.ts';
import type { ResponseThread } from '#inference/engines/upstream/plain/response-thread.ts';
import { EventTemplates } from '#inference/engines/upstream/stream/event-template.ts';
import {
  type EventQueue,
  StreamReceiver,
} from '#inference/engines/upstream/stream/stream-receiver.ts';
import { withSystemNotes } from '#inference/system-notes.ts';
import { cannotEnforce, toConstraintMembers } from './constraint-members.ts';
import { toFailure, unavailable } from './failures.ts';
import { createUpstreamPooling } from './pooling.ts';
import { paths, toRequestBody } from './request-body.ts';
import { countingServers, shortDefaultServers, type UpstreamServer } from './servers.ts';
import { countPromptTokens, countTextTokens, createTokenizer, readRoom } from './tokenize.ts';
import {
  createUpstreamClient,
  type SendOptions,
  type UpstreamClient,
  type UpstreamClientOptions,
} from './upstream-client.ts';
import {
  type CountText,
  createTokenCounts,
  type ImplausibleCounts,
  toCountBounds,
  UsageCheck,
} from './usage.ts';

export interface UpstreamOptions extends UpstreamClientOptions {
  /** Sent to clients as `x-served-by`. */
  readonly name: string;
  /** The server's name of the model. */
  readonly model: string;
  readonly server: UpstreamServer;
  /** Counts the tokens of a generated text if the server reports no usage. */
  readonly countGenerated?: CountText | undefined;
  /** Reads large plain responses. If absent, they are read on the event loop. */
  readonly responses?: ResponseThread | undefined;
  /** Called with token counts that can't be true, once per response. They are counted here instead. */
  readonly onImplausible?: ((counts: ImplausibleCounts) => void) | undefined;
}

export function createUpstreamEngine(options: UpstreamOptions): Engine {
  const { name, countGenerated } = options;
  const client = createUpstreamClient(options);
  const countText = (text: string) => countTextTokens(client, options, text);
  const canCount = countingServers.includes(options.server);
  const newCount = createTokenCounts(countGenerated, canCount ? countText : null);
  const templates = new EventTemplates();

  function newCheck(task: Task, { contextWindow }: Call, body: OutgoingBody): UsageCheck {
    const bounds = toCountBounds(task, contextWindow, byteLengthOf(body));
    return new UsageCheck(bounds, options.onImplausible);
  }

  function begin(task: Task, call: Call): Promise<EventQueue> {
    const body = toRequestBody(task, options, true);
    const counting = { generated: newCount(), check: newCheck(task, call, body) };
    const receiver = new StreamReceiver(task, call, counting, templates);
    const { signal, headers } = call;
    client.send({ method: 'POST', path: paths[task.kind], body, headers, signal }, receiver);
    return receiver.queue.started();
  }

  const hasShortDefault = shortDefaultServers.includes(options.server);
  const needsLimit = (task: Task): task is CompletionTask =>
    hasShortDefault && task.kind === 'completion' && task.body.max_tokens == null;

  async function withLimit({ kind, body }: CompletionTask, { signal }: Call): Promise<Task> {
    const room = await readRoom(client, options, body, signal).catch(() => null);
    signal.throwIfAborted();
    return { kind, body: { ...body, max_tokens: room } };
  }

  return withSystemNotes({
    name,
    stream(given, call) {
      if (call.signal.aborted) return Promise.reject(call.signal.reason);
      return needsLimit(given)
        ? withLimit(given, call).then((task) => begin(task, call))
        : begin(given, call);
    },
    async respond(given, call) {
      const task = needsLimit(given) ? await withLimit(given, call) : given;
      const body = toRequestBody(task, options, false);
      const { signal, headers } = call;
      const path = paths[task.kind];
      const check = newCheck(task, call, body);
      const request: SendOptions = { method: 'POST', path, body, headers, signal };
      const whole = await fetchWhole(client, request, call.onWork);
      if (whole.status !== 200) throw toFailure(whole.status, whole.headers, whole.text, task);
      const { server } = options;
      const counting = { server, countGenerated, check };
      const response =
        whole.blocks === null || options.responses === undefined
          ? await parseResponse(task, whole, counting)
          : await options.responses.read(task, whole, call, counting);
      call.onUsage?.(response.usage);
      return response;
    },
    refusalOf(task) {
      const constraint = findConstraint(task.body);
      if (constraint === null || toConstraintMembers(options.server, task, constraint)) return null;
      return cannotEnforce(constraint, options.server);
    },
    countPromptTokens: (task, signal) => countPromptTokens(client, options, task, signal),
    ...(canCount && { countText }),
    ...createUpstreamPooling(client, options),
    ...createTokenizer(client, options),
    close: client.close,
  });
}

type CompletionTask = Extract<Task, { kind: 'completion' }>;

export interface UpstreamReport {
  models: string[];
  /** Context window of the configured model; null if the server does not report it. */
  contextWindow: number | null;
  latencyMs: number;
}

/** Lists a server's models, as a health check. Throws EngineError, or the signal's reason. */
export async function probeUpstream(
  options: UpstreamOptions,
  signal: AbortSignal,
): Promise<UpstreamReport> {
  const client = createUpstreamClient({ ...options, connections: 1 });
  const startMs = performance.now();
  try {
    const { status, text } = await fetchWhole(client, { method: 'GET', path: '/models', signal });
    if (status === 401 || status === 403) throw unavailable('refused the configured credentials');
    // A hosted service may have no list. The probe succeeds, because the server responded.
    if (status === 404 || status === 405 || status === 501)
      throw new EngineError('rejected', 'The backend has no list of models at this address.');
    if (status !== 200)
      throw unavailable(`responded with status ${status}`, undefined, status === 500);
    if (options.server === 'sglang') await checkReady(client, signal);
    const rows = parseModels(text);
    const latencyMs = Math.round(performance.now() - startMs);
    const row = rows.find(({ id }) => id === options.model) ?? (rows.length === 1 ? rows[0] : null);
    const contextWindow =
      options.server === 'ollama'
        ? await windowOfOllama(client, options.model, signal)
        : windowOf(row ?? {});
    return { models: rows.map(({ id }) => id), contextWindow, latencyMs };
  } finally {
    await client.close();
  }
}

/** SGLang lists its models while it warms up or shuts down. Its `/ready` reports whether it serves. */
async function checkReady(client: UpstreamClient, signal: Cancellation): Promise<void> {
  const path = '/ready';
  const { status } = await fetchWhole(client, { method: 'GET', path, root: true, signal });
  // Older versions have no such path.
  if (status === 503) throw unavailable('is not ready');
}

interface ModelRow {
  id: string;
  [member: string]: unknown;
}

const maxModels = 10_000;

function parseModels(text: string): ModelRow[] {
  try {
    const { data } = JSON.parse(text) as { data: unknown };
    if (Array.isArray(data))
      return data.slice(0, maxModels).filter((row): row is ModelRow => typeof row?.id === 'string');
  } catch {}
  throw new EngineError('unavailable', 'The backend did not list its models.');
}

/** vLLM and SGLang call it `max_model_len`, llama-server `n_ctx`, hosted services one of the others. */
function windowOf(row: Record<string, unknown>): number | null {
  const { n_ctx } = (row.meta ?? {}) as { n_ctx?: unknown };
  const given = [row.max_model_len, n_ctx, row.context_window, row.context_length];
  return (given.find((it) => Number.isSafeInteger(it) && Number(it) > 0) as number) ?? null;
}

/** Ollama reports it for loaded models only. It truncates longer prompts silently. */
async function windowOfOllama(
  client: UpstreamClient,
  model: string,
  signal: AbortSignal,
): Promise<number | null> {
  const path = '/api/ps';
  const { status, text } = await fetchWhole(client, { method: 'GET', path, root: true, signal });
  if (status !== 200) return null;
  try {
    const { models } = JSON.parse(text) as { models: Record<string, unknown>[] };
    const names = [model, `${model}:latest`];
    return windowOf(models.find(({ name }) => names.includes(String(name))) ?? {});
  } catch {
    return null;
  }
}
