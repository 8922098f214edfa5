// Work that waits until all sockets of this moment have been read: done for many requests in one go, the same
// code finds itself and its data in the processor's caches. Until then a socket may bring megabytes: whoever
// gathers what it brings needs a bound of its own.

let waiting: (() => void)[] = [];
let spare: (() => void)[] = [];

/** Runs it before anything else is read. */
export function atTurnEnd(work: () => void): void {
  if (waiting.push(work) === 1) setImmediate(workOff);
}

function workOff(): void {
  const list = waiting;
  waiting = spare;
  let done = 0;
  try {
    while (done < list.length) (list[done++] as () => void)();
  } finally {
    // What threw is nobody else's fault.
    for (const left of list.slice(done)) atTurnEnd(left);
    // Emptied, not replaced: the collector keeps what was in an old list.
    list.length = 0;
    spare = list;
  }
}
