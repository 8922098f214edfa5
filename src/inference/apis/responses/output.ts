// The output of one response, collected from the chunks of a chat: items, and the events that announce them. A whole
// response is collected the same way, so that both have the same items.

import { OpenCall, toCallItem } from '#inference/apis/responses/request/calls.ts';
import type { ToolSet } from '#inference/apis/responses/request/tools.ts';
import { type CallPiece, readOutput } from '#inference/choice-output.ts';
import type { ChatChoiceDelta, ChatLogprobs, FinishReason } from '#inference/wire/response.ts';
import { parseText } from '#inference/wire/text-events.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { type EventWriter, toHead } from './events.ts';
import type {
  ItemStatus,
  MessageItem,
  OutputItem,
  OutputLogprob,
  ReasoningItem,
} from './schema.ts';

export interface OutputOptions {
  /** Digits from which the ids of all items are made. */
  readonly idBase: string;
  readonly tools: ToolSet;
  readonly hasLogprobs: boolean;
  /** Seals thoughts for the client to keep; null if it doesn't ask for them. */
  readonly seal: ((text: string) => string) | null;
}

export class Output {
  readonly items: OutputItem[] = [];
  finish: FinishReason | null = null;
  readonly #options: OutputOptions;
  readonly #events: EventWriter;
  /** The text or the thoughts that are arriving. */
  #part: OpenPart | null = null;
  /** Calls stay open until the end: engines may write several at once. */
  readonly #calls = new Map<number, PendingCall>();

  constructor(options: OutputOptions, events: EventWriter) {
    this.#options = options;
    this.#events = events;
  }

  /** Returns the events that follow from a chunk. */
  take({ delta, logprobs, finish_reason }: ChatChoiceDelta): string {
    let written = '';
    const { text, thoughts, calls } = readOutput(delta);
    if (thoughts !== '') written += this.#addThoughts(thoughts);
    if (text !== '') written += this.#addText(text, logprobs);
    for (const call of calls) written += this.#addCall(call);
    if (finish_reason === null || finish_reason === undefined) return written;
    this.finish = finish_reason;
    return written + this.close(finish_reason === 'length' ? 'incomplete' : 'completed');
  }

  /** Takes a piece of text as JSON in the bytes of the wire. Returns its events in bytes. */
  passText(piece: string): string {
    const text = parseText(piece);
    if (text === null || text === '') return '';
    const part = this.#part;
    if (part?.item.type !== 'message' || this.#options.hasLogprobs)
      return toBytes(this.#addText(text, null));
    part.text += text;
    return this.#events.writeAfter(part.deltaHead, piece + noLogprobs);
  }

  /** Completes all items. The status is that of the last one, where the output ends. */
  close(status: ItemStatus): string {
    let written = this.#closePart(this.#calls.size === 0 ? status : 'completed');
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const [index, call] of calls.entries()) {
      if (call.open === null) written += this.#openCall(call);
      written += this.#endCall(call, index === calls.length - 1 ? status : 'completed');
    }
    return written;
  }

  #addThoughts(text: string): string {
    const opening = this.#part?.item.type === 'reasoning' ? '' : this.#openPart('reasoning');
    return opening + this.#addDelta(text, '');
  }

  #addText(text: string, logprobs: ChatLogprobs | null): string {
    const opening = this.#part?.item.type === 'message' ? '' : this.#openPart('message');
    if (!this.#options.hasLogprobs) return opening + this.#addDelta(text, noLogprobs);
    const scores = (logprobs?.content ?? []).map(toOutputLogprob);
    this.#part?.logprobs.push(...scores);
    return opening + this.#addDelta(text, `,"logprobs":${JSON.stringify(scores)}`);
  }

