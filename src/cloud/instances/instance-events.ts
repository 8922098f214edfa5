// Notifies listeners in this process that an instance has changed, after the change is committed. Changes made
// by other processes are not published here; listeners read the rows anyway.

export interface InstanceEvent {
  readonly accountId: string;
  readonly instanceId: string;
  readonly status: string;
}

export interface InstanceEvents {
  /** Returns a function that ends the subscription. */
  subscribe(accountId: string, listener: (event: InstanceEvent) => void): () => void;
  publish(event: InstanceEvent): void;
}

export function createInstanceEvents(): InstanceEvents {
  const listeners = new Map<string, Set<(event: InstanceEvent) => void>>();
  return {
    subscribe(accountId, listener) {
      const own = listeners.get(accountId) ?? new Set();
      listeners.set(accountId, own.add(listener));
      return () => {
        own.delete(listener);
        if (own.size === 0) listeners.delete(accountId);
      };
    },
    publish(event) {
      for (const listener of listeners.get(event.accountId) ?? []) listener(event);
    },
  };
}
