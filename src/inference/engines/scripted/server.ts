// An upstream server without a model, for tests, demonstrations and benchmarks. It serves OpenAI's API on a real
// socket, responds at once or slowly, and misbehaves in named ways.

import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from '#http/node-http.ts';
import { type Behaviour, behaviours, brokenAltogether, type Intended } from './behaviours.ts';
import { isPooled, type PooledBody, writePooled } from './pooling.ts';
import { countWords, type ScriptedBody, writeScript } from './script.ts';

export interface ScriptedUpstreamOptions {
  behaviour?: Behaviour;
  /** Words per response; fewer if the request asks for fewer. */
  words?: number;
  /** Words per stream event. Busy servers send several at once. */
  wordsPerEvent?: number;
  /** Pause between the events of a stream; 0 sends them all at once. */
  eventDelayMs?: number;
  /** Whether events that are sent at once are written one by one, as a model's are, rather than in one write. */
  apart?: boolean;
  /** Delay before anything is sent. */
  delayMs?: number;
  /** Splits streams into pieces of this many bytes, regardless of event boundaries. */
  pieceBytes?: number | null;
  model?: string;
  port?: number;
  /** API key required of every request; null requires none. */
  apiKey?: string | null;
}

export interface ScriptedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ScriptedBody & Record<string, unknown>;
  /** `left`: the client disconnected before the response was complete. */
  state: 'running' | 'answered' | 'left';
}

const maxRequests = 1000;
const maxPrepared = 100;
const maxPreparedLength = 16_384;
const maxBodyBytes = 64 * 1024 * 1024;
const scriptedWindow = 8192;

export async function startScriptedUpstream(
  options: ScriptedUpstreamOptions = {},
): Promise<ScriptedUpstream> {
  const upstream = new ScriptedUpstream(options);
  await upstream.listen();
  return upstream;
}

export class ScriptedUpstream {
  readonly #options: ScriptedUpstreamOptions;
  readonly #requests: ScriptedRequest[] = [];
  readonly #prepared = new Map<string, Prepared>();
  readonly #server: Server;
  #behaviour: Behaviour;
  #port = 0;

  constructor(options: ScriptedUpstreamOptions) {
    this.#options = options;
    this.#behaviour = options.behaviour ?? 'answers';
    this.#server = createServer((request, response) => this.#handle(request, response));
  }

  /** Base URL, including `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  /** The last thousand generation requests. */
  get requests(): readonly ScriptedRequest[] {
    return this.#requests;
  }

