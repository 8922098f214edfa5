// Several machines of the same kind. The API launches one at a time, so one follows the other.

import type { Launch } from '#cloud/schema.ts';
import { ApiError, post } from '../api.ts';

export const maxCount = 32;

/** Stops at the first that is refused, and says how many there are by then. */
export async function launchMany(
  launch: Launch,
  /** Those of an earlier try have the first numbers. */
  { count, earlier }: { count: number; earlier: number },
  onProgress: (launched: number) => void,
): Promise<void> {
  for (let at = 1; at <= count; at++) {
    const { name } = launch;
    const isOne = earlier + count === 1;
    const named = isOne || !name ? launch : { ...launch, name: `${name}-${earlier + at}` };
    try {
      await post('/api/v1/instance-operations/launch', named);
      onProgress(at);
    } catch (error) {
      throw at > 1 && error instanceof ApiError ? afterSome(error, at - 1, count) : error;
    }
  }
}

function afterSome(error: ApiError, launched: number, count: number): ApiError {
  const { message, status, suggestion, requestId } = error;
  return new ApiError(`${launched} of ${count} are starting; the next was refused: ${message}`, {
    status,
    requestId,
    ...(suggestion === null ? {} : { suggestion }),
  });
}
