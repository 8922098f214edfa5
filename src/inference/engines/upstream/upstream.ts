// Any server that speaks OpenAI's API as an engine: vLLM, SGLang, llama-server, Ollama, another Millrace, a
// hosted service. Requests pass on as they came and answers come back as they are, under our envelope.

import type { Cancellation } from '#http/client-disconnect.ts';
import { type Call, type Engine, EngineError, type Task } from '#inference/engine.ts';
import { parseAnswer } from './answer.ts';
import { ask } from './buffered-response.ts';
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type Send,
} from './connection.ts';
import {
  countingServers,
  countPromptTokens,
  countTextTokens,
  readRoom,
  type UpstreamServer,
} from './count-tokens.ts';
import { Shapes } from './envelope.ts';
import { EventBlocks } from './event-blocks.ts';
import { toFailure, unavailable } from './failures.ts';
import { type CountText, createTokenCounts } from './generated-text.ts';
import { paths, toRequestBody } from './request-body.ts';
import type { ResponseThread } from './response-thread.ts';
import { type ImplausibleCounts, toCountBounds, UsageCheck } from './usage-check.ts';

export interface UpstreamOptions extends ConnectionOptions {
  /** Shown to clients as `x-served-by`. */
  readonly name: string;
  /** Where its API begins, e.g. `http://host:8000/v1`. */
  readonly url: string;
  readonly apiKey: string | null;
  /** What the server calls the model. */
  readonly model: string;
  /** Sent with every request. */
  readonly headers: Record<string, string>;
  readonly server: UpstreamServer;
  /** Null for as many as there are requests. */
  readonly connections: number | null;
  /**
   * `firstByteMs` is the time to the beginning of an answer, which for a plain one is also its end;
   * `idleMs` the time between its parts. Comments are no parts: a server that only pings is stuck.
   */
  readonly timeouts: { connectMs: number; firstByteMs: number; idleMs: number };
  /** Tokens of a generated text, for answers whose server does not count. */
  readonly countGenerated?: CountText | undefined;
  /** Reads large plain responses. If absent, they are read on the event loop. */
  readonly responses?: ResponseThread | undefined;
  /** Told of token counts that can't be true, once per response. They are counted here instead. */
  readonly onImplausible?: ((counts: ImplausibleCounts) => void) | undefined;
}

export function createUpstreamEngine(options: UpstreamOptions): Engine {
  const { name, countGenerated } = options;
  const connection = createConnection(options);
  const countText = (text: string) => countTextTokens(connection, options, text);
  const canCount = countingServers.includes(options.server);
  const newCount = createTokenCounts(countGenerated, canCount ? countText : null);
  const shapes = new Shapes();

  function newCheck(task: Task, { contextWindow }: Call, body: string): UsageCheck {
    const bounds = toCountBounds(task, contextWindow, Buffer.byteLength(body));
    return new UsageCheck(bounds, options.onImplausible);
  }

  function begin(task: Task, call: Call): Promise<EventBlocks> {
    const body = toRequestBody(task, options, true);
    const counting = { generated: newCount(), check: newCheck(task, call, body) };
    const blocks = new EventBlocks(task, call, counting, shapes);
    const { signal, headers } = call;
    connection.send({ method: 'POST', path: paths[task.kind], body, headers, signal }, blocks);
    return blocks.begun();
  }

  const isShort = shortTexts.includes(options.server);
  const needsLimit = (task: Task): task is CompletionTask =>
    isShort && task.kind === 'completion' && task.body.max_tokens == null;

  async function withLimit({ kind, body }: CompletionTask, { signal }: Call): Promise<Task> {
    const room = await readRoom(connection, options, body, signal).catch(() => null);
    signal.throwIfAborted();
    return { kind, body: { ...body, max_tokens: room } };
  }

  return {
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
      const what: Send = { method: 'POST', path, body, headers, signal };
      const whole = await ask(connection, what, call.onWork);
      if (whole.status !== 200) throw toFailure(whole.status, whole.headers, whole.text, task);
      const { server } = options;
      const counting = { server, countGenerated, check };
      const answer =
        whole.blocks === null || options.responses === undefined
          ? await parseAnswer(task, whole, counting)
          : await options.responses.read(task, whole, call, counting);
      call.onUsage?.(answer.usage);
      return answer;
    },
    countPromptTokens: (task, signal) => countPromptTokens(connection, options, task, signal),
    ...(canCount && { countText }),
    close: connection.close,
  };
}

/** To these a text without a limit is one of 16 tokens, and they have no word for as many as fit. */
const shortTexts: readonly UpstreamServer[] = ['vllm', 'sglang'];

type CompletionTask = Extract<Task, { kind: 'completion' }>;

export interface UpstreamReport {
  models: string[];
  /** Of the configured model, where the server tells. */
  contextWindow: number | null;
  latencyMs: number;
}

/** Asks a server which models it has. Throws EngineError, or the signal's reason. */
export async function probeUpstream(
  options: UpstreamOptions,
  signal: AbortSignal,
): Promise<UpstreamReport> {
  const connection = createConnection({ ...options, connections: 1 });
  const begunMs = performance.now();
  try {
    const { status, text } = await ask(connection, { method: 'GET', path: '/models', signal });
    if (status === 401 || status === 403) throw unavailable('refused our credentials');
    // Hosted services need not have a list. Somebody was there to say so, which is what probes ask.
    if (status === 404 || status === 405 || status === 501)
      throw new EngineError('rejected', 'The backend has no list of models at this address.');
    if (status !== 200) throw unavailable(`answered with status ${status}`);
    if (options.server === 'sglang') await checkReady(connection, signal);
    const rows = parseModels(text);
    const latencyMs = Math.round(performance.now() - begunMs);
    const row = rows.find(({ id }) => id === options.model) ?? (rows.length === 1 ? rows[0] : null);
    const contextWindow =
      options.server === 'ollama'
        ? await windowOfOllama(connection, options.model, signal)
        : windowOf(row ?? {});
    return { models: rows.map(({ id }) => id), contextWindow, latencyMs };
  } finally {
    await connection.close();
  }
}

/** SGLang takes requests while it warms up, and also when it was told to end, but says there what it would rather. */
async function checkReady(connection: Connection, signal: Cancellation): Promise<void> {
  const { status } = await ask(connection, { method: 'GET', path: '/ready', root: true, signal });
  // Older ones have no such address.
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

/** vLLM and SGLang say `max_model_len`, llama-server `n_ctx`, hosted services one of the others. */
function windowOf(row: Record<string, unknown>): number | null {
  const { n_ctx } = (row.meta ?? {}) as { n_ctx?: unknown };
  const given = [row.max_model_len, n_ctx, row.context_window, row.context_length];
  return (given.find((it) => Number.isSafeInteger(it) && Number(it) > 0) as number) ?? null;
}

/** It says so of models that it has loaded, and nothing of others. It cuts what is longer without a word. */
async function windowOfOllama(
  connection: Connection,
  model: string,
  signal: AbortSignal,
): Promise<number | null> {
  const path = '/api/ps';
  const { status, text } = await ask(connection, { method: 'GET', path, root: true, signal });
  if (status !== 200) return null;
  try {
    const { models } = JSON.parse(text) as { models: Record<string, unknown>[] };
    const names = [model, `${model}:latest`];
    return windowOf(models.find(({ name }) => names.includes(String(name))) ?? {});
  } catch {
    return null;
  }
}
