// Records what each client has been sent of its response, in case another backend must continue it. To keep this
// cheap, wire events are parsed only when they take up too much space or the transcript is read.

import type {
  ChatChoiceDelta,
  CompletionChoice,
  EngineChunk,
  Task,
  WireEvents,
} from '#inference/engine.ts';
import { parseEvents } from '#inference/wire.ts';

/**
 * Maximum bytes of unparsed events in all transcripts together. Events take about forty times the space of their
 * text.
 */
const maxUnreadBytes = 2 * 1024 * 1024;
/** Fewer unparsed bytes than this are not worth parsing. */
const minReadBytes = 1024;
/** Minimum size of the block that collects small events. Blocks get smaller as more transcripts are open. */
const minBlockBytes = 2 * 1024;
const maxBlockBytes = 16 * 1024;
const allBlocks = 1024 * 1024;
/** Maximum small events of a stream before they are collected in a block. Most fast streams have few. */
const maxLooseEvents = 4;
const maxTextLength = 1024 * 1024;
const maxPieces = 64;

export type OpenTranscript = (kind: Task['kind']) => Transcript;

/** Creates transcripts that share the memory for unread events. */
export function createTranscripts(): OpenTranscript {
  const room: Room = { unread: 0, open: 0 };
  return (kind) => new Transcript(kind, room);
}

interface Room {
  /** Unparsed bytes in all transcripts. */
  unread: number;
  open: number;
}

/**
 * Single events are copied into a block outside the heap: strings kept one by one would reach the old generation
 * and be collected late. A class, because every stream creates one.
 */
export class Transcript {
  readonly #kind: Task['kind'];
  readonly #room: Room;
  /** Unparsed events, followed by those in the block. */
  readonly #loose: WireEvents[] = [];
  #block: Buffer | null = null;
  #blockBytes = 0;
  /** This transcript's part of the shared memory. */
  #taken = 0;
  #text = '';
  /** Text that follows `#text`. `#length` is the length of both. */
  readonly #pieces: string[] = [];
  #length = 0;
  #isFinished = false;
  #isLost = false;
  #isOpen = true;

  constructor(kind: Task['kind'], room: Room) {
    this.#kind = kind;
    this.#room = room;
    room.open++;
  }

  add(item: EngineChunk | WireEvents): void {
    if (this.#isLost) return;
    if (typeof item !== 'string') {
      if (this.#taken > 0 || this.#pieces.length >= maxPieces) this.#readUnread();
      for (const choice of item.choices) this.#see(choice);
    } else if (item.length < minReadBytes && this.#isSlow()) this.#gather(item);
    else this.#keep(item);
    if (this.#room.unread > maxUnreadBytes && this.#taken >= minReadBytes) this.#readUnread();
  }

  /** Null if the response contains more than text, or more text than is kept. */
  read(): { text: string; isFinished: boolean } | null {
    this.#readUnread();
    this.#joinText();
    return this.#isLost ? null : { text: this.#text, isFinished: this.#isFinished };
  }

  /** Releases the transcript's memory; it will not be read again. */
  close(): void {
    this.#forgetUnread();
    this.#block = null;
    this.#isLost = true;
    this.#forgetText();
    if (this.#isOpen) this.#room.open--;
    this.#isOpen = false;
  }

  #isSlow(): boolean {
    return this.#block !== null || this.#loose.length >= maxLooseEvents;
  }

  #keep(item: WireEvents): void {
    if (this.#blockBytes > 0) this.#loose.push(this.#gathered());
    this.#blockBytes = 0;
    this.#loose.push(item);
    this.#take(item.length);
  }

  #gather(item: WireEvents): void {
    this.#block ??= Buffer.allocUnsafeSlow(toBlockBytes(this.#room));
    if (this.#blockBytes + item.length > this.#block.length) this.#readUnread();
    this.#blockBytes += this.#block.write(item, this.#blockBytes, 'latin1');
    this.#take(item.length);
  }

  #gathered(): WireEvents {
    return this.#block?.toString('latin1', 0, this.#blockBytes) ?? '';
  }

  #take(bytes: number): void {
    this.#taken += bytes;
    this.#room.unread += bytes;
  }

  #readUnread(): void {
    if (this.#blockBytes > 0) this.#loose.push(this.#gathered());
    const pieces = this.#pieces;
    const before = pieces.length;
    for (const events of this.#loose) {
      for (const { choices = [] } of parseEvents(events)) {
        for (const choice of choices) this.#see(choice);
      }
    }
    // Joined, because each piece may be a slice that keeps all the parsed text in memory.
    if (pieces.length > before) pieces.push(pieces.splice(before).join(''));
    if (pieces.length >= maxPieces) this.#joinText();
    this.#forgetUnread();
  }

  #forgetUnread(): void {
    this.#take(-this.#taken);
    this.#loose.length = 0;
    this.#blockBytes = 0;
  }

  #see(choice: ChatChoiceDelta | CompletionChoice): void {
    const isChat = this.#kind === 'chat';
    const piece = isChat ? toText(choice as ChatChoiceDelta) : toPlainText(choice);
    if (piece === null || this.#length + piece.length > maxTextLength) this.#isLost = true;
    else {
      this.#pieces.push(piece);
      this.#length += piece.length;
    }
    if (choice.finish_reason != null) this.#isFinished = true;
    if (this.#isLost) this.#forgetText();
  }

  /** Flattens the text: a rope of a hundred words takes ten times the space of the words. */
  #joinText(): void {
    this.#text = [this.#text].concat(this.#pieces).join('');
    this.#pieces.length = 0;
  }

  #forgetText(): void {
    this.#text = '';
    this.#pieces.length = 0;
  }
}

const toBlockBytes = ({ open }: Room) =>
  Math.min(Math.max(Math.floor(allBlocks / open), minBlockBytes), maxBlockBytes);

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
