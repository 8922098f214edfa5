// What the Responses API keeps between requests.

import type { BackgroundResponses } from '#inference/apis/responses/background/background.ts';
import type { Followers } from '#inference/apis/responses/background/follow.ts';
import type { ResponseStore } from '#inference/apis/responses/stored/store.ts';
import type { Task } from '#inference/engine.ts';
import type { Admission, AdmittedPart } from '#inference/serving/admit.ts';
import type { ResponseFormat } from '#inference/serving/response-format.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';

export interface ResponsesParts {
  readonly store: ResponseStore;
  readonly background: BackgroundResponses;
  readonly followers: Followers;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly admit: (request: AdmittedPart, task: Task, format: ResponseFormat) => Promise<Admission>;
}

export interface WithResponses {
  readonly responses: ResponsesParts;
}
