// Runs background responses: without their clients, a bounded number at a time, with their state in the database. A
// queued response is run by any server. One whose server was lost fails, because running it again would bill it twice.

import type { FastifyBaseLogger } from 'fastify';
import type { RequestLimiter, Reservation } from '#accounts/limits/request-limiter.ts';
import type { Ticket } from '#accounts/limits/store.ts';
import type { ResponseRunRow } from '#db/tables/response-rows.ts';
import type { Tx } from '#db/tables/tables.ts';
import { renderFailure } from '#http/error-format.ts';
import type {
  InputItem,
  ResponseObject,
  ResponseRequest,
} from '#inference/apis/responses/schema.ts';
import type { NewResponse, ResponseStore } from '#inference/apis/responses/stored/store.ts';
import {
  alreadyEnded,
  notInBackground,
  tooManyBackground,
} from '#inference/apis/responses/stored/stored-errors.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import type { Caller } from '#inference/request.ts';
import { ClaimLoop } from '#lib/async/claim-loop.ts';
import type { Clock } from '#lib/clock.ts';
import { BackgroundDelivery } from './background-delivery.ts';
import { HeldReservations, nothing } from './held-reservations.ts';
import type { ReservedRun, RunRows } from './run-rows.ts';

/** Responses that one server runs at once. */
const maxRunning = 64;
/** How often events are written. */
const writeMs = 250;
/** Leases are renewed this often even without events. */
const beatMs = 5_000;
/** How often a server looks for responses that another one queued or lost. */
const lookMs = 5_000;

/** A response to be generated. */
export interface Run {
  readonly id: ResponseObject['id'];
  readonly caller: Caller;
  readonly request: ResponseRequest;
  readonly items: readonly InputItem[];
  /** What was reserved when the request arrived. */
  readonly reservation: Reservation;
  /** Writes the response once it has ended. */
  save(response: ResponseObject): Promise<void>;
}

/** Generates a response as a stream. Never throws: failures are delivered. */
export type Generate = (run: Run, delivery: BackgroundDelivery) => Promise<void>;

export interface BackgroundParts {
  readonly store: ResponseStore;
  readonly rows: RunRows;
  readonly limits: Pick<RequestLimiter, 'takeOver'>;
  readonly generate: Generate;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}

export class BackgroundResponses {
  readonly #parts: BackgroundParts;
  /** Maximum of an account. */
  readonly #maxLive: number;
  /** What runs here and is still to be written. */
  readonly #running = new Map<string, BackgroundDelivery>();
  readonly #held = new HeldReservations();
  /** Functions that wake the streams waiting for events, by the response's id. */
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #timer: NodeJS.Timeout;
  readonly #loop: ClaimLoop<ResponseRunRow, BackgroundDelivery>;
  #lastWrite = 0;
  #writing: Promise<void> | null = null;

