// The items of a conversation as the messages of a chat. What the model wrote in one turn
// (thoughts, text, calls) is one message, as chat templates expect it.

import type { ContentPart, InputItem } from '#inference/apis/responses/schema.ts';
import { type InferenceError, invalidValue, missingParameter } from '#inference/errors.ts';
import type { ChatMessage } from '#inference/schema.ts';
import type { MessageSource } from '#inference/serving/own-names.ts';
import type { ClientTool, ToolSet } from './tools.ts';

/** Opens texts that this server sealed. Null for those of others. */
export type Unseal = (sealed: string) => string | null;

type ChatContent = Exclude<ChatMessage['content'], string | null | undefined>;
type ChatPart = ChatContent[number] & Record<string, unknown>;

/** The items that a model reads, and where the request has them. */
export interface PlacedItems {
  readonly items: readonly InputItem[];
  /** Path of an item in the request. */
  placeOf(index: number): string;
}

export interface TranslatedMessages {
  readonly messages: ChatMessage[];
  readonly sources: readonly MessageSource[];
}

/** Throws InferenceError with the place of the item at fault. */
export function toMessages(
  instructions: string | null,
  { items, placeOf }: PlacedItems,
  tools: ToolSet,
  unseal: Unseal,
): TranslatedMessages {
  const conversation = new Conversation(tools, unseal);
  if (instructions !== null && instructions !== '')
    conversation.addSystem(instructions, { place: 'instructions' });
  for (const [index, item] of items.entries()) conversation.add(item, placeOf(index));
  return conversation.finish();
}

class Conversation {
  readonly #tools: ToolSet;
  readonly #unseal: Unseal;
  readonly #messages: ChatMessage[] = [];
  /** One per message. */
  readonly #sources: MessageSource[] = [];
  /** What the model wrote since the last message of another role. */
  #turn: ChatMessage | null = null;
  #turnPlace = '';
  /** Images and files in the outputs of tools, which a chat can only have in a message of the user. */
  #shown: ChatContent = [];
  #shownPlaces: string[] = [];
  /** Call ids of shell calls by their item's id, which their outputs may name instead. */
  readonly #shellCalls = new Map<string, string>();

  constructor(tools: ToolSet, unseal: Unseal) {
    this.#tools = tools;
    this.#unseal = unseal;
  }

  /** Leading instructions are one message: many templates take only one, and only at the start. */
  addSystem(text: string | ChatContent, source: MessageSource): void {
    const [first] = this.#messages;
    const isStart = this.#messages.length === 1 && first?.role === 'system' && this.#turn === null;
    if (isStart && typeof text === 'string' && typeof first.content === 'string')
      first.content += `\n\n${text}`;
    else this.#push({ role: 'system', content: text }, source);
  }

  add(item: InputItem, place: string): void {
    const type = item.type ?? (item.role == null ? 'item_reference' : 'message');
    switch (type) {
      case 'message':
        this.#addMessage(item, place);
        break;
      case 'reasoning':
        this.#addThoughts(item, place);
        break;
      case 'function_call':
        this.#addCall(item, 'function', toArguments(item.arguments), place);
        break;
      case 'custom_tool_call':
        this.#addCall(item, 'custom', JSON.stringify({ input: item.input ?? '' }), place);
        break;
      case 'tool_search_call':
        this.#addCall(item, 'tool_search', toArguments(item.arguments), place);
        break;
      case 'local_shell_call':
        if (item.id != null && item.call_id != null) this.#shellCalls.set(item.id, item.call_id);
        this.#addCall(item, 'local_shell', toShellArguments(item), place);
        break;
      case 'function_call_output':
      case 'custom_tool_call_output':
      case 'local_shell_call_output':
        this.#addOutput(item, place);
        break;
      case 'tool_search_output':
        this.#addFound(item, place);
        break;
      case 'compaction':
        this.#addSummary(item, place);
        break;
      case 'item_reference':
        throw itemNotFound(item.id ?? '', place);
      default:
        if (!ignoredItems.has(type)) throw unknownItem(type, place);
    }
  }

