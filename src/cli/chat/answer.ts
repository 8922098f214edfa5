// Streams one answer of a model: sends the messages, parses the events, and writes the text as it arrives.

import { Readable } from 'node:stream';
import { styleText } from 'node:util';
import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { EventTooLongError, readEvents } from '#lib/read-events.ts';
import { throwUnknown } from './choose-model.ts';
import { createMarkdown, type MarkdownStream } from './markdown.ts';

export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

export interface Answer {
  readonly model: string;
  /** Name of the backend; `builtin` if the stand-in answered. */
  readonly served_by: string | null;
  readonly content: string;
  readonly reasoning: string;
  readonly finish_reason: string | null;
  readonly usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
}

export interface AnswerOptions {
  readonly signal: AbortSignal;
  /** Receives the text as it arrives. */
  readonly write: (text: string, kind: 'content' | 'reasoning') => void;
}

interface Chunk {
  readonly choices?: {
    readonly delta?: { content?: string | null; reasoning_content?: string; reasoning?: string };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: Answer['usage'];
  readonly error?: { readonly message: string };
}

/** Throws a CliError if the server refuses or the answer breaks off, and the signal's reason if it is aborted. */
export async function streamAnswer(
  client: Client,
  { model, messages }: { model: string; messages: readonly Message[] },
  { signal, write }: AnswerOptions,
): Promise<Answer> {
  const request = { model, messages, stream: true, stream_options: { include_usage: true } };
  const { headers, body } = await client
    .postStream('/v1/chat/completions', request, signal)
    .catch((error) => throwUnknown(client, model, error));
  const served_by = headers.get('x-served-by');
  let [content, reasoning] = ['', ''];
  let finish_reason: string | null = null;
  let usage: Answer['usage'] = null;
  for await (const { choices = [], ...chunk } of readChunks(body, signal)) {
    if (chunk.error !== undefined) throw new CliError(chunk.error.message);
    usage = chunk.usage ?? usage;
    const { delta = {}, finish_reason: finished } = choices[0] ?? {};
    finish_reason = finished ?? finish_reason;
    const thought = delta.reasoning_content ?? delta.reasoning ?? '';
    if (thought !== '') write(thought, 'reasoning');
    if (delta.content) write(delta.content, 'content');
    reasoning += thought;
    content += delta.content ?? '';
  }
  return { model, served_by, content, reasoning, finish_reason, usage };
}

async function* readChunks(body: Readable, signal: AbortSignal): AsyncIterable<Chunk> {
  const broken = new CliError('The connection ended before the answer was complete. Try again.');
  try {
    for await (const data of readEvents(Readable.toWeb(body))) {
      if (data === '[DONE]') return;
      yield JSON.parse(data) as Chunk;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof EventTooLongError ? new CliError(error.message) : broken;
  }
  throw broken;
}

export interface Writer {
  readonly write: AnswerOptions['write'];
  /** Prints what was held back, and ends the line if there is one. */
  end(): void;
}

/** Writes to stdout. On a terminal, markdown is rendered, reasoning is dimmed and nothing can control the terminal;
 * a pipe gets the content as it is. */
export function createWriter(): Writer {
  const { stdout } = process;
  let isEmpty = true;
  const print = (text: string) => {
    isEmpty = false;
    stdout.write(text);
  };
  if (!stdout.isTTY) {
    return {
      write: (text, kind) => void (kind === 'content' && print(text)),
      end: () => void (isEmpty || print('\n')),
    };
  }
  // False with NO_COLOR.
  const markdown = stdout.hasColors() ? createMarkdown() : plain;
  let last: 'content' | 'reasoning' = 'content';
  return {
    write(text, kind) {
      const gap = last === 'reasoning' && kind === 'content' ? '\n\n' : '';
      last = kind;
      const safe = text.replaceAll(/[^\P{Cc}\n\t]/gu, '�');
      print(gap + (kind === 'reasoning' ? styleText('dim', safe) : markdown.write(safe)));
    },
    end: () => void (isEmpty || print(`${markdown.end()}\n`)),
  };
}

const plain: MarkdownStream = { write: (text) => text, end: () => '' };

/** Says on a terminal that another model answered than the one that was asked for. */
export function noteStandIn({ model, served_by }: Answer): void {
  if (served_by === 'builtin' && process.stderr.isTTY)
    console.error(styleText('yellow', `The stand-in answered, not ${model}.`));
}
