// The state of the playground: the conversation, the response that is streaming, and the actions on both.

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
import { type PartialResponse, streamChat } from './stream-chat.ts';

/** The text on screen is updated at most this often, however fast it arrives. */
const renderIntervalMs = 40;

export function useChat(userId: string, defaultModel: string) {
  const [conversation, setConversation] = useState(() => loadConversation(userId));
  const [responding, setResponding] = useState(false);
  const running = useRef<AbortController | null>(null);
  const model = conversation.model ?? defaultModel;
  const problem = findProblem(conversation);

  useEffect(() => {
    if (!responding) storeConversation(userId, conversation);
  }, [userId, conversation, responding]);
  useEffect(() => () => running.current?.abort(), []);

  /** Requests a response to these turns. */
  async function respond(turns: Turn[]) {
    if (problem !== null) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const turn = newTurn('assistant', '');
    const request = toRequest({ ...conversation, turns }, model);
    let latest: PartialResponse = { text: '', tokens: [], toolCalls: [] };
    const show = (change: Partial<Turn>) =>
      setConversation((before) => ({
        ...before,
        turns: before.turns.map((one) => (one.id === turn.id ? { ...one, ...change } : one)),
      }));

    // Stored now: if the user leaves the page, only the unfinished response is lost.
    storeConversation(userId, { ...conversation, turns });
    setResponding(true);
    setConversation((before) => ({ ...before, turns: [...turns, turn] }));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const outcome = await streamChat(request, controller.signal, (grown) => {
      latest = grown;
      timer ??= setTimeout(() => {
        timer = undefined;
        show({ text: latest.text });
      }, renderIntervalMs);
    });
    clearTimeout(timer);
    show({ ...latest, outcome });
    if (running.current !== controller) return;
    running.current = null;
    setResponding(false);
  }

  const update = useCallback(
    (change: Partial<Conversation>) => setConversation((before) => ({ ...before, ...change })),
    [],
  );

  return {
    conversation,
    model,
    responding,
    /** Why nothing can be sent; null if it can. */
    problem,
    update,
    send: (text: string) => respond([...conversation.turns, newTurn('user', text)]),
    stop: () => running.current?.abort(),
    /** Replaces the last response with a new one. */
    regenerate: () => respond(toPromptTurns(conversation.turns)),
    /** Sends the results of tool calls, by the id of the call. */
    sendResults: (results: { id: string; text: string }[]) =>
      respond([
        ...conversation.turns,
        ...results.map(({ id, text }) => ({ ...newTurn('tool', text), toolCallId: id })),
      ]),
    /** Replaces a message and drops everything after it. */
    edit(id: string, text: string) {
      const at = conversation.turns.findIndex((turn) => turn.id === id);
      return respond([...conversation.turns.slice(0, at), newTurn('user', text)]);
    },
    /** Deletes all turns; keeps the model and the settings. */
    clear() {
      running.current?.abort();
      setConversation((before) => ({ ...before, turns: emptyConversation.turns }));
    },
  };
}
