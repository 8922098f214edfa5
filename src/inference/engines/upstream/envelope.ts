// What is the same in every event of an upstream's stream, learned from one event: the text before the
// value of `choices` and the text after it. Events that have both need no parsing to get our envelope.

import { toBytes } from '../../../lib/byte-string.ts';
import type { Envelope } from '../../engine.ts';

export interface LearnedEnvelope {
  /** From the beginning of an event into its first choice. */
  readonly head: string;
  /** From inside its last choice to the end of the event. */
  readonly tail: string;
  /** A tail and the head of the next event. Says that no choice ends there. */
  readonly seam: string;
  readonly ourHead: string;
  readonly ourTail: string;
  readonly ourSeam: string;
}

/** Renders events under our envelope. Every character is one byte. */
export interface EventWriter {
  /** A parsed event; its envelope is replaced, what else it says stays. `usage` undefined leaves it out. */
  write(event: Record<string, unknown>, usage: unknown): string;
  /** Null when its events can't be told apart by text alone. */
  learn(eventText: string, event: Record<string, unknown>): LearnedEnvelope | null;
}

const last = new Set(['choices', 'usage']);

export function createEventWriter(envelope: Envelope, includeUsage: boolean): EventWriter {
  const { created, model, kind } = envelope;
  const object = kind === 'chat' ? 'chat.completion.chunk' : 'text_completion';
  const ours = { id: envelope.id, object, created, model };

  function write(event: Record<string, unknown>, usage: unknown): string {
    const whole: Record<string, unknown> = { ...ours, system_fingerprint: null };
    for (const name in event) if (!(name in ours) && !last.has(name)) whole[name] = event[name];
    whole.choices = event.choices;
    if (usage !== undefined) whole.usage = usage;
    return `data: ${toBytes(JSON.stringify(whole))}\n\n`;
  }

  return {
    write,
    learn(eventText, event) {
      const found = findChoices(eventText);
      if (found === null || !eventText.startsWith('[{', found.start)) return null;
      const choice = eventText.slice(found.start, found.end);
      const open = /"finish_reason"\s*:\s*null/.exec(choice);
      if (open === null || !choice.endsWith('}]')) return null;
      // What a server says before it is the same each time, or what it says after it.
      const isFirst = /^\[\{\s*(?:"index"\s*:\s*0\s*,\s*)?$/.test(choice.slice(0, open.index));
      const [start, end] = isFirst
        ? [open.index + open[0].length, choice.length - 2]
        : [2, open.index];
      const sample = write({ ...event, choices: [] }, includeUsage ? null : undefined);
      const at = sample.lastIndexOf('"choices":[]') + '"choices":'.length;
      const head = eventText.slice(0, found.start + start);
      const tail = eventText.slice(found.start + end);
      const ourHead = sample.slice(0, at) + choice.slice(0, start);
      const ourTail = choice.slice(end) + sample.slice(at + '[]'.length);
      const seam = `${tail}\n\n${head}`;
      return { head, tail, seam, ourHead, ourTail, ourSeam: ourTail + ourHead };
    },
  };
}

const quote = 0x22;
const backslash = 0x5c;

/** Where the value of the outermost `choices` stands in a text that is known to be an object in JSON. */
function findChoices(text: string): { start: number; end: number } | null {
  let depth = 0;
  let start = -1;
  for (let at = text.indexOf('{'); at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = skipString(text, at);
      if (depth === 1 && start === -1 && text.slice(at, end) === '"choices"') {
        const separator = /^\s*:\s*/.exec(text.slice(end, end + 8))?.[0] ?? '';
        // Not a key but a value of that name.
        if (separator !== '') {
          start = end + separator.length;
          at = start - 1;
          continue;
        }
      }
      at = end - 1;
    } else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) {
      depth--;
      if (start !== -1 && depth === 1) return { start, end: at + 1 };
    }
  }
  return null;
}

/** The position after the string's closing quote. */
function skipString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charCodeAt(at) !== quote)
    at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}
