// A real database whose transactions fail on demand: before they begin, before they commit, or after,
// when they are done and the answer is lost.

import type { Database } from '#db/tables/tables.ts';

export type Failure = 'before' | 'within' | 'after' | null;

export function failing(db: Database, next: () => Failure): Database {
  const fail = () => {
    throw new Error('the database is away');
  };
  const transaction = () => ({
    async execute(work: Parameters<ReturnType<Database['transaction']>['execute']>[0]) {
      const failure = next();
      if (failure === 'before') fail();
      const answer = await db.transaction().execute(async (tx) => {
        const done = await work(tx);
        return failure === 'within' ? fail() : done;
      });
      return failure === 'after' ? fail() : answer;
    },
  });
  return new Proxy(db, {
    get(target, name) {
      if (name === 'transaction') return transaction;
      const member = Reflect.get(target, name, target) as unknown;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/** A database that cannot be reached at all any more, as for a process that was killed. */
export function severed(db: Database, isCut: () => boolean): Database {
  return new Proxy(db, {
    get(target, name) {
      if (isCut()) throw new Error('the process is gone');
      const member = Reflect.get(target, name, target) as unknown;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
