// The judge of what the grammars write: Ajv, with formats checked by parsing rather than by patterns, so
// that it shares no mistake with the code under test.

import { isIPv4, isIPv6 } from 'node:net';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export function createValidator(schema: unknown): ValidateFunction {
  return ajv.compile(schema as object);
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const parsed = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(text);
}

function isTime(text: string): boolean {
  const match = /^(\d\d):(\d\d):(\d\d)(\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(text);
  if (!match) return false;
  const [hour, minute, second, , zoneHour = 0, zoneMinute = 0] = match.slice(1).map(Number);
  return hour! < 24 && minute! < 60 && second! < 60 && !(zoneHour > 23) && !(zoneMinute > 59);
}

function isHostname(text: string): boolean {
  return (
    text.length <= 253 &&
    text.split('.').every((label) => /^[a-z0-9-]{1,63}$/i.test(label) && !/^-|-$/.test(label))
  );
}

export const formats: Record<string, (text: string) => boolean> = {
  date: isDate,
  time: isTime,
  'date-time': (text) => {
    const [date, time, ...rest] = text.split('T');
    return rest.length === 0 && isDate(date!) && isTime(time ?? '');
  },
  duration: (text) =>
    /^P(?!$)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?$/.test(
      text,
    ),
  uuid: (text) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  email: (text) => {
    const [local, host, ...rest] = text.split('@');
    if (rest.length > 0 || !local || !host || local.length > 64) return false;
    return !/^\.|\.$|\.\./.test(local) && isHostname(host) && host.includes('.');
  },
  ipv4: isIPv4,
  // Of numbers, so every string has it.
  int32: () => true,
  ipv6: isIPv6,
  hostname: isHostname,
  uri: (text) => URL.canParse(text) && /^[\x21-\x7e]+$/.test(text),
};

const ajv = new Ajv2020({ strict: false, unicodeRegExp: true, logger: false, formats });
