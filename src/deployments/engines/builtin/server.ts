// The HTTP server of the built-in engine: the endpoints of vLLM's API that Millrace uses, for one
// model. Its only client is a server that has its key and has validated the requests, so that
// nothing is validated twice.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { parseJson, rawIntegers, type WithRawIntegers } from '#http/body/json.ts';
import { type Cancellation, ClientDisconnect } from '#http/client-disconnect.ts';
import type { Rendered } from '#http/error-format.ts';
import { createServer } from '#http/node-http.ts';
import { createEventStreams, type EventStreams, eventStreamHeaders } from '#http/sse.ts';
import { writeEmbeddings } from '#inference/apis/embeddings/computation.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import type { Call, Task } from '#inference/engine.ts';
import type { InProcessEngine } from '#inference/engines/local/in-process.ts';
import { inferenceErrorFormat, internalError, toInferenceError } from '#inference/errors.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import { newEnvelope } from '#inference/wire/envelope.ts';
import { newUsage, noUsage, type Usage, WrittenResponse } from '#inference/wire/response.ts';
import { readBounded } from '#lib/async/read-bounded.ts';
import { conflict, invalidCredentials, Refusal, tooLarge, unknownUrl } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { equalHashes, hashToken } from '#lib/secrets/secrets.ts';

export interface EngineServerOptions {
  /** The key that requests must have. */
  readonly key: string;
  readonly engine: InProcessEngine;
  /** The model keeps the window of the model that it stands in for, and reports none of its own. */
  readonly standIn: boolean;
}

/** The largest body that a server can be set to take. */
const maxBodyBytes = 1024 * 2 ** 20;
/** As long as the server's own connections. */
const keepAliveTimeout = 75_000;

export function createEngineServer({ key, engine, standIn }: EngineServerOptions): Server {
  const credentials = hashToken(`Bearer ${key}`);
  const streams = createEventStreams();
  return createServer({ keepAliveTimeout }, (request, response) => {
    const { authorization = '' } = request.headers;
    if (!equalHashes(hashToken(authorization), credentials))
      return sendError(response, invalidCredentials('***'), '');
    const { method = '', url = '' } = request;
    const handle = handlers[`${method} ${url}`];
    const exchange = { engine, standIn, streams, request, response };
    if (handle === undefined) return sendError(response, unknownUrl(method, url), '');
    void answer(handle, exchange);
  });
}

