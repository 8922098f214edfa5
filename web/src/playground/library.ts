// Saved conversations and presets: queries, and the one on screen, which is saved after each turn.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import type {
  Conversation,
  ConversationSummary,
  Preset,
  PresetSettings,
} from '#accounts/conversations/schema.ts';
import { get, type List, patch, post, put, remove } from '../api.ts';
import { usePagedList } from '../queries.ts';
import { type Chat, toContent, toName } from './conversation.ts';

const conversationsKey = 'conversations';
const conversationsPath = '/dashboard/api/playground/conversations';
const presetsKey = ['presets'];
const presetsPath = '/dashboard/api/playground/presets';

export const toConversationPath = (id: string) => `/playground/${id}`;

export const useConversations = (search: string) =>
  usePagedList<ConversationSummary>(
    conversationsKey,
    conversationsPath,
    search === '' ? {} : { search },
  );

/** Loaded once: a later fetch must not replace what is being written. */
export const useConversation = (id: string) =>
  useQuery({
    queryKey: ['conversation', id],
    queryFn: () => get<Conversation>(`${conversationsPath}/${id}`),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export function useConversationChanges() {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: [conversationsKey] });
  return {
    rename: async (id: string, name: string) => {
      await patch(`${conversationsPath}/${id}`, { name });
      await refresh();
    },
    remove: async (id: string) => {
      await remove(`${conversationsPath}/${id}`);
      await refresh();
    },
    refresh,
  };
}

export interface Saving {
  /** Null until the conversation is saved for the first time. */
  saved: ConversationSummary | null;
  error: unknown;
  save: (chat: Chat, models: string[]) => void;
  share: (shared: boolean) => Promise<void>;
}

/** Saves happen one after the other: each names the revision that it replaces. */
export function useSaving(
  initial: ConversationSummary | null,
  onCreated: (id: string) => void,
): Saving {
  const [saved, setSaved] = useState(initial);
  const [error, setError] = useState<unknown>(null);
  const latest = useRef(initial);
  const queue = useRef(Promise.resolve());
  const { refresh } = useConversationChanges();
  /** A response that outlives the page is saved, but must not bring the page back. */
  const isMounted = useRef(true);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);

  const keep = (row: ConversationSummary) => {
    latest.current = row;
    setSaved(row);
    void refresh();
  };
  async function store(chat: Chat, models: string[]) {
    const { current } = latest;
    const content = toContent(chat, models);
    try {
      if (current === null) {
        const name = toName(chat.turns);
        const row = await post<ConversationSummary>(conversationsPath, { name, content });
        keep(row);
        if (isMounted.current) onCreated(row.id);
      } else {
        const { id, revision } = current;
        keep(await patch<ConversationSummary>(`${conversationsPath}/${id}`, { content, revision }));
      }
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  }
  return {
    saved,
    error,
    save(chat, models) {
      queue.current = queue.current.then(() => store(chat, models));
    },
    async share(shared) {
      const id = latest.current?.id;
      if (id === undefined) return;
      keep(await patch<ConversationSummary>(`${conversationsPath}/${id}`, { shared }));
    },
  };
}

export function usePresets() {
  const client = useQueryClient();
  const presets = useQuery({
    queryKey: presetsKey,
    queryFn: () => get<List<Preset>>(presetsPath),
  });
  const refresh = useCallback(() => client.invalidateQueries({ queryKey: presetsKey }), [client]);
  return {
    presets,
    save: async (name: string, settings: PresetSettings) => {
      await put(presetsPath, { name, settings });
      await refresh();
    },
    remove: async (id: string) => {
      await remove(`${presetsPath}/${id}`);
      await refresh();
    },
  };
}
