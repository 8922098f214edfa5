// Reads server-sent events from a response body, in browsers and in the CLI. EventSource can't send POST requests.

/** In characters. */
const maxEventLength = 16 * 1024 * 1024;

export class EventTooLongError extends Error {}

/** Yields the data of each event as it arrives, however the network splits the bytes. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A lone \r at the end may be the first half of \r\n.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        if (line !== '' || data.length === 0) continue;
        yield data.join('\n');
        data = [];
      }
      // Checked after the whole events are taken out: a fast server may send many at once.
      if (rest.length + data.join('').length > maxEventLength)
        throw new EventTooLongError('The server sent an event that is too long.');
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
