// Recognises events of a stream that hold only a piece of text, without parsing them: within one stream they differ in
// nothing but the text. A format of another API can pass the text on as it is written. Parsing every event instead, a
// stream of 50 chunks costs the server 1.26 times the CPU in Responses, and 1.36 times in Messages (`bench/cpu.ts`).

import { fromBytes } from '#lib/memory/byte-string.ts';
import { chunksOf } from './envelope.ts';
import type { ChatChoiceDelta, EngineChunk, WireEvents } from './response.ts';

export class TextEvents {
  /** What precedes and follows the text; empty until one such event was seen. */
  #head = '';
  #tail = '';

  /** The events in order: a text as JSON in the bytes of the wire, or the chunk of an event that may hold anything. */
  read(events: WireEvents): (string | EngineChunk)[] {
    const parts: (string | EngineChunk)[] = [];
    for (let at = 0; at < events.length; ) {
      const textEnd = this.#findText(events, at);
      if (textEnd >= 0) {
        parts.push(events.slice(at + this.#head.length, textEnd));
        at = textEnd + this.#tail.length;
        continue;
      }
      const found = events.indexOf('\n\n', at);
      const end = found < 0 ? events.length : found + 2;
      const event = events.slice(at, end);
      const [chunk] = chunksOf(event);
      if (chunk !== undefined) {
        this.#learn(event, chunk);
        parts.push(chunk);
      }
      at = end;
    }
    return parts;
  }

  /** Where the text of the event at this place ends; -1 if the event may hold anything else. */
  #findText(events: string, at: number): number {
    const start = at + this.#head.length;
    // Slices are compared as memory; `startsWith` compares character by character.
    if (this.#head === '' || events[start] !== '"' || events.slice(at, start) !== this.#head)
      return -1;
    const end = findEnd(events, start);
    return end >= 0 && events.slice(end, end + this.#tail.length) === this.#tail ? end : -1;
  }

  /** Learns the form from an event that holds only text, unless it is known. */
  #learn(event: string, { choices }: EngineChunk): void {
    if (this.#head !== '' || choices.length !== 1) return;
    const { index, delta, finish_reason } = choices[0] as ChatChoiceDelta;
    if (index !== 0 || finish_reason != null || !delta?.content) return;
    if (Object.keys(delta).length !== 1) return;
    const name = '"content":';
    const start = event.indexOf(`${name}"`) + name.length;
    const end = findEnd(event, start);
    // Other members may contain what looks like a text, or bytes that are not ASCII.
    if (start < name.length || event.slice(start, end) !== JSON.stringify(delta.content)) return;
    this.#head = event.slice(0, start);
    this.#tail = event.slice(end);
  }
}

/** Where the JSON text ends that begins with the quote at `start`; -1 if it doesn't. */
function findEnd(events: string, start: number): number {
  for (let at = events.indexOf('"', start + 1); at >= 0; at = events.indexOf('"', at + 1)) {
    let before = at;
    while (events[before - 1] === '\\') before--;
    if ((at - before) % 2 === 0) return at + 1;
  }
  return -1;
}

/** The text of a piece; null if it is not JSON, which is noticed only here. */
export function parseText(piece: string): string | null {
  try {
    return JSON.parse(fromBytes(piece)) as string;
  } catch {
    return null;
  }
}
