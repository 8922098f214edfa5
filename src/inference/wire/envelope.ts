// The wire format of responses and of the events of a stream, `data: {...}` each, as upstreams send
// them and chat clients receive them. It wraps an engine's response in an envelope: its id, its
// time and the model's name.

import type { Envelope, Task } from '#inference/engine.ts';
import { fromBytes, toBytes } from '#lib/memory/byte-string.ts';
import type {
  ChatChoiceDelta,
  CompletionChoice,
  EngineChunk,
  EngineResponse,
  WireEvents,
} from './response.ts';

/** The id is `chat-` or `cmpl-` and the request's id, 32 hex digits as in the log and in usage (Seed 2.2, 2.4). */
export function newEnvelope(
  kind: Task['kind'],
  requestId: string,
  model: string,
  nowMs: number,
): Envelope {
  const prefix = kind === 'chat' ? 'chat-' : 'cmpl-';
  return { requestId, id: prefix + requestId, created: Math.floor(nowMs / 1000), model, kind };
}

export function toResponse({ id, created, model, kind }: Envelope, response: EngineResponse) {
  const isChat = kind === 'chat';
  const object = isChat ? 'chat.completion' : 'text_completion';
  const { choices, usage } = response;
  // Members are in the order people read them. Ours replace the upstream's own.
  const ours = { id, object, created, model, choices, usage, system_fingerprint: null };
  return {
    ...ours,
    ...(isChat && { service_tier: null }),
    ...response,
    id,
    object,
    created,
    model,
  };
}

/** The JSON of `toResponse` before and after the value of its usage. */
export function splitResponse(envelope: Envelope, response: EngineResponse): [string, string] {
  const members = Object.entries(toResponse(envelope, response));
  const at = members.findIndex(([name]) => name === 'usage');
  const before = JSON.stringify(Object.fromEntries(members.slice(0, at)));
  const after = JSON.stringify(Object.fromEntries(members.slice(at + 1)));
  return [`${before.slice(0, -1)},"usage":`, `,${after.slice(1)}`];
}

/** The text with which every event of a stream begins. */
export function toChunkOpening({ id, created, model, kind }: Envelope): string {
  const object = kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  return `{"id":"${id}","object":"${object}","created":${created},"model":${JSON.stringify(model)}`;
}

export type ChunkWriter = (chunk: EngineChunk) => string;

/** Serialises the members that every event of a stream shares only once. */
export function createChunkWriter(envelope: Envelope, includeUsage: boolean): ChunkWriter {
  const opening = toChunkOpening(envelope);
  const head = `${opening},"system_fingerprint":null`;
  return ({ choices, usage, rest }) => {
    const shown = includeUsage ? `,"usage":${JSON.stringify(usage)}` : '';
    const own = rest === undefined ? head : `${opening},${toMembers(rest)}`;
    return `${own},"choices":${JSON.stringify(choices)}${shown}}`;
  };
}

const toMembers = (rest: Record<string, unknown>) =>
  JSON.stringify({ system_fingerprint: null, ...rest }).slice(1, -1);

/** One event in its wire format. */
export interface WireEvent {
  choices?: (ChatChoiceDelta | CompletionChoice)[];
  [member: string]: unknown;
}

export function parseEvents(events: WireEvents): WireEvent[] {
  return fromBytes(events)
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .flatMap((event) => parseEvent(event.slice('data: '.length)));
}

/** Upstream events are forwarded without being parsed, so a malformed one may be discovered only here. */
function parseEvent(data: string): WireEvent[] {
  try {
    return [JSON.parse(data) as WireEvent];
  } catch {
    return [];
  }
}

export const toWireEvents = (event: WireEvent): WireEvents =>
  toBytes(`data: ${JSON.stringify(event)}\n\n`);

/** The chunks of one item of a stream, whichever way its engine wrote them. */
export const chunksOf = (item: EngineChunk | WireEvents): EngineChunk[] =>
  typeof item === 'string'
    ? parseEvents(item).map(({ choices = [] }) => ({ choices, usage: null }))
    : [item];