interface Exchange {
  readonly engine: InProcessEngine;
  readonly standIn: boolean;
  readonly streams: EventStreams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Asked extends Exchange {
  readonly body: Body;
  readonly signal: Cancellation;
}

type Body = Record<string, unknown> & { readonly model?: string; readonly priority?: number };

/** Returns the body of the response; undefined if a stream was sent. */
type Handle = (asked: Asked) => Promise<object | undefined>;

const handlers: Readonly<Record<string, Handle>> = {
  'GET /health': async () => ({}),
  'GET /v1/models': listModels,
  'POST /v1/chat/completions': (asked) =>
    generate(asked, { kind: 'chat', body: asked.body as unknown as ChatRequest }),
  'POST /v1/completions': (asked) =>
    generate(asked, { kind: 'completion', body: asked.body as unknown as CompletionRequest }),
  'POST /v1/embeddings': embed,
  'POST /v1/rerank': rerank,
  'POST /tokenize': tokenize,
  'POST /detokenize': detokenize,
  'POST /sleep': sleep,
};

async function answer(handle: Handle, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  const signal = new ClientDisconnect(response);
  let model = '';
  try {
    const body = request.method === 'POST' ? await readBody(request) : {};
    model = body.model ?? '';
    const result = await handle({ ...exchange, body, signal });
    if (result !== undefined) send(response, 200, toPieces(result));
  } catch (error) {
    if (!signal.aborted) sendError(response, error, model);
  }
}

/** Throws a Refusal. */
async function readBody(request: IncomingMessage): Promise<Body> {
  const bytes = await readBounded(request, maxBodyBytes);
  if (bytes === null) throw tooLarge(maxBodyBytes);
  const body = parseJson(bytes) as Body & WithRawIntegers;
  const seed = body[rawIntegers]?.seed;
  return seed === undefined ? body : { ...body, seed: BigInt(seed) };
}

async function generate(asked: Asked, task: Task): Promise<object | undefined> {
  const { engine, streams, response, signal } = asked;
  const format = toOpenAiFormat(task);
  const envelope = newEnvelope(task.kind, newId(), task.body.model, Date.now());
  let usage: Usage = noUsage;
  const onUsage = (soFar: Usage) => {
    usage = soFar;
  };
  const call = { ...toCall(asked), envelope, onUsage };
  if (task.body.stream !== true)
    return format.toWhole(await engine.respond(task, call), envelope) as object;
  // Before the status is sent: a failure to start is an HTTP error.
  const chunks = await engine.stream(task, call);
  const stream = streams.open(response, [...eventStreamHeaders], { signal });
  const events = format.openStream(envelope);
  try {
    for await (const chunk of chunks) await stream.pass(events.take(chunk));
    stream.pass(await events.end(usage));
  } catch (error) {
    stream.pass(await events.fail(toInferenceError(error, task.body.model) ?? internalError()));
  }
  stream.end();
  return undefined;
}

/** A large response is in pieces already. */
const toPieces = (result: object): readonly (string | Uint8Array)[] =>
  result instanceof WrittenResponse
    ? [result.before, JSON.stringify(result.usage), result.after]
    : [JSON.stringify(result)];

function send(
  response: ServerResponse,
  status: number,
  pieces: readonly (string | Uint8Array)[],
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.concat(pieces.map((piece) => Buffer.from(piece as Uint8Array)));
  const own = { 'content-type': 'application/json', 'content-length': body.length };
  response.writeHead(status, { ...headers, ...own }).end(body);
}

function sendError(response: ServerResponse, error: unknown, model: string): void {
  const { status, headers, body } = render(error, model);
  send(response, status, [JSON.stringify(body)], headers);
}

function render(error: unknown, model: string): Rendered {
  if (error instanceof Refusal) return inferenceErrorFormat.renderRefusal(error);
  const known = toInferenceError(error, model);
  if (known === undefined) console.error(error);
  const own = known ?? internalError();
  return { status: own.status, headers: own.headers, body: own.toBody() };
}

/** The server in front keeps callers apart, and limits the window. */
const toCall = ({ body, signal }: Asked): Omit<Call, 'envelope'> => ({
  signal,
  caller: 'server',
  priority: body.priority ?? 0,
  contextWindow: Number.MAX_SAFE_INTEGER,
});

async function listModels({ engine, standIn }: Asked): Promise<object> {
  const { window } = await engine.describe();
  const model = { id: engine.name, object: 'model', created: 0, owned_by: 'millrace' };
  return {
    object: 'list',
    data: [{ ...model, ...(!standIn && { max_model_len: window }) }],
  };
}

async function embed(asked: Asked): Promise<object> {
  const { engine, body } = asked;
  const { input, encoding_format } = body as { input: EmbeddingInput; encoding_format?: string };
  const isOne = typeof input === 'string' || typeof input[0] === 'number';
  const inputs = isOne ? [input as string | number[]] : (input as (string | number[])[]);
  const { vectors, promptTokens } = await engine.embed({ kind: 'embed', inputs }, toCall(asked));
  const isBase64 = encoding_format === 'base64';
  const usage = newUsage(promptTokens ?? 0, 0);
  return writeEmbeddings(vectors, { model: engine.name, usage, isBase64 });
}

type EmbeddingInput = string | number[] | (string | number[])[];

async function rerank(asked: Asked): Promise<object> {
  const { engine, body } = asked;
  const { query, documents } = body as unknown as { query: string; documents: string[] };
  const task = { kind: 'rerank', query, documents } as const;
  const { scores, promptTokens } = await engine.rerank(task, toCall(asked));
  return {
    model: engine.name,
    results: scores.map((relevance_score, index) => ({ index, relevance_score })),
    usage: newUsage(promptTokens ?? 0, 0),
  };
}

async function tokenize({ engine, body, signal }: Asked): Promise<object> {
  const { prompt, messages, add_special_tokens, return_token_strs } = body as TokenizeBody;
  const isChat = prompt === undefined;
  const source = isChat ? { chat: { ...body, messages } as ChatRequest } : { prompt };
  const addsSpecial = add_special_tokens ?? !isChat;
  const withTexts = return_token_strs === true;
  const { tokens, texts } = await engine.tokenize({ source, addsSpecial, withTexts }, signal);
  const { window } = await engine.describe();
  return { count: tokens.length, max_model_len: window, tokens, token_strs: texts };
}

interface TokenizeBody {
  readonly prompt?: string;
  readonly messages?: ChatRequest['messages'];
  readonly add_special_tokens?: boolean;
  readonly return_token_strs?: boolean;
}

async function detokenize({ engine, body, signal }: Asked): Promise<object> {
  return { prompt: await engine.detokenize(body.tokens as number[], signal) };
}

/** Refused while there are requests. */
async function sleep({ engine }: Asked): Promise<object> {
  if (await engine.unload()) return {};
  throw conflict('The engine has requests.');
}