  constructor(parts: BackgroundParts, maxLive: number) {
    this.#parts = parts;
    this.#maxLive = maxLive;
    // Events and leases of all runs are written together, so that runs do not beat by themselves.
    this.#timer = setInterval(() => this.#writeSome(), writeMs).unref();
    this.#loop = new ClaimLoop({
      maxJobs: maxRunning,
      lookMs,
      prepare: () => this.#tidy(),
      claim: () => parts.rows.claim(),
      idOf: (run) => run.response_id,
      open: (run) => this.#open(run),
      run: (run, delivery) =>
        this.#try(() => this.#run(run, delivery)).finally(() => {
          this.#running.delete(run.response_id);
        }),
      lookFailed: (error) => this.#report(error),
    });
    this.#loop.start();
  }

  /** Queues a response. It begins at once if this server has room for it. */
  async submit(
    place: NewResponse,
    { caller, reservation }: { caller: Caller; reservation: Reservation },
    request: ResponseRequest,
    queued: ResponseObject,
  ) {
    const { store, rows } = this.#parts;
    const { input: _, ...rest } = request;
    const add = async (tx: Tx) => {
      if ((await rows.count(tx, caller.accountId)) >= this.#maxLive) {
        throw tooManyBackground(this.#maxLive);
      }
      await rows.add(tx, {
        response_id: queued.id,
        account_id: caller.accountId,
        key_id: caller.keyId,
        user_id: caller.userId,
        request: JSON.stringify(rest),
        reservation: reservation.ticket && JSON.stringify(reservation.ticket),
      });
    };
    await this.#held.hold(queued.id, reservation, () => store.insert(place, queued, add));
    this.wake();
  }

  /** Stops a response, wherever it runs. Cancelling it again changes nothing. */
  async cancel(accountId: string, id: string): Promise<ResponseObject> {
    const { store, rows } = this.#parts;
    const before = await store.get(accountId, id);
    if (!before.background) throw notInBackground(id, 'cancelled');
    const cancelled: ResponseObject = { ...before, status: 'cancelled' };
    const isDone = await store.complete(accountId, cancelled, (tx) => rows.close(tx, cancelled));
    this.#running.get(id)?.abort();
    this.#held.giveBack(id);
    this.#notify(id);
    if (isDone) return cancelled;
    const after = await store.get(accountId, id);
    if (after.status !== 'cancelled') throw alreadyEnded(after.status);
    return after;
  }

  /**
   * Holds what queued responses have reserved elsewhere, because their server may be gone. Must be called before the
   * first request, which would otherwise be admitted to a budget that they need.
   */
  adopt(): Promise<void> {
    return this.#try(async () => {
      for await (const row of this.#parts.rows.queued()) {
        const id = row.response_id;
        if (!this.#held.has(id)) this.#held.adopt(id, await this.#takeOver(row));
      }
    });
  }

  /** Looks for work: queued responses, and those that a lost server left. */
  wake(): void {
    this.#loop.wake();
  }

  /** Resolves when events of a response may have been written, at the latest after this time. */
  waitForEvents(id: string, ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting.add(resolve));
    const timer = setTimeout(resolve, ms);
    return promise.finally(() => {
      clearTimeout(timer);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(id);
    });
  }

  /** Begins nothing more. */
  stop(): void {
    void this.#loop.stop();
  }

  /** Waits for what runs here, at most for the drain time. What is cut off then fails. */
  async drain(drainMs: number): Promise<void> {
    await this.#loop.stop();
    const cut = setTimeout(() => {
      for (const delivery of this.#running.values()) delivery.abort();
    }, drainMs);
    await this.#loop.finished();
    clearTimeout(cut);
    clearInterval(this.#timer);
    this.#held.leaveAll();
  }

  /** Ends the runs of lost servers and of callers that are gone, and compares what is held with the queue. */
  async #tidy(): Promise<void> {
    const { rows } = this.#parts;
    // Each by itself: a failure of one must not hold up the others.
    const lost = await rows.findLost();
    for (const { account_id, response_id } of lost) {
      await this.#try(() => this.#close(account_id, response_id, lostServer));
    }
    // Their server may have left others in the queue.
    if (lost.length > 0) await this.adopt();
    for (const { account_id, response_id } of await rows.findRevoked()) {
      await this.#try(() => this.#close(account_id, response_id, callerGone));
      this.#running.get(response_id)?.abort();
    }
    await this.#held.sort((ids) => rows.findStates(ids));
  }

  #open({ response_id: id }: ResponseRunRow): BackgroundDelivery {
    const delivery = new BackgroundDelivery();
    this.#running.set(id, delivery);
    return delivery;
  }

  async #run(row: ResponseRunRow, delivery: BackgroundDelivery): Promise<void> {
    const { generate, rows } = this.#parts;
    const { response_id: id, account_id: accountId } = row;
    let reservation = this.#held.take(id);
    try {
      reservation ??= await this.#takeOver(row);
      const run = await this.#toRun(row, reservation);
      if (!delivery.signal.aborted) await generate(run, delivery);
    } catch (error) {
      const { body } = renderFailure(inferenceErrorFormat, error);
      delivery.fail(500, [], body);
    }
    // Changes nothing if the response was served.
    reservation?.settle(nothing);
    this.#running.delete(id);
    await this.#writing;
    const isOwn = await rows.write([{ id, ...delivery.peek() }]);
    // A response that its format did not save failed before it began, or was cut off.
    if (isOwn.has(id)) await this.#close(accountId, id, delivery.error ?? cutOff);
    this.#notify(id);
  }

  /** For a response that arrived at another server, or before this one was started again. */
  #takeOver({ account_id: accountId, key_id: keyId, reservation }: ReservedRun) {
    const ticket = reservation === null ? null : (JSON.parse(reservation) as Ticket);
    return this.#parts.limits.takeOver({ accountId, keyId }, ticket);
  }

  async #toRun(row: ResponseRunRow, reservation: Reservation): Promise<Run> {
    const { store } = this.#parts;
    const { response_id, account_id: accountId } = row;
    const { id, created_at } = await store.get(accountId, response_id);
    return {
      id,
      caller: { accountId, keyId: row.key_id, userId: row.user_id },
      request: JSON.parse(row.request),
      items: await store.readOwn(accountId, id),
      reservation,
      save: async (response) => {
        await store.complete(accountId, { ...response, created_at });
      },
    };
  }

  /** Ends the run of a response. One that has not ended itself fails. */
  async #close(accountId: string, id: string, error: ResponseObject['error']): Promise<void> {
    const { store, rows } = this.#parts;
    const found = await store.get(accountId, id);
    const failed: ResponseObject = { ...found, status: 'failed', error };
    const close = (tx: Tx, response: ResponseObject) => rows.close(tx, response);
    if (await store.complete(accountId, failed, (tx) => close(tx, failed))) return;
    const ended = await store.get(accountId, id);
    await store.db.transaction().execute((tx) => close(tx, ended));
    this.#notify(id);
  }

  #writeSome(): void {
    const { clock } = this.#parts;
    if (this.#writing !== null || this.#running.size === 0) return;
    const isDue = Math.abs(clock.now() - this.#lastWrite) >= beatMs;
    const all = [...this.#running].map(([id, delivery]) => ({ id, delivery, ...delivery.peek() }));
    const ready = isDue ? all : all.filter(({ events }) => events !== '');
    if (ready.length === 0) return;
    this.#lastWrite = isDue ? clock.now() : this.#lastWrite;
    this.#writing = this.#try(async () => {
      const owned = await this.#parts.rows.write(ready);
      for (const { id, delivery, ...batch } of ready) {
        delivery.drop(batch);
        if (!owned.has(id)) delivery.abort();
        if (batch.events !== '') this.#notify(id);
      }
    }).finally(() => {
      this.#writing = null;
    });
  }

  #notify(id: string): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }

  #report(error: unknown): void {
    this.#parts.log.error({ err: error }, 'background responses failed');
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#report(error);
    }
  }
}

const lostServer = {
  code: 'server_error',
  message: 'The server that generated this response was lost. Send the request again.',
};

const callerGone = {
  code: 'caller_revoked',
  message: 'The API key or the person that created the response may no longer use this account.',
};

const cutOff = {
  code: 'server_error',
  message: 'The response was cut off, because its server stopped. Send the request again.',
};