  #addDelta(text: string, more: string): string {
    const part = this.#part as OpenPart;
    part.text += text;
    return this.#events.writeAfter(part.deltaHead, JSON.stringify(text) + more);
  }

  #openPart(type: 'message' | 'reasoning'): string {
    const closing = this.#closePart('completed');
    const index = this.items.length;
    const item = toTextItem(type, this.#nextSuffix());
    this.items.push(item);
    const at = `"item_id":"${item.id}","output_index":${index},"content_index":0`;
    const event = type === 'message' ? 'output_text' : 'reasoning_text';
    const deltaHead = `${toHead(`${event}.delta`)}${at},"delta":`;
    this.#part = { item, index, at, event, deltaHead, text: '', logprobs: [] };
    return (
      closing +
      this.#writeItem('added', item, index) +
      this.#events.write('content_part.added', `${at},"part":${toPartJson(type, '""', '[]')}`)
    );
  }

  #closePart(status: ItemStatus): string {
    const part = this.#part;
    if (part === null) return '';
    this.#part = null;
    const { item, index, at, event, text } = part;
    const { seal } = this.#options;
    item.status = status;
    if (item.type === 'message') {
      const { logprobs } = part;
      item.content = [{ type: 'output_text', text, annotations: [], logprobs }];
    } else {
      item.content = [{ type: 'reasoning_text', text }];
      if (seal !== null) item.encrypted_content = seal(text);
    }
    const quoted = JSON.stringify(text);
    const scores = JSON.stringify(part.logprobs);
    const more = item.type === 'message' ? `,"logprobs":${scores}` : '';
    const content = toPartJson(item.type, quoted, scores);
    return (
      this.#events.write(`${event}.done`, `${at},"text":${quoted}${more}`) +
      this.#events.write('content_part.done', `${at},"part":${content}`) +
      this.#writeItem('done', item, index)
    );
  }

  #addCall({ index, id, function: part }: CallPiece): string {
    let call = this.#calls.get(index);
    let written = '';
    if (call === undefined) {
      written += this.#closePart('completed');
      call = { id, name: '', early: '', index: this.items.length, open: null };
      this.#calls.set(index, call);
    }
    const piece = part.arguments;
    if (call.open !== null) return written + call.open.take(piece, this.#events);
    call.id ||= id;
    call.name ||= part.name;
    call.early += piece;
    // Some engines send the name after the id. A call without one is sent in the end, for the client to refuse.
    return call.name === '' ? written : written + this.#openCall(call);
  }

  #openCall(call: PendingCall): string {
    const suffix = this.#nextSuffix();
    const tool = this.#options.tools.find(call.name);
    const item = toCallItem(tool, call.id === '' ? `call_${suffix}` : call.id, suffix);
    call.index = this.items.length;
    call.open = new OpenCall(item, call.index);
    this.items.push(item);
    const added = this.#writeItem('added', item, call.index);
    return call.early === '' ? added : added + call.open.take(call.early, this.#events);
  }

  #endCall({ open, index }: PendingCall, status: ItemStatus): string {
    if (open === null) return '';
    return open.end(status, this.#events) + this.#writeItem('done', open.item, index);
  }

  #writeItem(moment: 'added' | 'done', item: OutputItem, index: number): string {
    const members = `"output_index":${index},"item":${JSON.stringify(item)}`;
    return this.#events.write(`output_item.${moment}`, members);
  }

  #nextSuffix(): string {
    return this.#options.idBase + this.items.length.toString(16).padStart(4, '0');
  }
}

const noLogprobs = ',"logprobs":[]';

interface OpenPart {
  readonly item: MessageItem | ReasoningItem;
  readonly index: number;
  /** The members that say where the part is. */
  readonly at: string;
  readonly event: 'output_text' | 'reasoning_text';
  readonly deltaHead: string;
  text: string;
  readonly logprobs: OutputLogprob[];
}

interface PendingCall {
  id: string;
  name: string;
  /** Arguments that came before the name. */
  early: string;
  /** Place among the items. */
  index: number;
  /** Null until the name is known. */
  open: OpenCall | null;
}

const toTextItem = (type: 'message' | 'reasoning', suffix: string): MessageItem | ReasoningItem =>
  type === 'message'
    ? { id: `msg_${suffix}`, type, status: 'in_progress', role: 'assistant', content: [] }
    : { id: `rs_${suffix}`, type, status: 'in_progress', summary: [], content: [] };

const toPartJson = (type: 'message' | 'reasoning', text: string, logprobs: string): string =>
  type === 'message'
    ? `{"type":"output_text","text":${text},"annotations":[],"logprobs":${logprobs}}`
    : `{"type":"reasoning_text","text":${text}}`;

const toOutputLogprob = ({
  token,
  bytes,
  logprob,
  top_logprobs,
}: NonNullable<ChatLogprobs['content']>[number]): OutputLogprob => ({
  token,
  bytes,
  logprob,
  top_logprobs: top_logprobs ?? [],
});
