// Recognises events of a stream that hold only a piece of text, without parsing them: within one stream they differ in
// nothing but the text. A format of another API can pass the text on as it is written.

import type { ChatChoiceDelta, EngineChunk, WireEvents } from './engine.ts';

export class TextEvents {
  /** What precedes and follows the text; empty until one such event was seen. */
  #head = '';
  #tail = '';

  /** The texts of all events as JSON, in the bytes of the wire; null if an event may hold anything else. */
  findTexts(events: WireEvents): string[] | null {
    if (this.#head === '') return null;
    const texts: string[] = [];
    for (let at = 0; at < events.length; ) {
      const start = at + this.#head.length;
      // Slices are compared as memory; `startsWith` compares character by character.
      if (events.slice(at, start) !== this.#head || events[start] !== '"') return null;
      const end = findEnd(events, start);
      at = end + this.#tail.length;
      if (end < 0 || events.slice(end, at) !== this.#tail) return null;
      texts.push(events.slice(start, end));
    }
    return texts;
  }

  /** Learns the form from the first of the events, given its chunk, unless it is known. */
  learn(events: WireEvents, chunk: EngineChunk | undefined): void {
    if (this.#head !== '' || chunk?.choices.length !== 1) return;
    const { delta, finish_reason } = chunk.choices[0] as ChatChoiceDelta;
    if (finish_reason != null || !delta?.content || Object.keys(delta).length !== 1) return;
    const event = events.slice(0, events.indexOf('\n\n') + 2);
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
