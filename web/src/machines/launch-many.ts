// Launches several machines of the same type, one after the other: the API launches one at a time.

import type { Launch } from '#cloud/schema.ts';
import { ApiError, post } from '../api.ts';

export const maxCount = 32;

/** Returns the ids. Stops at the first launch that fails, with an error that says how many machines are starting. */
export async function launchMany(
  launch: Launch,
  /** `earlier` machines of a previous attempt have the first numbers. */
  { count, earlier }: { count: number; earlier: number },
  onProgress: (launched: number) => void,
): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 1; at <= count; at++) {
    const { name } = launch;
    const isOne = earlier + count === 1;
    const named = isOne || !name ? launch : { ...launch, name: `${name}-${earlier + at}` };
    try {
      const path = '/api/v1/instance-operations/launch';
      const { data } = await post<{ data: { instance_ids: string[] } }>(path, named);
      ids.push(...data.instance_ids);
      onProgress(at);
    } catch (error) {
      throw at > 1 && error instanceof ApiError ? afterSome(error, at - 1, count) : error;
    }
  }
  return ids;
}

function afterSome(error: ApiError, launched: number, count: number): ApiError {
  const { message, status, suggestion, requestId } = error;
  return new ApiError(
    `${launched} of ${count} machines are starting. The next launch failed: ${message}`,
    {
      status,
      requestId,
      ...(suggestion === null ? {} : { suggestion }),
    },
  );
}
