// The state of the conversation on screen: its turns, the responses that are streaming, and the actions on both.

import { startTransition, useCallback, useEffect, useRef, useState } from 'react';
import type { Outcome } from '#accounts/conversations/schema.ts';
import {
  type Chat,
  inLane,
  keepLane,
  newTurn,
  type ShownTurn,
  toPromptTurns,
} from './conversation.ts';
import { createGrowingTurns } from './growing-turns.ts';
import { findProblem, toRequest } from './request.ts';
import { emptyResponse, type PartialResponse, streamChat } from './stream-chat.ts';

/** The text on screen is updated at most this often, however fast it arrives. */
const renderIntervalMs = 40;

export interface ChatOptions {
  /** The model of a chat for which the user has selected none. */
  defaultModel: string;
  /** In US dollars; null if it is unknown. */
  toCost: (model: string, outcome: Outcome) => number | null;
  /** Called when a question was sent, and when its responses have ended: the moments to save. */
  onTurn: (chat: Chat, models: string[]) => void;
}

const toTurnPart = ({ text, reasoning, reasoningMs }: PartialResponse) => ({
  text,
  ...(reasoning === '' ? {} : { reasoning, reasoning_ms: Math.round(reasoningMs) }),
});

export function useChat(initial: Chat, { defaultModel, toCost, onTurn }: ChatOptions) {
  const [chat, setChat] = useState(initial);
  /** The newest state, for responses that outlive a render. */
  const current = useRef(chat);
  const [growing] = useState(createGrowingTurns);
  const [responding, setResponding] = useState(false);
  const running = useRef<AbortController | null>(null);
  const models = chat.models.length > 0 ? chat.models : [defaultModel];
  const problem = findProblem(chat);
  useEffect(() => () => running.current?.abort(), []);

  const change = useCallback((edit: (before: Chat) => Chat) => {
    current.current = edit(current.current);
    setChat(current.current);
  }, []);
  const update = useCallback(
    (part: Partial<Chat>) => change((before) => ({ ...before, ...part })),
    [change],
  );

  async function stream(turn: ShownTurn, turns: ShownTurn[], signal: AbortSignal) {
    const model = turn.model as string;
    const request = toRequest({ ...chat, turns }, model);
    let latest = emptyResponse();
    const show = (part: Partial<ShownTurn>) =>
      change((before) => ({
        ...before,
        turns: before.turns.map((one) => (one.id === turn.id ? { ...one, ...part } : one)),
      }));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const outcome = await streamChat(request, signal, (grown) => {
      latest = grown;
      timer ??= setTimeout(() => {
        timer = undefined;
        growing.set(turn.id, toTurnPart(latest));
      }, renderIntervalMs);
    });
    clearTimeout(timer);
    const { tokens, toolCalls } = latest;
    show({
      ...toTurnPart(latest),
      ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
      tokens,
      outcome: { ...outcome, cost: toCost(model, outcome) },
    });
  }

  /** Requests a response to these turns from each of the lanes. */
  async function respond(turns: ShownTurn[], lanes = [...models.keys()]) {
    if (problem !== null) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    growing.clear();
    const started = lanes.map((lane) => ({
      lane,
      turn: {
        ...newTurn('assistant', ''),
        model: models[lane] as string,
        ...(models.length > 1 ? { lane } : {}),
      },
    }));
    // Rendering the whole page takes as long as a frame or two, and typing must not wait for it.
    startTransition(() => {
      setResponding(true);
      change((before) => ({ ...before, turns }));
      // Saved now: if the user leaves the page, only the unfinished response is lost.
      onTurn(current.current, models);
      update({ turns: [...turns, ...started.map(({ turn }) => turn)] });
    });
    await Promise.all(
      started.map(({ lane, turn }) =>
        stream(turn, toPromptTurns(inLane(turns, lane)), controller.signal),
      ),
    );
    onTurn(current.current, models);
    if (running.current !== controller) return;
    running.current = null;
    setResponding(false);
  }

  /** The turns without the lanes' responses to their last message. */
  const withoutLast = (lanes: number[]) => {
    const isOf = (lane: number) => (turn: ShownTurn) =>
      turn.role !== 'assistant' && (turn.lane ?? lane) === lane;
    const ends = new Map(lanes.map((lane) => [lane, chat.turns.findLastIndex(isOf(lane))]));
    return chat.turns.filter((turn, at) => at <= (ends.get(turn.lane ?? 0) ?? at));
  };

  return {
    chat,
    /** The responses that stream in: until they end, their text is not in `chat`. */
    growing,
    models,
    responding,
    /** Why nothing can be sent; null if it can. */
    problem,
    update,
    send: (text: string, images: string[]) =>
      respond([
        ...chat.turns,
        { ...newTurn('user', text), ...(images.length > 0 ? { images } : {}) },
      ]),
    stop: () => running.current?.abort(),
    /** Replaces the last response, in one lane or in all, with a new one. */
    regenerate(lane?: number) {
      const lanes = lane === undefined ? [...models.keys()] : [lane];
      return respond(withoutLast(lanes), lanes);
    },
    /** Sends the results of tool calls, by the id of the call. */
    sendResults(results: { id: string; text: string }[], lane?: number) {
      const turns = results.map(({ id, text }) => ({
        ...newTurn('tool', text),
        tool_call_id: id,
        ...(lane === undefined ? {} : { lane }),
      }));
      return respond([...chat.turns, ...turns], lane === undefined ? undefined : [lane]);
    },
    /** Replaces a message and drops everything after it. */
    edit(id: string, text: string) {
      const at = chat.turns.findIndex((turn) => turn.id === id);
      const { images } = chat.turns[at] ?? {};
      const turn = { ...newTurn('user', text), ...(images ? { images } : {}) };
      return respond([...chat.turns.slice(0, at), turn]);
    },
    /** Adds a model to compare with, or ends the comparison and keeps one lane. */
    compare: (model: string) => update({ models: [models[0] as string, model] }),
    keep: (lane: number) =>
      update({ models: [models[lane] as string], turns: keepLane(chat.turns, lane) }),
  };
}
