// Bytes to text that can be sent: whole characters only, and nothing that may still turn out to be the
// beginning of a stop string.

export interface TextOutput {
  /** Text that is certain now. */
  text: string;
  /** The stop string that was found; nothing comes after it. */
  stop: string | null;
}

export interface TextStream {
  push(bytes: Uint8Array): TextOutput;
  /** What was held back, at the end. */
  end(): string;
  /** Looks for stop strings from here on; text before does not count. */
  watch(): void;
  /** Characters decoded so far, sent or held, as `countCharacters` has them. */
  readonly length: number;
}

export function createTextStream(
  stops: readonly string[],
  includeStop: boolean,
  watching: boolean,
): TextStream {
  // A byte order mark is text like any other here.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const patterns = stops.filter((stop) => stop.length > 0);
  let held = '';
  let length = 0;
  let watches = watching;

  return {
    get length() {
      return length;
    },
    watch() {
      watches = true;
    },
    push(bytes) {
      const fresh = decoder.decode(bytes, { stream: true });
      length += countCharacters(fresh);
      if (!watches || patterns.length === 0) {
        const text = held + fresh;
        held = '';
        return { text, stop: null };
      }
      const text = held + fresh;
      const found = findStop(text, held.length, patterns);
      if (found !== null) {
        held = '';
        return { text: text.slice(0, includeStop ? found.end : found.start), stop: found.stop };
      }
      const sure = text.length - heldLength(text, patterns);
      held = text.slice(sure);
      return { text: text.slice(0, sure), stop: null };
    },
    end() {
      const rest = held + decoder.decode();
      held = '';
      return rest;
    },
  };
}

/** Code points, which is what most languages count a string in; JavaScript counts some twice. */
export function countCharacters(text: string): number {
  return text.length - (text.match(surrogatePair)?.length ?? 0);
}

const surrogatePair = /[\ud800-\udbff][\udc00-\udfff]/g;

/** The stop that is complete first, reading on character by character; the longest of those. */
export function findStop(
  text: string,
  from: number,
  stops: readonly string[],
): { stop: string; start: number; end: number } | null {
  let best: { stop: string; start: number; end: number } | null = null;
  for (const stop of stops) {
    const start = text.indexOf(stop, Math.max(0, from - stop.length + 1));
    if (start < 0) continue;
    const end = start + stop.length;
    if (best === null || end < best.end || (end === best.end && start < best.start))
      best = { stop, start, end };
  }
  return best;
}

/** The length of the longest end of the text that a stop begins with. */
export function heldLength(text: string, stops: readonly string[]): number {
  let longest = 0;
  for (const stop of stops)
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length--)
      if (stop.startsWith(text.slice(text.length - length))) {
        longest = length;
        break;
      }
  return longest;
}
