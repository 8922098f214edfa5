// The ways in which the scripted upstream can misbehave, each with a descriptive name.

import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** The correct response, which a behaviour may spoil. */
export interface Intended {
  streams: boolean;
  plain: string;
  /** Complete events; the last one is `[DONE]`. */
  events: string[];
}

export type Behaviour = keyof typeof behaviours;

/** Behaviours that break every request. The others break only generation requests. */
export const brokenAltogether: ReadonlySet<Behaviour> = new Set([
  'dies-at-once',
  'slow-headers',
  'endless-headers',
  'html-error',
  'unauthorized',
]);

type Act = (response: ServerResponse, intended: Intended) => void;

const streamType = { 'content-type': 'text/event-stream; charset=utf-8' };
const jsonType = { 'content-type': 'application/json' };

export const behaviours = {
  /** Responds correctly. */
  answers: null,
  'dies-at-once': (response) => cut(response),
  /** Accepts the request and never responds. */
  'slow-headers': () => {},
  /** Sends header lines without end. */
  'endless-headers': (response) => {
    const { socket } = response;
    socket?.write('HTTP/1.1 200 OK\r\n');
    const more = setInterval(() => socket?.write(`x-more: ${'y'.repeat(1000)}\r\n`), 5);
    socket?.once('close', () => clearInterval(more));
  },
  'dies-before-first-chunk': (response, { streams }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    response.flushHeaders();
    void sleep(5).then(() => cut(response));
  },
  'dies-after-first-chunk': (response, { streams, events, plain }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    response.write(streams ? events.slice(0, 2).join('') : plain.slice(0, 20));
    void sleep(5).then(() => cut(response));
  },
  'half-a-chunk': (response, { streams, events, plain }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    const [first, second, third] = events;
    const half = third?.slice(0, third.length / 2);
    response.end(streams ? `${first}${second}${half}` : plain.slice(0, -20));
  },
  /** Ends normally before the finish reason was sent. */
  'ends-early': (response, { streams, events, plain }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    const unfinished = plain.replaceAll(/"finish_reason":"\w+"/g, '"finish_reason":null');
    response.end(streams ? `${events.slice(0, 3).join('')}data: [DONE]\n\n` : unfinished);
  },
  'too-many-requests': (response) => {
    response.writeHead(429, { ...jsonType, 'retry-after': '2' });
    response.end('{"error":{"message":"Rate limit reached","type":"requests","code":null}}');
  },
  'html-error': (response) => {
    response.writeHead(500, { 'content-type': 'text/html' });
    response.end('<html><body><h1>500 Internal Server Error</h1></body></html>');
  },
  unauthorized: (response) => {
    response.writeHead(401, jsonType);
    response.end('{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}');
  },
  /** Sends everything except usage. */
  'never-counts': (response, { streams, events, plain }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    const { usage: _, ...uncounted } = JSON.parse(plain);
    const spoken = events.filter((event) => !event.includes('"choices":[]'));
    response.end(streams ? spoken.join('') : JSON.stringify(uncounted));
  },
  /** Reports a trillion tokens. */
  'counts-far-too-many': (response, intended) =>
    recount(response, intended, { completion_tokens: 1e12, total_tokens: 1e12 }),
  'counts-below-zero': (response, intended) =>
    recount(response, intended, { prompt_tokens: -7, completion_tokens: -1_000_000 }),
  /** Reports fractions and words where integers belong. */
  'counts-without-numbers': (response, intended) =>
    recount(response, intended, { prompt_tokens: 2.5, completion_tokens: 'NaN' }),
  'counts-more-cached-than-read': (response, intended) =>
    recount(response, intended, { prompt_tokens_details: { cached_tokens: 1_000_000 } }),
  /** Streams words without end; for plain requests, whitespace without end. */
  'never-ends': (response, { streams, events }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    const [first, second] = events;
    response.write(streams ? (first as string) : ' ');
    const more = setInterval(() => response.write(streams ? (second as string) : ' '), 5);
    response.once('close', () => clearInterval(more));
  },
  /** Sends the whole response and then continues. */
  'talks-after-the-end': (response, { streams, events, plain }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    response.write(streams ? events.join('') : plain);
    const more = setInterval(() => response.write(streams ? (events[1] as string) : ' '), 5);
    response.once('close', () => clearInterval(more));
  },
  /** Starts the response and then sends nothing more. */
  'goes-silent': (response, { streams, events }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    response.write(streams ? (events[0] as string) : '{');
  },
  'only-pings': (response) => {
    response.writeHead(200, streamType);
    const more = setInterval(() => response.write(': ping\n\n'), 5);
    response.once('close', () => clearInterval(more));
  },
  'wrong-content-type': (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<html><body>Sign in to the network</body></html>');
  },
  /** Sends one event, or one response, that exceeds every size limit. */
  'too-large': (response, { streams }) => {
    response.writeHead(200, streams ? streamType : jsonType);
    const piece = 'x'.repeat(256 * 1024);
    response.write(streams ? 'data: "' : '"');
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more);
    more();
  },
  /** Sends an error as an event after the first chunk. */
  'fails-in-stream': (response, { streams, events }) => {
    const error =
      '{"error":{"message":"CUDA out of memory","type":"InternalServerError","code":500}}';
    response.writeHead(200, streams ? streamType : jsonType);
    response.end(streams ? `${events.slice(0, 2).join('')}data: ${error}\n\n` : error);
  },
} as const satisfies Record<string, Act | null>;

/** Sends the whole response with wrong token counts. */
function recount(
  response: ServerResponse,
  { streams, events, plain }: Intended,
  counts: object,
): void {
  response.writeHead(200, streams ? streamType : jsonType);
  response.end(streams ? events.map(withCounts).join('') : withOther(plain));

  function withCounts(event: string): string {
    if (!event.includes('"choices":[]')) return event;
    return `data: ${withOther(event.slice('data: '.length))}\n\n`;
  }

  function withOther(text: string): string {
    const event = JSON.parse(text) as { usage: object };
    return JSON.stringify({ ...event, usage: { ...event.usage, ...counts } });
  }
}

function cut(response: ServerResponse): void {
  response.socket?.destroy();
}
