// Converts error bodies to one form. They differ from server to server: OpenAI's object, vLLM's flat one, FastAPI's
// list of details, a bare string.

import { isMembers, type Members, parseMembers } from '#lib/json-members.ts';

export interface UpstreamRefusal {
  message: string;
  /** A name, never a number. */
  code: string | null;
  type: string | null;
  /** Path in our API's notation: `messages[2].content`. */
  param: string | null;
  /** Status given in the body; some servers send it there rather than in the status line. */
  status: number | null;
  members: Record<string, unknown>;
}

/** Maximum length kept. The message is searched by patterns, and a hostile one must not take long. */
const maxMessageLength = 2000;

/** Takes a body's text or its parsed form. Returns null if it is not a machine-readable error. */
export function findRefusal(body: string | object): UpstreamRefusal | null {
  const parsed = typeof body === 'string' ? parseMembers(body) : (body as Members);
  if (parsed === null) return null;
  const { error, errors, detail } = parsed;
  if (isMembers(error)) return toRefusal(error);
  if (typeof error === 'string') return toRefusal({ ...parsed, message: error });
  if (Array.isArray(detail)) return fromDetails(detail);
  if (typeof detail === 'string') return toRefusal({ message: detail });
  if (Array.isArray(errors) && isMembers(errors[0])) return toRefusal(errors[0]);
  if (typeof parsed.message === 'string') return toRefusal(parsed);
  return null;
}

function toRefusal(members: Members): UpstreamRefusal {
  const { message, msg, code, type, param, status } = members;
  const text = typeof message === 'string' ? message : typeof msg === 'string' ? msg : '';
  const digits = typeof code === 'string' ? Number(code) : null;
  const number = [code, status, digits].find(
    (it) => typeof it === 'number' && it >= 400 && it < 600,
  );
  return {
    message: withoutPython(text.slice(0, maxMessageLength)),
    code: toName(code),
    type: toName(type),
    param: toParam(param) ?? fromPython(text),
    status: (number as number | undefined) ?? null,
    members,
  };
}

/** vLLM's paths start at the body. */
function toParam(given: unknown): string | null {
  if (typeof given !== 'string' || !/^[\w.[\]-]{1,100}$/.test(given)) return null;
  return given.startsWith('body.') ? given.slice('body.'.length) : given;
}

const pythonList = /^\d+ validation errors?:\s*\{/;

/** Maximum complaints to show. There is one for each form a member may have, which can be many. */
const maxComplaints = 3;

/** vLLM lists validation errors as Python prints them. Keeps only the messages about the first member. */
function withoutPython(message: string): string {
  if (!pythonList.test(message)) return message;
  const complaint = /'loc': \(?'body(?:', '|\.)(?<member>[\w-]+).*?'msg': (["'])(?<text>.*?)\2,/g;
  const found = [...message.matchAll(complaint)].map((it) => it.groups);
  const ofFirst = found.filter((it) => it?.member === found[0]?.member).map((it) => it?.text);
  return [...new Set(ofFirst)].slice(0, maxComplaints).join('; ') || message;
}

/** SGLang names the member in the same text: `'loc': ('body', 'tools', 0, 'function')`. */
function fromPython(message: string): string | null {
  if (!pythonList.test(message)) return null;
  // What follows the names and numbers is internal to Python: which of several forms it tried.
  const location = /'loc': \('body', (?<path>(?:(?:'[\w-]+'|\d+),? ?)+)/.exec(message);
  const parts = location?.groups?.path?.match(/'[\w-]+'|\d+/g) ?? [];
  const isName = (part: string) => part.startsWith("'");
  return toParam(toPath(parts.map((part) => (isName(part) ? part.slice(1, -1) : Number(part)))));
}

/** FastAPI: `{"detail":[{"loc":["body","messages",0,"role"],"msg":"...","type":"missing"}]}`. */
function fromDetails(details: unknown[]): UpstreamRefusal | null {
  const [first] = details;
  if (!isMembers(first)) return null;
  const location = Array.isArray(first.loc) ? first.loc : [];
  const param = toPath(location.filter((part, index) => index > 0 || part !== 'body'));
  const code = first.type === 'missing' ? 'missing_required_parameter' : 'invalid_value';
  return toRefusal({ message: first.msg, type: 'invalid_request_error', code, param });
}

/** Joins path segments to a path such as `messages[0].role`. */
const toPath = (parts: readonly unknown[]): string =>
  parts.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? `${part}` : `${text}.${part}`,
    '',
  );

function toName(value: unknown): string | null {
  return typeof value === 'string' && /^[A-Za-z][\w.-]{1,63}$/.test(value) ? value : null;
}