  finish(): TranslatedMessages {
    this.#endTurn();
    // An empty conversation is answered too, and templates need a message to answer.
    if (this.#messages.every(({ role }) => role === 'system')) {
      this.#write({ role: 'user', content: '' }, { place: 'input' });
    }
    return { messages: this.#messages, sources: this.#sources };
  }

  #addMessage(item: InputItem, place: string): void {
    if (item.content == null) throw missingParameter(`${place}.content`);
    if (item.role == null) throw missingParameter(`${place}.role`);
    const content = toContent(item.content, `${place}.content`);
    const source = { place, parts: toPartPlaces(content, `${place}.content`) };
    if (item.role === 'user') this.#push({ role: 'user', content }, source);
    else if (item.role === 'assistant') {
      const turn = this.#openTurn(place);
      turn.content = `${turn.content ?? ''}${toText(item.content)}`;
    } else this.addSystem(toPlainText(content) ?? content, source);
  }

  #addThoughts(item: InputItem, place: string): void {
    const parts = typeof item.content === 'string' ? item.content : toText(item.content ?? []);
    const sealed = item.encrypted_content ?? null;
    const text = parts !== '' || sealed === null ? parts : (this.#unseal(sealed) ?? '');
    if (text === '') return;
    const turn = this.#openTurn(place);
    turn.reasoning_content = `${turn.reasoning_content ?? ''}${text}`;
  }

  #addCall(item: InputItem, kind: ClientTool['kind'], args: string, place: string): void {
    const isNamed = kind === 'function' || kind === 'custom';
    if (isNamed && item.name == null) throw missingParameter(`${place}.name`);
    const id = item.call_id ?? item.id;
    if (id == null) throw missingParameter(`${place}.call_id`);
    const tool = { kind, name: item.name ?? kind, namespace: item.namespace ?? undefined };
    const name = this.#tools.toFunctionName(tool);
    const turn = this.#openTurn(place);
    turn.tool_calls ??= [];
    turn.tool_calls.push({ id, type: 'function', function: { name, arguments: args } });
  }

  #addOutput(item: InputItem, place: string): void {
    const own = item.call_id ?? this.#shellCalls.get(item.id ?? '') ?? item.id;
    if (own == null) throw missingParameter(`${place}.call_id`);
    if (item.output == null) throw missingParameter(`${place}.output`);
    const output = toContent(toOutput(item.output, `${place}.output`), `${place}.output`);
    const parts = typeof output === 'string' ? [{ type: 'text', text: output }] : output;
    const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => text ?? '');
    this.#endTurn(false);
    this.#write({ role: 'tool', tool_call_id: own, content: texts.join('\n') }, { place });
    for (const [index, part] of parts.entries()) {
      if (part.type === 'text') continue;
      this.#shown.push(part);
      this.#shownPlaces.push(`${place}.output[${index}]`);
    }
  }

  /** The tools themselves are among those of the request; see `collectTools`. */
  #addFound({ call_id: id, tools }: InputItem, place: string): void {
    if (id == null) throw missingParameter(`${place}.call_id`);
    const names = (tools ?? []).map(({ name, type }) => name ?? type);
    const content = `Available from now on: ${names.length === 0 ? 'no further tools' : names.join(', ')}.`;
    this.#endTurn(false);
    this.#write({ role: 'tool', tool_call_id: id, content }, { place });
  }

  #addSummary({ encrypted_content: sealed }: InputItem, place: string): void {
    if (sealed == null) throw missingParameter(`${place}.encrypted_content`);
    const text = this.#unseal(sealed);
    if (text === null) throw foreignSummary(place);
    const content = `Summary of the conversation until here:\n\n${text}`;
    this.#push({ role: 'user', content }, { place });
  }

  #write(message: ChatMessage, source: MessageSource): void {
    this.#messages.push(message);
    this.#sources.push(source);
  }

  #push(message: ChatMessage, source: MessageSource): void {
    this.#endTurn();
    this.#write(message, source);
  }

  #openTurn(place: string): ChatMessage {
    this.#showRest();
    if (this.#turn === null) this.#turnPlace = place;
    this.#turn ??= { role: 'assistant', content: null };
    return this.#turn;
  }

  /** Outputs of tools stay together. */
  #endTurn(showsRest = true): void {
    const turn = this.#turn;
    this.#turn = null;
    // Thoughts alone are not a message.
    if (turn !== null && (turn.content !== null || turn.tool_calls != null)) {
      this.#write(turn, { place: this.#turnPlace });
    }
    if (showsRest) this.#showRest();
  }

  #showRest(): void {
    if (this.#shown.length === 0) return;
    const [place = ''] = this.#shownPlaces;
    this.#write({ role: 'user', content: this.#shown }, { place, parts: this.#shownPlaces });
    this.#shown = [];
    this.#shownPlaces = [];
  }
}

