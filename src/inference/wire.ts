// Wraps an engine's response in the envelope of the wire format: its id, its time and the model's name.

import type { EngineChunk, EngineResponse, Envelope, Task } from './engine.ts';

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
