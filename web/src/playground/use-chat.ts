// The playground's state: the conversation, the answer that is being written, and what a person can do to
// both.

import { useCallback, useEffect, useRef, useState } from 'react';
import {
  type Conversation,
  emptyConversation,
  loadConversation,
  newTurn,
  storeConversation,
  type Turn,
  toPromptTurns,
} from './conversation.ts';
import { findProblem, toRequest } from './request.ts';
import { type Answer, streamChat } from './stream-chat.ts';

/** Text is shown this often at most, however fast it comes. */
const showEveryMs = 40;

export function useChat(userId: string, defaultModel: string) {
  const [conversation, setConversation] = useState(() => loadConversation(userId));
  const [answering, setAnswering] = useState(false);
  const running = useRef<AbortController | null>(null);
  const model = conversation.model ?? defaultModel;
  const problem = findProblem(conversation);

  useEffect(() => {
    if (!answering) storeConversation(userId, conversation);
  }, [userId, conversation, answering]);
  useEffect(() => () => running.current?.abort(), []);

  /** Asks for an answer to these turns. */
  async function answer(turns: Turn[]) {
    if (problem !== null) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const turn = newTurn('assistant', '');
    const request = toRequest({ ...conversation, turns }, model);
    let latest: Answer = { text: '', tokens: [], toolCalls: [] };
    const show = (change: Partial<Turn>) =>
      setConversation((before) => ({
        ...before,
        turns: before.turns.map((one) => (one.id === turn.id ? { ...one, ...change } : one)),
      }));

    // What was said survives leaving the page, though a half-written answer does not.
    storeConversation(userId, { ...conversation, turns });
    setAnswering(true);
    setConversation((before) => ({ ...before, turns: [...turns, turn] }));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const outcome = await streamChat(request, controller.signal, (grown) => {
      latest = grown;
      timer ??= setTimeout(() => {
        timer = undefined;
        show({ text: latest.text });
      }, showEveryMs);
    });
    clearTimeout(timer);
    show({ ...latest, outcome });
    if (running.current !== controller) return;
    running.current = null;
    setAnswering(false);
  }

  const update = useCallback(
    (change: Partial<Conversation>) => setConversation((before) => ({ ...before, ...change })),
    [],
  );

  return {
    conversation,
    model,
    answering,
    /** Why nothing can be sent, or null. */
    problem,
    update,
    send: (text: string) => answer([...conversation.turns, newTurn('user', text)]),
    stop: () => running.current?.abort(),
    /** A new answer in place of the last one. */
    regenerate: () => answer(toPromptTurns(conversation.turns)),
    /** What the tools that the model called have answered, by the id of the call. */
    sendResults: (results: { id: string; text: string }[]) =>
      answer([
        ...conversation.turns,
        ...results.map(({ id, text }) => ({ ...newTurn('tool', text), toolCallId: id })),
      ]),
    /** Says something else at that point; what followed is dropped. */
    edit(id: string, text: string) {
      const at = conversation.turns.findIndex((turn) => turn.id === id);
      return answer([...conversation.turns.slice(0, at), newTurn('user', text)]);
    },
    /** Keeps the model and its settings. */
    clear() {
      running.current?.abort();
      setConversation((before) => ({ ...before, turns: emptyConversation.turns }));
    },
  };
}
