// Whether the database answers, as far as queries have shown. SQLite always does.

import type { FastifyBaseLogger } from 'fastify';

export class DatabaseHealth {
  readonly #log: FastifyBaseLogger | undefined;
  /** By `performance.now`. */
  #downSince: number | null = null;

  constructor(log?: FastifyBaseLogger) {
    this.#log = log;
  }

  /** Milliseconds since the outage was noticed; null if there is none. */
  get downMs(): number | null {
    return this.#downSince === null ? null : performance.now() - this.#downSince;
  }

  began(cause: unknown): void {
    this.#downSince = performance.now();
    this.#log?.error(
      { err: cause },
      'the database does not answer; known API keys are still served',
    );
  }

  ended(): void {
    this.#log?.info({ downMs: this.downMs }, 'the database answers again');
    this.#downSince = null;
  }
}