  async listen(): Promise<void> {
    this.#server.listen(this.#options.port ?? 0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  behave(behaviour: Behaviour): void {
    this.#behaviour = behaviour;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const { apiKey = null, model = 'scripted' } = this.#options;
    const path = request.url ?? '/';
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) request.destroy();
      else chunks.push(chunk);
    });
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      if (apiKey !== null && request.headers.authorization !== `Bearer ${apiKey}`)
        behaviours.unauthorized(response);
      else if (path.endsWith('/completions') || isPooled(path))
        this.#generate(path, request.headers, text, response);
      else if (brokenAltogether.has(this.#behaviour))
        behaviours[this.#behaviour]?.(response, nothing);
      else look(path, model, text, response);
    });
  }

  #generate(
    path: string,
    headers: IncomingHttpHeaders,
    text: string,
    response: ServerResponse,
  ): void {
    const { delayMs = 0 } = this.#options;
    const { body, intended } = this.#prepare(path, text);
    const seen: ScriptedRequest = { path, headers, body, state: 'running' };
    if (this.#requests.push(seen) > maxRequests) this.#requests.shift();
    response.once('close', () => {
      seen.state = response.writableFinished ? 'answered' : 'left';
    });
    if (this.#behaviour !== 'answers') behaviours[this.#behaviour](response, intended);
    else if (delayMs === 0) answer(response, intended, this.#options);
    else
      whileOpen(response, delayMs, () => {
        answer(response, intended, this.#options);
        return false;
      });
  }

  /** Memoized, so that repeated requests cost nothing and other servers can be measured against this one. */
  #prepare(path: string, text: string): Prepared {
    const known = this.#prepared.get(path + text);
    if (known !== undefined) return known;
    const { words = 10, wordsPerEvent = 1 } = this.#options;
    const body = JSON.parse(text) as ScriptedRequest['body'];
    const kind = path.endsWith('/chat/completions') ? 'chat' : 'completion';
    const script = isPooled(path)
      ? { plain: writePooled(path, body as PooledBody, body.model ?? 'scripted'), events: [] }
      : writeScript(kind, body, { words, wordsPerEvent });
    const intended = { streams: body.stream === true, ...script };
    if (this.#prepared.size >= maxPrepared) this.#prepared.clear();
    if (text.length <= maxPreparedLength) this.#prepared.set(path + text, { body, intended });
    return { body, intended };
  }
}

function answer(
  response: ServerResponse,
  { streams, plain, events }: Intended,
  { eventDelayMs = 0, apart = false, pieceBytes = null }: ScriptedUpstreamOptions,
): void {
  if (!streams) {
    sendJson(response, plain);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  const all = pieceBytes === null ? events : cutUp(events.join(''), pieceBytes);
  if (eventDelayMs === 0 && apart) {
    writeApart(response, all, 0);
    return;
  }
  if (eventDelayMs === 0) {
    for (const event of pieceBytes === null ? [events.join('')] : all) response.write(event);
    response.end();
    return;
  }
  let next = 0;
  whileOpen(response, eventDelayMs, () => {
    const event = all[next++];
    if (event === undefined) response.end();
    else response.write(event);
    return event !== undefined;
  });
}

/** Handles requests other than generation: the model list, the health check and token counts. */
function look(path: string, model: string, text: string, response: ServerResponse): void {
  const body = text === '' ? {} : (JSON.parse(text) as ScriptedRequest['body']);
  const row = { id: model, object: 'model', owned_by: 'scripted', max_model_len: scriptedWindow };
  if (path === '/v1/models') sendJson(response, { object: 'list', data: [row] });
  else if (path === '/health') sendJson(response, { status: 'ok' });
  else if (path === '/apply-template')
    sendJson(response, { prompt: JSON.stringify(body.messages) });
  else if (path === '/tokenize') {
    const count = countWords(body.content ?? body.messages ?? body.prompt);
    const tokens = Array.from({ length: count }, (_, index) => index);
    sendJson(response, { count, tokens, max_model_len: scriptedWindow });
  } else if (path === '/detokenize') sendJson(response, { prompt: `${body.tokens}` });
  else {
    response.statusCode = 404;
    sendJson(response, { detail: 'Not Found' });
  }
}

interface Prepared {
  body: ScriptedRequest['body'];
  intended: Intended;
}

const nothing: Intended = { streams: false, plain: '', events: [] };

function sendJson(response: ServerResponse, body: object | string): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.setHeader('content-type', 'application/json');
  response.setHeader('content-length', Buffer.byteLength(text));
  response.end(text);
}

/** Repeats the step until it returns false or the client disconnects. */
function whileOpen(response: ServerResponse, everyMs: number, step: () => boolean): void {
  const timer = setInterval(() => {
    if (!step()) clearInterval(timer);
  }, everyMs);
  response.once('close', () => clearInterval(timer));
}

function writeApart(
  response: ServerResponse,
  events: readonly (string | Buffer)[],
  next: number,
): void {
  const event = events[next];
  if (event === undefined || response.destroyed) response.end();
  else {
    response.write(event);
    setImmediate(writeApart, response, events, next + 1);
  }
}

function cutUp(text: string, pieceBytes: number): Buffer[] {
  const bytes = Buffer.from(text);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    pieces.push(bytes.subarray(at, at + pieceBytes));
  return pieces;
}
