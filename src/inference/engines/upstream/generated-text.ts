// The text that a model wrote, wherever in a choice it stands. Counted for requests whose server did not
// say what they used: it died, or the client left.

import type { WireEvents } from '#inference/engine.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';

interface Part {
  content?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
}

/** Of choices as they stand in an answer or in a chunk. */
export function toText(choices: readonly unknown[]): string {
  let text = '';
  for (const choice of choices as { text?: unknown; message?: Part; delta?: Part }[]) {
    const part = choice?.message ?? choice?.delta ?? {};
    text += asText(choice?.text) + asText(part.reasoning_content ?? part.reasoning);
    text += asText(part.content) + asText(part.refusal);
    const calls = Array.isArray(part.tool_calls) ? part.tool_calls : [];
    for (const call of calls)
      text += asText(call?.function?.name) + asText(call?.function?.arguments);
  }
  return text;
}

/** Tokens of a text; null where they can't be counted. Never fails. */
export type CountText = (text: string) => number | null | Promise<number | null>;

export interface GeneratedCount {
  /** Events that reach the client, and how many of them hold something generated. */
  add(events: WireEvents, holding: number): void;
  /** Events that hold something: about as many as tokens, and known at once. */
  soFar(): number;
  /** Tokens so far. Whoever generated them may be asked, if it is still there. */
  total(isServerThere: boolean): number | Promise<number>;
  /** Nobody will ask for the total. To be called in the end. */
  forget(): void;
}

/** Of the events of one stream, while there is room; and the least, where many streams share it. */
const keptMost = 32 * 1024;
const keptLeast = 1024;
/** Of all streams of a backend together. */
const mostKept = 1024 * 1024;

/**
 * Nothing is parsed unless it must be known: the beginning is kept, and what follows is taken to have as many
 * tokens an event. It is counted here, or else by the server. Without either each event is a token, which is what
 * most servers send while they are not busy.
 */
export function createTokenCounts(
  countText: CountText | undefined,
  countByServer: CountText | null = null,
): () => GeneratedCount {
  const counters: Counters = { here: countText ?? null, there: countByServer };
  const room: Room = { kept: 0 };
  return () => new KeptEvents(counters, room);
}

interface Counters {
  readonly here: CountText | null;
  readonly there: CountText | null;
}

interface Room {
  /** Bytes of all streams. */
  kept: number;
}

/** One is made for every stream, hence a class. */
class KeptEvents implements GeneratedCount {
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

  add(events: WireEvents, holding: number): void {
    this.#holding += holding;
    if (!this.#isKeeping || events === '') return;
    this.#kept.push(events);
    this.#keptHolding += holding;
    this.#keptBytes += events.length;
    this.#room.kept += events.length;
    this.#isKeeping = this.#keptBytes < (this.#room.kept < mostKept ? keptMost : keptLeast);
  }

  soFar(): number {
    return this.#holding;
  }

  total(isServerThere: boolean): number | Promise<number> {
    const [holding, kept] = [this.#holding, this.#keptHolding];
    const { here, there } = this.#counters;
    const countText = here ?? (isServerThere ? there : null);
    if (countText === null || kept === 0) return holding;
    const events = fromBytes(this.#kept.join('')).split('\n\n').slice(0, -1);
    const tokens = countText(events.map(textOf).join(''));
    const ofAll = (counted: number | null) =>
      counted === null ? holding : Math.round((counted * holding) / kept);
    return tokens instanceof Promise ? tokens.then(ofAll) : ofAll(tokens);
  }

  forget(): void {
    this.#isKeeping = false;
    this.#room.kept -= this.#keptBytes;
    this.#kept = [];
    this.#keptBytes = 0;
    this.#keptHolding = 0;
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Events are served without being parsed, so one may turn out to be none only here. */
function textOf(event: string): string {
  try {
    return toText(JSON.parse(event.slice('data: '.length)).choices);
  } catch {
    return '';
  }
}
