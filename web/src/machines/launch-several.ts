// Several machines of the same kind. The API launches one at a time, so one follows the other.

import type { Launch } from '../../../src/cloud/schema.ts';
import { ApiError, post } from '../api.ts';

export const maxCount = 32;

/** Stops at the first that is refused, and says how many there are by then. */
export async function launchSeveral(
  launch: Launch,
  count: number,
  onProgress: (launched: number) => void,
): Promise<void> {
  for (let at = 1; at <= count; at++) {
    onProgress(at - 1);
    const { name } = launch;
    const named = count > 1 && name ? { ...launch, name: `${name}-${at}` } : launch;
    try {
      await post('/api/v1/instance-operations/launch', named);
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
