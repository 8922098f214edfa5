// Calls under one name run one after the other; calls under different names run side by side.

export interface Turns {
  <Result>(name: string, work: () => Promise<Result>): Promise<Result>;
  isBusy(name: string): boolean;
}

export function createTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  async function inTurn<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const turn = (last.get(name) ?? Promise.resolve()).then(work, work);
    const settled = turn.catch(() => {});
    last.set(name, settled);
    try {
      return await turn;
    } finally {
      if (last.get(name) === settled) last.delete(name);
    }
  }
  return Object.assign(inTurn, { isBusy: (name: string) => last.has(name) });
}
