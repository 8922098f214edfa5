// The conversation on screen: what is saved of it, its lanes while two models are compared, its name and its export.

import type { ConversationContent, Turn } from '#accounts/conversations/schema.ts';

/** One token of a response, with its most likely alternatives. */
export interface TokenProbability {
  token: string;
  logprob: number;
  others: { token: string; logprob: number }[];
}

/** Probabilities are many times larger than the text, so they are not saved. */
export type ShownTurn = Turn & { tokens?: TokenProbability[] };

export interface Chat extends Omit<ConversationContent, 'turns' | 'models'> {
  /** One model, or two that are compared. Empty until the user selects one; the default model is used then. */
  models: string[];
  turns: ShownTurn[];
}

export type ChatSettings = Pick<Chat, 'system' | 'settings' | 'tools' | 'schema' | 'logprobs'>;

export const emptySettings: ChatSettings = {
  system: '',
  settings: {},
  tools: '',
  schema: '',
  logprobs: false,
};

export const emptyChat: Chat = { ...emptySettings, models: [], turns: [] };

export const toSettings = ({ system, settings, tools, schema, logprobs }: Chat): ChatSettings => ({
  system,
  settings,
  tools,
  schema,
  logprobs,
});

export const newTurn = (role: Turn['role'], text: string): ShownTurn => ({
  // Pages served over plain HTTP have no crypto.randomUUID.
  id: `${Date.now()}-${Math.random().toString(36).slice(2)}`,
  role,
  text,
});

/** The part that is saved. */
export const toContent = (chat: Chat, models: string[]): ConversationContent => ({
  ...toSettings(chat),
  models,
  turns: chat.turns.map(({ tokens, ...turn }) => turn),
});

/** The turns that a lane's model has seen. Turns without a lane belong to both. */
export const inLane = (turns: ShownTurn[], lane: number) =>
  turns.filter((turn) => turn.lane === undefined || turn.lane === lane);

/** The turns up to the last one that is not a response: what a response answers. */
export const toPromptTurns = (turns: ShownTurn[]) =>
  turns.slice(0, turns.findLastIndex(({ role }) => role !== 'assistant') + 1);

/** Ends the comparison: the turns of one lane stay, and belong to the conversation as a whole. */
export const keepLane = (turns: ShownTurn[], lane: number): ShownTurn[] =>
  inLane(turns, lane).map(({ lane: dropped, ...turn }) => turn);

const maxNameLength = 60;

/** The first words of the first question. */
export function toName(turns: readonly Turn[]): string {
  const text = turns.find(({ role }) => role === 'user')?.text ?? '';
  const line = text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim();
  if (line === '') return 'Untitled';
  if (line.length <= maxNameLength) return line;
  const cut = line.slice(0, maxNameLength);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), 30)).toWellFormed()}…`;
}

/** The conversation as a markdown file. Images are left out. */
export function toMarkdown(name: string, { system, turns }: Pick<Chat, 'system' | 'turns'>) {
  const headings = { user: 'You', tool: 'Tool result', assistant: 'Response' };
  const parts = turns.map(({ role, text, model, tool_calls = [] }) =>
    [
      `## ${role === 'assistant' ? (model ?? headings.assistant) : headings[role]}`,
      ...(text === '' ? [] : [text]),
      ...tool_calls.map((call) => `\`\`\`json\n${call.name}(${call.arguments})\n\`\`\``),
    ].join('\n\n'),
  );
  const intro = system.trim() === '' ? [] : [`## System prompt\n\n${system}`];
  return `${[`# ${name}`, ...intro, ...parts].join('\n\n')}\n`;
}
