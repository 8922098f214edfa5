// Translates a request of the Messages API into a chat, the one form that engines take.

import type { Task } from '#inference/engine.ts';
import { invalidValue } from '#inference/errors.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import type { OwnNames } from '#inference/serving/own-names.ts';
import { textOf } from '#lib/json-members.ts';
import { blocksOf, nestedBlocks, type Part, toContent, toParts, toText } from './content.ts';
import type { Block, Content, CountTokensRequest, Message, MessagesRequest } from './schema.ts';

type ChatTask = Extract<Task, { kind: 'chat' }>;

/** Throws InferenceError if nothing of the request can be read. */
export function toTask(body: MessagesRequest): ChatTask {
  const { max_tokens, stop_sequences: stop, temperature, top_p, top_k } = body;
  const chat: ChatRequest = {
    ...toPrompt(body),
    // At least one token is generated, and left out of the response if none was asked for.
    max_tokens: Math.max(1, max_tokens),
    ...(body.stream === true && { stream: true }),
    ...(stop != null && stop.length > 0 && { stop }),
    ...(temperature != null && { temperature }),
    ...(top_p != null && { top_p }),
    ...(top_k != null && { top_k }),
    ...toResponseFormat(body),
  };
  return {
    kind: 'chat',
    body: chat,
    fitsMaximum: true,
    describesMedia: true,
    conversation: findConversation(body),
  };
}

/** The members that decide how many tokens the prompt has. Throws InferenceError like `toTask`. */
export function toPrompt(body: CountTokensRequest): ChatRequest {
  const { model, system } = body;
  const messages = [
    ...(system == null ? [] : toSystem(system)),
    ...body.messages.flatMap(toChatMessages),
  ];
  if (messages.length === 0) {
    throw invalidValue('messages', 'messages has no content that this server can read.');
  }
  const last = messages.at(-1);
  const continues = last?.role === 'assistant' && !last.tool_calls && last.content !== '';
  return {
    model,
    messages,
    ...toTools(body),
    ...(continues && { continue_final_message: true }),
  };
}

/** What errors name. The results of tools and the rest of a message are several messages of a chat. */
export function toNames({ system, messages }: CountTokensRequest): OwnNames {
  const instructions = system == null ? [] : toSystem(system);
  return {
    members: {
      stop: 'stop_sequences',
      response_format: 'output_config.format',
      tools: 'tools',
      tool_choice: 'tool_choice',
    },
    messages: [
      ...instructions.map(() => ({ place: 'system' })),
      ...messages.flatMap((message, index) =>
        toChatMessages(message).map(() => ({ place: `messages[${index}]` })),
      ),
    ],
  };
}

function toChatMessages({ role, content }: Message): ChatMessage[] {
  if (role === 'system') return toSystem(content);
  const blocks = blocksOf(content);
  return role === 'assistant' ? [toAssistant(blocks)] : toUser(blocks);
}

/** Claude Code's first block changes with every request, so that no cache would know the prompt. */
const billingHeader = /^x-anthropic-billing-header:[^\n]*\n*/;

function toSystem(content: Content): ChatMessage[] {
  const texts = blocksOf(content)
    .map(({ text = '' }) => text.replace(billingHeader, ''))
    .filter((text) => text !== '');
  return texts.length === 0 ? [] : [{ role: 'system', content: texts.join('\n') }];
}

/** The results of tools come before the rest, as chats require. Their images follow: a tool's message is text. */
function toUser(blocks: readonly Block[]): ChatMessage[] {
  const results = blocks.filter(({ type }) => type === 'tool_result').map(toResult);
  const rest = [
    ...results.flatMap(({ others }) => others),
    ...toParts(blocks.filter(({ type }) => type !== 'tool_result')),
  ];
  const tools = results.map(({ message }) => message);
  return rest.length === 0 ? tools : [...tools, { role: 'user', content: toContent(rest) }];
}

function toResult(block: Block): { message: ChatMessage; others: Part[] } {
  const { content, is_error } = block as Record<string, unknown>;
  const parts = toParts(nestedBlocks(content));
  const text = `${is_error === true ? 'Error: ' : ''}${toText(parts)}`;
  const message: ChatMessage = {
    role: 'tool',
    tool_call_id: textIn(block, 'tool_use_id'),
    content: text,
  };
  return { message, others: parts.filter(({ type }) => type !== 'text') };
}

/** Pieces of text are joined as they are: they were one text when the model generated them. */
function toAssistant(blocks: readonly Block[]): ChatMessage {
  const join = (kind: string, member: string) =>
    blocks
      .filter(({ type }) => type === kind)
      .map((block) => textOf((block as Record<string, unknown>)[member]))
      .join('');
  const calls = blocks.filter(({ type }) => type === 'tool_use').map(toToolCall);
  const content = join('text', 'text');
  const thoughts = join('thinking', 'thinking');
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(thoughts !== '' && { reasoning_content: thoughts }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function toToolCall(block: Block): NonNullable<ChatMessage['tool_calls']>[number] {
  const { input } = block as Record<string, unknown>;
  const called = { name: textIn(block, 'name'), arguments: JSON.stringify(input ?? {}) };
  return { id: textIn(block, 'id'), type: 'function', function: called };
}

/** A member that a block must have. Throws InferenceError. */
function textIn(block: Block, member: string): string {
  const value = (block as Record<string, unknown>)[member];
  if (typeof value === 'string') return value;
  throw invalidValue('messages', `A ${block.type} block must have a text as its ${member}.`);
}

function toTools({ tools, tool_choice: choice }: CountTokensRequest): Partial<ChatRequest> {
  const functions = (tools ?? []).flatMap(({ name, description, input_schema, strict }) =>
    name == null || input_schema == null
      ? []
      : [
          {
            type: 'function' as const,
            function: {
              name,
              ...(description != null && { description }),
              parameters: input_schema,
              ...(strict != null && { strict }),
            },
          },
        ],
  );
  const isWish = choice == null || choice.type === 'auto' || choice.type === 'none';
  // A demand for a tool stays, and is refused if there are none.
  if (functions.length === 0 && isWish) return {};
  return {
    ...(functions.length > 0 && { tools: functions }),
    ...(choice != null && { tool_choice: toToolChoice(choice) }),
    ...(choice?.disable_parallel_tool_use === true && { parallel_tool_calls: false }),
  };
}

function toToolChoice({
  type,
  name,
}: NonNullable<CountTokensRequest['tool_choice']>): NonNullable<ChatRequest['tool_choice']> {
  if (type === 'any') return 'required';
  return type === 'tool' ? { type: 'function', function: { name: name ?? '' } } : type;
}

function toResponseFormat({ output_config, output_format }: MessagesRequest): Partial<ChatRequest> {
  const format = output_config?.format ?? output_format;
  if (format?.type !== 'json_schema' || format.schema == null) return {};
  const json_schema = { name: 'output', schema: format.schema };
  return { response_format: { type: 'json_schema', json_schema } };
}

/** Characters of a `user_id` in which a session is looked for. The pattern takes the square of their number. */
const maxUserIdLength = 1_000;

/**
 * Claude Code names its session in `metadata.user_id`, as JSON or, in older versions, at its end. Headers that name it
 * are read in `request.ts`.
 */
function findConversation({ metadata }: MessagesRequest): string | undefined {
  const userId = metadata?.user_id ?? '';
  if (userId.length > maxUserIdLength) return undefined;
  const named = /"session_id"\s*:\s*"([^"]+)"|_session_([\w-]+)$/.exec(userId);
  return named?.[1] ?? named?.[2];
}
