// Chat messages to prompt text, by the template that the model file carries. What templates differ in
// (the developer role, tools, arguments as objects) is evened out here.

import { Template } from '@huggingface/jinja';
import { EngineError } from '#inference/engine.ts';
import type { ChatMessage, ChatRequest, Tool } from '#inference/schema.ts';

export interface TemplateMessage {
  role: string;
  content: string;
  name?: string;
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: unknown } }[];
  tool_call_id?: string;
}

export interface ChatPrompt {
  messages: TemplateMessage[];
  tools: Tool[] | null;
  /** The answer goes on from the last message instead of opening a new one. */
  continues: boolean;
  addsGenerationPrompt: boolean;
}

export interface ChatTemplate {
  /** Throws EngineError `rejected` when the template refuses the messages. */
  render(prompt: ChatPrompt): string;
}

/** For models that carry no template: the form most chat models of today were trained on. */
const chatMl = `{%- for message in messages -%}{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}`;

export const toolOpening = '<tool_call>';
export const toolClosing = '</tool_call>';

export function createChatTemplate(
  source: string | null,
  specialText: { bos_token: string; eos_token: string },
): ChatTemplate {
  const text = source ?? chatMl;
  // Read on first use: a template that can't be read is no obstacle to plain completions.
  let template: Template | null = null;
  const knowsDeveloper = text.includes('developer');
  // A template that does not know our form of tool call gets the tools by way of the system message.
  const knowsTools = text.includes('tools') && text.includes(toolOpening);

  return {
    render(prompt) {
      const messages = knowsDeveloper ? prompt.messages : prompt.messages.map(developerToSystem);
      const tools = prompt.tools ?? [];
      const told = tools.length > 0 && !knowsTools ? tellTools(messages, tools) : messages;
      const rendered = attempt(() => {
        template ??= new Template(text);
        return template.render({
          messages: prompt.continues ? markEnd(told) : told,
          ...(tools.length > 0 && knowsTools && { tools }),
          add_generation_prompt: prompt.addsGenerationPrompt,
          ...specialText,
        });
      });
      return prompt.continues ? cutAtEnd(rendered) : rendered;
    },
  };
}

function attempt(render: () => string): string {
  try {
    return render();
  } catch (error) {
    throw new EngineError(
      'rejected',
      `The model's chat template refuses these messages: ${(error as Error).message}.`,
      { code: 'invalid_value', param: 'messages', cause: error },
    );
  }
}

function developerToSystem(message: TemplateMessage): TemplateMessage {
  return message.role === 'developer' ? { ...message, role: 'system' } : message;
}

function tellTools(
  messages: readonly TemplateMessage[],
  tools: readonly Tool[],
): TemplateMessage[] {
  const list = tools.map((tool) => JSON.stringify(tool)).join('\n');
  const lesson = `You have access to the following tools:\n<tools>\n${list}\n</tools>\nTo call a tool, answer with ${toolOpening}{"name": "tool name", "arguments": {...}}${toolClosing}`;
  const plain = messages.map((message) => ({
    ...message,
    tool_calls: undefined,
    content: [message.content, ...(message.tool_calls ?? []).map(toCallText)]
      .filter((part) => part !== '')
      .join('\n'),
  }));
  const [first, ...rest] = plain;
  if (first?.role !== 'system') return [{ role: 'system', content: lesson }, ...plain];
  return [{ ...first, content: `${first.content}\n\n${lesson}` }, ...rest];
}

function toCallText({
  function: call,
}: NonNullable<TemplateMessage['tool_calls']>[number]): string {
  return `${toolOpening}${JSON.stringify({ name: call.name, arguments: call.arguments })}${toolClosing}`;
}

/** A character that stands in no text; templates that trim keep the white space before it. */
const endMark = '\ufdd1';

function markEnd(messages: readonly TemplateMessage[]): TemplateMessage[] {
  return messages.map((message, at) =>
    at < messages.length - 1 ? message : { ...message, content: message.content + endMark },
  );
}

/** Everything a template puts after the last message would tell the model that it has ended. */
function cutAtEnd(rendered: string): string {
  const at = rendered.lastIndexOf(endMark);
  if (at >= 0) return rendered.slice(0, at);
  throw notContinuable("The model's chat template leaves out the last message");
}

function notContinuable(reason: string): EngineError {
  return new EngineError('rejected', `${reason}, so the answer can't go on from it.`, {
    code: 'invalid_value',
    param: 'messages',
  });
}

export function toChatPrompt(body: ChatRequest): ChatPrompt {
  const continues = body.continue_final_message ?? false;
  if (continues && body.add_generation_prompt)
    throw new EngineError(
      'rejected',
      'continue_final_message goes on from the last message; add_generation_prompt opens a new one. Set one of them.',
      { code: 'invalid_value', param: 'add_generation_prompt' },
    );
  // Templates write calls after the content: there is no text at the end to go on from.
  if (continues && (body.messages.at(-1)?.tool_calls ?? []).length > 0)
    throw notContinuable('The last message ends with a tool call');
  return {
    messages: body.messages.map(toTemplateMessage),
    tools: body.tool_choice === 'none' ? null : (body.tools ?? null),
    continues,
    addsGenerationPrompt: !continues && (body.add_generation_prompt ?? true),
  };
}

function toTemplateMessage(message: ChatMessage, at: number): TemplateMessage {
  return {
    role: message.role,
    content: toText(message, at),
    ...(message.name != null && { name: message.name }),
    ...(message.tool_call_id != null && { tool_call_id: message.tool_call_id }),
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
      throw new EngineError('rejected', 'This model takes text parts only.', {
        code: 'unsupported_content_type',
        param: `messages[${at}].content[${index}].type`,
      });
    })
    .join('');
}

/** Templates print arguments as JSON themselves and expect an object; broken JSON stays as it was. */
function toArguments(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : text;
  } catch {
    return text;
  }
}
