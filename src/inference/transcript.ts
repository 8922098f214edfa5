// What clients have been sent of their answers, kept as cheaply as may be in case another backend must go on
// from there: events in the wire's form are only read once they all take up room, or somebody asks.

import { fromBytes, toBytes } from '../lib/byte-string.ts';
import type { ChatChoiceDelta, CompletionChoice, EngineChunk, Task, WireEvents } from './engine.ts';

export interface Transcript {
  add(item: EngineChunk | WireEvents): void;
  /** Null when it holds more than text, or more text than is kept. */
  read(): { text: string; isFinished: boolean } | null;
  /** Nobody will go on from it. */
  close(): void;
}

/** What all transcripts together may hold unread: events take some forty times the room of their text. */
const mostUnread = 2 * 1024 * 1024;
/** Less than this is not worth the reading. */
const leastRead = 1024;
const mostText = 1024 * 1024;
const mostPieces = 64;

/** Makes transcripts that share the room for what is unread. */
export function createTranscripts(): (kind: Task['kind']) => Transcript {
  let allUnread = 0;
  const holds = (change: number) => {
    allUnread += change;
    return allUnread > mostUnread;
  };
  return (kind) => createTranscript(kind, holds);
}

/** `holds` is told by how much the unread grows or shrinks, and says whether it is too much. */
function createTranscript(kind: Task['kind'], holds: (change: number) => boolean): Transcript {
  let unread: WireEvents[] = [];
  let unreadLength = 0;
  let text = '';
  /** What follows it, and how long both are. */
  let pieces: string[] = [];
  let length = 0;
  let isFinished = false;
  let isLost = false;

  function readUnread(): void {
    for (const events of unread) {
      for (const { choices = [] } of parseEvents(events)) for (const choice of choices) see(choice);
    }
    // In one piece: a chain of a hundred words takes ten times the room of the words.
    text = [text].concat(pieces).join('');
    pieces = [];
    forgetUnread();
  }

  function forgetUnread(): void {
    holds(-unreadLength);
    unread = [];
    unreadLength = 0;
  }

  function see(choice: ChatChoiceDelta | CompletionChoice): void {
    const piece = kind === 'chat' ? toText(choice as ChatChoiceDelta) : toPlainText(choice);
    if (piece === null || length + piece.length > mostText) isLost = true;
    else {
      pieces.push(piece);
      length += piece.length;
    }
    if (choice.finish_reason != null) isFinished = true;
    if (isLost) {
      text = '';
      pieces = [];
    }
  }

  return {
    add(item) {
      if (isLost) return;
      if (typeof item === 'string') {
        unread.push(item);
        unreadLength += item.length;
        if (holds(item.length) && unreadLength >= leastRead) readUnread();
      } else {
        if (unread.length > 0 || pieces.length >= mostPieces) readUnread();
        for (const choice of item.choices) see(choice);
      }
    },
    read() {
      readUnread();
      return isLost ? null : { text, isFinished };
    },
    close() {
      forgetUnread();
      isLost = true;
      text = '';
      pieces = [];
    },
  };
}

/** One event as it stands on the wire. */
export interface WireEvent {
  choices?: (ChatChoiceDelta | CompletionChoice)[];
  [member: string]: unknown;
}

export function parseEvents(events: WireEvents): WireEvent[] {
  return fromBytes(events)
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .flatMap((event) => parseEvent(event.slice('data: '.length)));
}

/** What an upstream sends is served without being parsed, so one may turn out to be broken only here. */
function parseEvent(data: string): WireEvent[] {
  try {
    return [JSON.parse(data) as WireEvent];
  } catch {
    return [];
  }
}

export const toWireEvents = (event: WireEvent): WireEvents =>
  toBytes(`data: ${JSON.stringify(event)}\n\n`);

/** Null for a delta that says more than text: a tool call, a thought, whatever else a server sends. */
function toText({ delta }: ChatChoiceDelta): string | null {
  for (const [name, value] of Object.entries(delta ?? {})) {
    if (name !== 'role' && name !== 'content' && isSomething(value)) return null;
  }
  return delta?.content ?? '';
}

const toPlainText = (choice: ChatChoiceDelta | CompletionChoice) =>
  'text' in choice ? choice.text : null;

const isSomething = (value: unknown) =>
  value != null && value !== '' && !(Array.isArray(value) && value.length === 0);
