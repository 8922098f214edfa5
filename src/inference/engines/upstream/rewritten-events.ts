// The output of the rewriter for the bytes at hand: whole events, and how many of them hold generated text.

import type { WireEvents } from '#inference/engine.ts';

export class RewrittenEvents {
  events: WireEvents = '';
  holding = 0;

  add(events: WireEvents, holding: number): void {
    this.events += events;
    this.holding += holding;
  }

  clear(): void {
    this.events = '';
    this.holding = 0;
  }
}
