// Records what a client has been sent of its response, in case another backend must continue it. To keep this cheap, wire
// events are parsed only when they take up too much space or the transcript is read. Parsing each event at once, a stream of
// 50 chunks costs the server 1.59 times the CPU if the chunks arrive together, and 1.09 times if each has a packet
// (`bench/cpu.ts`).

import type {
  ChatChoiceDelta,
  CompletionChoice,
  EngineChunk,
  Task,
  WireEvents,
} from '#inference/engine.ts';
import { parseEvents } from '#inference/wire.ts';

/** Maximum bytes of unparsed events, which take about forty times the space of their text. */
const maxUnreadBytes = 16 * 1024;
const maxTextLength = 1024 * 1024;
const maxPieces = 64;

/** A class, because every stream creates one. */
export class Transcript {
  readonly #kind: Task['kind'];
  #unread: WireEvents = '';
  /** The text before the unread events. */
  readonly #pieces: string[] = [];
  #length = 0;
  #isFinished = false;
  #isLost = false;

  constructor(kind: Task['kind']) {
    this.#kind = kind;
  }

  add(item: EngineChunk | WireEvents): void {
    if (this.#isLost) return;
    if (typeof item === 'string') {
      this.#unread += item;
      if (this.#unread.length > maxUnreadBytes) this.#readUnread();
    } else {
      this.#readUnread();
      for (const choice of item.choices) this.#see(choice);
    }
    if (this.#pieces.length >= maxPieces) this.#join(0);
  }

  /** Null if the response contains more than text, or more text than is kept. */
  read(): { text: string; isFinished: boolean } | null {
    this.#readUnread();
    return this.#isLost ? null : { text: this.#pieces.join(''), isFinished: this.#isFinished };
  }

  #readUnread(): void {
    if (this.#unread === '') return;
    const from = this.#pieces.length;
    for (const { choices = [] } of parseEvents(this.#unread))
      for (const choice of choices) this.#see(choice);
    this.#unread = '';
    this.#join(from);
  }

  #see(choice: ChatChoiceDelta | CompletionChoice): void {
    if (this.#isLost) return;
    const isChat = this.#kind === 'chat';
    const piece = isChat ? toText(choice as ChatChoiceDelta) : toPlainText(choice);
    if (choice.finish_reason != null) this.#isFinished = true;
    if (piece === null || this.#length + piece.length > maxTextLength) {
      this.#isLost = true;
      this.#pieces.length = 0;
    } else {
      this.#pieces.push(piece);
      this.#length += piece.length;
    }
  }

  /** Copies pieces into one: each may be a slice that keeps all of the parsed text in memory. */
  #join(from: number): void {
    this.#pieces.push(this.#pieces.splice(from).join(''));
  }
}

/** Returns null for a delta with more than text: a tool call, reasoning, or any other member. */
function toText({ delta }: ChatChoiceDelta): string | null {
  for (const [name, value] of Object.entries(delta ?? {})) {
    if (name !== 'role' && name !== 'content' && isSomething(value)) return null;
  }
  return asText(delta?.content ?? '');
}

const toPlainText = (choice: ChatChoiceDelta | CompletionChoice) =>
  'text' in choice ? asText(choice.text) : null;

/** Some servers send a list of parts. */
const asText = (content: unknown) => (typeof content === 'string' ? content : null);

const isSomething = (value: unknown) =>
  value != null && value !== '' && !(Array.isArray(value) && value.length === 0);
