// Renders chat messages to a prompt by the template in the model file, and evens out what templates differ in: the
// developer role, tools, and arguments as objects.

import { Template } from '@huggingface/jinja';
import { findConstraint } from '#inference/constraint.ts';
import {
  continuesAndOpens,
  lastMessageCallsTool,
  lastMessageLeftOut,
  templateRefused,
  textPartsOnly,
} from '#inference/engines/local/child/errors.ts';
import { toolCallClosing, toolCallOpening } from '#inference/engines/local/protocol.ts';
import type { ChatMessage, ChatRequest, Tool } from '#inference/schema.ts';
import { toSystemNotes } from '#inference/system-notes.ts';
import { thoughtClosing, thoughtOpening } from '#inference/think-tags.ts';

export interface TemplateMessage {
  role: string;
  content: string;
  name?: string;
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: unknown } }[];
  tool_call_id?: string;
  reasoning_content?: string;
}

export interface ChatPrompt {
  messages: TemplateMessage[];
  tools: Tool[] | null;
  /** The response continues the last message instead of opening a new one. */
  continues: boolean;
  addsGenerationPrompt: boolean;
  /** A thought that the template opens is closed at once: the output has a fixed form from its first token. */
  closesThought?: boolean;
  /** Variables of the request for the template, e.g. `enable_thinking`. */
  variables?: Readonly<Record<string, unknown>>;
}

export interface ChatTemplate {
  /** Throws EngineError `rejected` if the template refuses the messages. */
  render(prompt: ChatPrompt): string;
}

/** ChatML, which most current chat models were trained on. It is used if the model file has no template. */
const chatMl = `{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`;

export function createChatTemplate(
  source: string | null,
  specialText: { bos_token: string; eos_token: string },
): ChatTemplate {
  const text = source ?? chatMl;
  // Parsed on first use: plain completions work even if the template can't be parsed.
  let template: Template | null = null;
  const knowsDeveloper = text.includes('developer');
  // A template that does not know this form of tool call gets the tools in the system message.
  const knowsTools = text.includes('tools') && text.includes(toolCallOpening);

  function renderMessages(given: TemplateMessage[], prompt: ChatPrompt): string {
    const messages = knowsDeveloper ? given : given.map(developerToSystem);
    const tools = prompt.tools ?? [];
    const described = tools.length > 0 && !knowsTools ? describeTools(messages, tools) : messages;
    template ??= new Template(text);
    return template.render({
      ...prompt.variables,
      messages: prompt.continues ? markEnd(described) : described,
      ...(tools.length > 0 && knowsTools && { tools }),
      add_generation_prompt: prompt.addsGenerationPrompt,
      ...specialText,
    });
  }

  return {
    render(prompt) {
      const rendered = attempt(prompt.messages, (messages) => renderMessages(messages, prompt));
      if (prompt.continues) return cutAtEnd(rendered);
      return prompt.closesThought && opensThought(rendered)
        ? `${rendered.trimEnd()}\n\n${thoughtClosing}\n\n`
        : rendered;
    },
  };
}

export const opensThought = (rendered: string) => rendered.trimEnd().endsWith(thoughtOpening);

function attempt(
  messages: TemplateMessage[],
  render: (messages: TemplateMessage[]) => string,
): string {
  try {
    return render(messages);
  } catch (error) {
    const noted = toSystemNotes(messages);
    try {
      if (noted !== null) return render(noted);
    } catch {}
    throw templateRefused(error);
  }
}

function developerToSystem(message: TemplateMessage): TemplateMessage {
  return message.role === 'developer' ? { ...message, role: 'system' } : message;
}

function describeTools(
  messages: readonly TemplateMessage[],
  tools: readonly Tool[],
): TemplateMessage[] {
  const list = tools.map((tool) => JSON.stringify(tool)).join('\n');
  const instructions = `You have access to the following tools:\n<tools>\n${list}\n</tools>\nTo call a tool, answer with ${toolCallOpening}{"name": "tool name", "arguments": {...}}${toolCallClosing}`;
  const plain = messages.map((message) => ({
    ...message,
    tool_calls: undefined,
    content: [message.content, ...(message.tool_calls ?? []).map(toCallText)]
      .filter((part) => part !== '')
      .join('\n'),
  }));
  const [first, ...rest] = plain;
  if (first?.role !== 'system') return [{ role: 'system', content: instructions }, ...plain];
  return [{ ...first, content: `${first.content}\n\n${instructions}` }, ...rest];
}

function toCallText({
  function: call,
}: NonNullable<TemplateMessage['tool_calls']>[number]): string {
  return `${toolCallOpening}${JSON.stringify({ name: call.name, arguments: call.arguments })}${toolCallClosing}`;
}

/** A noncharacter, which no text contains. Templates that trim keep the white space before it. */
const endMark = '\ufdd1';

function markEnd(messages: readonly TemplateMessage[]): TemplateMessage[] {
  return messages.map((message, at) =>
    at < messages.length - 1 ? message : { ...message, content: message.content + endMark },
  );
}

/** Cuts off what the template writes after the last message: it would tell the model that the message has ended. */
function cutAtEnd(rendered: string): string {
  const at = rendered.lastIndexOf(endMark);
  if (at >= 0) return rendered.slice(0, at);
  throw lastMessageLeftOut();
}

export function toChatPrompt(body: ChatRequest): ChatPrompt {
  const continues = body.continue_final_message ?? false;
  if (continues && body.add_generation_prompt) throw continuesAndOpens();
  // Templates write calls after the content, so there is no text at the end to continue.
  if (continues && (body.messages.at(-1)?.tool_calls ?? []).length > 0)
    throw lastMessageCallsTool();
  return {
    messages: body.messages.map(toTemplateMessage),
    tools: body.tool_choice === 'none' ? null : (body.tools ?? null),
    continues,
    addsGenerationPrompt: !continues && (body.add_generation_prompt ?? true),
    closesThought: findConstraint(body) !== null || forcesCall(body),
    variables: toVariables(body),
  };
}

export function forcesCall({ tool_choice: choice }: ChatRequest): boolean {
  return choice === 'required' || (typeof choice === 'object' && choice !== null);
}

/** What vLLM and llama-server call `chat_template_kwargs`. */
function toVariables(body: ChatRequest): Record<string, unknown> {
  const { chat_template_kwargs: given } = body as { chat_template_kwargs?: unknown };
  return typeof given === 'object' && given !== null && !Array.isArray(given) ? { ...given } : {};
}

function toTemplateMessage(message: ChatMessage, at: number): TemplateMessage {
  return {
    role: message.role,
    content: toText(message, at),
    ...(message.name != null && { name: message.name }),
    ...(message.tool_call_id != null && { tool_call_id: message.tool_call_id }),
    ...(message.reasoning_content != null && { reasoning_content: message.reasoning_content }),
    ...(message.tool_calls != null &&
      message.tool_calls.length > 0 && {
        tool_calls: message.tool_calls.map((call) => ({
          id: call.id,
          type: 'function' as const,
          function: { name: call.function.name, arguments: toArguments(call.function.arguments) },
        })),
      }),
  };
}

function toText({ content }: ChatMessage, at: number): string {
  if (content == null) return '';
  if (typeof content === 'string') return content;
  return content
    .map((part, index) => {
      if (part.type === 'text' && typeof part.text === 'string') return part.text;
      throw textPartsOnly(at, index);
    })
    .join('');
}

/** Templates expect arguments as an object and write the JSON themselves. Invalid JSON stays text. */
function toArguments(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : text;
  } catch {
    return text;
  }
}