/** What hosted tools did in conversations with other servers, and items without content for a model. */
const ignoredItems: ReadonlySet<string> = new Set([
  'additional_tools',
  'code_interpreter_call',
  'compaction_trigger',
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'image_generation_call',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'web_search_call',
]);

const toArguments = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value ?? {});

function toShellArguments({ action }: InputItem): string {
  const { type: _, ...rest } = action ?? {};
  return JSON.stringify(rest);
}

const textTypes: ReadonlySet<string> = new Set([
  'input_text',
  'output_text',
  'text',
  'summary_text',
  'reasoning_text',
]);

/** The text of all parts. */
function toText(content: string | readonly ContentPart[]): string {
  if (typeof content === 'string') return content;
  return content.map(({ text, refusal }) => text ?? refusal ?? '').join('');
}

/** Shells and tools of any kind have outputs, so the schema checks none of their parts. Throws InferenceError. */
function toOutput(output: string | readonly unknown[], place: string): string | ContentPart[] {
  if (typeof output === 'string') return output;
  return output.map((part, index) => {
    const { type, text = '', refusal = '' } = (part ?? {}) as Record<string, unknown>;
    const isPart = [type, text ?? '', refusal ?? ''].every((one) => typeof one === 'string');
    if (isPart) return part as ContentPart;
    throw invalidValue(
      `${place}[${index}]`,
      'A part of an output must have a type, and a text or an image.',
    );
  });
}

/** Text alone stays a string, which every template takes. */
function toContent(content: string | readonly ContentPart[], place: string): string | ChatContent {
  if (typeof content === 'string') return content;
  const parts = content.map((part, index) => toChatPart(part, `${place}[${index}]`));
  if (parts.length > 1 || parts[0]?.type !== 'text') return parts.length === 0 ? '' : parts;
  return parts[0].text ?? '';
}

const toPartPlaces = (content: string | ChatContent, place: string): string[] =>
  typeof content === 'string' ? [] : content.map((_, index) => `${place}[${index}]`);

/** The paragraphs of a text in parts; null if there are other parts among them. */
function toPlainText(content: string | ChatContent): string | null {
  if (typeof content === 'string') return content;
  if (content.some(({ type }) => type !== 'text')) return null;
  return content.map(({ text }) => text ?? '').join('\n\n');
}

function toChatPart(part: ContentPart, place: string): ChatPart {
  const { type, text, refusal } = part;
  if (textTypes.has(type)) {
    if (text == null) throw missingParameter(`${place}.text`);
    return { type: 'text', text };
  }
  if (type === 'refusal') return { type: 'text', text: refusal ?? '' };
  if (type === 'input_image') return toImagePart(part, place);
  if (type === 'input_file') {
    const { file_data, filename, file_id, file_url } = part;
    if (file_data == null && file_id == null) {
      if (file_url == null) throw missingParameter(`${place}.file_data`);
      throw invalidValue(
        `${place}.file_url`,
        `${place}.file_url is not fetched by this server. Send the file as file_data.`,
      );
    }
    return { type: 'file', file: { file_data, filename, file_id } };
  }
  const { text: _, ...rest } = part;
  return text == null ? rest : { ...rest, text };
}

function toImagePart({ image_url: url, detail }: ContentPart, place: string): ChatPart {
  if (url == null) {
    throw invalidValue(
      `${place}.image_url`,
      'An image must be given by image_url, as a data URL or an address.',
    );
  }
  const image = typeof url === 'string' ? { url } : url;
  return { type: 'image_url', image_url: { ...image, ...(detail != null && { detail }) } };
}

const itemNotFound = (id: string, place: string): InferenceError =>
  invalidValue(
    place,
    `There is no item ${JSON.stringify(id.slice(0, 100))} here. Send the item itself: only items of stored responses can be referred to.`,
  );

const unknownItem = (type: string, place: string): InferenceError =>
  invalidValue(
    `${place}.type`,
    `${place}.type is ${JSON.stringify(type.slice(0, 40))}, which is not a known type of item.`,
  );

const foreignSummary = (place: string): InferenceError =>
  invalidValue(
    `${place}.encrypted_content`,
    'This compaction was not made by this server for your account, so it can’t be read. Send the items instead.',
  );
