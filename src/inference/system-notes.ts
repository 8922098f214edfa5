// System messages in the middle of a chat, which agents send and many chat templates refuse. Where one does, they are
// sent as marked messages of the user, in their place: at the front, they would change the prefix that caches know.

import { type Engine, EngineError, type Task } from './engine.ts';

/** Returns null if there is no system message but the first. */
export function toSystemNotes<Message extends { role: string; content?: unknown }>(
  messages: readonly Message[],
): Message[] | null {
  const isLate = ({ role }: Message, at: number) =>
    at > 0 && (role === 'system' || role === 'developer');
  if (!messages.some(isLate)) return null;
  return messages.map((message, at) =>
    isLate(message, at) ? { ...message, role: 'user', content: toNote(message.content) } : message,
  );
}

const opening = '<system-note>\n';
const closing = '\n</system-note>';

function toNote(content: unknown): unknown {
  if (!Array.isArray(content)) return `${opening}${content ?? ''}${closing}`;
  return [{ type: 'text', text: opening }, ...content, { type: 'text', text: closing }];
}

/** Repeats a refused chat with notes, and sends notes at once after that has helped. */
export function withSystemNotes(engine: Engine): Engine {
  let refusesSystem = false;

  function attempt<Result>(task: Task, send: (task: Task) => Promise<Result>): Promise<Result> {
    const messages = task.kind === 'chat' ? toSystemNotes(task.body.messages) : null;
    if (messages === null) return send(task);
    const noted = { ...task, body: { ...task.body, messages } } as Task;
    return refusesSystem ? send(noted) : repeat(task, noted, send);
  }

  async function repeat<Result>(
    task: Task,
    noted: Task,
    send: (task: Task) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await send(task);
    } catch (error) {
      if (!mayBeTemplate(error)) throw error;
      const result = await send(noted).catch(() => {
        // The notes were not what it lacked, so the first error is the true one.
        throw error;
      });
      refusesSystem = true;
      return result;
    }
  }

  return {
    ...engine,
    stream: (task, call) => attempt(task, (one) => engine.stream(one, call)),
    respond: (task, call) => attempt(task, (one) => engine.respond(one, call)),
    countPromptTokens: (task, signal) =>
      attempt(task, (one) => engine.countPromptTokens(one, signal)),
  };
}

const otherReasons = ['context_length_exceeded', 'unsupported_content_type', 'request_too_large'];

const mayBeTemplate = (error: unknown) =>
  error instanceof EngineError &&
  error.failure === 'rejected' &&
  !otherReasons.includes(error.code ?? '');
