// The text that a model generated, wherever a choice holds it. It is counted for requests whose server did not
// report usage, because it failed or the client disconnected.

import type { WireEvents } from '#inference/engine.ts';
import { textOf } from '#lib/json-members.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';

interface Part {
  content?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
}

/** The generated text of the choices of a response or a chunk. */
export function toText(choices: readonly unknown[]): string {
  let text = '';
  for (const choice of choices as { text?: unknown; message?: Part; delta?: Part }[]) {
    const part = choice?.message ?? choice?.delta ?? {};
    text += textOf(choice?.text) + textOf(part.reasoning_content ?? part.reasoning);
    text += textOf(part.content) + textOf(part.refusal);
    const calls = Array.isArray(part.tool_calls) ? part.tool_calls : [];
    for (const call of calls)
      text += textOf(call?.function?.name) + textOf(call?.function?.arguments);
  }
  return text;
}

/** Counts the tokens of a text; null if they can't be counted. Never fails. */
export type CountText = (text: string) => number | null | Promise<number | null>;

/** Maximum bytes buffered of one stream, and the maximum once all streams together have used their room. */
const maxStreamBytes = 32 * 1024;
const maxCrowdedStreamBytes = 1024;
/** Bytes buffered of all streams of a backend, above which new streams buffer less. */
const maxSharedBytes = 1024 * 1024;

/**
 * Events are parsed only if the total is needed. The start of a stream is buffered and counted, by `countText` or else
 * by the server, and the rest is assumed to have as many tokens per event. Without a counter each event counts as one
 * token, which is what most servers send unless they are busy.
 */
export function createTokenCounts(
  countText: CountText | undefined,
  countByServer: CountText | null = null,
): () => GeneratedCount {
  const counters: Counters = { here: countText ?? null, there: countByServer };
  const room: Room = { usedBytes: 0 };
  return () => new GeneratedCount(counters, room);
}

interface Counters {
  readonly here: CountText | null;
  readonly there: CountText | null;
}

interface Room {
  /** Bytes buffered of all streams. */
  usedBytes: number;
}

export class GeneratedCount {
  readonly #counters: Counters;
  readonly #room: Room;
  #kept: WireEvents[] = [];
  #keptBytes = 0;
  #keptHolding = 0;
  #holding = 0;
  #isKeeping: boolean;

  constructor(counters: Counters, room: Room) {
    this.#counters = counters;
    this.#room = room;
    this.#isKeeping = counters.here !== null || counters.there !== null;
  }

  /** Adds events sent to the client. `holding` is how many of them hold generated text. */
  add(events: WireEvents, holding: number): void {
    this.#holding += holding;
    if (!this.#isKeeping || events === '') return;
    this.#kept.push(events);
    this.#keptHolding += holding;
    this.#keptBytes += events.length;
    this.#room.usedBytes += events.length;
    this.#isKeeping =
      this.#keptBytes <
      (this.#room.usedBytes < maxSharedBytes ? maxStreamBytes : maxCrowdedStreamBytes);
  }

  /** Events that hold generated text: about as many as tokens, and known without counting. */
  soFar(): number {
    return this.#holding;
  }

  /** Tokens so far. The server may be asked to count them if `canAskServer` is set. Never fails. */
  async total(canAskServer: boolean): Promise<number> {
    const [holding, kept] = [this.#holding, this.#keptHolding];
    const { here, there } = this.#counters;
    const countText = here ?? (canAskServer ? there : null);
    if (countText === null || kept === 0) return holding;
    const events = fromBytes(this.#kept.join('')).split('\n\n').slice(0, -1);
    const counted = await countText(events.map(readEvent).join(''));
    return counted === null ? holding : Math.round((counted * holding) / kept);
  }

  /** Releases the buffered events. Must be called in the end, and may be while `total` is pending. */
  forget(): void {
    this.#isKeeping = false;
    this.#room.usedBytes -= this.#keptBytes;
    this.#kept = [];
    this.#keptBytes = 0;
    this.#keptHolding = 0;
  }
}

/** Most events were served without being parsed, so one may turn out to be invalid here. */
function readEvent(event: string): string {
  try {
    return toText(JSON.parse(event.slice('data: '.length)).choices);
  } catch {
    return '';
  }
}
