// Puts an engine's answer into the wire's envelope: the id, the time, the name of the model.

import type { EngineChunk, EngineResponse, Envelope, Task } from './engine.ts';

/** Seed 2.2 and 2.4: `chat-` or `cmpl-` and 32 hex, which are the request's id in the log and in usage. */
export function newEnvelope(
  kind: Task['kind'],
  requestId: string,
  model: string,
  nowMs: number,
): Envelope {
  const prefix = kind === 'chat' ? 'chat-' : 'cmpl-';
  return { id: prefix + requestId, created: Math.floor(nowMs / 1000), model, kind };
}

export function toAnswer({ id, created, model, kind }: Envelope, answer: EngineResponse) {
  const isChat = kind === 'chat';
  const object = isChat ? 'chat.completion' : 'text_completion';
  const { choices, usage } = answer;
  // The order people read in; what an upstream says of itself is overwritten by ours.
  const ours = { id, object, created, model, choices, usage, system_fingerprint: null };
  return { ...ours, ...(isChat && { service_tier: null }), ...answer, id, object, created, model };
}

/** The JSON of `toAnswer` before and after the value of its usage. */
export function splitAnswer(envelope: Envelope, answer: EngineResponse): [string, string] {
  const members = Object.entries(toAnswer(envelope, answer));
  const at = members.findIndex(([name]) => name === 'usage');
  const before = JSON.stringify(Object.fromEntries(members.slice(0, at)));
  const after = JSON.stringify(Object.fromEntries(members.slice(at + 1)));
  return [`${before.slice(0, -1)},"usage":`, `,${after.slice(1)}`];
}

/** What every event of a stream begins with. */
export function toChunkOpening({ id, created, model, kind }: Envelope): string {
  const object = kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  return `{"id":"${id}","object":"${object}","created":${created},"model":${JSON.stringify(model)}`;
}

export type ChunkWriter = (chunk: EngineChunk) => string;

/** Everything that is the same in each event of a stream is made into text once. */
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
