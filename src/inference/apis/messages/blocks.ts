// Writes a stream's text, thoughts and tool calls as content blocks. Only one block is open at a
// time, though engines may interleave: what belongs to a later block waits until the open one has
// ended.

import type { CallPiece } from '#inference/choice-output.ts';

interface Block {
  readonly kind: 'text' | 'thinking' | 'tool_use';
  /** What was not written yet. */
  text: string;
  isOpen: boolean;
  /** Null for blocks that aren't calls. */
  readonly call: Call | null;
}

interface Call {
  /** The engine's number of the call. */
  readonly index: number;
  id: string;
  name: string;
  readonly arguments: JsonEnd;
}

export class BlockWriter {
  /** Sent as the signature of thoughts, and as the beginning of ids that an engine left out. */
  readonly #messageId: string;
  /** The first one is open, unless its name or its first visible character is missing. */
  readonly #queue: Block[] = [];
  /** Numbers of the calls that were written and closed. */
  readonly #closed = new Set<number>();
  #index = 0;
  #deltaHead = '';
  #hasCalls = false;

  constructor(messageId: string) {
    this.#messageId = messageId;
  }

  get hasCalls(): boolean {
    return this.#hasCalls;
  }

  /** True if a text block is open and nothing waits for its end. */
  get isText(): boolean {
    const [block] = this.#queue;
    return block?.kind === 'text' && block.isOpen && this.#queue.length === 1;
  }

  /** Writes a text that is JSON already to the open text block. */
  passText(text: string): string {
    return text === '""' ? '' : `${this.#deltaHead}${text}}}\n\n`;
  }

  add(kind: 'text' | 'thinking', text: string): string {
    const last = this.#queue.at(-1);
    if (last?.kind === kind) last.text += text;
    else this.#queue.push({ kind, text, isOpen: false, call: null });
    return this.#advance(false);
  }

  addCall({ index, id, function: part }: CallPiece): string {
    // Nothing can follow a complete object but white space.
    if (this.#closed.has(index)) return '';
    let block = this.#queue.find(({ call }) => call?.index === index);
    if (block === undefined) {
      const call = { index, id: '', name: '', arguments: new JsonEnd() };
      block = { kind: 'tool_use', text: '', isOpen: false, call };
      this.#queue.push(block);
      this.#hasCalls = true;
    }
    const call = block.call as Call;
    call.id ||= id;
    call.name ||= part.name;
    call.arguments.read(part.arguments);
    block.text += part.arguments;
    return this.#advance(false);
  }

  /** Writes what waits, and closes the last block. */
  end(): string {
    return this.#advance(true);
  }

  #advance(isEnd: boolean): string {
    let written = '';
    for (;;) {
      const [block] = this.#queue;
      if (block === undefined) return written;
      const isLast = this.#queue.length === 1;
      const hasEnded = isEnd || (!isLast && (block.call?.arguments.isComplete ?? true));
      if (!block.isOpen && (isReady(block) || (hasEnded && block.call !== null))) {
        written += this.#open(block);
      }
      if (block.isOpen && block.text !== '') {
        written += `${this.#deltaHead}${JSON.stringify(block.text)}}}\n\n`;
        block.text = '';
      }
      if (!hasEnded) return written;
      // A block that never opened is white space alone.
      if (block.isOpen) written += this.#close(block);
      this.#queue.shift();
    }
  }

  #open(block: Block): string {
    const at = `"index":${this.#index}`;
    const member = members[block.kind];
    this.#deltaHead = `event: content_block_delta\ndata: {"type":"content_block_delta",${at},"delta":{${member}:`;
    block.isOpen = true;
    return toEvent('content_block_start', `${at},"content_block":${this.#toStart(block)}`);
  }

  #toStart({ kind, call }: Block): string {
    if (kind === 'text') return '{"type":"text","text":""}';
    if (call === null) return '{"type":"thinking","thinking":"","signature":""}';
    const id = call.id || `toolu_${this.#messageId}_${call.index}`;
    return JSON.stringify({ type: 'tool_use', id, name: call.name, input: {} });
  }

  #close({ kind, call }: Block): string {
    const at = `"index":${this.#index++}`;
    if (call !== null) this.#closed.add(call.index);
    const delta = `"delta":{"type":"signature_delta","signature":${JSON.stringify(this.#messageId)}}`;
    const signature = kind === 'thinking' ? toEvent('content_block_delta', `${at},${delta}`) : '';
    return signature + toEvent('content_block_stop', at);
  }
}

/** How the delta of each kind of block begins. */
const members = {
  text: '"type":"text_delta","text"',
  thinking: '"type":"thinking_delta","thinking"',
  tool_use: '"type":"input_json_delta","partial_json"',
} as const;

const isReady = ({ text, call }: Block) => (call === null ? /\S/.test(text) : call.name !== '');

export const toEvent = (type: string, members: string) =>
  `event: ${type}\ndata: {"type":"${type}"${members === '' ? '' : ','}${members}}\n\n`;

/** Finds the end of a JSON object that arrives in pieces. */
class JsonEnd {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  isComplete = false;

  read(piece: string): void {
    for (const character of piece) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInString) {
        if (character === '\\') this.#isEscaped = true;
        else if (character === '"') this.#isInString = false;
      } else if (character === '"') this.#isInString = true;
      else if (character === '{' || character === '[') this.#depth++;
      else if ((character === '}' || character === ']') && --this.#depth === 0)
        this.isComplete = true;
    }
  }
}
