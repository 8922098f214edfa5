// Events of a stream in their wire format: `data: {...}` each, as upstreams send them and chat clients receive them.

import { fromBytes, toBytes } from '#lib/memory/byte-string.ts';
import type { ChatChoiceDelta, CompletionChoice, EngineChunk, WireEvents } from './engine.ts';

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
