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
  /** Whether stop strings are looked for from here on; text before does not count. */
  watch(on: boolean): void;
  /** Characters decoded so far, sent or held, as `countCharacters` has them. */
  readonly length: number;
}

/** Stop strings do not count after `opening`; who reads it says when they do again. */
export function createTextStream(
  stops: readonly string[],
  includeStop: boolean,
  opening: string | null,
): TextStream {
  // A byte order mark is text like any other here.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const patterns = stops.filter((stop) => stop.length > 0);
  let held = '';
  let length = 0;
  const awaited = opening === null ? patterns : [...patterns, opening];
  let watches = true;

  return {
    get length() {
      return length;
    },
    watch(on) {
      watches = on;
    },
    push(bytes) {
      const fresh = decoder.decode(bytes, { stream: true });
      length += countCharacters(fresh);
      const text = held + fresh;
      const from = held.length;
      held = '';
      if (!watches || patterns.length === 0) return { text, stop: null };
      const found = findStop(text, from, patterns);
      const opened = opening === null ? null : findStop(text, 0, [opening]);
      if (opened !== null && (found === null || found.end > opened.end))
        return { text, stop: null };
      if (found !== null)
        return { text: text.slice(0, includeStop ? found.end : found.start), stop: found.stop };
      const sure = text.length - heldLength(text, awaited);
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
