// Stored responses of the Responses API, and what runs background responses on this server.

import { BackgroundResponses } from '#inference/apis/responses/background/background.ts';
import { createFollowers } from '#inference/apis/responses/background/follow.ts';
import { createGenerate } from '#inference/apis/responses/background/generate.ts';
import { RunRows } from '#inference/apis/responses/background/run-rows.ts';
import type { ResponsesParts } from '#inference/apis/responses/parts.ts';
import { ResponseStore } from '#inference/apis/responses/stored/store.ts';
import { type AdmitParts, admit } from '#inference/serving/admit.ts';
import type { Serve } from '#inference/serving/serve.ts';
import { toStoreOptions } from '#server/options/limits.ts';
import { isSingleServer } from '#server/options/single-server.ts';
import type { Core } from './core.ts';

export interface Responses extends ResponsesParts {
  /** Deletes what is no longer kept. */
  sweep(): Promise<void>;
}

export function openResponses(core: Core, serve: Serve, admission: AdmitParts): Responses {
  const { db, clock, log, config, processId, seal } = core;
  const store = new ResponseStore(db, clock, toStoreOptions(config));
  const rows = new RunRows(db, clock, { runner: processId, singleServer: isSingleServer(config) });
  const background = new BackgroundResponses(
    {
      ...{ store, rows, clock, log, limits: admission.limits },
      generate: (run, delivery) => generate(run, delivery),
    },
    config.inference.responses.max_background,
  );
  const followers = createFollowers(store, rows, background);
  const parts: ResponsesParts = {
    seal,
    clock,
    store,
    background,
    followers,
    admit: (...request) => admit(admission, ...request),
  };
  const generate = createGenerate(serve, parts);
  return {
    ...parts,
    async sweep() {
      await store.sweep();
      await rows.sweep();
    },
  };
}
